import pandas as pd

from liob_core.analysis.judge_verdicts import JudgeFacts, score_row, with_verdicts
from liob_core.charts.theme import LIGHT
from liob_core.rendering.judge_tables import scores_table
from tests.unit.analysis.test_judged import scored


def last_notes(n_right):
    """What the last column of three variants says: a clear loss, one shared prompt, none."""
    base = scored(8, 8, 8, 8, 9)
    facts = JudgeFacts(
        judge="j", judge_key="k", mode="single", n_judged=11, n_scored=11, n_right=n_right, n_items=10
    )
    rows = [{"variant": "F16", "is_reference": True, "bpw": 16.0, **score_row(base, base)}]
    for label, mine in (("Q4", scored(3, 4, 3, 4, 3)), ("Q2", scored(5)), ("Q1", {})):
        rows.append({"variant": label, "is_reference": False, "bpw": 4.0, **score_row(mine, base)})
    table = pd.DataFrame(with_verdicts(rows, facts))
    _, cells = scores_table(table, LIGHT)
    return [[row[-1].text, *(note.text for note in row[-1].notes)] for row in cells]


def test_a_missing_verdict_is_no_verdict_even_beside_variants_that_have_one():
    reference, clear, one, none = last_notes(10)
    assert reference == ["reference"]
    assert clear[-1] == "worse"
    assert one == ["-3.00", "no verdict"]
    assert none[0] == "—"
    assert "nan" not in str([reference, clear, one, none])


def test_a_judge_without_a_verdict_does_not_repeat_why_in_every_row():
    assert [row[-1] for row in last_notes(5)[1:3]] == ["no verdict", "no verdict"]
