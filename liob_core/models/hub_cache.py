"""What the Hub library's cache on this machine holds: shared with every program that uses the library."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from huggingface_hub import (
    CachedFileInfo,
    CachedRepoInfo,
    CachedRevisionInfo,
    HFCacheInfo,
    constants,
    scan_cache_dir,
    try_to_load_from_cache,
)
from huggingface_hub.errors import CacheNotFound

from liob_core.errors import FileError
from liob_core.models.hub_repo import HubFile, HubRef, HubRepo, HubVariant, group_files

_SHA256 = re.compile(r"[0-9a-f]{64}")


def cached_path(repo: HubRepo, file: HubFile) -> Path | None:
    """Where the cache holds `file` whole, or None."""
    found = try_to_load_from_cache(repo.repo_id, file.path, revision=repo.commit)
    path = Path(found) if isinstance(found, str) else None
    return path if path and path.stat().st_size == file.n_bytes else None


def cached_repo(ref: HubRef) -> HubRepo | None:
    """The newest cached commit of a repository that is the revision asked for; None where there is none."""
    cache = _scan()
    repos = (_of_revision(ref, one) for one in _revisions(cache, ref.repo_id) if _is_asked(ref, one))
    return next((repo for repo in repos if repo.variants), None)


def cached_repos() -> tuple[HubRepo, ...]:
    """The repositories with whole GGUF models in the cache, each at its newest cached commit, by name."""
    names = sorted(repo.repo_id for repo in _cached(_scan()) if repo.repo_type == "model")
    repos = (cached_repo(HubRef(repo_id=name)) for name in names)
    return tuple(repo for repo in repos if repo is not None)


def remove_cached(repo: HubRepo, variant: HubVariant) -> int:
    """The bytes that were freed by removing a variant's files, of every commit, from the cache."""
    cache = _scan()
    if cache is None:
        return 0
    paths = {file.path for file in variant.files}
    doomed = [
        file
        for revision in _revisions(cache, repo.repo_id)
        for file in revision.files
        if file.file_path.relative_to(revision.snapshot_path).as_posix() in paths
    ]
    plan = cache.delete_files(*doomed)
    try:
        plan.execute()
    except OSError as error:
        raise FileError(f"{variant.label} cannot be removed: {error.strerror or error}.") from error
    return plan.expected_freed_size


def _scan() -> HFCacheInfo | None:
    try:
        return scan_cache_dir(constants.HF_HUB_CACHE)
    except CacheNotFound:  # nothing was ever downloaded
        return None


def _cached(cache: HFCacheInfo | None) -> Iterable[CachedRepoInfo]:
    return cache.repos if cache else ()


def _revisions(cache: HFCacheInfo | None, repo_id: str) -> list[CachedRevisionInfo]:
    """The cached commits of a repository: what main names first, then the newest."""
    found = [
        revision
        for repo in _cached(cache)
        if repo.repo_type == "model" and repo.repo_id == repo_id
        for revision in repo.revisions
    ]
    return sorted(found, key=lambda one: ("main" in one.refs, one.last_modified), reverse=True)


def _is_asked(ref: HubRef, revision: CachedRevisionInfo) -> bool:
    asked = ref.revision
    is_commit = asked is not None and len(asked) >= 7 and revision.commit_hash.startswith(asked)
    return asked is None or is_commit or asked in revision.refs


def _of_revision(ref: HubRef, revision: CachedRevisionInfo) -> HubRepo:
    variants = group_files(_file(revision, file) for file in revision.files)
    return HubRepo(
        repo_id=ref.repo_id,
        revision=ref.revision,
        commit=revision.commit_hash,
        gated=None,
        private=False,
        variants=tuple(replace(one, is_cached=True) for one in variants if one.problem is None),
    )


def _file(revision: CachedRevisionInfo, file: CachedFileInfo) -> HubFile:
    content = file.blob_path.name  # its digest, where the cache can link
    return HubFile(
        path=file.file_path.relative_to(revision.snapshot_path).as_posix(),
        n_bytes=file.size_on_disk,
        sha256=content if _SHA256.fullmatch(content) else None,
    )
