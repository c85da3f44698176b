import threading
from dataclasses import replace

import pytest

from liob_core.engines.fake import FakeEngine
from liob_core.engines.protocol import Request
from liob_core.errors import EngineFailure
from liob_core.types import LoadSettings, Message, Outcome, Sampling

REQUEST = Request(prompt="What is 1 + 1?", sampling=Sampling(max_tokens=64))
SHAPE = Request(prompt=tuple(range(512)), sampling=Sampling(max_tokens=128, ignore_eos=True))


def loaded(variant, tmp_path, n_ctx=1024, **script):
    engine = FakeEngine({"sleep": False, **script})
    engine.load(variant, LoadSettings(n_ctx=n_ctx), log_path=tmp_path / "run" / "x.log", load_s=5)
    return engine


def text_of(engine, request=REQUEST):
    return "".join(chunk.text for chunk in engine.generate(request))


def failure_of(engine, request=REQUEST):
    with pytest.raises(EngineFailure) as caught:
        list(engine.generate(request))
    return caught.value


def test_generate_text_is_a_function_of_prompt_seed_and_variant(variant, tmp_path):
    engine, other = loaded(variant, tmp_path), loaded(replace(variant, label="Q2"), tmp_path)
    text = text_of(engine)
    assert text_of(loaded(variant, tmp_path)) == text
    assert text_of(other) != text
    assert text_of(engine, replace(REQUEST, prompt="Other")) != text
    assert text_of(engine, replace(REQUEST, sampling=replace(REQUEST.sampling, seed=2))) != text


def test_generate_shape_meets_its_counts_exactly(variant, tmp_path):
    *_, last = loaded(variant, tmp_path, rates={"Q4_1": 50.0}).generate(SHAPE)
    assert (last.counters.prompt_tokens, last.counters.output_tokens) == (512, 128)
    assert last.counters.engine_eval_ms == pytest.approx(127 * 20.0)
    assert last.counters.stop_type == "limit"


def test_generate_chunks_count_every_token_once(variant, tmp_path):
    chunks = list(loaded(variant, tmp_path).generate(REQUEST))
    assert sum(chunk.n_tokens for chunk in chunks) == chunks[-1].counters.output_tokens == 13


def test_generate_scripted_answer_and_thinking(variant, tmp_path):
    engine = loaded(variant, tmp_path, answers={"1 + 1": "It is 2."}, thinking="hm")
    chunks = list(engine.generate(REQUEST))
    assert "".join(chunk.text for chunk in chunks) == "It is 2."
    assert "".join(chunk.thinking for chunk in chunks) == "hm"
    assert chunks[-1].counters.stop_type == "eos"


@pytest.mark.parametrize(
    ("kind", "outcome", "needs_reload"),
    [
        ("die", Outcome.ENGINE_DIED, True),
        ("error", Outcome.ENGINE_ERROR, False),
        ("context", Outcome.CONTEXT_EXCEEDED, False),
        ("incomplete", Outcome.INCOMPLETE, True),
        ("garble", Outcome.BAD_REPLY, True),
    ],
)
def test_fault_strikes_after_some_tokens(variant, tmp_path, kind, outcome, needs_reload):
    chunks = loaded(variant, tmp_path, faults=[{"kind": kind, "after_tokens": 3}]).generate(REQUEST)
    assert len([next(chunks) for _ in range(3)]) == 3
    with pytest.raises(EngineFailure) as caught:
        next(chunks)
    assert (caught.value.outcome, caught.value.needs_reload) == (outcome, needs_reload)


def test_fault_conditions_choose_request_variant_and_prompt(variant, tmp_path):
    faults = [
        {"kind": "error", "request": 2},
        {"kind": "context", "prompt": "long"},
        {"kind": "die", "variant": "Q2"},
    ]
    engine = loaded(variant, tmp_path, faults=faults)
    assert text_of(engine)
    assert failure_of(engine).outcome is Outcome.ENGINE_ERROR
    assert text_of(engine)
    assert failure_of(engine, replace(REQUEST, prompt="a long one")).outcome is Outcome.CONTEXT_EXCEEDED


def test_fault_times_limits_how_often(variant, tmp_path):
    engine = loaded(variant, tmp_path, faults=[{"kind": "error", "times": 1}])
    assert failure_of(engine).outcome is Outcome.ENGINE_ERROR
    assert text_of(engine)


def test_hang_ends_only_by_abort_which_holds_until_a_load(variant, tmp_path):
    engine = loaded(variant, tmp_path, faults=[{"kind": "hang", "times": 1}])
    threading.Timer(0.05, engine.abort).start()
    assert failure_of(engine).outcome is Outcome.CANCELLED
    assert failure_of(engine).outcome is Outcome.CANCELLED
    engine.load(variant, LoadSettings(), log_path=tmp_path / "y.log", load_s=5)
    assert text_of(engine)


def test_after_death_a_load_is_needed(variant, tmp_path):
    engine = loaded(variant, tmp_path, faults=[{"kind": "die", "times": 1}])
    assert failure_of(engine).needs_reload
    assert "no model is loaded" in str(failure_of(engine))


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("load_fails", Outcome.ENGINE_ERROR),
        ("load_dies", Outcome.ENGINE_DIED),
        ("slow_load", Outcome.TIMEOUT),
    ],
)
def test_load_faults(variant, tmp_path, kind, outcome):
    engine = FakeEngine({"faults": [{"kind": kind, "load": 1}]})
    with pytest.raises(EngineFailure) as caught:
        engine.load(variant, LoadSettings(), log_path=tmp_path / "x.log", load_s=0.05)
    assert caught.value.outcome is outcome
    assert engine.load(variant, LoadSettings(), log_path=tmp_path / "x.log", load_s=5).load_ms is not None


def test_abort_ends_a_slow_load(variant, tmp_path):
    engine = FakeEngine({"faults": [{"kind": "slow_load"}]})
    threading.Timer(0.05, engine.abort).start()
    with pytest.raises(EngineFailure) as caught:
        engine.load(variant, LoadSettings(), log_path=tmp_path / "x.log", load_s=60)
    assert caught.value.outcome is Outcome.CANCELLED


def test_context_full_in_mid_answer_is_truncated(variant, tmp_path):
    *_, last = loaded(variant, tmp_path, n_ctx=530).generate(SHAPE)
    assert last.truncated
    assert last.counters.output_tokens == 18


def test_prompt_as_long_as_the_context_does_not_fit(variant, tmp_path):
    assert failure_of(loaded(variant, tmp_path, n_ctx=512), SHAPE).outcome is Outcome.CONTEXT_EXCEEDED


@pytest.mark.parametrize(
    ("kind", "text", "stop_type"), [("empty", "", "eos"), ("loop", "again and again " * 64, "limit")]
)
def test_empty_and_endless_answers(variant, tmp_path, kind, text, stop_type):
    chunks = list(loaded(variant, tmp_path, faults=[{"kind": kind}]).generate(REQUEST))
    assert "".join(chunk.text for chunk in chunks) == text
    assert chunks[-1].counters.stop_type == stop_type


def test_render_and_tokenize_agree_with_the_prompt_count(variant, tmp_path):
    engine = loaded(variant, tmp_path)
    prompt = engine.render([Message(role="user", content="a b c")])
    *_, last = engine.generate(replace(REQUEST, prompt=prompt))
    assert last.counters.prompt_tokens == len(engine.tokenize(prompt, add_special=True))
    assert engine.tokenize("", add_special=True) == [engine.bos_id()]
