"""`models`: what is on this machine, what the Hub offers and whether it fits, and its download."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from liob_core.analysis.words import UNKNOWN, memory, three_digits
from liob_core.cli.models import JsonOption
from liob_core.cli.output import err, out, print_json, print_table
from liob_core.config import load_settings
from liob_core.errors import FileError, LiobError, UsageError
from liob_core.models.gguf import find_models
from liob_core.models.hub import list_variants, read_remote_model
from liob_core.models.hub_cache import cached_path, cached_repos
from liob_core.models.hub_download import DownloadProgress, download
from liob_core.models.hub_repo import HubRepo, HubVariant, find_variants, parse_repo
from liob_core.models.labels import published_label, shard_paths
from liob_core.models.memory import available_bytes, fits, memory_need
from liob_core.types import LoadSettings, MemoryNeed, ModelFile

# Headers come from far away: several at once, but not so many that a Hub minds.
_N_AT_ONCE = 4

models_app = typer.Typer(no_args_is_help=True, help="Models on this machine and on the Hugging Face Hub.")
RepoArgument = Annotated[
    str, typer.Argument(help="OWNER/NAME, with @REVISION or :LABEL if wanted, or a web address.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One variant with what its header says; `reason` where it could not be read."""

    variant: HubVariant
    model: ModelFile | None = None
    need: MemoryNeed | None = None
    reason: str | None = None


@models_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the GGUF models on this machine: LIOB's own and those in the Hub cache."""
    entries = [_local_entry(path) for path in _own_models(load_settings().models_dir)]
    for repo in cached_repos():
        entries += [_cached_entry(repo, variant) for variant in repo.variants]
    if as_json:
        print_json(entries)
    elif not entries:
        out.print("No model yet. Fetch a small one: python -m liob_core sample")
    else:
        columns = [("where", "left"), ("label", "left"), ("size", "right"), ("path", "left")]
        print_table("", columns, [_list_row(entry) for entry in entries])


def _own_models(folder: Path) -> list[Path]:
    try:
        return find_models(folder) if folder.is_dir() else []
    except FileError:  # none there, which is no mistake here
        return []


def _local_entry(path: Path) -> dict[str, Any]:
    n_bytes = sum(part.stat().st_size for part in shard_paths(path) if part.exists())
    label = published_label(path) or path.stem
    return {"repo_id": None, "commit": None, "label": label, "file_bytes": n_bytes, "path": str(path)}


def _cached_entry(repo: HubRepo, variant: HubVariant) -> dict[str, Any]:
    return {
        "repo_id": repo.repo_id,
        "commit": repo.commit,
        "label": variant.label,
        "file_bytes": variant.file_bytes,
        "path": str(cached_path(repo, variant.files[0])),
    }


def _list_row(entry: dict[str, Any]) -> tuple[str, ...]:
    where = entry["repo_id"] or "LIOB"
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
        rows = _read_rows(found, load) if headers else [_Row(variant=variant) for variant in found.variants]
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
    for sentence in _sentences(found, rows):
        out.print(f"[yellow]{escape(sentence)}[/yellow]", soft_wrap=True)


def _read_rows(repo: HubRepo, load: LoadSettings) -> list[_Row]:
    with ThreadPoolExecutor(_N_AT_ONCE) as pool:
        return list(pool.map(partial(_read_row, repo, load), repo.variants))


def _read_row(repo: HubRepo, load: LoadSettings, variant: HubVariant) -> _Row:
    """One variant's facts; a refusal concerns it alone, so the list goes on."""
    try:
        model = read_remote_model(repo, variant)
    except LiobError as error:
        return _Row(variant=variant, reason=str(error))
    return _Row(variant=variant, model=model, need=memory_need(model, load))


def _document(repo: HubRepo, rows: Sequence[_Row], available: int, context: int) -> dict[str, Any]:
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


def _hub_row(row: _Row, available: int) -> tuple[str, ...]:
    return (
        escape(row.variant.label),
        str(len(row.variant.files)),
        memory(row.variant.file_bytes),
        three_digits(row.model.bpw if row.model else None),
        memory(row.need.need_bytes if row.need else None),
        fits(row.need, available) if row.need else UNKNOWN,
        "yes" if row.variant.is_cached else "",
    )


def _sentences(repo: HubRepo, rows: Sequence[_Row]) -> list[str]:
    """What must be said beside the table, each sentence once."""
    models = [row.model for row in rows if row.model]
    said = [repo.note, *(row.reason for row in rows), *(row.need.reason for row in rows if row.need)]
    said += [f"{Path(model.paths[0]).name}: {model.label_warning}" for model in models if model.label_warning]
    return list(dict.fromkeys(sentence for sentence in said if sentence))


@models_app.command("pull")
def pull(
    repo: RepoArgument,
    files: Annotated[
        list[str] | None, typer.Argument(help="Labels or file names of variants.", show_default=False)
    ] = None,
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


def _shown(bar: Progress, row: Any) -> Callable[[DownloadProgress], None]:
    return lambda progress: bar.update(row, completed=progress.done_bytes)
