import json
import os
import threading
import time
from dataclasses import replace

import psutil
import pytest

from liob_core.engines import ollama as ollama_module
from liob_core.engines import ollama_report
from liob_core.engines.ollama import OllamaEngine
from liob_core.engines.ollama_process import Runner
from liob_core.engines.protocol import Request
from liob_core.errors import EngineFailure
from liob_core.types import LoadSettings, Message, Outcome, Sampling
from tests.integration.ollama_server import MODEL, last_line, line, recording

RAW = Request(prompt="Hi", sampling=Sampling(max_tokens=16))
CHAT = replace(RAW, messages=(Message(role="user", content="Hi"),))
SETTINGS = LoadSettings(n_ctx=2048, threads=2)


@pytest.fixture
def engine(ollama):
    made = OllamaEngine(ollama.url)
    yield made
    made.close()


@pytest.fixture
def load(engine, variant, tmp_path):
    def run(name=MODEL, **changes):
        asked = replace(variant, engine="ollama", engine_model=name)
        return engine.load(asked, replace(SETTINGS, **changes), log_path=tmp_path / "e.log", load_s=5.0)

    return run


def failure_of(engine, request=RAW):
    with pytest.raises(EngineFailure) as caught:
        list(engine.generate(request))
    return caught.value


def last_chunk(engine, ollama, request=RAW, **fields):
    ollama.answer("/api/generate", line(response="a", done=False), last_line(**fields))
    return list(engine.generate(request))[-1]


# --- loading ----------------------------------------------------------------------------------


def test_load_preloads_with_the_very_options_that_are_measured(ollama, engine, load, tmp_path):
    report = load()
    list(engine.generate(RAW))
    loads, measured = ollama.bodies("/api/generate")
    assert loads["prompt"] == ""
    for name in ("num_ctx", "num_batch", "num_thread", "use_mmap", "draft_num_predict"):
        assert loads["options"][name] == measured["options"][name]
    assert (loads["shift"], loads["truncate"]) == (measured["shift"], measured["truncate"]) == (False, False)
    assert report.load_ms > 0
    assert report.engine_version == "ollama 0.33.0"
    assert report.effective["request"] == loads
    assert report.effective["n_ctx"] == 2048
    log = [json.loads(one) for one in (tmp_path / "e.log").read_text().splitlines()]
    assert [one["body"] for one in log] == [loads, measured]


@pytest.mark.parametrize(("layers", "sent"), [(None, {}), (0, {"num_gpu": 0}), (7, {"num_gpu": 7})])
def test_load_layers_on_the_gpu_are_ollamas_choice_unless_asked_for(ollama, engine, load, layers, sent):
    load(gpu_layers=layers)
    list(engine.generate(RAW))
    for body in ollama.bodies("/api/generate"):
        assert {name: value for name, value in body["options"].items() if name == "num_gpu"} == sent


def test_load_settings_of_nobody_leave_the_layers_to_the_engine():
    assert LoadSettings().gpu_layers is None


def test_load_automatic_layers_that_the_registration_fixes_are_warned_of(ollama, load):
    ollama.shown["parameters"] = 'num_gpu                        0\nstop  "<|im_end|>"'
    assert any("sets num_gpu" in one for one in load().effective["warnings"])
    assert not any("num_gpu" in one for one in load(gpu_layers=3).effective["warnings"])


@pytest.mark.parametrize(
    ("command", "has_card", "layers"),
    [
        ((), True, None),
        (("-ngl", "0"), False, 0),
        (("-ngl", "7"), True, 7),
        (("-ngl", "7"), False, None),  # told to, but nothing is known that it could use
        (("-ngl", "999"), True, 31),  # 30 blocks and the output layer
        (("-ngl", "-1"), True, None),
        (("-ngl", "auto"), True, None),
    ],
)
def test_load_layers_that_were_used_are_read_from_the_runner(
    ollama, load, monkeypatch, command, has_card, layers
):
    monkeypatch.setattr(ollama_report, "has_nvidia_card", lambda: has_card)
    monkeypatch.setattr(ollama_report.sys, "platform", "linux")
    runner = Runner(os.getpid(), psutil.Process().create_time(), ("llama-server", *command))
    monkeypatch.setattr(ollama_module, "find_runner", lambda _: runner)
    effective = load().effective
    assert effective.get("gpu_layers") == layers
    if layers == 0:
        assert effective["gpu_share"] == 0.0, "whatever the server counts as VRAM"


