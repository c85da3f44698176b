"""Two runs side by side: every figure computed by hand."""

import json
import math

import pandas as pd
import pytest

from liob_core.analysis import run_pairs
from liob_core.analysis.history import history
from liob_core.analysis.runs import list_runs, run_facts
from liob_core.store import database
from liob_core.store.edits import Edit, apply_edit

RUN = "20260101-000000-test"
OTHER = "20260102-000000-other"


def fill(writer, run_id, rates, *, passed, **changes):
    """A run of one variant with one block per decode rate, and checks of prompts p0, p1, ..."""
    writer.run(run_id=run_id, suite_sha256="s", title=run_id, **changes)
    writer.variant("F16", 16.0, run_id=run_id, weights_sha256="w")
    for block, tps in enumerate(rates):
        writer.speed("F16", block, chat_ms=127 / tps * 1e3, run_id=run_id)
    for place, has_passed in enumerate(passed):
        writer.answer("F16", f"p{place}", "pass" if has_passed else "fail", run_id=run_id)


def test_speed_is_compared_by_welch_over_logarithms(writer):
    fill(writer, RUN, (10.0, 10.0 * math.e), passed=())
    fill(writer, OTHER, (100.0, 100.0 * math.e), passed=())
    writer.flush()
    found = run_pairs.compare(writer.close(), RUN, OTHER)

    row = found.rows.set_index("metric").loc["decode_tps"]
    # ln rates have mean 1/2 apart from a factor 10 and sd 1/sqrt(2); se = sqrt(1/4 + 1/4), df = 2, t = 4.3027
    assert row["estimate"] == pytest.approx(10.0)
    assert math.log(row["ci_high"] / 10) == pytest.approx(4.30265 * math.sqrt(0.5), rel=1e-4)
    assert row["verdict"] == "not distinguishable"
    assert (row["n_before"], row["n_after"]) == (2, 2)
    assert found.warnings == ()


def test_clear_change_has_a_verdict_in_words(writer):
    fill(writer, RUN, (10.0, 10.1, 9.9), passed=())
    fill(writer, OTHER, (20.0, 20.2, 19.8), passed=())
    writer.flush()
    rows = run_pairs.compare(writer.close(), RUN, OTHER).rows.set_index("metric")

    assert rows.loc["decode_tps", "verdict"] == "better"
    assert rows.loc["decode_tps", "words"] == "2.0 times as fast"


def test_one_block_gives_a_change_and_no_verdict(writer):
    fill(writer, RUN, (10.0,), passed=())
    fill(writer, OTHER, (12.0,), passed=())
    writer.flush()
    row = run_pairs.compare(writer.close(), RUN, OTHER).rows.set_index("metric").loc["decode_tps"]

    assert row["estimate"] == pytest.approx(1.2)
    assert row["verdict"] is None
    assert row["words"] == "20 % faster (no verdict)"


def test_checks_are_paired_by_prompt(writer):
    fill(writer, RUN, (), passed=(True, True, False, False))
    fill(writer, OTHER, (), passed=(True, False, True, True))
    writer.flush()
    row = run_pairs.compare(writer.close(), RUN, OTHER).rows.set_index("metric").loc["pass_rate"]

    assert (row["before"], row["after"]) == (0.5, 0.75)
    assert row["estimate"] == pytest.approx(0.25)
    assert row["verdict"] == "not distinguishable"


def test_other_prompts_are_told_and_not_compared(writer):
    fill(writer, RUN, (), passed=(True,))
    fill(writer, OTHER, (), passed=(False,))
    writer.flush()
    writer.con.execute("UPDATE raw.runs SET suite_sha256 = 't' WHERE run_id = ?", [OTHER])
    found = run_pairs.compare(writer.close(), RUN, OTHER)

    assert any(sentence.startswith("Other prompts") for sentence in found.warnings)
    row = found.rows.set_index("metric").loc["pass_rate"]
    assert pd.isna(row["estimate"])
    assert row["words"] == "other prompts"


