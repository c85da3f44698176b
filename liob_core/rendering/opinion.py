"""What a judge said of one answer, and what other seeds of it came to, as notes."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from liob_core.analysis import words
from liob_core.quality.judge.calibration import MIN_SHARE
from liob_core.rendering.table import Note

Row = Mapping[Any, Any]
_RESULTS = {
    "win": ("better", "better than the reference"),
    "tie": ("same", "as good as the reference"),
    "loss": ("worse", "worse than the reference"),
}
_LONGEST_REASON = 160


def opinion_notes(opinion: Row) -> list[Note]:
    """The judge, its score or result and its reason; a judge that failed its calibration says so."""
    judge = str(opinion["judge"])
    failed = bool(pd.notna(opinion["calibration_share"]) and opinion["calibration_share"] < MIN_SHARE)
    doubt = ", which failed its calibration" if failed else ""
    if opinion["state"] != "scored":
        return [Note(f"{judge}: no opinion ({opinion['state']})", "unknown")]
    if pd.notna(opinion["score"]):
        notes = [Note(f"{judge}{doubt}: {opinion['score']:.0f} of 10")]
    else:
        look, said = _RESULTS[str(opinion["result"])]
        # What such a judge says gives no verdict, so it must not look like one.
        notes = [Note(f"{judge}{doubt}: {said}", "" if failed else look)]
    reason = opinion["reason"]
    if isinstance(reason, str) and reason.strip():
        short = reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 1] + "…"
        notes.append(Note(f"“{short}”"))
    return notes


def seed_note(row: Row) -> Note:
    """How many answers with other seeds passed the check, with the interval of this one prompt."""
    n_answers, n_checked = int(row["n_answers"]), int(row["n_checked"])
    if not n_checked:
        return Note(f"{n_answers} seeds, none checked", "unknown")
    low, high = row["pass_share_ci_low"], row["pass_share_ci_high"]
    between = f"{words.percent(low)} to {words.percent(high)}"
    return Note(f"{int(row['n_passed'])} of {n_checked} seeds passed ({between})")
