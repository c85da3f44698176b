"""Whole runs on Ollama, and on two engines: the command line, the real worker, a scripted server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from liob_core.config import PROJECT_DIR
from tests.integration.living_ollama import LivingOllama, chatml
from tests.integration.ollama_server import MODEL
from tests.unit.models.conftest import TEMPLATE, write_gguf


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LivingOllama]:
    made = LivingOllama()
    monkeypatch.setenv("OLLAMA_HOST", made.url)
    yield made
    made.close()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Ollama answers: port 9 is for discarding."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


@pytest.fixture
def gguf_file(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny-Q4_0.gguf", metadata={"tokenizer.chat_template": TEMPLATE})


def liob(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "liob_core", *arguments],
        cwd=PROJECT_DIR,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def document(result: subprocess.CompletedProcess[str]) -> Any:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def ask(sql: str) -> list[Any]:
    with duckdb.connect(os.environ["LIOB_DATA_DIR"] + "/liob.duckdb", read_only=True) as con:
        return con.execute(sql).fetchall()


def test_installed_model_is_measured_by_name(server: LivingOllama) -> None:
    ran = liob(
        "run", "--model", MODEL, "--task", "speed", "--task", "suite", "--suite", "quick", "--repeats", "2",
        "--max-tokens", "16", "--context", "2048", "--threads", "1", "--json",
    )  # fmt: skip
    result = document(ran)
    assert "Ollama is used, since it answers" in ran.stderr
    assert result["status"]["state"] == "finished"
    (row,) = result["results"]
    assert (row["variant"], row["engine"], row["model_name"]) == ("Q4_1", "ollama", "smollm2-135m")
    # 8 x 96,576,768 tensor bytes / 134,515,008 parameters, by the types and shapes that the server tells
    assert row["bpw"] == pytest.approx(5.7437, abs=1e-4)
    assert row["n_samples"] == 2 * 3 + 13
    rates = ask("SELECT DISTINCT round(decode_tps, 6) FROM samples WHERE NOT warmup AND output_tokens > 1")
    assert rates == [(100.0,)]
    shapes = ask(
        "SELECT shape, outcome, output_tokens, abs(prompt_tokens - 512) <= 25 OR shape = 'tg128' "
        "FROM raw.samples WHERE task = 'speed' AND NOT warmup GROUP BY ALL ORDER BY shape"
    )
    assert shapes == [
        ("chat512", "length", 128, True), ("pp512", "length", 1, True), ("tg128", "length", 128, True),
    ]  # fmt: skip
    sent = {body["prompt"] for body in server.bodies("/api/generate") if body.get("raw")}
    ((messages, prompt),) = ask("SELECT messages, prompt FROM prompts ORDER BY prompt_id LIMIT 1")
    assert prompt == chatml(json.loads(messages)), "rendered once, by Ollama itself"
    assert prompt in sent
    shown = liob("show", "last").stdout
    assert "template of its own" in shown
    assert "Layers: offload not known." in shown, "100 % in VRAM is not believed without a GPU"
    assert ask("SELECT engine, gpu_layers FROM variants JOIN runs USING (run_id, engine)") == [
        ("ollama", None)
    ]
    assert ask("SELECT DISTINCT engine_total_ms >= engine_prompt_ms + engine_eval_ms FROM samples") == [
        (True,)
    ]


def test_each_engines_own_template_is_used_when_asked(server: LivingOllama) -> None:
    ran = liob(
        "run", "--engine", "ollama", "--model", MODEL, "--task", "suite", "--suite", "quick",
        "--repeats", "1", "--max-tokens", "8", "--prompt-mode", "engine", "--json",
    )  # fmt: skip
    assert document(ran)["status"]["n_failed"] == 0
    asked = [body for body in server.bodies("/api/chat") if not body.get("_debug_render_only")]
    assert len(asked) == 13
    assert all(body["messages"][-1]["role"] == "user" for body in asked)


def test_file_is_registered_for_the_run_once_and_recognised(server: LivingOllama, gguf_file: Path) -> None:
    arguments = ("run", "--engine", "ollama", "--model", str(gguf_file), "--task", "suite", "--suite",
                 "quick", "--repeats", "1", "--max-tokens", "8", "--json")  # fmt: skip
    (first,) = document(liob(*arguments))["results"]
    assert first["quant"] == "Q4_0"
    (created,) = server.bodies("/api/create")
    assert created["model"].startswith("liob/tiny:q4_0-")
    assert created["model"].endswith(first["weights_sha256"][:12])
    assert created["files"] == {gguf_file.name: f"sha256:{first['file_sha256']}"}
    assert created["model"] in {model["name"] for model in server.tags["models"]}

    gguf_file.rename(gguf_file.with_name("renamed-Q4_0.gguf").with_name("tiny-Q4_0.GGUF"))
    moved = (*arguments[:4], str(gguf_file.with_name("tiny-Q4_0.GGUF")), *arguments[5:])
    (second,) = document(liob(*moved))["results"]
    assert second["weights_sha256"] == first["weights_sha256"]
    assert len(server.bodies("/api/create")) == 1, "the same weights are there already"


def test_register_list_and_remove(server: LivingOllama, gguf_file: Path) -> None:
    made = document(liob("models", "register", str(gguf_file), "--json"))
    assert made["is_new"]
    assert not document(liob("models", "register", str(gguf_file), "--json"))["is_new"]
    listed = {entry["path"]: entry for entry in document(liob("models", "list", "--json"))}
    assert listed[made["name"]]["is_ours"]
    assert not listed[MODEL]["is_ours"]
    assert listed[MODEL]["bpw"] == pytest.approx(5.7437, abs=1e-4)
    assert listed[MODEL]["blob_sha256"].startswith("941f309b")

    refused = liob("models", "remove", MODEL)
    assert (refused.returncode, MODEL in refused.stderr, "--yes" in refused.stderr) == (2, True, True)
    assert document(liob("models", "remove", made["name"], "--json"))["removed"]
    assert [seen.body["model"] for seen in server.seen if seen.path == "/api/delete"] == [made["name"]]
    assert MODEL in {model["name"] for model in server.tags["models"]}


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--engine", "ollama", "--model", MODEL), "127.0.0.1:9"),
        (("run", "--engine", "ollama", "--engine", "llama-server", "--model", MODEL), "cannot be compared"),
        (("run", "--engine", "cuda", "--model", MODEL), "no engine 'cuda'"),
        (("run", "--gpu-layers", "many", "--model", MODEL), "no number of layers"),
        (("run", "--model", MODEL), MODEL),
        (("run", "--url", "http://127.0.0.1:9", "--model", MODEL), "whose address"),
    ],
)
def test_wrong_use_is_told_before_anything_is_measured(arguments: tuple[str, ...], words: str) -> None:
    result = liob(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_names_settings_and_seeds_that_ollama_does_not_take_are_told(server: LivingOllama) -> None:
    common = ("run", "--engine", "ollama", "--task", "suite", "--model")
    for extra, words in (
        ((MODEL, "--kv-type", "q8_0"), "OLLAMA_KV_CACHE_TYPE"),
        ((MODEL, "--seed", str(2**31)), "not usable on Ollama"),
        (("nothing:here",), MODEL),
    ):
        result = liob(*common, *extra)
        assert (result.returncode, words in result.stderr) == (2, True), result.stderr


@pytest.mark.model
def test_same_weights_on_two_engines_get_the_same_bytes(server: LivingOllama, model_path: Path) -> None:
    ran = liob(
        "run", "--engine", "embedded", "--engine", "ollama", "--model", str(model_path), "--suite", "quick",
        "--repeats", "1", "--max-tokens", "8", "--context", "2048", "--threads", "1", "--json",
    )  # fmt: skip
    result = json.loads(ran.stdout)
    assert result["status"]["state"] == "finished"
    rows = {row["variant"]: row for row in result["results"]}
    assert set(rows) == {"Q4_1 embedded", "Q4_1 ollama"}
    assert len({row["weights_sha256"] for row in rows.values()}) == 1
    bytes_by_prompt = ask(
        "SELECT prompt_id, count(DISTINCT prompt_sha256), count(DISTINCT variant) FROM samples "
        "WHERE task = 'suite' AND NOT warmup GROUP BY prompt_id"
    )
    assert len(bytes_by_prompt) == 13
    assert ask("SELECT engine FROM runs") == [("embedded, ollama",)]
    used = ask("SELECT DISTINCT variant, gpu_layers_used, gpu_share FROM loads ORDER BY variant")
    assert used[0] == ("Q4_1 embedded", 0, 0.0), "the build that tests have uses the processor alone"
    assert {(n_bytes, n_variants) for _, n_bytes, n_variants in bytes_by_prompt} == {(1, 2)}
    # The file's own template names the model; the one that Ollama would have used does not.
    ((prompt,),) = ask("SELECT prompt FROM prompts ORDER BY prompt_id LIMIT 1")
    assert "You are a helpful AI assistant named SmolLM" in prompt
    texts = ask(
        "SELECT variant, count(*) FROM samples WHERE task = 'speed' AND NOT warmup AND prompt IS NOT NULL "
        "GROUP BY variant ORDER BY variant"
    )
    assert texts == [("Q4_1 embedded", 3), ("Q4_1 ollama", 3)], "text on both, since one takes no ids"
    shown = liob("show", "last").stdout
    assert "different engines" in shown
    assert "different numbers of tokens" in shown, "the scripted server counts characters"
