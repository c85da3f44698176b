"""What is recommended under limits, and why; every figure is computed by hand."""

import json
import math

import pytest

from liob_core.analysis.limits import MET, MISSED, NOT_TRIED, UNKNOWN, Limits
from liob_core.analysis.overview import headline
from liob_core.analysis.recommend import recommend
from liob_core.analysis.recommend_words import needed_prompts
from liob_core.analysis.runs import run_facts
from liob_core.errors import UsageError
from tests.unit.analysis.test_closeness import GOOD, fidelity, run_of
from tests.unit.analysis.test_overview import ladder

MIB = 2**20


def evidence(found, variant):
    return {one.limit: one for one in found.of(variant).evidence}


def test_without_limits_it_is_what_the_overview_says(writer):
    db, run_id = ladder(writer, 120, lost={"Q4_K_M": 1, "Q2_K": 30})
    found, shown = recommend(db, run_id), headline(db, run_id)
    assert (found.kind, found.pick, found.runner_up) == ("pick", "Q4_K_M", "Q8_0")
    assert (found.sentence, found.detail, found.command) == (shown.sentence, shown.detail, shown.command)
    assert found.nearest is None
    loss = evidence(found, "Q4_K_M")["loss"]
    # One flip of 120 for the worse.
    assert (loss.verdict, loss.value, loss.n) == (MET, pytest.approx(-1 / 120), 120)
    assert loss.bound == pytest.approx(0.0365, abs=1e-4)
    assert evidence(found, "Q2_K")["loss"].verdict == MISSED


def test_speed_is_met_by_the_lower_end_of_its_interval(writer):
    db, run_id = ladder(writer, 120)
    # Q4_K_M makes 127 tokens in 1000 / 2.2 ms and a little more: about 279.1 tok/s, +-0.7 over three blocks.
    rate = 279.12
    inside = recommend(db, run_id, Limits(min_tps=rate - 2))
    beyond = recommend(db, run_id, Limits(min_tps=rate))
    assert evidence(inside, "Q4_K_M")["speed"].verdict == MET
    missed = evidence(beyond, "Q4_K_M")["speed"]
    assert missed.value == pytest.approx(rate, abs=0.01)
    assert missed.low < rate < missed.high
    assert missed.verdict == MISSED
    assert missed.bound == missed.low
    assert missed.excess == pytest.approx(1 - missed.low / rate)


def test_limits_leave_out_what_is_too_large_or_too_slow(writer):
    # Memory is 2560, 1792, 1024 and 256 MiB; speed rises down the ladder.
    db, run_id = ladder(writer, 120, lost={"Q2_K": 30})
    found = recommend(db, run_id, Limits(max_bytes=1100 * MIB))
    assert (found.pick, found.runner_up) == ("Q4_K_M", None)
    assert found.command == "llama-server --model model-Q4_K_M.gguf --ctx-size 4096 --threads 2"
    assert [evidence(found, name)["memory"].verdict for name in ("F16", "Q8_0", "Q4_K_M", "Q2_K")] == [
        MISSED, MISSED, MET, MET,
    ]  # fmt: skip


def test_nothing_meets_it_names_the_nearest_and_what_it_misses(writer):
    db, run_id = ladder(writer, 120, lost={"Q2_K": 30})
    found = recommend(db, run_id, Limits(max_bytes=900 * MIB))
    assert (found.kind, found.pick, found.command) == ("nothing meets it", None, None)
    # Q4_K_M misses memory alone, by 14 %; Q2_K misses the loss by far.
    assert found.nearest == "Q4_K_M"
    assert found.misses == ("peak memory of at most 900 MiB: 1.00 GiB",)
    assert found.sentence == (
        "Nothing is shown to meet this. Q4_K_M comes nearest, but misses: "
        "peak memory of at most 900 MiB: 1.00 GiB."
    )


def test_the_reference_is_the_answer_where_only_it_is_shown_to_meet_the_limits(writer):
    db, run_id = ladder(writer, 120, lost={"Q8_0": 30})
    found = recommend(db, run_id, Limits(min_tps=50))
    assert (found.kind, found.pick) == ("reference", "F16")
    assert found.sentence == "Only F16, the reference itself, is shown to meet this."
    assert evidence(found, "Q2_K")["loss"].verdict == NOT_TRIED
    assert "the ladder ends at Q8_0" in evidence(found, "Q2_K")["loss"].sentence


