"""The texts that closeness is measured on: shipped, downloaded, or the user's own file."""

import hashlib
import os
from pathlib import Path

from liob_core.config import SHIPPED_DIR
from liob_core.errors import FileError, MissingError, UsageError
from liob_core.quality.closeness.records import Text

BUNDLED, WIKITEXT = "bundled", "wikitext-2"
_BUNDLED_FILE = SHIPPED_DIR / "corpora" / "adventures-1892.txt"
_WIKITEXT_REPO = "Salesforce/wikitext"
_WIKITEXT_FILE = "wikitext-2-raw-v1/test-00000-of-00001.parquet"
_MAX_BYTES = 256 * 2**20  # more would take minutes to cut into tokens, and no evaluation reads as much


def find_text(name: str, cache_dir: Path, *, endpoint: str | None = None) -> Text:
    """The text called `bundled` or `wikitext-2`, or the file at that path.

    WikiText-2 is downloaded once into `cache_dir` from the Hub, or from `endpoint`.
    """
    if name == BUNDLED:
        return _read(BUNDLED, _BUNDLED_FILE)
    if name == WIKITEXT:
        target = cache_dir / "corpora" / "wikitext-2-raw-test.txt"
        if not target.exists():
            _download_wikitext(target, endpoint)
        return _read(WIKITEXT, target)
    path = Path(name)
    if not path.exists():
        raise UsageError(f"There is no text {name!r}: give a file, {BUNDLED!r} or {WIKITEXT!r}.")
    return _read(path.name, path)


def read_bytes(text: Text) -> bytes:
    """The bytes of a text, checked to be the same as when it was found."""
    data = _bytes_of(Path(text.path))
    if hashlib.sha256(data).hexdigest() != text.sha256:
        raise FileError(f"{text.path} has changed since it was chosen: start a new run with it.")
    return data


def _read(name: str, path: Path) -> Text:
    data = _bytes_of(path)
    if not data.strip():
        raise FileError(f"{path} is empty.")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text: convert it first.") from error
    if b"\0" in data:
        raise FileError(f"{path} is not a text: it holds zero bytes.")
    return Text(
        name=name, path=str(path.resolve()), sha256=hashlib.sha256(data).hexdigest(), n_bytes=len(data)
    )


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise FileError(f"{path} is larger than {_MAX_BYTES // 2**20} MiB: cut out the part to use.")
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error


def _download_wikitext(target: Path, endpoint: str | None) -> None:
    """Write the test split as one text, under a temporary name until it is whole."""
    import duckdb  # noqa: PLC0415 - only for this download
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - likewise

    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        parquet = hf_hub_download(
            _WIKITEXT_REPO,
            _WIKITEXT_FILE,
            repo_type="dataset",
            cache_dir=target.parent / "hub",
            endpoint=endpoint,
            etag_timeout=10,
        )
        with duckdb.connect() as con:
            rows = con.execute("SELECT text FROM read_parquet(?)", [parquet]).fetchall()
        # The data set keeps an empty string where the original file has a line of one space.
        part.write_bytes("".join(text or " \n" for (text,) in rows).encode("utf-8"))
        part.replace(target)
    except (OSError, duckdb.Error) as error:  # the Hub's own errors are OSErrors
        raise MissingError(
            f"WikiText-2 could not be downloaded from the Hub: check the connection, use --text {BUNDLED}, "
            "or give a file of your own."
        ) from error
    finally:
        part.unlink(missing_ok=True)