def test_load_nothing_in_vram_is_the_processor_wherever_it_runs(ollama, load, monkeypatch):
    monkeypatch.setattr(ollama_report, "has_nvidia_card", lambda: False)
    entry = {**json.loads(recording("ps-loaded").body)["models"][0], "size_vram": 0}
    monkeypatch.setattr(type(ollama), "_entry", lambda *_: entry)
    assert load().effective["gpu_share"] == 0.0


def test_load_tells_blob_manifest_and_estimates_apart(load):
    effective = load().effective
    shown = recording("show").body
    assert effective["blob_sha256"].encode() in shown
    assert effective["manifest_digest"].startswith("fd5f44c0b5af")
    assert effective["engine_memory_bytes"] == 99971235
    assert effective["process_reason"] == "not_found"


def test_load_on_another_machine_has_no_process_and_says_why(ollama, engine, load, monkeypatch):
    monkeypatch.setattr(engine, "_host", replace(engine._host, is_loopback=False))
    monkeypatch.setattr(
        ollama_module, "find_runner", lambda _: pytest.fail("nothing there is of this machine")
    )
    report = load()
    assert report.effective["process_reason"] == "remote"
    assert report.host_rss_bytes is None
    assert engine.pids() == ()


def test_load_100_percent_gpu_is_not_believed_where_no_gpu_is_known(load, monkeypatch):
    monkeypatch.setattr(ollama_report, "has_nvidia_card", lambda: False)
    effective = load().effective
    assert "gpu_share" not in effective
    assert "no GPU is known" in effective["gpu_share_reason"]


def test_load_gpu_share_where_a_gpu_is_known(load, monkeypatch):
    monkeypatch.setattr(ollama_report, "has_nvidia_card", lambda: True)
    assert load().effective["gpu_share"] == 1.0


def test_load_makes_a_model_that_is_in_memory_leave_first(ollama, load):
    ollama.loaded[MODEL.upper()] = 4096
    assert load().load_ms > 0
    assert [body["keep_alive"] for body in ollama.bodies("/api/generate")] == [0, 600]


def test_load_model_that_stays_in_memory_has_no_load_time(ollama, load, monkeypatch):
    monkeypatch.setattr(ollama_module, "UNLOAD_WAIT_S", 0.1)
    ollama.loaded[MODEL] = 4096
    ollama.stays_loaded = True
    report = load()
    assert report.load_ms is None
    assert any("would not leave" in sentence for sentence in report.effective["warnings"])
    ollama.stays_loaded = False


def test_load_other_context_and_other_models_are_warned_of(ollama, load):
    ollama.context_length = 1024
    ollama.loaded["other:latest"] = 4096
    report = load()
    assert report.effective["n_ctx"] == 1024
    assert report.effective["warnings"] == [
        "Ollama took a context of 1024 tokens instead of 2048",
        "other models were in memory too: other:latest",
    ]
    assert "other:latest" in ollama.loaded, "what LIOB did not load stays"


def test_load_missing_model_is_one_sentence(load):
    with pytest.raises(EngineFailure, match="Ollama has no model nope:1: pull it or register") as caught:
        load("nope:1")
    assert caught.value.outcome is Outcome.ENGINE_ERROR


@pytest.mark.parametrize("name", ["gpt-oss:120b-cloud", "big:cloud", "GLM:Cloud"])
def test_load_cloud_name_is_refused_before_anything_is_sent(ollama, load, name):
    with pytest.raises(EngineFailure, match="would leave this machine") as caught:
        load(name)
    assert caught.value.outcome is Outcome.REFUSED_REMOTE
    assert ollama.seen == []


def test_load_model_with_a_remote_host_is_refused(ollama, load):
    ollama.shown["remote_host"] = "https://ollama.com:443"
    with pytest.raises(EngineFailure) as caught:
        load()
    assert caught.value.outcome is Outcome.REFUSED_REMOTE
    assert ollama.bodies("/api/generate") == []


