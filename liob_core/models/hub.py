"""The Hugging Face Hub: what a repository offers, and what its models are, before anything is downloaded."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

from huggingface_hub import HfApi, constants
from huggingface_hub.hf_api import ModelInfo, RepoSibling

from liob_core import __version__
from liob_core.errors import FileError, MissingError
from liob_core.models.gguf import read_model
from liob_core.models.header import Header, HeaderCutError, read_header
from liob_core.models.hub_cache import cached_path, cached_repo
from liob_core.models.hub_errors import HubUnreachableError, not_a_hub, told
from liob_core.models.hub_headers import keep_header, known_header
from liob_core.models.hub_repo import HubFile, HubRef, HubRepo, HubVariant, group_files, select
from liob_core.models.hub_stream import stream_file
from liob_core.types import ModelFile

FIRST_PREFIX_BYTES = 2**20
LONGEST_HEADER_BYTES = 64 * 2**20

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")


def list_variants(ref: HubRef) -> HubRepo:
    """What the repository holds of what `ref` asks for; where the Hub cannot be reached, what is cached."""
    try:
        with told(ref.repo_id, ref.revision):
            repo = _from_info(ref, _ask(ref))
    except HubUnreachableError as error:
        cached = cached_repo(ref)
        if cached is None:
            raise
        repo = replace(cached, note=f"Only what is on this machine is shown. {error}")
    return replace(repo, variants=select(ref, repo.variants))


def _ask(ref: HubRef) -> ModelInfo:
    api = HfApi(library_name="liob", library_version=__version__)
    try:
        return api.model_info(
            ref.repo_id,
            revision=ref.revision,
            files_metadata=True,
            timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
        )
    except (ValueError, TypeError, KeyError) as error:  # something answers, but not with what a Hub says
        raise not_a_hub() from error


def _from_info(ref: HubRef, info: ModelInfo) -> HubRepo:
    # What is read here becomes parts of paths, so its form is checked.
    if not isinstance(info.sha, str) or not _SHA1.fullmatch(info.sha):
        raise not_a_hub()
    repo = HubRepo(
        repo_id=ref.repo_id,
        revision=ref.revision,
        commit=info.sha,
        gated=info.gated or None,
        private=bool(info.private),
        variants=group_files(_file(sibling) for sibling in info.siblings or []),
    )
    return replace(repo, variants=tuple(_marked(repo, variant) for variant in repo.variants))


def _file(sibling: RepoSibling) -> HubFile:
    n_bytes = sibling.lfs.size if sibling.lfs else sibling.size
    sha256 = sibling.lfs.sha256 if sibling.lfs else None
    if not isinstance(n_bytes, int) or (sha256 is not None and not _SHA256.fullmatch(sha256)):
        raise not_a_hub()
    git_sha1 = sibling.blob_id if sha256 is None and _SHA1.fullmatch(sibling.blob_id or "") else None
    return HubFile(path=sibling.rfilename, n_bytes=n_bytes, sha256=sha256, git_sha1=git_sha1)


def _marked(repo: HubRepo, variant: HubVariant) -> HubVariant:
    is_cached = variant.problem is None and all(cached_path(repo, file) for file in variant.files)
    return replace(variant, is_cached=is_cached)


def read_remote_model(repo: HubRepo, variant: HubVariant, cache_dir: Path | None = None) -> ModelFile:
    """What the headers of a variant say, read from the files or, before any download, over the network.

    Over the network only once where there is a `cache_dir` to keep what they said. `paths` of the result
    are those in the repository.
    """
    if variant.problem:
        raise FileError(f"{variant.label} of {repo.repo_id}: {variant.problem}")
    local = [path for file in variant.files if (path := cached_path(repo, file))]
    if len(local) == len(variant.files):
        return _with_paths(read_model(local[0]), variant)
    known = known_header(repo, variant, cache_dir) if cache_dir else None
    model = known or _with_paths(_read_over_network(repo, variant), variant)
    if cache_dir and known is None:
        keep_header(repo, variant, model, cache_dir)
    return model


def _with_paths(model: ModelFile, variant: HubVariant) -> ModelFile:
    return replace(model, paths=tuple(file.path for file in variant.files))


def _read_over_network(repo: HubRepo, variant: HubVariant) -> ModelFile:
    # On Windows a mapped file cannot be removed before its last user is gone.
    with tempfile.TemporaryDirectory(prefix="liob-header-", ignore_cleanup_errors=True) as folder:
        try:
            headers = {}
            for file in variant.files:
                beginning = Path(folder, Path(file.path).name)
                headers[beginning] = _fetch_header(repo, file, beginning)
            return read_model(next(iter(headers)), headers.__getitem__)
        except FileError as error:
            raise FileError(str(error).replace(folder, repo.repo_id)) from error
        except OSError as error:
            raise MissingError(
                f"The header of {variant.label} cannot be kept in {folder}: {error.strerror or error}. "
                "Free some space there."
            ) from error


def _fetch_header(repo: HubRepo, file: HubFile, beginning: Path) -> Header:
    """Fetch so much of a file's beginning as its header takes, into `beginning`."""
    longest = min(LONGEST_HEADER_BYTES, file.n_bytes)
    n_bytes, next_try = 0, min(FIRST_PREFIX_BYTES, longest)
    for piece in stream_file(repo, file, end=longest):
        with beginning.open("ab") as out:
            out.write(piece)
        n_bytes += len(piece)
        if n_bytes >= next_try:
            try:
                return read_header(beginning, file.n_bytes)
            except HeaderCutError:
                if n_bytes == longest:
                    raise
                next_try = min(2 * next_try, longest)
    raise FileError(f"{beginning} is empty. Choose another file.")
