import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from liob_core.errors import FileError, UsageError
from liob_core.report.make import write_report
from tests.unit.analysis.conftest import RUN, RunWriter

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> ![a](http://evil.example)"


class Reader(HTMLParser):
    """The tags of a page and where their attributes lead."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: set[str | None] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses |= {value for name, value in attrs if name.rpartition(":")[2] in {"src", "href"}}


@pytest.fixture
def db(writer: RunWriter) -> Path:
    writer.run(title="<b>run</b>")
    writer.machine()
    writer.variant("F16", 16)
    writer.variant("Q4<script>", 4.5)
    for label in ("F16", "Q4<script>"):
        writer.load(label)
        for block in range(3):
            writer.speed(label, block, chat_ms=1270.0 + block)
        writer.answer(label, "p0", "pass", response=HOSTILE, thinking=HOSTILE)
    writer.prompt("p0")
    writer.summarize()
    return writer.close()


def test_report_holds_every_part_and_fetches_nothing(db: Path, tmp_path: Path) -> None:
    report = write_report(db, RUN, tmp_path / "new" / "r.html")
    page = report.html.read_text()

    for part in (
        "What could make this wrong",
        "How fast, how big?",
        "How close, how good?",
        "What did they say?",
        "Test CPU",
    ):
        assert part in page
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert markup.count('class="chart"') == markup.count("<svg ") == 7
    assert report.png is not None
    assert report.png.read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in report.html.parent.iterdir()} == {"r.html", "r.png"}
    reader = Reader()
    reader.feed(markup)
    assert reader.addresses == {"#results", "#quality", "#answers"}
    assert reader.tags.isdisjoint({"link", "img", "image", "iframe", "object", "embed", "base", "use"})
    assert "default-src 'none'" in page


def test_text_of_models_and_files_is_inert(db: Path, tmp_path: Path) -> None:
    page = write_report(db, RUN, tmp_path / "r.html").html.read_text()

    markup, *others = re.split(r"<script>.*?</script>", page, flags=re.S)
    assert others == ["</body></html>\n"]  # one script runs, the last thing on the page
    assert "&lt;script&gt;alert(1)" in markup
    assert "<img" not in markup
    assert "Q4<script>" not in markup
    assert markup.count("<script") == markup.count('<script type="application/json"') == 7


def test_report_of_a_run_without_samples(writer: RunWriter, tmp_path: Path) -> None:
    writer.run(state="failed", reason="no engine")
    writer.variant("F16", 16)
    writer.summarize()

    report = write_report(writer.close(), RUN, tmp_path / "r.html")

    assert "This run asked no prompts" in report.html.read_text()
    assert "no engine" in report.html.read_text()


def test_what_cannot_be_written_is_one_sentence(db: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in \.html"):
        write_report(db, RUN, tmp_path / "r.pdf")
    (tmp_path / "r.html").mkdir()
    with pytest.raises(FileError, match="could not be written"):
        write_report(db, RUN, tmp_path / "r.html")
    with pytest.raises(UsageError, match="no run 'nope'"):
        write_report(db, "nope", tmp_path / "s.html")
