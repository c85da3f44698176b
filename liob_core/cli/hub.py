"""`models`: what is on this machine, what the Hub offers and whether it fits, and its download."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from liob_core.analysis.words import UNKNOWN, memory, three_digits
from liob_core.cli.ollama import UrlOption, ollama_entries, pull_through_ollama
from liob_core.cli.options import JsonOption
from liob_core.cli.output import err, out, print_json, print_table
from liob_core.config import load_settings
from liob_core.errors import UsageError
from liob_core.models.hub import list_variants
from liob_core.models.hub_download import DownloadProgress, download
from liob_core.models.hub_offers import Offer, read_offers, sentences_of
from liob_core.models.hub_repo import HubRepo, find_variants, parse_repo
from liob_core.models.hub_unfinished import remove_unfinished, unfinished_downloads
from liob_core.models.inventory import HeldModel, held_models
from liob_core.models.memory import available_bytes, fits
from liob_core.models.ollama_pulls import pull_name
from liob_core.types import LoadSettings

models_app = typer.Typer(no_args_is_help=True, help="Models on this machine and on the Hugging Face Hub.")
RepoArgument = Annotated[
    str, typer.Argument(help="OWNER/NAME, with @REVISION or :LABEL if wanted, or a web address.")
]


@models_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the models on this machine: LIOB's own files, those in the Hub cache, and Ollama's."""
    entries = [_held_entry(held) for held in held_models(load_settings().models_dir)] + ollama_entries()
    if as_json:
        print_json(entries)
    elif not entries:
        out.print("No model yet. Fetch a small one: python -m liob_core sample")
    else:
        columns = [("where", "left"), ("label", "left"), ("size", "right"), ("path", "left")]
        print_table("", columns, [_list_row(entry) for entry in entries])


def _held_entry(held: HeldModel) -> dict[str, Any]:
    return {
        "source": held.source,
        "repo_id": held.repo.repo_id if held.repo else None,
        "commit": held.repo.commit if held.repo else None,
        "label": held.label,
        "file_bytes": held.file_bytes,
        "path": str(held.path),
    }


def _list_row(entry: dict[str, Any]) -> tuple[str, ...]:
    where = entry["repo_id"] or ("Ollama" if entry["source"] == "ollama" else "LIOB")
    return escape(where), escape(entry["label"]), memory(entry["file_bytes"]), escape(entry["path"])


@models_app.command("hub")
def hub(
    repo: RepoArgument,
    context: Annotated[int, typer.Option(help="Context length for the memory need.", min=1)] = 4096,
    kv_type: Annotated[str, typer.Option(help="Type of the KV cache: f16, q8_0, q4_0.")] = "f16",
    headers: Annotated[bool, typer.Option(help="Read each file's header over the network.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Show a Hub repository's variants: size, true bits per weight, memory need, and what fits here."""
    found = list_variants(parse_repo(repo))
    load = LoadSettings(n_ctx=context, kv_type_k=kv_type, kv_type_v=kv_type)
    with err.status(f"Reading {len(found.variants)} headers…"):
        cache_dir = load_settings().cache_dir
        rows = (
            read_offers(found, load, cache_dir) if headers else [Offer(variant=one) for one in found.variants]
        )
    available = available_bytes()
    if as_json:
        print_json(_document(found, rows, available, context))
        return
    columns = [
        ("variant", "left"),
        ("files", "right"),
        ("size", "right"),
        ("bits", "right"),
        (f"memory at {context} tokens", "right"),
        ("here", "left"),
        ("on disk", "left"),
    ]
    print_table(escape(found.repo_id), columns, [_hub_row(row, available) for row in rows])
    for sentence in sentences_of(found, rows):
        out.print(f"[yellow]{escape(sentence)}[/yellow]", soft_wrap=True)


def _document(repo: HubRepo, rows: Sequence[Offer], available: int, context: int) -> dict[str, Any]:
    return {
        "repo_id": repo.repo_id,
        "revision": repo.revision,
        "commit": repo.commit,
        "gated": repo.gated,
        "private": repo.private,
        "note": repo.note,
        "n_ctx": context,
        "available_bytes": available,
        "variants": [
            {
                "label": row.variant.label,
                "files": row.variant.files,
                "file_bytes": row.variant.file_bytes,
                "is_cached": row.variant.is_cached,
                "bpw": row.model.bpw if row.model else None,
                "need": row.need,
                "fit": fits(row.need, available),
                "reason": row.reason or (row.need.reason if row.need else None),
                "model": row.model,
            }
            for row in rows
        ],
    }


def _hub_row(row: Offer, available: int) -> tuple[str, ...]:
    return (
        escape(row.variant.label),
        str(len(row.variant.files)),
        memory(row.variant.file_bytes),
        three_digits(row.model.bpw if row.model else None),
        memory(row.need.need_bytes if row.need else None),
        fits(row.need, available) if row.need else UNKNOWN,
        "yes" if row.variant.is_cached else "",
    )


@models_app.command("pull")
def pull(
    repo: RepoArgument,
    files: Annotated[
        list[str] | None, typer.Argument(help="Labels or file names of variants.", show_default=False)
    ] = None,
    ollama: Annotated[
        bool, typer.Option("--ollama", help="Have Ollama pull them itself, as hf.co/OWNER/NAME:LABEL.")
    ] = False,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Download variants from the Hub into its cache; goes on where it stopped, and verifies what came."""
    found = list_variants(parse_repo(repo))
    wanted = find_variants(found.variants, files, found.repo_id) if files else list(found.variants)
    if not files and len(wanted) > 1:
        labels = ", ".join(variant.label for variant in wanted)
        raise UsageError(f"Name what to pull of {found.repo_id}: {labels}.")
    if found.note:
        err.print(f"[yellow]{escape(found.note)}[/yellow]", soft_wrap=True)
    if ollama:
        sizes = {pull_name(found, variant): variant.file_bytes for variant in wanted}
        pull_through_ollama(sizes, url, as_json=as_json)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    paths: list[Path] = []
    with Progress(*columns, console=err, transient=True) as bar:
        for variant in wanted:
            row = bar.add_task(escape(variant.label), total=variant.file_bytes)
            paths += download(found, variant, on_progress=_shown(bar, row))
    if as_json:
        print_json({"repo_id": found.repo_id, "commit": found.commit, "paths": [str(path) for path in paths]})
        return
    for path in paths:
        out.print(escape(str(path)), soft_wrap=True)


@models_app.command("unfinished")
def unfinished(
    remove: Annotated[bool, typer.Option("--remove", help="Delete them; new downloads begin anew.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List downloads from the Hub that never came to their end, with what they take on disk."""
    parts = unfinished_downloads()
    entries: list[dict[str, Any]] = [asdict(part) | {"path": str(part.path)} for part in parts]
    if remove:
        for part, entry in zip(parts, entries, strict=True):
            entry["freed_bytes"] = remove_unfinished(part)
    if as_json:
        print_json(entries)
    elif not parts:
        out.print("No download is unfinished.")
    else:
        columns = [("repository", "left"), ("file, by its digest", "left"), ("size", "right")]
        rows = [(escape(one.repo_id), one.digest[:12], memory(one.n_bytes)) for one in parts]
        print_table("Removed" if remove else "", columns, rows)


def _shown(bar: Progress, row: Any) -> Callable[[DownloadProgress], None]:
    return lambda progress: bar.update(row, completed=progress.done_bytes)
