"""What the headers of Hub files said, kept on this machine: listing a repository again asks for none anew."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

from pydantic import TypeAdapter

from liob_core import __version__
from liob_core.models.hub_repo import HubRepo, HubVariant
from liob_core.types import ModelFile, to_json

_ADAPTER: TypeAdapter[ModelFile] = TypeAdapter(ModelFile)


def known_header(repo: HubRepo, variant: HubVariant, cache_dir: Path) -> ModelFile | None:
    """What the variant's headers said before; None where it was not read, or by another LIOB."""
    entry = _entry(repo, variant, cache_dir)
    if entry is None:
        return None
    try:
        return _ADAPTER.validate_json(entry.read_bytes())
    except (OSError, ValueError):  # absent or damaged: the Hub tells it again
        return None


def keep_header(repo: HubRepo, variant: HubVariant, model: ModelFile, cache_dir: Path) -> None:
    """Keep what the variant's headers say; nothing where the Hub gives no digest to know the files by."""
    entry = _entry(repo, variant, cache_dir)
    if entry is None:
        return
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=entry.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(to_json(model), file)
        Path(name).replace(entry)
    except OSError:  # a cache that cannot be written costs time, not the result
        return


def _entry(repo: HubRepo, variant: HubVariant, cache_dir: Path) -> Path | None:
    """Where it is kept: by repository, names and contents, so that a new commit counts only for new files."""
    files = [(file.path, file.n_bytes, file.sha256 or file.git_sha1) for file in variant.files]
    if any(etag is None for _, _, etag in files):
        return None
    key = json.dumps([__version__, sorted(ModelFile.__dataclass_fields__), repo.repo_id, files])
    return cache_dir / "headers" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
