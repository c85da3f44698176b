import json

import pytest

from liob_core.engines.ollama_options import (
    load_body,
    read_keep_alive,
    read_profile,
    request_body,
    sampling_problem,
    settings_problem,
)
from liob_core.engines.protocol import Request
from liob_core.errors import UsageError
from liob_core.types import LoadSettings, Message, Sampling

SETTINGS = LoadSettings(n_ctx=2048, threads=3, gpu_layers=-1)
REQUEST = Request(prompt="Hi", sampling=Sampling(max_tokens=9, seed=5, min_p=0.02, stop=("x",)))
PROFILE = read_profile({})


def body_of(request=REQUEST, think=None, profile=PROFILE):
    return request_body("m", SETTINGS, profile, request, think)


def test_body_of_a_rendered_prompt_has_every_option_and_goes_raw():
    path, body = body_of(think=False)
    assert path == "/api/generate"
    assert body == {
        "model": "m",
        "prompt": "Hi",
        "raw": True,
        "stream": True,
        "truncate": False,
        "shift": False,
        "keep_alive": 600,
        "think": False,
        "options": {
            "num_ctx": 2048,
            "num_batch": 512,
            "num_gpu": -1,
            "num_thread": 3,
            "use_mmap": False,
            "typical_p": 1.0,
            "repeat_last_n": 64,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "draft_num_predict": 0,
            "seed": 5,
            "temperature": 0.0,
            "top_k": 40,
            "top_p": 0.95,
            "min_p": 0.02,
            "repeat_penalty": 1.0,
            "num_predict": 9,
            "stop": ["x"],
        },
    }


def test_body_of_turns_leaves_the_template_to_ollama():
    request = Request(
        prompt="ignored", sampling=Sampling(max_tokens=9), messages=(Message(role="user", content="Hi"),)
    )
    path, body = body_of(request, think=True)
    assert path == "/api/chat"
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    assert not {"prompt", "raw"} & set(body)
    assert "stop" not in body["options"], "the stop sequences of the registration belong to its template"
    assert (body["truncate"], body["shift"], body["think"]) == (False, False, True)


def test_body_of_a_model_that_cannot_think_has_no_think():
    assert "think" not in body_of()[1]


def test_body_that_loads_has_the_load_options_of_the_measured_one():
    loads = load_body("m", SETTINGS, PROFILE)
    measured = body_of()[1]
    assert loads["prompt"] == ""
    assert set(loads["options"].items()) <= {
        (name, value) for name, value in measured["options"].items() if name != "stop"
    }
    for name in ("truncate", "shift", "keep_alive"):
        assert loads[name] == measured[name]


def test_body_schema_is_sent_as_format():
    schema = {"type": "object"}
    request = Request(prompt="Hi", sampling=Sampling(max_tokens=9, json_schema=schema))
    assert body_of(request)[1]["format"] == schema


def test_body_profile_options_reach_the_wire():
    profile = read_profile({"options": {"draft_num_predict": 4, "num_batch": 128}, "keep_alive": "5m"})
    body = body_of(profile=profile)[1]
    assert (body["options"]["draft_num_predict"], body["options"]["num_batch"]) == (4, 128)
    assert body["keep_alive"] == "5m"


@pytest.mark.parametrize(
    ("value", "sent"),
    [("-1", -1), ("0", 0), ("300", 300), (300, 300), (1.5, 1.5), ("5m", "5m"), ("1h30m", "1h30m")],
)
def test_keep_alive_goes_out_as_ollama_takes_it(value, sent):
    got = read_keep_alive(value)
    assert (got, type(got)) == (sent, type(sent))


@pytest.mark.parametrize("value", ["abc", "", "5 m", None, True, float("nan"), float("inf"), [1]])
def test_keep_alive_that_is_none_is_told(value):
    with pytest.raises(UsageError, match="is no duration"):
        read_keep_alive(value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"option": {}}, "no setting 'option'"),
        ({"options": {"nmu_keep": 4}}, "would ignore the option 'nmu_keep'"),
        ({"options": {"num_predict": 0}}, "would ignore the option 'num_predict'"),
        ({"options": {"mirostat": 1}}, "would ignore"),
        ({"options": {"num_keep": "4"}}, "must be of type int"),
        ({"options": {"num_keep": True}}, "must be of type int"),
        ({"options": {"typical_p": "x"}}, "must be of type float"),
        ({"options": {"use_mmap": 1}}, "must be of type bool"),
        ({"options": [1]}, "must be a table"),
        ({"think": "lots"}, "is not known"),
        ({"think": 1.5}, "is not known"),
        ({"allow_remote": 1}, "must be true or false"),
    ],
)
def test_profile_mistakes_are_told_before_anything_is_sent(given, words):
    with pytest.raises(UsageError, match=words):
        read_profile(given)


@pytest.mark.parametrize(
    ("sampling", "words"),
    [
        (Sampling(max_tokens=0), "0 as unlimited"),
        (Sampling(max_tokens=-1), "not usable"),
        (Sampling(max_tokens=1, seed=2**31), "0 to 2147483647"),
        (Sampling(max_tokens=1, seed=-1), "Seed -1"),
        (Sampling(max_tokens=1, temperature=-1), "Temperature"),
        (Sampling(max_tokens=1, temperature=float("nan")), "Temperature"),
        (Sampling(max_tokens=1, ignore_eos=True), "no way to go on"),
        (Sampling(max_tokens=1, json_schema={"type": 7}), "not valid"),
    ],
)
def test_sampling_that_ollama_cannot_do_is_told(sampling, words):
    assert words in sampling_problem(sampling)


def test_sampling_largest_seed_is_fine():
    assert sampling_problem(Sampling(max_tokens=1, seed=2**31 - 1)) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (LoadSettings(n_parallel=2), "OLLAMA_NUM_PARALLEL"),
        (LoadSettings(kv_type_k="q8_0"), "OLLAMA_KV_CACHE_TYPE"),
    ],
)
def test_settings_of_the_server_alone_are_told(settings, words):
    assert words in settings_problem(settings)
    assert settings_problem(LoadSettings()) is None


def test_body_lone_surrogate_can_be_sent():
    json.dumps(body_of(Request(prompt="\ud83d", sampling=Sampling(max_tokens=1)))[1]).encode()


def test_body_layers_on_the_gpu_are_left_to_ollama_where_none_were_asked_for():
    assert "num_gpu" not in load_body("m", LoadSettings(), PROFILE)["options"]
    assert load_body("m", LoadSettings(gpu_layers=0), PROFILE)["options"]["num_gpu"] == 0