def test_load_remote_model_runs_where_the_user_allows_it(ollama, variant, tmp_path):
    ollama.shown["remote_host"] = "https://ollama.com:443"
    engine = OllamaEngine(ollama.url, {"allow_remote": True})
    asked = replace(variant, engine_model=MODEL)
    engine.load(asked, SETTINGS, log_path=tmp_path / "e.log", load_s=5.0)
    engine.close()


@pytest.mark.parametrize("answer", [(b"404 page not found", 404), (b'{"version": ""}', 200)])
def test_load_unknown_version_is_a_warning(ollama, load, answer):
    body, status = answer
    ollama.answer("/api/version", body, status=status)
    report = load()
    assert report.engine_version is None
    assert "version is not known" in report.effective["warnings"][0]


def test_load_version_that_counts_otherwise_is_warned_of(ollama, load):
    ollama.version = "0.30.0"
    assert "only uncached prompt tokens" in load().effective["warnings"][0]


def test_load_setting_of_the_server_is_refused(load):
    with pytest.raises(EngineFailure, match="OLLAMA_KV_CACHE_TYPE"):
        load(kv_type_k="q8_0")


def test_load_out_of_memory_advises_and_frees(ollama, engine, variant, tmp_path, monkeypatch):
    answers = iter([{"error": "llama-server: cudaMalloc failed: out of memory"}])
    monkeypatch.setattr(
        type(ollama), "_load", lambda self, body: ollama_module_answer(next(answers, {"done": True}))
    )
    with pytest.raises(EngineFailure, match="Take a smaller variant") as caught:
        engine.load(replace(variant, engine_model=MODEL), SETTINGS, log_path=tmp_path / "e.log", load_s=5.0)
    assert (caught.value.outcome, caught.value.needs_reload) == (Outcome.ENGINE_ERROR, True)


def ollama_module_answer(value):
    from tests.integration.ollama_server import Answer

    return Answer(500 if "error" in value else 200, (json.dumps(value).encode(),))


def test_no_server_is_told_at_once_and_alike_for_every_question(variant, tmp_path):
    engine = OllamaEngine("127.0.0.1:1")
    began = time.monotonic()
    with pytest.raises(EngineFailure) as caught:
        engine.load(replace(variant, engine_model=MODEL), SETTINGS, log_path=tmp_path / "e.log", load_s=5.0)
    assert time.monotonic() - began < 5
    assert caught.value.outcome is Outcome.ENGINE_DIED
    with pytest.raises(EngineFailure) as streamed:
        list(engine._measured.lines("/api/chat", {}, RAW.limits))
    assert str(streamed.value) == str(caught.value)
    assert "http://127.0.0.1:1:" in str(caught.value)


def test_unload_asks_waits_and_forgets(ollama, engine, load):
    load()
    engine.unload()
    assert ollama.loaded == {}
    assert failure_of(engine).needs_reload
    engine.unload()
    assert [body["keep_alive"] for body in ollama.bodies("/api/generate")] == [600, 0]


# --- requests ---------------------------------------------------------------------------------


def test_generate_is_cold_where_the_model_is_not_in_memory(ollama, engine, load):
    load()
    assert last_chunk(engine, ollama).counters.cold is False
    ollama.loaded.clear()
    assert last_chunk(engine, ollama).counters.cold is True


def test_generate_silent_reload_is_cold(ollama, engine, load):
    load()
    engine._loaded.load_ms = 500.0
    assert last_chunk(engine, ollama, load_duration=530_000_000).counters.cold is True
    assert last_chunk(engine, ollama, load_duration=3_000_000).counters.cold is False


def test_runner_of_a_silent_reload_is_found_again(ollama, engine, load, monkeypatch):
    found = []
    monkeypatch.setattr(ollama_module, "find_runner", lambda _: found[-1])
    own, parent = psutil.Process(), psutil.Process(os.getppid())
    found.append(Runner(own.pid, own.create_time(), ()))
    load()
    engine._loaded.load_ms = 500.0
    last_chunk(engine, ollama, load_duration=3_000_000)
    found.append(Runner(parent.pid, parent.create_time(), ()))
    assert engine.pids() == (own.pid,), "a warm answer says nothing of another process"
    chunk = last_chunk(engine, ollama, load_duration=530_000_000)
    assert "load the model again" in chunk.note
    assert engine.pids() == (parent.pid,)


