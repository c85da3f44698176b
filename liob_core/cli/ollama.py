"""`models` on Ollama: what it has, files registered with it, and those removed again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from liob_core.cli.options import JsonOption
from liob_core.cli.output import err, out, print_json
from liob_core.config import load_settings
from liob_core.engines.ollama_register import is_ours
from liob_core.engines.registry import describe_ollama
from liob_core.errors import UsageError
from liob_core.models.gguf import find_models
from liob_core.models.ollama_files import open_registry, register_variant, variant_to_register
from liob_core.models.ollama_pulls import pull
from liob_core.models.ollama_variant import open_server
from liob_core.types import LoadSettings

UrlOption = Annotated[str | None, typer.Option(help="Address of Ollama; OLLAMA_HOST if not given.")]


def ollama_entries() -> list[dict[str, Any]]:
    """What Ollama has installed, as rows of `models list`; says on standard error why where it has none."""
    state = describe_ollama()
    if not state.available:
        err.print(f"[dim]{escape(state.sentence)}[/dim]", soft_wrap=True)
        return []
    entries = []
    with open_server() as server:
        for entry in server.installed():
            found = server.look(entry)
            entries.append(
                {
                    "source": "ollama",
                    "repo_id": None,
                    "commit": None,
                    "label": found.quant or found.name,
                    "file_bytes": found.model.file_bytes if found.model else found.size_bytes,
                    "path": found.name,
                    "bpw": found.model.bpw if found.model else None,
                    "blob_sha256": found.blob_digest,
                    "manifest_digest": found.manifest_digest,
                    "is_ours": found.is_ours,
                }
            )
    return entries


def register(
    file: Annotated[Path, typer.Argument(help="A GGUF file; of a split one, any part.", show_default=False)],
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register a GGUF file with Ollama; the same weights always get the same name."""
    settings = load_settings()
    (path,) = find_models(file) if file.is_file() else [file]
    with err.status("Reading the file for its digests…"):
        variant = variant_to_register(path, LoadSettings(), settings.cache_dir)
    columns = (TextColumn("{task.description}"), BarColumn())
    with open_registry(url) as registry, Progress(*columns, console=err, transient=True) as bar:
        row = bar.add_task("registering", total=1.0)

        def tell(status: str, share: float | None) -> None:
            bar.update(row, description=escape(status), completed=share or 0.0)

        is_new = register_variant(registry, variant, settings.cache_dir, tell)
    if as_json:
        print_json(
            {
                "name": variant.engine_model,
                "is_new": is_new,
                "file_sha256": variant.file_sha256,
                "weights_sha256": variant.weights_sha256,
            }
        )
        return
    out.print(escape(variant.engine_model), soft_wrap=True)
    if not is_new:
        err.print("Ollama has these weights under that name already.")


def pull_through_ollama(sizes: Mapping[str, int], url: str | None, *, as_json: bool) -> None:
    """Have Ollama pull models, named with their bytes, one after another, with its progress."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with open_registry(url) as registry, Progress(*columns, console=err, transient=True) as bar:
        for name, n_bytes in sizes.items():
            pull(registry, name, _shown(bar, bar.add_task(escape(name), total=n_bytes)), n_bytes=n_bytes)
    if as_json:
        print_json({"names": list(sizes)})
        return
    for name in sizes:
        out.print(escape(name), soft_wrap=True)


def _shown(bar: Progress, row: TaskID) -> Callable[[str, int | None, int | None], None]:
    return lambda status, done, total: bar.update(
        row, description=escape(status), completed=done, total=total
    )


def remove(
    name: Annotated[str, typer.Argument(help="A name that `models register` gave.", show_default=False)],
    url: UrlOption = None,
    confirmed: Annotated[bool, typer.Option("--yes", help="Though LIOB did not make it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove a model that LIOB registered with Ollama; one that LIOB did not make only with --yes."""
    if not is_ours(name) and not confirmed:
        raise UsageError(f"LIOB did not make {name}: add --yes to delete it from Ollama all the same.")
    with open_registry(url) as registry:
        registry.remove(name, confirmed=confirmed)
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        out.print(f"{escape(name)} is removed from Ollama.", soft_wrap=True)
