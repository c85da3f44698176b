"""Texts are found, checked and downloaded; what cannot be used is told in a sentence."""

import hashlib
from pathlib import Path

import duckdb
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from liob_core.config import SHIPPED_DIR
from liob_core.errors import FileError, MissingError, UsageError
from liob_core.quality.closeness.corpora import find_text, read_bytes

HUB_PATH = "/datasets/Salesforce/wikitext/resolve/main/wikitext-2-raw-v1/test-00000-of-00001.parquet"


def test_bundled_text_is_the_one_its_readme_names(tmp_path: Path) -> None:
    text = find_text("bundled", tmp_path)
    readme = (SHIPPED_DIR / "corpora" / "README.md").read_text(encoding="utf-8")
    assert text.sha256 in readme
    assert f"{text.n_bytes:,}" in readme
    assert text.n_bytes > 40_000
    assert read_bytes(text).startswith(b"ADVENTURE I. A SCANDAL IN BOHEMIA\n\nI.\n\nTo Sherlock Holmes")


def test_own_file_is_named_by_its_name_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes("Grüße\r\n".encode())
    text = find_text(str(path), tmp_path)
    assert (text.name, text.n_bytes) == ("notes.txt", 9)
    assert text.sha256 == hashlib.sha256("Grüße\r\n".encode()).hexdigest()


@pytest.mark.parametrize(
    ("content", "word"), [(b"", "empty"), (b" \n", "empty"), (b"\xff\xfe", "UTF-8"), (b"a\0b", "zero bytes")]
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(FileError, match=word):
        find_text(str(path), tmp_path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        find_text(str(tmp_path), tmp_path)


def test_an_unknown_name_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'bundled' or 'wikitext-2'"):
        find_text("wikitext-103", tmp_path)


@pytest.fixture
def parquet(tmp_path: Path) -> bytes:
    path = tmp_path / "rows.parquet"
    with duckdb.connect() as con:
        con.execute("CREATE TABLE rows AS SELECT unnest(['', ' = Title = \n', '', ' Body . \n']) AS text")
        con.execute(f"COPY rows TO '{path}' (FORMAT parquet)")
    return path.read_bytes()


def test_wikitext_is_downloaded_once_and_put_together(
    tmp_path: Path, httpserver: HTTPServer, parquet: bytes
) -> None:
    requests: list[str] = []

    def serve(request: Request) -> Response:
        requests.append(request.method)
        return Response(parquet, headers={"ETag": '"1"', "X-Repo-Commit": "a" * 40})

    httpserver.expect_request(HUB_PATH).respond_with_handler(serve)
    endpoint = httpserver.url_for("").rstrip("/")
    text = find_text("wikitext-2", tmp_path / "cache", endpoint=endpoint)
    assert text.name == "wikitext-2"
    assert read_bytes(text) == b" \n = Title = \n \n Body . \n"
    n_requests = len(requests)
    assert "GET" in requests
    assert find_text("wikitext-2", tmp_path / "cache", endpoint=endpoint) == text
    assert len(requests) == n_requests


def test_a_failed_download_names_the_other_texts_and_leaves_nothing(
    tmp_path: Path, httpserver: HTTPServer
) -> None:
    httpserver.expect_request(HUB_PATH).respond_with_data("no", status=404)
    with pytest.raises(MissingError, match="--text bundled"):
        find_text("wikitext-2", tmp_path, endpoint=httpserver.url_for("").rstrip("/"))
    assert [path.name for path in (tmp_path / "corpora").iterdir() if path.is_file()] == []