def test_runner_that_ended_is_looked_for_until_there_is_another(ollama, engine, load, monkeypatch):
    own = psutil.Process()
    found = [Runner(own.pid, 0.0, ())]  # of an earlier process of that id
    monkeypatch.setattr(ollama_module, "find_runner", lambda _: found[-1])
    load()
    found.append(None)
    assert engine.pids() == ()
    assert last_chunk(engine, ollama).counters.cold is True
    found.append(Runner(own.pid, own.create_time(), ()))
    assert engine.pids() == (own.pid,)
    assert last_chunk(engine, ollama).counters.cold is False


def test_generate_beside_other_models_says_so(ollama, engine, load):
    load()
    assert last_chunk(engine, ollama).note is None
    ollama.loaded["other:1"] = 2048
    assert last_chunk(engine, ollama).note == "1 other models were in memory"


def test_generate_asks_before_the_runner_starts_its_clock(ollama, engine, load):
    load()
    before = len(ollama.seen)
    chunks = engine.generate(RAW)
    assert [seen.path for seen in ollama.seen[before:]] == ["/api/ps"]
    list(chunks)
    assert [seen.path for seen in ollama.seen[before:]] == ["/api/ps", "/api/generate"]


@pytest.mark.parametrize(("sent", "known"), [({}, None), ({"prompt_eval_cached_count": 0}, 0)])
def test_generate_cached_tokens_only_where_the_server_says_so(ollama, engine, load, sent, known):
    load()
    assert last_chunk(engine, ollama, **sent).counters.cached_tokens == known


def test_generate_without_counts_is_whole_and_says_so(ollama, engine, load):
    load()
    ollama.answer("/api/generate", line(response="a", done=False), line(response="", done=True))
    chunk = list(engine.generate(RAW))[-1]
    assert chunk.counters.output_tokens is None
    assert chunk.counters.engine_eval_ms is None
    assert chunk.note.startswith("metrics_missing: ")


@pytest.mark.parametrize("name", ["prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"])
def test_generate_a_missing_counter_is_named(ollama, engine, load, name):
    load()
    chunk = last_chunk(engine, ollama, **{name: None})
    assert chunk.note == f"metrics_missing: the server's last line lacks {name}"
    assert last_chunk(engine, ollama).note is None


def test_generate_tokens_are_the_servers_count_not_the_pieces(ollama, engine, load):
    load()
    pieces = [line(response="a", done=False)] * 3
    ollama.answer("/api/generate", *pieces, last_line(eval_count=25, done_reason="stop"))
    assert list(engine.generate(RAW))[-1].counters.output_tokens == 25


def test_generate_length_before_the_limit_means_that_the_context_was_full(ollama, engine, load):
    load()
    assert last_chunk(engine, ollama, done_reason="length", eval_count=5).truncated
    assert not last_chunk(engine, ollama, done_reason="length", eval_count=16).truncated
    assert not last_chunk(engine, ollama, done_reason="stop", eval_count=5).truncated


def test_generate_counts_that_differ_from_the_expected_are_told(ollama, engine, load):
    load()
    request = replace(RAW, expected_prompt_tokens=21)
    chunk = last_chunk(engine, ollama, request)
    assert not chunk.truncated
    assert chunk.note == "Ollama counted 20 prompt tokens where 21 were expected"
    assert last_chunk(engine, ollama, replace(RAW, expected_prompt_tokens=30)).truncated
    assert last_chunk(engine, ollama, replace(RAW, expected_prompt_tokens=20)).note is None


def test_generate_thinking_in_a_raw_answer_is_divided_by_its_tags(ollama, engine, load):
    ollama.shown["capabilities"] = ["completion", "thinking"]
    load()
    ollama.answer("/api/generate", line(response="hm</th", done=False), line(response="ink>Yes"), last_line())
    chunks = list(engine.generate(replace(RAW, starts_thinking=True)))
    assert ("".join(c.thinking for c in chunks), "".join(c.text for c in chunks)) == ("hm", "Yes")
    assert ollama.bodies("/api/generate")[-1]["think"] is False


