from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liob_core.bench.measure import Ending, Recording, shape_ending
from liob_core.bench.plan import make_plan
from liob_core.bench.requests import make_request
from liob_core.bench.wording import FEWEST_TOKENS, WORDS, Calibration, is_near, n_words, speed_text
from liob_core.types import Counters, Message, Outcome, RenderedPrompt, Shape
from tests.unit.bench.builders import make_fake_spec

SPEC = make_fake_spec()
PLAN = make_plan(SPEC)
SPEED = [cell for cell in PLAN if cell.shape is not None]


def text_of(words):
    return " word" * words


def test_words_are_many_and_differ():
    assert len(set(WORDS)) == len(WORDS)
    assert len(WORDS) > 150


def test_speed_text_differs_from_the_first_words_on_and_is_reproducible():
    begins = [speed_text(SPEC, cell, 20)[:30] for cell in SPEED]
    assert len(set(begins)) == len(begins)
    assert speed_text(SPEC, SPEED[0], 7) == speed_text(SPEC, SPEED[0], 7)
    assert n_words(speed_text(SPEC, SPEED[0], 7)) == 7


@given(
    rise=st.floats(0.5, 3.0),
    offset=st.integers(0, 40),
    wanted=st.integers(60, 600),
    first=st.integers(20, 600),
)
def test_calibration_two_counts_give_the_length_of_any_engine(rise, offset, wanted, first):
    calibration = Calibration()
    for words in (first, first + 300):
        calibration.learn(text_of(words), round(offset + rise * words))
    counted = offset + rise * calibration.words_for(wanted)
    assert abs(counted - wanted) <= 2 + rise


def test_calibration_one_count_gives_the_offset():
    calibration = Calibration()
    assert calibration.is_sure
    assert calibration.words_for(128) == 128
    calibration.learn(text_of(128), 131)
    assert not calibration.is_sure
    assert calibration.words_for(512) == 509


def test_calibration_never_gives_an_empty_prompt():
    calibration = Calibration()
    calibration.learn(text_of(10), 500)
    assert calibration.words_for(5) == 1


@pytest.mark.parametrize(
    ("counted", "is_met"), [(512, True), (490, True), (480, False), (540, False), (None, False)]
)
def test_is_near_allows_five_percent(counted, is_met):
    assert is_near(counted, 512) is is_met


def cell_of(shape):
    return next(cell for cell in PLAN if cell.shape is shape)


def test_request_as_text_has_no_end_token_ignored_and_its_length_beside_it():
    calibration = Calibration()
    calibration.learn(text_of(100), 103)
    request = make_request(SPEC, SPEC.variants[0], cell_of(Shape.CHAT512), {}, calibration)
    assert n_words(request.prompt) == 509
    assert request.fixed_length == (512, 128)
    assert (request.sampling.ignore_eos, request.sampling.max_tokens) == (False, 128)
    assert request.sampling.temperature == 1.0


def test_request_as_text_is_never_so_short_that_a_model_ends_at_once():
    spec = make_fake_spec(shapes=(Shape.TG128,))
    cell = next(cell for cell in make_plan(spec) if cell.shape is Shape.TG128)
    request = make_request(spec, spec.variants[0], cell, {}, Calibration())
    assert request.fixed_length == (FEWEST_TOKENS, 128)


def test_request_warm_ups_as_text_try_two_lengths():
    warmup = next(cell for cell in PLAN if cell.warmup)
    calibration, lengths = Calibration(), []
    for _ in range(3):
        request = make_request(SPEC, SPEC.variants[0], warmup, {}, calibration)
        lengths.append(request.fixed_length[0])
        calibration.learn(request.prompt, n_words(request.prompt) + 2)
    assert lengths == [128, 512, 128]


def test_request_as_ids_is_as_before():
    request = make_request(SPEC, SPEC.variants[0], cell_of(Shape.PP512), {})
    assert (len(request.prompt), request.sampling.ignore_eos) == (512, True)
    assert request.fixed_length == (512, 1)


def suite_request(**changes):
    spec = make_fake_spec(**changes)
    cell = next(cell for cell in make_plan(spec) if cell.prompt_id == "p0" and not cell.warmup)
    rendered = RenderedPrompt(
        prompt_id="p0", text="<u>Hi<a>", sha256="", n_tokens=5, templated=True, template_sha256=None
    )
    return make_request(spec, spec.variants[0], cell, {"p0": rendered})


def test_request_of_a_suite_goes_as_rendered_with_the_tokens_that_are_expected():
    request = suite_request()
    assert (request.prompt, request.messages, request.expected_prompt_tokens) == ("<u>Hi<a>", (), 5)
    assert request.fixed_length is None


def test_request_of_a_suite_goes_as_turns_where_the_engine_is_compared():
    request = suite_request(prompt_mode="engine")
    assert request.messages == (Message(role="user", content="What is 0 + 1?"),)
    assert request.expected_prompt_tokens is None


def recorded(n_in, n_out, stop_type):
    counters = Counters(prompt_tokens=n_in, output_tokens=n_out, stop_type=stop_type)
    return Recording(0, counters=counters)


def text_request():
    return make_request(SPEC, SPEC.variants[0], cell_of(Shape.CHAT512), {}, Calibration())


@pytest.mark.parametrize(
    ("recording", "outcome", "words"),
    [
        (recorded(505, 128, "limit"), Outcome.LENGTH, ""),
        (recorded(505, 128, "stop"), Outcome.LENGTH, ""),
        (recorded(512, 64, "stop"), Outcome.BAD_REPLY, "ended its answer after 64 of 128"),
        (recorded(400, 128, "limit"), Outcome.BAD_REPLY, "counted 400 and 128"),
        (recorded(None, None, "stop"), Outcome.BAD_REPLY, "counted None"),
    ],
)
def test_shape_ending_early_stops_and_odd_counts_are_in_no_average(recording, outcome, words):
    ending = shape_ending(text_request(), recording, Ending(Outcome.LENGTH))
    assert ending.outcome is outcome
    assert words in (ending.reason or "")


def test_shape_ending_ids_are_met_exactly():
    request = make_request(SPEC, SPEC.variants[0], cell_of(Shape.CHAT512), {})
    ending = Ending(Outcome.LENGTH)
    assert shape_ending(request, recorded(512, 128, "limit"), ending) is ending
    assert shape_ending(request, recorded(511, 128, "limit"), ending).outcome is Outcome.BAD_REPLY


def test_shape_ending_without_counts_or_shape_is_left_alone():
    ending = Ending(Outcome.CONTEXT_EXCEEDED)
    assert shape_ending(text_request(), recorded(1, 1, "limit"), ending) is ending
    assert shape_ending(suite_request(), recorded(1, 1, "stop"), ending) is ending
    assert shape_ending(replace(text_request()), Recording(0), ending) is ending
