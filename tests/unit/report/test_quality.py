"""Quality in the report: judges and closeness with what limits them, and text of others inert."""

from pathlib import Path

import pytest

from liob_core.analysis.summary import summarize
from liob_core.report.make import write_report
from liob_core.store import database
from liob_core.store.importing import import_file
from tests.unit.analysis.conftest import RUN, RunWriter
from tests.unit.report.test_make import HOSTILE

STUDY = Path(__file__).parents[1] / "store" / "data" / "original_study.csv"


@pytest.fixture
def db(writer: RunWriter) -> Path:
    writer.run(tasks=["suite", "closeness"])
    writer.machine()
    for place, label in enumerate(("F16", "Q4_0")):
        writer.variant(label, 16 - 11.5 * place)
        writer.load(label)
        writer.answer(label, "p0", "pass", response="fine", sample_id=f"s{place}")
        writer.insert(
            "judgements", judgement_id=f"j{place}", run_id=RUN, sample_id=f"s{place}", variant=label,
            prompt_id="p0", judge=HOSTILE, judge_key="k", mode="single", state="scored", score=8 - place,
            reason=HOSTILE, raw_reply=HOSTILE,
        )  # fmt: skip
        writer.insert(
            "fidelities", run_id=RUN, variant=label, reference="F16" if place else None, text=HOSTILE,
            n_ctx=512, n_windows=16, n_tokens=4080, window_choice="spread over the text", ppl=20.0 + place,
            ppl_se=1.0, ppl_se_iid=0.5, ln_ratio=0.05 if place else None, kld_mean=0.04 if place else None,
            kld_se=0.01 if place else None, kld_se_iid=0.01 if place else None, build=HOSTILE,
            cpu_features="AVX2 = 1", ending="done",
        )  # fmt: skip
    for number in range(10):
        writer.insert(
            "calibrations", calibration_id=f"c{number}", run_id=RUN, judge=HOSTILE, judge_key="k",
            mode="single", item_id=f"i{number}", item_kind="gold", is_right=number < 9, state="scored",
        )  # fmt: skip
    writer.prompt("p0", category=HOSTILE)
    writer.summarize()
    return writer.close()


def test_closeness_and_judges_are_told_with_what_limits_them(db: Path, tmp_path: Path) -> None:
    page = write_report(db, RUN, tmp_path / "r.html").html.read_text()

    for part in ("KL divergence from F16", "compare them within one build only", "9 of 10", "8.00", "1 of 1"):
        assert part in page, part
    assert 'data-spec="spec-closeness"' in page
    assert 'data-spec="spec-judge-single-0"' in page


def test_text_of_judges_and_of_closeness_is_inert(db: Path, tmp_path: Path) -> None:
    page = write_report(db, RUN, tmp_path / "r.html").html.read_text()

    markup = page.split("<script>")[0]
    assert "&lt;script&gt;alert(1)" in markup
    assert "<img" not in markup
    assert markup.count("<script") == markup.count('<script type="application/json"')


def test_study_says_what_it_lacks_and_its_verdicts(empty_database: Path, tmp_path: Path) -> None:
    db = tmp_path / "liob.duckdb"
    db.write_bytes(empty_database.read_bytes())
    import_file(db, STUDY, finish=summarize, machine="Apple M4 Pro")
    with database.read(db) as con:
        [(run_id,)] = con.execute("SELECT run_id FROM runs").fetchall()

    page = write_report(db, run_id, tmp_path / "r.html").html.read_text()

    for part in ("Apple M4 Pro", "247.652", "7.20", "-1.00", "-2.52 to +0.52", "not distinguishable"):
        assert part in page, part
    assert "was never calibrated" in page
    assert "were left out" in page
    assert "Not measured with LIOB" in page