@pytest.mark.parametrize(
    ("profile", "sent"), [({}, True), ({"think": False}, False), ({"think": "low"}, "low")]
)
def test_generate_turns_of_a_thinking_model_carry_think(ollama, variant, tmp_path, profile, sent):
    ollama.shown["capabilities"] = ["completion", "thinking"]
    engine = OllamaEngine(ollama.url, profile)
    engine.load(replace(variant, engine_model=MODEL), SETTINGS, log_path=tmp_path / "e.log", load_s=5.0)
    list(engine.generate(CHAT))
    assert ollama.bodies("/api/chat")[0]["think"] == sent
    engine.close()


def test_generate_refused_think_is_sent_again_without_it_and_noted(ollama, engine, load):
    ollama.shown["capabilities"] = ["completion", "thinking"]
    load()
    ollama.replay(recording("chat-think-400"))
    ollama.answer("/api/chat", last_line())
    chunk = list(engine.generate(CHAT))[-1]
    assert "without `think`" in chunk.note
    assert ["think" in body for body in ollama.bodies("/api/chat")] == [True, False]


def test_generate_text_keeps_every_odd_character(ollama, engine, load):
    load()
    text = "a\u0085b\u2028c\x1cd 😀\r\n"
    ollama.answer("/api/generate", b"\n", line(response=text, done=False), b"\n\n", last_line())
    assert "".join(chunk.text for chunk in engine.generate(RAW)) == text


def test_generate_tool_call_is_the_first_text(ollama, engine, load):
    load()
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "w"}}]}
    ollama.answer("/api/chat", line(message=message, done=False), last_line())
    assert "w" in next(engine.generate(CHAT)).text


@pytest.mark.parametrize(
    ("pieces", "status", "outcome", "words"),
    [
        ([b'"oops"'], 500, Outcome.BAD_REPLY, "oops"),
        ([b"<html>bad gateway"], 502, Outcome.BAD_REPLY, "<html>bad gateway"),
        ([b"<html>hello\n"], 200, Outcome.BAD_REPLY, "<html>hello"),
        ([b""], 301, Outcome.BAD_REPLY, "HTTP status 301"),
        ([b'{"error": "busy"}'], 503, Outcome.ENGINE_ERROR, "busy"),
        ([b'{"error": "123"}'], 500, Outcome.ENGINE_ERROR, "123"),
        ([b'{"error": {"message": "inner"}}'], 500, Outcome.ENGINE_ERROR, "inner"),
        ([b'{"error": "ollama cloud is disabled"}'], 403, Outcome.REFUSED_REMOTE, "leave this machine"),
        ([b'{"error": "not yours"}'], 403, Outcome.ENGINE_ERROR, "not yours"),
        ([line(response="a"), b'{"error": "123"}\n'], 200, Outcome.ENGINE_ERROR, "123"),
        ([line(response="a"), b'{"error": "x"}'], 200, Outcome.ENGINE_ERROR, "x"),
        (
            [b'{"error": "model runner has unexpectedly stopped, this may be due to"}'],
            500,
            Outcome.ENGINE_DIED,
            "unexpectedly stopped",
        ),
        (
            [line(response="a"), b'{"error":"prediction aborted, token repeat limit reached"}\n'],
            200,
            Outcome.REPETITION,
            "repeat limit",
        ),
        (
            [b'{"error":"the prompt is longer than the context length currently available"}'],
            400,
            Outcome.CONTEXT_EXCEEDED,
            "longer than the context",
        ),
        ([line(response="a", remote_host="https://x")], 200, Outcome.REFUSED_REMOTE, "leave"),
        ([line(response=" ", done=False)] * 31, 200, Outcome.REPETITION, "31 equal pieces"),
        ([line(response="", done=False)] * 31, 200, Outcome.REPETITION, "31 equal pieces"),
        ([line(response="a", done=False)] * 5, 200, Outcome.INCOMPLETE, "without its end mark"),
    ],
)
def test_generate_every_failure_has_its_outcome(ollama, engine, load, pieces, status, outcome, words):
    load()
    ollama.answer("/api/generate", *pieces, status=status)
    failure = failure_of(engine)
    assert failure.outcome is outcome
    assert words in str(failure)


def test_generate_after_any_failure_the_next_one_works(ollama, engine, load):
    load()
    ollama.answer("/api/generate", b"<html>")
    failure_of(engine)
    assert list(engine.generate(RAW))[-1].counters.output_tokens == 16


