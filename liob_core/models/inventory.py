"""The model files on this machine that LIOB may use and remove: its own, and those in the Hub's cache."""

from dataclasses import dataclass
from pathlib import Path

from liob_core.errors import FileError
from liob_core.models.gguf import find_models
from liob_core.models.hub_cache import cached_path, cached_repos, remove_cached
from liob_core.models.hub_repo import HubRepo, HubVariant
from liob_core.models.labels import published_label, shard_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldModel:
    """One model on disk, all its parts; `repo` and `variant` where it lies in the Hub's cache."""

    label: str
    file_bytes: int
    path: Path  # of its first part
    repo: HubRepo | None = None
    variant: HubVariant | None = None

    @property
    def source(self) -> str:
        """Where it is kept: local or hub."""
        return "hub" if self.repo else "local"


def held_models(models_dir: Path) -> list[HeldModel]:
    """LIOB's own models, then those of the Hub's cache."""
    held = [_local(path) for path in _own(models_dir)]
    for repo in cached_repos():
        for variant in repo.variants:
            path = cached_path(repo, variant.files[0])
            if path is not None:
                held.append(
                    HeldModel(
                        label=variant.label,
                        file_bytes=variant.file_bytes,
                        path=path,
                        repo=repo,
                        variant=variant,
                    )
                )
    return held


def remove_held(held: HeldModel) -> int:
    """The bytes that were freed by removing all parts of a model."""
    if held.repo is not None and held.variant is not None:
        return remove_cached(held.repo, held.variant)
    freed = 0
    for part in shard_paths(held.path):
        try:
            n_bytes = part.stat().st_size
            part.unlink()
        except FileNotFoundError:  # somebody else was faster
            continue
        except OSError as error:
            raise FileError(f"{part} cannot be removed: {error.strerror or error}.") from error
        freed += n_bytes
    return freed


def _own(folder: Path) -> list[Path]:
    try:
        return find_models(folder) if folder.is_dir() else []
    except FileError:  # none there, which is no mistake here
        return []


def _local(path: Path) -> HeldModel:
    n_bytes = sum(part.stat().st_size for part in shard_paths(path) if part.exists())
    return HeldModel(label=published_label(path) or path.stem, file_bytes=n_bytes, path=path)
