"""A whole run of the real worker on an Ollama server that is killed, stalled, cut and garbled under it."""

import json
import socket
import threading
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from liob_core.bench import jobs
from liob_core.config import Settings
from liob_core.engines.ollama import OllamaEngine
from liob_core.engines.protocol import Request
from liob_core.models.variant import fake_variant
from liob_core.store.journal import read_lines
from liob_core.types import Limits, LoadSettings, RunSpec, Sampling, Shape, Task
from tests.integration.ollama_server import MODEL, Answer, OllamaServer, last_line, line, recording
from tests.integration.test_worker import run_to_end, samples, wait_for_end, wait_until
from tests.unit.bench.builders import make_fake_spec, make_suite


@pytest.fixture
def server():
    made = OllamaServer()
    yield made
    made.close()


def make_spec(server: OllamaServer, **changes: object) -> RunSpec:
    settings = LoadSettings(n_ctx=2048, threads=1)
    variant = replace(fake_variant("Q4_1", bpw=4.5, settings=settings), engine="ollama", engine_model=MODEL)
    spec = make_fake_spec(
        engine="ollama",
        engine_url=server.url,
        variants=(variant,),
        reference="Q4_1",
        tasks=(Task.SPEED, Task.SUITE),
        suite=make_suite(2),
        n_blocks=1,
        n_warmups=2,
        limits=Limits(first_token_s=1.0, between_tokens_s=1.0, request_s=2.0, load_s=10.0),
    )
    return replace(spec, **changes)