def test_an_unknown_figure_is_never_met(writer):
    writer.run()
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw)
        writer.load(label, peak_memory_bytes=None)
        writer.speed(label, 0)
        for prompt in range(80):
            writer.answer(label, f"p{prompt}", "pass")
    writer.summarize()
    found = recommend(writer.close(), writer.run_id, Limits(min_tps=1e-3, max_bytes=1e15, max_joules=1e9))
    own = evidence(found, "Q8_0")
    assert found.pick is None
    assert {name: one.verdict for name, one in own.items()} == {
        "speed": UNKNOWN, "memory": UNKNOWN, "energy": UNKNOWN, "loss": MET,
    }  # fmt: skip
    assert own["speed"].sentence.endswith("100 tok/s (one block, no interval)")
    assert own["memory"].sentence.endswith("not measured, 1.31 GiB predicted")
    assert own["energy"].value is None


def test_a_wider_margin_of_a_loss_goes_further_down(writer):
    db, run_id = run_of(writer, **GOOD)
    strict = recommend(db, run_id, Limits(max_ln_ratio=0.01))
    wide = recommend(db, run_id, Limits(max_ln_ratio=0.7))
    assert [strict.pick, recommend(db, run_id).pick, wide.pick] == ["Q8_0", "Q4_K_M", "Q2_K"]
    loss = evidence(strict, "Q4_K_M")["loss"]
    assert (loss.metric, loss.verdict, loss.n) == ("ln_ratio", MISSED, 16)
    assert loss.excess == pytest.approx((0.02 + 1.753e-3) / 0.01 - 1)


def test_too_few_prompts_cannot_meet_a_margin_even_without_a_flip(writer):
    found = recommend(*ladder(writer, 58), Limits(max_bytes=2000 * MIB))
    assert found.pick is None
    assert evidence(found, "Q8_0")["loss"].verdict == UNKNOWN
    assert found.nearest == "F16"  # it misses memory alone, and by 28 %
    assert needed_prompts(0.05) == 59


@pytest.mark.parametrize(
    "wrong",
    [{"min_tps": 0}, {"max_bytes": -1}, {"max_joules": math.nan}, {"max_loss": 0}, {"max_ln_ratio": 0}],
)
def test_limits_that_mean_nothing_are_refused(wrong):
    with pytest.raises(UsageError):
        Limits(**wrong)


def models(writer, *, lost=(0, 0), gained=0):
    """Small (reference) and Big, two rungs each; `lost` and `gained` are checks of Big Q8_0 and Big Q4_0."""
    writer.run(reference="Small F16", tasks=["speed", "suite", "closeness"])
    rows = (("Small F16", 16.0, 1), ("Small Q8_0", 8.5, 1), ("Big Q8_0", 8.5, 2), ("Big Q4_0", 4.5, 2))
    for place, (label, bpw, size) in enumerate(rows):
        writer.variant(
            label, bpw, is_reference=place == 0, architecture="llama", n_layers=10 * size,
            model_name=label.split()[0], model=json.dumps({"n_embd": 64 * size, "vocab_size": 1000}),
        )  # fmt: skip
        writer.load(label, peak_memory_bytes=(10 + place) * 100 * MIB)
        for block in range(3):
            writer.speed(label, block, chat_ms=1000.0 + block)
    for prompt in range(120):
        for place, (label, _, size) in enumerate(rows):
            is_lost = size == 2 and prompt < lost[place - 2]
            is_hard = prompt >= 120 - gained and size == 1
            writer.answer(label, f"p{prompt}", "fail" if is_lost or is_hard else "pass")
    fidelity(writer, "Small F16", reference=None)
    fidelity(writer, "Small Q8_0", 0.001, kld=0.001, reference="Small F16")
    fidelity(writer, "Big Q8_0", reference=None)
    fidelity(writer, "Big Q4_0", 0.02, kld=0.03, reference="Big Q8_0")
    writer.summarize()
    return writer.close(), writer.run_id


