"""What the Hub, its mirrors or the way there refuse, as one sentence that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from huggingface_hub import constants, get_token
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from liob_core.errors import FileError, LiobError, MissingError


class HubUnreachableError(MissingError):
    """Nothing answers for the Hub, or LIOB must not ask; what is on this machine can still be used."""


# All that the library raises; its HTTP errors are OSErrors too, so these come before a disk's.
HUB_ERRORS = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    OfflineModeIsEnabled,
    FileMetadataError,
    LocalEntryNotFoundError,
)

_LOG_IN = "log in with `hf auth login` (or set HF_TOKEN)"
_GATED = "{repo} is gated: accept its terms at {page} and {log_in}."
_GATED_ACCOUNT = (
    "{repo} is gated, and your account has no access yet: ask for it at {page}, or use the token of an "
    "account that has it."
)
_REFUSED_LOGIN = "The Hub refuses your token. Get a new one and log in with `hf auth login`."
_NO_REPO = (
    "The Hub has no repository {repo}, or it is private. Check the spelling; for a private one, {log_in} "
    "with an account that may read it."
)
_REFUSED = "The Hub refuses {repo} (HTTP {status}). Check the name and the revision."
_NOT_STORED = (
    "The storage behind the Hub refuses {path} (HTTP {status}). Try again; if that stays so, choose "
    "another file."
)
_BUSY = "The Hub has had too many requests from here. Wait some minutes and try again."
_FAULT = "The Hub at {hub} has a fault now (HTTP {status}). Try again later."
_BY_KIND = (
    (RevisionNotFoundError, "{repo} has no revision {revision!r}. Choose one of the branches at {page}."),
    (EntryNotFoundError, "{repo} has no file {path} at this revision. List its files again."),
    (DisabledRepoError, "{repo} has been disabled on the Hub. Choose another repository."),
    (RepositoryNotFoundError, _NO_REPO),
)
_BY_STATUS = {
    401: _NO_REPO,
    403: "The Hub does not let you read {repo}. Check the permissions of your token.",
    404: _NO_REPO,
}


@contextmanager
def told(repo_id: str, revision: str | None, path: str | None = None) -> Iterator[None]:
    """Turn the library's errors into LIOB's. No address, header or token gets into a sentence."""
    try:
        yield
    except HUB_ERRORS as error:
        cause = error.__cause__
        if isinstance(error, LocalEntryNotFoundError) and isinstance(cause, HUB_ERRORS):
            raise _sentence(cause, repo_id, revision, path) from error
        raise _sentence(error, repo_id, revision, path) from error


def not_a_hub() -> FileError:
    """The error for an answer that no Hub gives, such as a login page of a network."""
    return FileError(
        f"{constants.ENDPOINT} does not answer as the Hub does. Check HF_ENDPOINT and whether the network "
        "asks for a login first."
    )


def _sentence(error: Exception, repo_id: str, revision: str | None, path: str | None) -> LiobError:
    if isinstance(error, OfflineModeIsEnabled):
        return HubUnreachableError(
            f"HF_HUB_OFFLINE is set, and {_what(repo_id, path)} is not in the Hub cache of this machine. "
            "Unset it to use the network."
        )
    if isinstance(error, FileMetadataError):
        return not_a_hub()
    if isinstance(error, HfHubHTTPError):
        return _refusal(error, repo_id, revision, path)
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return MissingError(
            f"HF_ENDPOINT is {constants.ENDPOINT!r}, which is not an https:// address. Fix it."
        )
    if isinstance(error, httpx2.TimeoutException):
        reason = "it does not answer in time"
    elif isinstance(error, httpx2.ProxyError):
        reason = "the proxy refuses"
    elif isinstance(error, httpx2.ConnectError):
        reason = str(error) or "no connection"
    else:
        reason = "the connection breaks"
    return HubUnreachableError(
        f"The Hub at {constants.ENDPOINT} cannot be reached ({reason.rstrip('.')}). Check the network, the "
        "proxy and HF_ENDPOINT; files that are on this machine can still be used."
    )


def _refusal(error: HfHubHTTPError, repo_id: str, revision: str | None, path: str | None) -> LiobError:
    status = error.response.status_code
    if status == 429 or status >= 500:
        return HubUnreachableError(
            _BUSY if status == 429 else _FAULT.format(hub=constants.ENDPOINT, status=status)
        )
    has_token = get_token() is not None
    if isinstance(error, GatedRepoError):  # a not-found error too, so it comes first
        sentence = _GATED_ACCOUNT if has_token else _GATED
    elif status == 401 and has_token and not isinstance(error, RepositoryNotFoundError):
        sentence = _REFUSED_LOGIN
    elif not str(error.response.url).startswith(constants.ENDPOINT) and type(error) is HfHubHTTPError:
        sentence = _NOT_STORED
    else:
        known = (sentence for kind, sentence in _BY_KIND if isinstance(error, kind))
        sentence = next(known, _BY_STATUS.get(status, _REFUSED))
    page = f"{constants.ENDPOINT}/{repo_id}"
    return MissingError(
        sentence.format(repo=repo_id, revision=revision, path=path, page=page, status=status, log_in=_LOG_IN)
    )


def _what(repo_id: str, path: str | None) -> str:
    return f"{path} of {repo_id}" if path else repo_id
