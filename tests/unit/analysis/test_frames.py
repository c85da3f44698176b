"""The frames behind the pages: their rows, order and size."""

import pandas as pd
import pytest

from liob_core.analysis import answers, results, runs
from liob_core.errors import UsageError


def two_variants(writer):
    writer.run()
    writer.variant("Q8_0", 8.5)
    writer.variant("F16", 16.0)
    for label, chat_ms in (("Q8_0", 500.0), ("F16", 1000.0)):
        for block in range(3):
            writer.load(label, block)
            writer.speed(label, block, chat_ms=chat_ms + block)


def test_results_table_has_the_reference_first_and_words_for_each_delta(writer):
    two_variants(writer)
    writer.summarize()
    table = results.results_table(writer.close(), writer.run_id)
    assert list(table["variant"]) == ["F16", "Q8_0"]
    assert table.loc[1, "decode_tps_words"] == "2.0 times as fast"
    assert table.loc[1, "decode_tps_verdict"] == "better"
    assert table.loc[1, "peak_memory_bytes_words"] == "the same"
    assert pd.isna(table.loc[0, "decode_tps_words"])
    assert {f"{metric}_words" for metric in results.DELTA_METRICS} <= set(table.columns)


def test_results_table_of_a_lone_variant_has_its_row(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.summarize()
    assert len(results.results_table(writer.close(), writer.run_id)) == 1


def test_deltas_carry_their_words(writer):
    two_variants(writer)
    writer.summarize()
    frame = results.deltas(writer.close(), writer.run_id).set_index("metric")
    assert frame.loc["decode_tps", "words"] == "2.0 times as fast"
    assert frame.loc["pass_rate", "words"] == "—"


def test_block_rates_has_one_row_a_block_and_shape(writer):
    two_variants(writer)
    writer.summarize()
    frame = results.block_rates(writer.close(), writer.run_id)
    assert len(frame) == 2 * 3 * 2
    chat = frame[(frame["shape"] == "chat512") & (frame["variant"] == "F16")]
    assert list(chat["decode_tps"]) == pytest.approx([127.0, 127 / 1.001, 127 / 1.002])


def test_latencies_never_exceed_2000_rows_and_say_how_many_there_are(writer):
    writer.run(tasks=["suite"])
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw)
        for prompt in range(1500):
            writer.answer(label, f"p{prompt}", ttft_ms=float(prompt))
    writer.summarize()
    frame = results.latencies(writer.close(), writer.run_id)
    assert frame.groupby("variant").size().to_dict() == {"F16": 1000, "Q8_0": 1000}
    assert set(frame["n_samples"]) == {1500}
    # Of all 1,500 values, 0 to 1,499, not of those drawn; between two values by linear interpolation.
    for name, ms in (("p50", 749.5), ("p90", 1349.1), ("p99", 1484.01)):
        assert frame[f"ttft_ms_{name}"].unique() == pytest.approx([ms])


def test_percentile_that_so_few_values_cannot_bound_is_unknown(writer):
    writer.run(tasks=["suite"])
    for label, n in (("F16", 28), ("Q8_0", 29), ("Q4_0", 299)):
        writer.variant(label, 8)
        for prompt in range(n):
            writer.answer(label, f"p{prompt}", tpot_ms=float(prompt))
    writer.summarize()
    rows = results.latencies(writer.close(), writer.run_id).drop_duplicates("variant").set_index("variant")
    assert rows["tpot_ms_n"].to_dict() == {"F16": 28, "Q8_0": 29, "Q4_0": 299}
    assert rows["tpot_ms_p50"].notna().all()
    assert rows["tpot_ms_p90"].notna().to_dict() == {"F16": False, "Q8_0": True, "Q4_0": True}
    assert rows["tpot_ms_p99"].notna().to_dict() == {"F16": False, "Q8_0": False, "Q4_0": True}


def test_memory_parts_add_up_to_the_peak(writer):
    two_variants(writer)
    writer.summarize()
    frame = results.memory_parts(writer.close(), writer.run_id)
    measured = frame[(frame["variant"] == "F16") & (frame["kind"] == "measured")]
    assert list(measured["part"]) == ["weights", "KV cache", "compute", "other"]
    assert measured["bytes"].sum() == 2**31
    predicted = frame[(frame["variant"] == "F16") & (frame["kind"] == "predicted")]
    assert predicted["bytes"].sum() == 16 * 2**27 + 2**28


def test_runs_and_facts(writer):
    writer.machine()
    two_variants(writer)
    writer.answer("F16", "p1", outcome="timeout")
    writer.answer("F16", "p2", warmup=True)
    writer.summarize()
    path = writer.close()
    (row,) = runs.list_runs(path).to_dict("records")
    assert (row["variants"], row["n_samples"], row["n_failed"]) == ("F16, Q8_0", 13, 1)
    facts = runs.run_facts(path, writer.run_id)
    assert (facts.n_variants, facts.n_samples, facts.n_failed, facts.threads) == (2, 13, 1, 2)
    assert facts.machine_line == "Test CPU, 4 cores, 16.0 GiB, Linux"
    with pytest.raises(UsageError, match="There is no run 'nope'"):
        runs.run_facts(path, "nope")


def test_prompts_come_with_the_most_disagreement_first(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.variant("Q8_0", 8.5)
    for position, prompt in enumerate(("same", "reworded", "flipped")):
        writer.prompt(prompt, position)
    for label in ("F16", "Q8_0"):
        other = label == "Q8_0"
        writer.answer(label, "same", "pass", response="42")
        writer.answer(label, "reworded", "pass", response="42!" if other else "42")
        writer.answer(label, "flipped", "fail" if other else "pass", response="41" if other else "42")
        writer.answer(label, "same", "fail", response="no", block=1)
    writer.summarize()
    frame = answers.prompts(writer.close(), writer.run_id)
    assert list(frame["prompt_id"]) == ["flipped", "reworded", "same"]
    assert list(frame["n_flips"]) == [1, 0, 0]
    assert list(frame["other_text_share"]) == [1.0, 1.0, 0.0]
    assert frame.loc[0, "question"] == "question flipped"


def test_answers_come_one_a_variant_with_the_reference_first(writer):
    writer.run()
    for label, bpw in (("Q2_K", 3.0), ("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw)
    writer.prompt("p1")
    writer.answer("F16", "p1", "pass", response="42")
    writer.answer("F16", "p1", "fail", response="late", block=1)
    writer.answer("Q8_0", "p1", "fail", response="<b>\x1b[31m41")
    writer.summarize()
    path = writer.close()
    frame = answers.answers(path, writer.run_id, "p1")
    assert list(frame["variant"]) == ["F16", "Q8_0", "Q2_K"]
    assert list(frame["response"][:2]) == ["42", "<b>\x1b[31m41"]
    assert list(frame["same_text"][:2]) == [True, False]
    assert pd.isna(frame.loc[2, "outcome"])
    facts = answers.prompt_facts(path, writer.run_id, "p1")
    assert facts.turns == (("user", "question p1"),)
    with pytest.raises(UsageError, match="has no prompt 'nope'"):
        answers.prompt_facts(path, writer.run_id, "nope")