def test_another_model_is_held_against_the_reference_by_checks_never_by_perplexity(writer):
    found = recommend(*models(writer, gained=20))
    big = found.of("Big Q4_0")
    assert [one.metric for one in big.evidence] == ["pass_rate", "ln_ratio"]
    assert big.evidence[1].sentence == (
        "perplexity at most 2.2 % higher on 16 windows (95 %) than Big Q8_0's"
    )
    assert [one.metric for one in found.of("Big Q8_0").evidence] == ["pass_rate"]
    assert big.model == "Big"
    # 20 gained and none lost: even the bad end is a gain.
    assert big.evidence[0].sentence == "loses nothing on 120 prompts (95 %)"
    # 20 more checks of 120 are shown (McNemar's p is 2e-6), so the larger model is named.
    assert (found.pick, found.runner_up) == ("Big Q4_0", "Small Q8_0")
    assert found.notes == ("Small Q8_0 passes fewer checks than Big Q4_0.",)


def test_models_that_checks_do_not_tell_apart_are_chosen_by_memory(writer):
    found = recommend(*models(writer))
    assert found.pick == "Small Q8_0"
    assert found.notes == (
        "Checks do not tell Small Q8_0 and Big Q4_0 apart, so the one that takes least memory is named.",
    )


def test_another_models_ladder_ends_at_its_own_first_failure(writer):
    found = recommend(*models(writer, lost=(30, 0)))
    assert found.pick == "Small Q8_0"
    assert {one.verdict for one in found.of("Big Q4_0").evidence} == {NOT_TRIED}


def test_the_run_is_told_by_the_names_of_its_models(writer):
    db, run_id = models(writer)
    assert set(run_facts(db, run_id).model_name.split(" and ")) == {"Small", "Big"}


def test_closeness_is_a_paired_delta_to_the_models_own_reference(writer):
    db, run_id = models(writer)
    from liob_core.store import database

    rows = database.query(
        db, "SELECT variant, reference, estimate, reason FROM paired_deltas WHERE metric = 'ln_ratio'"
    ).set_index("variant")
    assert rows.loc["Big Q4_0", "reference"] == "Big Q8_0"
    assert rows.loc["Small Q8_0", "reference"] == "Small F16"
    assert "this is it" in rows.loc["Big Q8_0", "reason"]
    assert recommend(db, run_id).reference == "Small F16"


def test_a_cache_of_fewer_bits_is_a_ladder_of_its_own(writer):
    writer.run(tasks=["closeness"])
    caches = {"f16": (None, 0.02), "q8_0": (0.001, 0.021), "q4_0": (0.5, 0.6)}
    for cache, ratios in caches.items():
        for label, bpw, ratio in zip(("F16", "Q4_0"), (16.0, 4.5), ratios, strict=True):
            name = label if cache == "f16" else f"{label} KV {cache}"
            need = {"f16": 300, "q8_0": 200, "q4_0": 100}[cache]
            writer.variant(name, bpw, kv_type_k=cache, kv_type_v=cache, need_bytes=need)
            fidelity(writer, name, ratio, kld=0.01, reference=None if ratio is None else "F16")
    writer.summarize()
    found = recommend(writer.close(), writer.run_id)
    # A bad cache stops its own ladder, not that of the weights.
    assert evidence(found, "Q4_0 KV q4_0")["loss"].verdict == NOT_TRIED
    assert [evidence(found, name)["loss"].verdict for name in ("Q4_0", "Q4_0 KV q8_0")] == [MET, MET]
    assert (found.pick, found.runner_up) == ("Q4_0 KV q8_0", "Q4_0")
    # e^(0.021 + 1.753 x 0.001) - 1 = 2.301 %, rounded up.
    assert found.sentence.endswith("perplexity at most 2.4 % higher (95 %).")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"engine": "ollama", "engine_model": "a b:q8_0"}, "ollama run 'a b:q8_0'"),
        ({"file_name": "x;rm -rf.gguf"}, "llama-server --model 'x;rm -rf.gguf' --ctx-size 4096 --threads 2"),
        (
            {"gpu_layers": 99, "kv_type_k": "q8_0", "kv_type_v": "q8_0"},
            "llama-server --model model-Q8_0.gguf --ctx-size 4096 --threads 2 --n-gpu-layers 99 "
            "--cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on",
        ),
        ({"file_name": None}, None),
    ],
)
def test_the_command_runs_the_pick_as_it_was_measured(writer, changes, expected):
    writer.run()
    settings = {"engine": "fake", "gpu_layers": 0, "file_name": "model-Q8_0.gguf"} | changes
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw, **settings)
        for prompt in range(60):
            writer.answer(label, f"p{prompt}", "pass")
    writer.summarize()
    assert recommend(writer.close(), writer.run_id).command == expected
