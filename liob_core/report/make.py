"""The report of a run: Overview, Results, Quality and Answers as one HTML file, and a picture of it."""

from dataclasses import dataclass
from pathlib import Path

from liob_core import __version__
from liob_core.analysis.overview import Headline, headline
from liob_core.analysis.results import block_rates, latencies, memory_parts, results_table, warnings
from liob_core.analysis.runs import RunFacts, run_facts
from liob_core.analysis.tradeoff import tradeoff
from liob_core.charts.files import WIDTH
from liob_core.charts.pictures import (
    Picture,
    latency_pictures,
    memory_picture,
    rate_pictures,
    tradeoff_picture,
)
from liob_core.charts.theme import LIGHT
from liob_core.errors import FileError, UsageError
from liob_core.rendering.results_table import results_columns, results_rows
from liob_core.rendering.run_words import how, kicker, origin
from liob_core.rendering.table import table_html
from liob_core.rendering.text import as_html
from liob_core.report.answers import answers_html
from liob_core.report.html import bullets, document, figure, section
from liob_core.report.quality import quality_html
from liob_core.report.summary import summary_png
from liob_core.store.journal import write_atomic

_HALF = 480  # pixels of a picture beside another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The files written: the page, and its summary as a picture (None where there was nothing to draw)."""

    html: Path
    png: Path | None


def write_report(db: Path, run_id: str, out: Path) -> Report:
    """The report of one run, at `out` and beside it."""
    if out.suffix.lower() not in {".html", ".htm"}:
        raise UsageError(f"A report is an HTML file: name {out} so that it ends in .html.")
    facts, answer = run_facts(db, run_id), headline(db, run_id)
    trade = _trade(db, facts, answer)
    text = _page(db, facts, answer, trade)
    png = out.with_suffix(".png") if trade.chart is not None else None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(out, text)
        if png is not None:
            png.write_bytes(summary_png(trade, answer.sentence))
    except OSError as error:
        raise FileError(f"The report could not be written to {out}: {error.strerror or error}.") from error
    return Report(html=out, png=png)


def _page(db: Path, facts: RunFacts, answer: Headline, trade: Picture) -> str:
    table = results_table(db, facts.run_id)
    caveats = warnings(db, facts.run_id)
    nothing = ["Nothing that LIOB looks for: no failures, no busy neighbours, no uneven blocks."]
    rows = table_html(
        results_columns(table), results_rows(table, table, LIGHT), caption="Results per variant"
    )
    command = f"<p>Use it: <code>{as_html(answer.command)}</code></p>" if answer.command else ""
    overview = (
        f'<header><div class="quiet">{as_html(kicker(facts))}</div><h1>{as_html(answer.sentence)}</h1>'
        f"<p>{as_html(answer.detail)}</p></header>"
        '<nav><a href="#results">How fast, how big?</a><a href="#quality">How close, how good?</a>'
        '<a href="#answers">What did they say?</a></nav>'
        f"{figure(trade, width=WIDTH)}{rows}{bullets(answer.evidence)}{command}"
    )
    return document(
        f"{facts.model_name or facts.title or facts.run_id}: LIOB report",
        overview
        + section("caveats", "What could make this wrong", bullets(caveats or nothing))
        + section("results", "How fast, how big?", *_results(db, facts))
        + section("quality", "How close, how good?", *quality_html(db, facts))
        + section("answers", "What did they say?", answers_html(db, facts.run_id))
        + f"<footer><p>{as_html(how(facts))}</p>"
        f"<p>{as_html(_made_with(facts))}</p></footer>",
    )


def _made_with(facts: RunFacts) -> str:
    if facts.liob_version:
        return f"Measured with LIOB {facts.liob_version}."
    return f"Not measured with LIOB; read and shown by LIOB {__version__}."


def _trade(db: Path, facts: RunFacts, answer: Headline) -> Picture:
    table, points = results_table(db, facts.run_id), tradeoff(db, facts.run_id)
    return tradeoff_picture(table, points, LIGHT, pick=answer.pick, origin=origin(facts))


def _results(db: Path, facts: RunFacts) -> list[str]:
    """Speed, waiting times and memory as pictures."""
    run_id, lines = facts.run_id, origin(facts)
    table = results_table(db, run_id)
    rates = rate_pictures(table, block_rates(db, run_id), facts.tasks, LIGHT, origin=lines)
    waits = latency_pictures(table, latencies(db, run_id), LIGHT, origin=lines)
    memory = memory_picture(table, memory_parts(db, run_id), LIGHT, origin=lines)
    pairs = ("".join(figure(picture, width=_HALF) for picture in pair) for pair in (rates, waits))
    return [*(f'<div class="pair">{pair}</div>' for pair in pairs), figure(memory, width=WIDTH)]
