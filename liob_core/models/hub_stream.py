"""The bytes of one file on the Hub, from anywhere in it, over the library's own HTTP session.

The session brings tokens, proxies, mirrors and offline mode as the library documents them.
"""

import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import constants, get_hf_file_metadata, get_session, hf_hub_url, hf_raise_for_status
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined] # documented there

from liob_core import __version__
from liob_core.errors import FileError
from liob_core.models.hub_errors import not_a_hub, told
from liob_core.models.hub_repo import HubFile, HubRepo

# So many attempts without one new byte end a transfer; the wait doubles between them.
MAX_ATTEMPTS = 5
FIRST_WAIT_S = 1.0

_CONTENT_RANGE = re.compile(r"bytes (?P<start>\d+)-")
_PASSING_STATUS = frozenset({408, 429, 500, 502, 503, 504})


def stream_file(repo: HubRepo, file: HubFile, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of `file` from `start` up to `end` (default: all), piece by piece.

    A connection that breaks is taken up where it broke.
    """
    done, last = start, file.n_bytes if end is None else min(end, file.n_bytes)
    attempts = 0
    with told(repo.repo_id, repo.revision, file.path):
        while done < last:
            try:
                for piece in _request(repo, file, done, last):
                    attempts = 0
                    done += len(piece)
                    yield piece
                if done < last:  # a body without a stated length that ends early
                    raise httpx2.RemoteProtocolError("the body ended early")
            except (httpx2.TransportError, HfHubHTTPError) as error:
                attempts += 1
                if attempts >= MAX_ATTEMPTS or not _is_passing(error):
                    raise
                time.sleep(FIRST_WAIT_S * 2 ** (attempts - 1))


def _is_passing(error: Exception) -> bool:
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _PASSING_STATUS
    # An address that cannot be used stays so.
    return not isinstance(error, httpx2.UnsupportedProtocol)


def _request(repo: HubRepo, file: HubFile, start: int, end: int) -> Iterator[bytes]:
    headers = {
        **build_hf_headers(library_name="liob", library_version=__version__),
        "Accept-Encoding": "identity",
        "Range": f"bytes={start}-{end - 1}",
    }
    url = _locate(repo, file, headers)
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
        hf_raise_for_status(response)
        # A server that knows no ranges sends the whole file; what is known already is passed over.
        skip, left = _bytes_before(response, start), end - start
        for piece in response.iter_bytes():
            wanted = piece[skip : skip + left]
            skip -= min(skip, len(piece))
            left -= len(wanted)
            if wanted:
                yield wanted
            if not left:
                return


def _locate(repo: HubRepo, file: HubFile, headers: dict[str, str]) -> str:
    """The address to ask for the bytes; takes the token out of `headers` where that is another host's."""
    address = hf_hub_url(repo.repo_id, file.path, revision=repo.commit)
    metadata = get_hf_file_metadata(address, library_name="liob", library_version=__version__)
    if metadata.commit_hash is None:
        raise not_a_hub()
    if metadata.etag != (file.sha256 or file.git_sha1):
        raise FileError(
            f"{file.path} of {repo.repo_id} is not what the Hub's own list says. List the repository again."
        )
    # The address of a file in Xet storage serves the library's own client; the plain one always works.
    if metadata.xet_file_data is not None or metadata.location == address:
        return address
    if urlsplit(metadata.location)[:2] != urlsplit(address)[:2]:
        headers.pop("authorization", None)
    return metadata.location


def _bytes_before(response: httpx2.Response, start: int) -> int:
    """How many bytes of the body lie before `start` of the file."""
    if response.status_code != 206:
        return start
    sent = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
    if sent is None or int(sent["start"]) > start:
        raise FileError("The server sent another part of the file than was asked for. Try again later.")
    return start - int(sent["start"])
