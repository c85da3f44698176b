"""The models that a user named for `run`, and the reference among them."""

from pathlib import Path

from liob_core.errors import UsageError


def with_reference(models: list[str] | None, reference: str | None) -> tuple[list[str], str | None]:
    """The models to compare, the reference's file among them, and the reference as a run knows it."""
    # One spelling for each: a worker starts in another folder.
    named = [str(Path(name).resolve()) if Path(name).exists() else name for name in models or ()]
    if reference is not None and Path(reference).is_file():
        path = str(Path(reference).resolve())
        # A folder may hold it too: a file that is named twice is still one variant.
        if not any(_holds(Path(name), path) for name in named):
            named.insert(0, path)
        reference = path
    if not named:
        raise UsageError("Name what to benchmark: --model FILE.gguf, and again for each further variant.")
    return named, reference


def _holds(model: Path, path: str) -> bool:
    """Whether that file, or a file right in that folder or in its subfolders, is the one at `path`."""
    wanted = Path(path)
    return model == wanted or (model.is_dir() and model in {wanted.parent, wanted.parent.parent})