def n_alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class CachingOllama(OllamaServer):
    """Reads only the part of a prompt that no earlier one began with, and does not say so."""

    def _generate(self, body: dict[str, Any]) -> Answer:
        prompt = str(body["prompt"])
        known = max((n_alike(prompt, one) for one in self.prompts), default=0)
        self.prompts.append(prompt)
        n_read = prompt[known:].count(" ") + 1
        usual = super()._generate(body)
        last = json.loads(usual.pieces[-1]) | {"prompt_eval_duration": n_read * 2_000_000}
        return Answer(pieces=(*usual.pieces[:-1], json.dumps(last).encode() + b"\n"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.prompts: list[str] = []


def test_run_prompt_rate_does_not_rise_over_blocks_on_a_server_that_caches(
    settings: Settings, tmp_path: Path
) -> None:
    server = CachingOllama()
    spec = make_spec(server, tasks=(Task.SPEED,), suite=None, n_blocks=3, shapes=(Shape.PP512,))
    status = run_to_end(spec, settings)
    assert (status.state, status.n_failed) == ("finished", 0)
    counters = [one["counters"] for one in samples(spec, settings) if one["cell"]["shape"]]
    rates = [one["prompt_tokens"] / one["engine_prompt_ms"] for one in counters]
    assert len(rates) == 3
    assert max(rates) < 2 * min(rates)
    # The same prompt twice is what such a server makes a high rate of.
    engine = OllamaEngine(server.url)
    variant = spec.variants[0]
    engine.load(variant, variant.load_settings, log_path=tmp_path / "engine.log", load_s=5.0)
    request = Request(prompt=" word" * 512, sampling=Sampling(max_tokens=1))
    first, second = (list(engine.generate(request))[-1].counters for _ in range(2))
    engine.close()
    server.close()
    assert first is not None
    assert second is not None
    assert second.prompt_tokens == first.prompt_tokens
    assert (second.engine_prompt_ms or 0) < (first.engine_prompt_ms or 0) / 100


def loads(spec: RunSpec, settings: Settings) -> list[dict]:
    lines, _ = read_lines(settings.runs_dir / spec.run_id)
    return [entry["data"] for entry in lines if entry["kind"] == "load"]


def test_run_meets_its_shapes_as_text_and_stores_what_was_counted(settings: Settings, server) -> None:
    spec = make_spec(server)
    status = run_to_end(spec, settings)
    assert (status.state, status.n_done, status.n_failed) == ("finished", 4, 0)
    stored = samples(spec, settings)
    shapes = {one["cell"]["shape"]: one for one in stored if one["cell"]["shape"]}
    for shape, (n_in, n_out) in {Shape.PP512: (512, 1), Shape.CHAT512: (512, 128)}.items():
        sample = shapes[shape]
        assert (sample["outcome"], sample["counters"]["output_tokens"]) == ("length", n_out)
        assert abs(sample["counters"]["prompt_tokens"] - n_in) <= 1
        assert sample["counters"]["cached_tokens"] is None
        assert sample["prompt"].count(" ") + 3 == sample["counters"]["prompt_tokens"]
    prompts = [one["prompt"] for one in stored if one["cell"]["task"] == "speed"]
    assert len({prompt[:40] for prompt in prompts}) == len(prompts), "no two begin alike"
    assert [one["cold"] for one in stored] == [True, False, False, False, False, False]
    (load,) = loads(spec, settings)
    assert load["engine_version"] == "ollama 0.33.0"
    assert load["effective"]["request"]["options"]["num_ctx"] == 2048
    assert "num_gpu" not in load["effective"]["request"]["options"], "Ollama fits it by itself"
    assert load["load_ms"] > 0
    assert server.loaded == {}, "what LIOB loaded it frees"


def test_run_early_stop_of_a_shape_is_flagged_and_in_no_average(settings: Settings, server) -> None:
    server.faults[4] = Answer(pieces=(line(response="x"), last_line(prompt_eval_count=512, eval_count=40)))
    spec = make_spec(server, tasks=(Task.SPEED,), suite=None)
    status = run_to_end(spec, settings)
    assert (status.state, status.n_failed) == ("finished", 1)
    (sample,) = [one for one in samples(spec, settings) if one["cell"]["shape"] == "chat512"]
    assert sample["outcome"] == "bad_reply"
    assert "after 40 of 128 tokens" in sample["reason"]
    assert sample["counters"]["output_tokens"] == 40


def outcomes(spec: RunSpec, settings: Settings) -> list[str]:
    """Those of the measured cells, each of which that did not go well says why."""
    measured = [one for one in samples(spec, settings) if not one["cell"]["warmup"]]
    assert all(one["reason"] for one in measured if one["outcome"] not in {"ok", "length"})
    return [one["outcome"] for one in measured]


def test_run_goes_on_after_every_broken_answer(settings: Settings, server) -> None:
    cut = Answer(pieces=(line(response="a", done=False), b'{"resp'), is_whole=False)
    too_long = recording("chat-exceed-context-400")
    server.faults |= {  # the first two answers are those of the warm-ups
        3: cut,
        4: Answer(pieces=(b"<html>\n",)),
        5: Answer(400, too_long.pieces),
        6: Answer(pieces=(line(response=" "),) * 31),
    }
    spec = make_spec(server)
    status = run_to_end(spec, settings)
    assert (status.state, status.n_done) == ("finished", 4)
    assert outcomes(spec, settings) == ["incomplete", "bad_reply", "context_exceeded", "repetition"]
    assert len(loads(spec, settings)) == 1, "none of these makes a load useless"


def test_run_loads_anew_after_a_death_and_after_a_stall(settings: Settings, server) -> None:
    stall = Answer(pieces=(line(response="a"), lambda: threading.Event().wait(5)))
    server.faults |= {3: Answer(200, recording("chat-runner-killed").pieces), 6: stall}
    spec = make_spec(server)
    status = run_to_end(spec, settings)
    assert (status.state, status.n_done, status.n_failed) == ("finished", 4, 2)
    assert outcomes(spec, settings) == ["engine_died", "timeout", "length", "length"]
    assert len(loads(spec, settings)) == 3


def test_run_server_that_dies_ends_every_cell_with_a_reason(settings: Settings, server) -> None:
    server.faults[3] = Answer(pieces=(line(response="a"), server.close), is_whole=False)
    spec = make_spec(server)
    status = run_to_end(spec, settings)
    assert (status.state, status.n_failed) == ("finished", 4)
    assert outcomes(spec, settings) == ["engine_died"] * 4


def test_run_in_engine_mode_sends_turns_and_keeps_what_they_become(settings: Settings, server) -> None:
    for _ in range(2):
        server.replay(recording("chat-debug-render"))
    spec = make_spec(server, prompt_mode="engine", tasks=(Task.SUITE,))
    status = run_to_end(spec, settings)
    assert (status.state, status.n_failed) == ("finished", 0)
    asked = [body for body in server.bodies("/api/chat") if "_debug_render_only" not in body]
    assert [body["messages"][0]["content"] for body in asked] == ["What is 0 + 1?", "What is 1 + 1?"]
    kept = [one["prompt"] for one in samples(spec, settings) if one["cell"]["prompt_id"]]
    assert kept == ["<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n"] * 2


def test_run_cancel_closes_the_stream_within_a_second(settings: Settings, server) -> None:
    gone = threading.Event()
    server.faults[3] = Answer(pieces=(line(response="a"), lambda: gone.wait(20)))
    spec = make_spec(server, limits=Limits())
    jobs.start(spec, settings)
    wait_until(lambda: server.n_answers >= 3)
    jobs.cancel(spec.run_id, settings)
    status = wait_for_end(spec.run_id, settings, within_s=10.0)
    gone.set()
    assert status.state == "cancelled"
    assert samples(spec, settings)[-1]["outcome"] == "cancelled"
    assert server.loaded == {}


def test_run_without_a_server_says_where_it_looked(settings: Settings, server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    spec = make_spec(server, engine_url=address, tasks=(Task.SPEED,), suite=None)
    status = run_to_end(spec, settings)
    assert status.n_failed == 2
    assert all(address in one["reason"] for one in samples(spec, settings))
    assert Path(settings.runs_dir / spec.run_id).exists()
