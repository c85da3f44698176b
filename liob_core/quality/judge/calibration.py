"""Whether a judge can be trusted: questions whose right answer is known, asked before anything else.

Each is asked in the mode in which the judge will be used, since a model may be good at one and not at the
other. A judge with fewer than 80 % right shows its scores and gives no verdict.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from liob_core.config import SHIPPED_DIR
from liob_core.errors import FileError
from liob_core.quality.judge.judge import JudgeModel, Opinion, ask_both_orders, score
from liob_core.quality.judge.questions import Task
from liob_core.types import JudgeMode, JudgeState, Message

MIN_SHARE = 0.80
CALIBRATION_FILE = SHIPPED_DIR / "judge" / "calibration.toml"
# What a good and a bad answer may score, 1 to 10.
GOOD_AT_LEAST = 7
BAD_AT_MOST = 4


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    id: str
    task: str
    rubric: str | None = None
    reference: str | None = None


class _Gold(_Entry):
    good: str
    bad: str


class _Identical(_Entry):
    answer: str


class _Damaged(_Entry):
    answer: str
    damaged: str
    damage: str


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    gold: list[_Gold]
    identical: list[_Identical]
    damaged: list[_Damaged]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationItem:
    """One question with a known answer: what is asked about `answer`, against `other` where there is one.

    `expected` is good or bad (a score), same or lower (two scores), win, tie or loss (a pair).
    """

    item_id: str
    kind: str  # gold | identical | damaged
    task: Task
    answer: str
    other: str | None
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSet:
    """The items for one mode, and the SHA-256 of the file they come from."""

    mode: JudgeMode
    sha256: str
    items: tuple[CalibrationItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What a judge made of one item; an item without a usable reply is not right."""

    item: CalibrationItem
    got: str | None
    is_right: bool
    state: JudgeState
    raw_reply: str
    attempts: int


def load_calibration(mode: JudgeMode, path: Path = CALIBRATION_FILE) -> CalibrationSet:
    """The calibration items for a mode; raises FileError where the file is not what it should be."""
    try:
        data = path.read_bytes()
        entries = _File.model_validate(tomllib.loads(data.decode()))
    except (OSError, ValueError, ValidationError) as error:
        problem = str(error).splitlines()[0]
        raise FileError(f"The calibration set {path} cannot be used: {problem}. Restore the file.") from error
    make = _single_items if mode is JudgeMode.SINGLE else _pair_items
    # Line ends differ between checkouts of the same text.
    digest = hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()
    return CalibrationSet(mode=mode, sha256=digest, items=tuple(make(entries)))


def calibrate(model: JudgeModel, item: CalibrationItem) -> Calibrated:
    """The judge's reply to one item, and whether it is right."""
    if item.other is None:
        return _calibrate_score(item, score(model, item.task, item.answer))
    if item.expected in {"win", "tie", "loss"}:
        return _calibrate_pair(model, item, item.other)
    # Another wording, since a judge that is asked the very same twice says the same twice.
    base = score(model, item.task, item.other, wording=1)
    return _calibrate_two_scores(item, score(model, item.task, item.answer), base)


def passed(n_right: int, n: int) -> bool:
    """Whether a judge with that many of `n` items right may give verdicts."""
    return n > 0 and n_right >= MIN_SHARE * n


def _item(
    entry: _Entry, kind: str, answer: str, expected: str, other: str | None = None, *, part: str = ""
) -> CalibrationItem:
    return CalibrationItem(
        item_id=f"{entry.id}{part}",
        kind=kind,
        task=Task(
            messages=(Message(role="user", content=entry.task),),
            rubric=entry.rubric,
            reference=entry.reference,
        ),
        answer=answer,
        other=other,
        expected=expected,
    )


def _single_items(entries: _File) -> list[CalibrationItem]:
    items = [_item(entry, "gold", entry.good, "good", part="/good") for entry in entries.gold]
    items += [_item(entry, "gold", entry.bad, "bad", part="/bad") for entry in entries.gold]
    items += [_item(entry, "identical", entry.answer, "same", entry.answer) for entry in entries.identical]
    items += [_item(entry, "damaged", entry.damaged, "lower", entry.answer) for entry in entries.damaged]
    return items


def _pair_items(entries: _File) -> list[CalibrationItem]:
    items = [_item(entry, "gold", entry.good, "win", entry.bad) for entry in entries.gold]
    items += [_item(entry, "identical", entry.answer, "tie", entry.answer) for entry in entries.identical]
    items += [_item(entry, "damaged", entry.damaged, "loss", entry.answer) for entry in entries.damaged]
    return items


def _calibrate_pair(model: JudgeModel, item: CalibrationItem, other: str) -> Calibrated:
    pair = ask_both_orders(model, item.task, item.answer, other)
    replies = [opinion.raw_reply for opinion in (pair.first, pair.second) if opinion]
    preferred = (pair.preferred_first, pair.preferred_second)
    # Whoever always names the first place ends in a tie too; over the same text twice it must say so itself.
    is_right = preferred == ("tie", "tie") if item.kind == "identical" else pair.result == item.expected
    return Calibrated(
        item=item,
        got=None if pair.result is None else f"{pair.result} ({', '.join(str(p) for p in preferred)})",
        is_right=is_right,
        state=pair.state,
        raw_reply="\n".join(replies),
        attempts=pair.attempts,
    )


def _calibrate_score(item: CalibrationItem, opinion: Opinion) -> Calibrated:
    value = opinion.verdict.score
    is_right = value is not None and (
        value >= GOOD_AT_LEAST if item.expected == "good" else value <= BAD_AT_MOST
    )
    return Calibrated(
        item=item,
        got=None if value is None else str(value),
        is_right=is_right,
        state=opinion.verdict.state,
        raw_reply=opinion.raw_reply,
        attempts=opinion.attempts,
    )


def _calibrate_two_scores(item: CalibrationItem, opinion: Opinion, base: Opinion) -> Calibrated:
    value, base_value = opinion.verdict.score, base.verdict.score
    is_known = value is not None and base_value is not None
    is_right = (
        value is not None
        and base_value is not None
        and (value == base_value if item.expected == "same" else value < base_value)
    )
    unscored = [o for o in (opinion, base) if o.verdict.state is not JudgeState.SCORED]
    return Calibrated(
        item=item,
        got=f"{value} against {base_value}" if is_known else None,
        is_right=is_right,
        state=unscored[0].verdict.state if unscored else JudgeState.SCORED,
        raw_reply=f"{opinion.raw_reply}\n{base.raw_reply}",
        attempts=opinion.attempts + base.attempts,
    )
