"""How close and how good: closeness, checks by category, and what judges say, as parts of the page."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from liob_core.analysis.categories import check_categories, not_comparable, score_categories
from liob_core.analysis.closeness import broken_sizes, closeness_facts, closeness_table
from liob_core.analysis.judged import calibration, judges, pairs, scores
from liob_core.analysis.runs import RunFacts
from liob_core.charts.files import WIDTH
from liob_core.charts.pictures import Picture
from liob_core.charts.quality_pictures import check_map, judge_picture, ladder_picture, score_map
from liob_core.charts.theme import LIGHT
from liob_core.rendering.closeness_table import TWO_ERRORS, closeness_columns, closeness_rows
from liob_core.rendering.judge_tables import (
    MODES,
    calibration_table,
    calibration_words,
    pairs_table,
    reliability,
    scores_table,
)
from liob_core.rendering.run_words import origin
from liob_core.rendering.table import table_html
from liob_core.rendering.text import as_html
from liob_core.report.html import bullets, figure
from liob_core.types import JudgeMode


def quality_html(db: Path, facts: RunFacts) -> list[str]:
    """Everything that a run says of quality; what it does not say is told in a line."""
    return [*_closeness(db, facts), *_categories(db, facts), *_judges(db, facts)]


def _closeness(db: Path, facts: RunFacts) -> list[str]:
    """The ladder, its table and what both rest on."""
    table, found = closeness_table(db, facts.run_id), closeness_facts(db, facts.run_id)
    if found is None:
        return [_heading("Closeness to the reference"), _quiet("Not measured in this run.")]
    picture = ladder_picture(table, asdict(found), LIGHT, origin=origin(facts))
    rows = table_html(closeness_columns(table), closeness_rows(table, LIGHT), caption="Closeness per variant")
    return [
        f"<h3>{as_html(found.sentence)}</h3>",
        bullets(broken_sizes(db, facts.run_id)),
        figure(picture, width=WIDTH) if picture.chart is not None else "",
        rows,
        _quiet(f"{found.basis}. {found.build}. {TWO_ERRORS}"),
        bullets(found.notes),
    ]


def _categories(db: Path, facts: RunFacts) -> list[str]:
    """Checks by category, and which variants must not be ranked by them."""
    cells = check_categories(db, facts.run_id)
    if cells.empty:
        return []
    picture = check_map(cells, facts.reference or "the reference", LIGHT, origin=origin(facts))
    return [
        _heading("Checks by category"),
        figure(picture, width=WIDTH),
        bullets(not_comparable(db, facts.run_id, "pass_rate")),
    ]


def _judges(db: Path, facts: RunFacts) -> list[str]:
    """Every judge of the run, calibration first."""
    found = judges(db, facts.run_id)
    if found.empty:
        return [_heading("What a judge says"), _quiet("No judge has looked at these answers.")]
    return [
        part
        for place, judge in enumerate(found.to_dict("records"))
        for part in _judge(db, facts, judge, place)
    ]


def _judge(db: Path, facts: RunFacts, judge: dict[Any, Any], place: int) -> list[str]:
    """One judge's calibration, scores or pairs; `place` tells its pictures from those of others."""
    key, is_single = str(judge["judge_key"]), judge["mode"] == JudgeMode.SINGLE
    parts = [
        _heading(f"{judge['judge']}: {MODES[judge['mode']]}"),
        f"<p>{as_html(calibration_words(judge))}</p>",
    ]
    items = calibration(db, facts.run_id, key, judge["mode"])
    if not items.empty:
        parts.append(table_html(*calibration_table(items), caption="Calibration of the judge"))
    table = (scores if is_single else pairs)(db, facts.run_id, key)
    if table.empty or not judge["n_judged"]:
        return [*parts, _quiet("The judging ended before the first answer.")]
    picture = judge_picture(table, judge, LIGHT, origin=origin(facts))
    made = scores_table(table, LIGHT) if is_single else pairs_table(table, LIGHT)
    parts += [
        figure(_named(picture, place), width=WIDTH),
        table_html(*made, caption=f"{judge['judge']} per variant"),
        _quiet(reliability(judge, table)),
    ]
    if is_single and judge["gives_verdict"]:
        cells = score_categories(db, facts.run_id, key)
        reference = facts.reference or "the reference"
        chart = score_map(cells, reference, str(judge["judge"]), LIGHT, origin=origin(facts))
        parts.append(figure(_named(chart, place), width=WIDTH))
    return parts


def _named(picture: Picture, place: int) -> Picture:
    """The picture under a name of its own on the page."""
    return replace(picture, name=f"{picture.name}-{place}")


def _heading(text: str) -> str:
    return f"<h3>{as_html(text)}</h3>"


def _quiet(text: str) -> str:
    return f'<p class="quiet">{as_html(text)}</p>'
