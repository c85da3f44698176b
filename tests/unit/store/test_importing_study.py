"""The original study's table: recomputed to the digit, with what it did not say unknown."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liob_core.analysis.judged import judge_facts, judges, scores
from liob_core.analysis.results import results_table
from liob_core.analysis.run_pairs import compare
from liob_core.analysis.summary import summarize
from liob_core.charts.theme import LIGHT
from liob_core.errors import FileError, UsageError
from liob_core.rendering.results_table import results_columns, results_rows
from liob_core.store import database
from liob_core.store.importing import import_file
from liob_core.store.share import export_run

STUDY = Path(__file__).parent / "data" / "original_study.csv"
MACHINE = "Apple M4 Pro"
# Its own table (Qwen2.5-0.5B-Instruct): tokens/s, judge, highest system memory in MB, mean CPU peak in %.
PUBLISHED = {
    "FP16": (187.96, 8.2, 12111.47, 12.16),
    "Q8_0": (217.172, 8.0, 11765.78, 11.64),
    "Q4_K_M": (247.652, 7.2, 11555.75, 16.16),
}


@pytest.fixture
def study(db: Path) -> Path:
    import_file(db, STUDY, finish=summarize, machine=MACHINE)
    return db


def ask(db: Path, sql: str) -> list[tuple]:
    with database.read(db) as con:
        return con.execute(sql).fetchall()


def run_of(db: Path) -> str:
    return str(ask(db, "SELECT run_id FROM runs")[0][0])


def assert_alike(found: list[tuple], expected: list[tuple]) -> None:
    """Equal but for the last bits of a mean: threads of the database sum the same numbers in any order."""
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert [approximately(value) for value in other] == list(row)


def approximately(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def test_its_table_is_recomputed_to_the_digit(study: Path) -> None:
    found = ask(
        study,
        "SELECT variant, decode_tps, peak_system_ram_bytes / 1048576, cpu_peak_pct_mean, is_reference "
        "FROM results ORDER BY position",
    )
    assert [row[0] for row in found] == list(PUBLISHED)
    for variant, tps, ram_mb, cpu_pct, is_reference in found:
        published = PUBLISHED[variant]
        assert tps == pytest.approx(published[0], abs=1e-9), variant
        assert ram_mb == pytest.approx(published[2], abs=1e-6), variant
        assert cpu_pct == pytest.approx(published[3], abs=1e-9), variant
        assert is_reference == (variant == "FP16")
    with database.read(study) as con:
        shown = con.execute("SELECT variant, round(decode_tps, 2) FROM results").fetchall()
    assert dict(shown) == {"FP16": 187.96, "Q8_0": 217.17, "Q4_K_M": 247.65}


def test_judge_gets_the_verdict_that_the_study_lacks(study: Path) -> None:
    run_id = run_of(study)
    [judge] = judges(study, run_id).to_dict("records")
    table = scores(study, run_id, judge["judge_key"]).set_index("variant")

    for variant, published in PUBLISHED.items():
        assert table.loc[variant, "mean_score"] == pytest.approx(published[1], abs=1e-9)
    q4 = table.loc["Q4_K_M"]
    assert (q4["n_pairs"], q4["n_scored"], q4["n_total"]) == (5, 5, 5)
    assert q4["delta"] == pytest.approx(-1.0)
    # differences 0, 0, -1, -3, -1: sd sqrt(1.5), t(0.975, 4) = 2.776
    assert q4["delta_low"] == pytest.approx(-2.5207, abs=1e-3)
    assert q4["delta_high"] == pytest.approx(0.5207, abs=1e-3)
    assert q4["verdict"] == "not distinguishable"
    assert "never calibrated" in judge_sentence(study, run_id, judge["judge_key"])
    deltas = ask(
        study,
        "SELECT variant, round(estimate, 2), round(ci_low, 1), round(ci_high, 1), n, verdict "
        "FROM paired_deltas WHERE metric = 'judge_score' ORDER BY variant",
    )
    assert deltas == [
        ("Q4_K_M", -1.0, -2.5, 0.5, 5, "not distinguishable"),
        ("Q8_0", -0.2, -1.6, 1.2, 5, "not distinguishable"),
    ]


def judge_sentence(db: Path, run_id: str, judge_key: str) -> str:
    facts = judge_facts(db, run_id, judge_key, "single")
    assert facts is not None
    return facts.calibration_sentence


def test_one_load_a_variant_gives_no_verdict_on_speed(study: Path) -> None:
    [(ratio, low, n, verdict, reason)] = ask(
        study,
        "SELECT estimate, ci_low, n, verdict, reason FROM paired_deltas "
        "WHERE metric = 'decode_tps' AND variant = 'Q4_K_M'",
    )
    assert ratio == pytest.approx(247.652 / 187.96)
    assert (low, n, verdict, reason) == (None, 1, None, "one block, no interval")


def test_what_the_study_does_not_tell_is_unknown_with_a_reason(study: Path) -> None:
    [run] = ask(
        study,
        "SELECT kind, created_utc, liob_version, engine_version, temperature, max_tokens, cpu_name "
        "FROM runs JOIN machines USING (machine_id)",
    )
    assert run == ("original study", None, None, None, None, 512, MACHINE)
    samples = ask(study, "SELECT e2e_ms, prefill_tps, response, unknown FROM samples")
    assert len(samples) == 15
    for e2e_ms, prefill_tps, response, unknown in samples:
        assert (e2e_ms, prefill_tps, response) == (None, None, None)
        assert "did not publish" in json.loads(unknown)["e2e_ms"]
    results = ask(study, "SELECT bpw, peak_memory_bytes, pass_rate, unknown FROM results")
    for bpw, memory, pass_rate, unknown in results:
        assert (bpw, memory, pass_rate) == (None, None, None)
        assert {"peak_memory_bytes", "pass_rate", "decode_tps_ci_low"} <= json.loads(unknown).keys()
        assert "the engine itself named" in json.loads(unknown)["peak_vram_bytes"]
    [(cut,)] = ask(study, "SELECT count(*) FROM samples WHERE outcome = 'length'")
    assert cut == 10  # of 15 answers, as the study's limit of 512 tokens cut them


def test_again_adds_nothing_and_another_machine_is_another_run(study: Path) -> None:
    again = import_file(study, STUDY, finish=summarize, machine=MACHINE)
    assert (again.added, again.n_samples) == ((), 0)
    for machine in (None, "Another machine"):
        assert len(import_file(study, STUDY, finish=summarize, machine=machine).added) == 1
    assert ask(study, "SELECT count(DISTINCT machine_id), count(*) FROM runs") == [(3, 3)]


def test_two_machines_are_compared_with_what_speaks_against_it(study: Path) -> None:
    import_file(study, STUDY, finish=summarize, machine="Another machine")
    first, second = (row[0] for row in ask(study, "SELECT run_id FROM runs ORDER BY run_id"))
    found = compare(study, first, second)

    told = " ".join(found.warnings)
    assert "Other machine: " in told
    assert "the original study published" in told
    assert "unknown" not in told
    rates = found.rows[found.rows["metric"] == "decode_tps"]
    assert list(rates["estimate"]) == pytest.approx([1.0, 1.0, 1.0])
    assert set(rates["verdict"]) == {None}


def test_table_of_results_shows_judge_and_whole_machine(study: Path) -> None:
    table = results_table(study, run_of(study))
    labels = [column.label for column in results_columns(table)]
    [q4] = [row for row in results_rows(table, table, LIGHT) if row[0].text == "Q4_K_M"]
    shown = dict(zip(labels, q4, strict=True))
    assert shown["Judge"].text == "7.20"
    assert shown["System memory"].text == "11.3 GiB"
    assert shown["CPU peaks"].text == "16.2 %"


def test_json_by_the_same_names_is_the_same_run(study: Path, tmp_path: Path) -> None:
    with STUDY.open(newline="") as file:
        records = list(csv.DictReader(file))
    numbers = [
        {name: float(value) if value.replace(".", "").isdigit() else value for name, value in row.items()}
        for row in records
    ]
    path = tmp_path / "study.json"
    path.write_text(json.dumps(numbers))
    assert import_file(study, path, finish=summarize, machine=MACHINE).unchanged == (run_of(study),)


def test_empty_cell_is_no_score_and_no_zero(db: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.csv"
    path.write_text(STUDY.read_text().replace("18.0,9", ",", 1))
    import_file(db, path, finish=summarize, machine=MACHINE)
    found = ask(db, "SELECT state, score FROM judgements WHERE score IS NULL")
    assert found == [("judge_error", None)]
    [(cpu_pct,)] = ask(db, "SELECT cpu_peak_pct_mean FROM results WHERE variant = 'Q4_K_M'")
    assert cpu_pct == pytest.approx((20.2 + 13.8 + 17.4 + 11.4) / 4)


def test_it_leaves_and_comes_back_as_any_run(study: Path, empty_database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    other.write_bytes(empty_database.read_bytes())
    for format_ in ("json", "csv", "parquet", "duckdb"):
        out = export_run(study, run_of(study), format_, tmp_path / f"x-{format_}")
        import_file(other, out, finish=summarize)
    sql = "SELECT * EXCLUDE (unknown) FROM results ORDER BY variant"
    assert_alike(ask(other, sql), ask(study, sql))
    assert ask(other, "SELECT kind FROM runs") == [("original study",)]


def changed(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (changed("model_id", "evil"), "unknown column 'evil'"),
        (changed(",judge_score", ""), "no column 'judge_score'"),
        (changed(",9\n", ",11\n"), "less than or equal to 10"),
        (changed(",9\n", ",9,1\n"), "14 cells"),
        (changed("246.1", "fast"), "valid number"),
        (changed("246.1", "nan"), "finite number"),
        (changed("246.1", "-246.1"), "greater than or equal to 0"),
        (changed("qwen2.5-0.5b-q4,", "=cmd|'/C calc'!A0,"), "match pattern"),
        (changed("qwen2.5-0.5b-q4,", "<img src=x>,"), "match pattern"),
        (changed(",5,Math", ",4,Math"), "twice"),
        (changed("4-bit (Q4_K_M)", "small"), "quantization"),
        (changed("8-bit (Q8_0)", '"' + "x" * 200_000), "nothing was merged"),
        (lambda text: text[: len(text) // 2], "cells"),
        (lambda text: text.splitlines()[0], "no rows"),
        (lambda text: text + "\n" * 3 + "\udcff", "nothing was merged"),
    ],
)
def test_hostile_table_is_refused_whole(
    db: Path, tmp_path: Path, change: Callable[[str], str], sentence: str
) -> None:
    path = tmp_path / "study.csv"
    path.write_text(change(STUDY.read_text()), errors="surrogateescape")
    with pytest.raises(FileError, match=sentence) as refused:
        import_file(db, path, finish=summarize)
    assert "\n" not in str(refused.value)
    assert ask(db, "SELECT count(*) FROM raw.runs") == [(0,)]


def test_name_of_the_machine_is_a_name(db: Path) -> None:
    for name in ("", "x" * 201, "a\nb"):
        with pytest.raises(UsageError, match="machine"):
            import_file(db, STUDY, machine=name)