def test_generate_option_that_ollama_lacks_is_refused(ollama, engine, load):
    load()
    before = len(ollama.seen)
    failure = failure_of(engine, replace(RAW, sampling=Sampling(max_tokens=8, ignore_eos=True)))
    assert failure.outcome is Outcome.ENGINE_ERROR
    assert len(ollama.seen) == before


def test_abort_ends_a_stream_at_once_until_the_next_load(ollama, engine, load):
    load()
    arrived, closed = threading.Event(), threading.Event()

    def until_closed():
        arrived.set()
        closed.wait(10)

    ollama.answer("/api/generate", line(response="a", done=False), until_closed)
    threading.Thread(target=lambda: arrived.wait(10) and engine.abort(), daemon=True).start()
    began = time.monotonic()
    failure = failure_of(engine)
    closed.set()
    assert (failure.outcome, failure.needs_reload) == (Outcome.CANCELLED, True)
    assert time.monotonic() - began < 5  # the server would be silent for 10 s
    assert failure_of(engine).outcome is Outcome.CANCELLED, "it holds until the next load"
    engine.unload()
    assert ollama.loaded == {}, "an abort does not keep LIOB from freeing the model"
    load()
    list(engine.generate(RAW))


@pytest.mark.parametrize("what", ["load", "generate"])
def test_abort_during_a_slow_question_does_not_wait_for_its_answer(ollama, engine, load, what):
    load()
    arrived, closed = threading.Event(), threading.Event()

    def until_closed():
        arrived.set()
        closed.wait(10)

    ollama.answer("/api/ps", until_closed)
    threading.Thread(target=lambda: arrived.wait(10) and engine.abort(), daemon=True).start()
    if what == "load":
        engine._loaded = None  # so that no unload comes first
    began = time.monotonic()
    with pytest.raises(EngineFailure) as caught:
        load() if what == "load" else list(engine.generate(RAW))
    closed.set()
    assert caught.value.outcome is Outcome.CANCELLED
    assert time.monotonic() - began < 5  # the server would be silent for 10 s


def test_unload_after_an_abort_tells_a_slow_server_and_does_not_wait(ollama, engine, load):
    load()
    closed = threading.Event()
    ollama.answer("/api/ps", lambda: closed.wait(10))
    engine.abort()
    began = time.monotonic()
    engine.unload()
    closed.set()
    assert ollama.loaded == {}, "it is told to free the model though it did not say what it holds"
    assert time.monotonic() - began < 7  # the server would be silent for 10 s


# --- prompts ----------------------------------------------------------------------------------


def test_render_is_what_the_server_would_send(ollama, engine, load):
    load()
    ollama.replay(recording("chat-debug-render"))
    text = engine.render([Message(role="user", content="Hi there")])
    assert text == "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n"
    body = ollama.bodies("/api/chat")[0]
    assert (body["_debug_render_only"], body["stream"], body["options"]["num_ctx"]) == (True, False, 2048)


@pytest.mark.parametrize(("counted", "begin"), [(2, ""), (1, "<s>")])
def test_render_bos_is_left_to_a_runner_that_adds_one(ollama, engine, load, counted, begin):
    ollama.shown["model_info"] |= {
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"],
    }
    load()
    ollama.answer("/api/generate", last_line(prompt_eval_count=counted, eval_count=1))
    for _ in range(2):
        ollama.answer("/api/chat", b'{"_debug_info": {"rendered_template": "<s>[INST] Hi"}}')
        assert engine.render([Message(role="user", content="Hi")]) == f"{begin}[INST] Hi"
    assert len(ollama.bodies("/api/generate")) == 2, "it is asked once a load"


def test_render_old_server_is_told_to_be_updated(ollama, engine, load):
    load()
    ollama.answer("/api/chat", last_line())
    with pytest.raises(EngineFailure, match="update it"):
        engine.render([Message(role="user", content="Hi")])


def test_tokens_cannot_be_asked_for(engine):
    assert not engine.capabilities.tokenizes
    assert not engine.capabilities.takes_token_ids
    assert engine.bos_id() is None
    with pytest.raises(EngineFailure):
        engine.tokenize("a", add_special=True)