def test_everything_that_differs_is_told(writer):
    fill(writer, RUN, (10.0,), passed=())
    fill(writer, OTHER, (10.0,), passed=())
    writer.machine()
    writer.machine(machine_id="m2", cpu_name="Other CPU")
    writer.flush()
    writer.con.execute(
        "UPDATE raw.runs SET machine_id = 'm2', engine_version = '2', state = 'cancelled' WHERE run_id = ?",
        [OTHER],
    )
    writer.con.execute(
        "UPDATE raw.variants SET n_ctx = 8192, threads = 4, weights_sha256 = 'x' WHERE run_id = ?", [OTHER]
    )
    warnings = "\n".join(run_pairs.compare(writer.close(), RUN, OTHER).warnings)

    assert "Other machine: Test CPU, 16.0 GiB against Other CPU, 16.0 GiB" in warnings
    assert "Other engine version: 1 against 2." in warnings
    assert "Other context length: 4096 against 8192." in warnings
    assert "Other number of threads: 2 against 4." in warnings
    assert "F16: another file" in warnings
    assert f"{OTHER} is cancelled" in warnings


def test_variants_are_matched_by_weights_where_labels_differ(writer):
    fill(writer, RUN, (10.0,), passed=())
    fill(writer, OTHER, (10.0,), passed=())
    writer.variant("Q2_K", 3.0, run_id=OTHER, weights_sha256="z")
    writer.flush()
    writer.con.execute(
        "UPDATE raw.variants SET variant = 'renamed' WHERE run_id = ? AND variant = 'F16'", [OTHER]
    )
    found = run_pairs.compare(writer.close(), RUN, OTHER)

    assert found.only_before == ()
    assert found.only_after == ("Q2_K",)


def test_deleted_run_is_hidden_from_lists_and_results_and_kept_in_the_history(writer):
    fill(writer, RUN, (10.0,), passed=())
    writer.flush()
    apply_edit(writer.con, Edit(run_id=RUN, action="rename", text="  A better\nname "))
    apply_edit(writer.con, Edit(run_id=RUN, action="annotate", text="a note"))
    path = writer.close()
    assert run_facts(path, RUN).title == "A better name"
    assert list(list_runs(path)["title"]) == ["A better name"]

    with database.write(path) as con:
        apply_edit(con, Edit(run_id=RUN, action="delete"))
    assert list_runs(path).empty
    assert database.query(path, "SELECT * FROM results").empty
    kept = history(path)
    assert list(kept["note"]) == ["a note"]
    assert kept["deleted_utc"].notna().all()

    with database.write(path) as con:
        apply_edit(con, Edit(run_id=RUN, action="restore"))
    assert len(list_runs(path)) == 1
    assert len(database.query(path, "SELECT * FROM results")) == 1


def effective(**facts):
    return json.dumps(facts)


def test_other_offload_batch_and_cache_speak_against_a_comparison(writer):
    for run_id, share, batch, cache in ((RUN, 0.5, 512, "f16"), (OTHER, 1.0, 256, "q8_0")):
        fill(writer, run_id, (10.0,), passed=())
        writer.load(
            "F16",
            run_id=run_id,
            effective=effective(
                gpu_share=share,
                request={"options": {"num_batch": batch}},
                server_environment={"OLLAMA_KV_CACHE_TYPE": cache},
            ),
        )
    writer.flush()
    found = run_pairs.compare(writer.close(), RUN, OTHER).warnings
    assert "Other share on the GPU: 0.5 against 1." in found
    assert "Other batch: 512 against 256." in found
    assert "Other type of the server's cache: f16 against q8_0." in found


def test_layers_compare_as_used_whatever_was_asked(writer):
    fill(writer, RUN, (10.0,), passed=())  # 0 asked for, of a LIOB that did not store what was used
    writer.run(run_id=OTHER, suite_sha256="s", title=OTHER)
    writer.variant("F16", 16.0, run_id=OTHER, weights_sha256="w", gpu_layers=None)
    writer.load("F16", run_id=OTHER, effective=effective(gpu_layers=0))
    writer.flush()
    assert not any("layers" in one for one in run_pairs.compare(writer.close(), RUN, OTHER).warnings)
