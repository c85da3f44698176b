"""The engines there are, made by name; an engine's packages are imported only when it is asked for."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from liob_core.engines.nvidia import has_nvidia_card
from liob_core.engines.protocol import Engine
from liob_core.errors import EngineFailure, LiobError, UsageError
from liob_core.types import JsonValue, Outcome

ENGINES: Mapping[str, str] = {
    "embedded": "llama.cpp in a child process of LIOB's own",
    "ollama": "an Ollama server, at OLLAMA_HOST or its URL",
    "llama-server": "a llama-server that you run, named by its URL",
    "fake": "a scripted stand-in for tests; it measures nothing",
}
PROBE_TIMEOUT_S = 60.0
GPU_WHEELS = "its project page lists GPU wheels (CUDA, ROCm, Vulkan)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """Whether an engine can be used here, its version, and one sentence for people."""

    name: str
    available: bool
    version: str | None
    sentence: str
    devices: tuple[str, ...] = ()


def make_engine(
    name: str,
    *,
    url: str | None = None,
    options: Mapping[str, JsonValue] | None = None,
    machine_dir: Path,
) -> Engine:
    """The engine called `name`; `url` is that of a server, `options` a profile for Ollama or a script."""
    if name not in ENGINES:
        raise UsageError(f"There is no engine {name!r}: choose one of {', '.join(ENGINES)}.")
    if name == "llama-server":
        from liob_core.engines.remote import LlamaServerEngine  # noqa: PLC0415

        if not url:
            raise UsageError("The engine llama-server needs its address: --url http://127.0.0.1:8080.")
        return LlamaServerEngine(url)
    if name == "ollama":
        from liob_core.engines.ollama import OllamaEngine  # noqa: PLC0415

        return OllamaEngine(url, options)
    if url:
        raise UsageError(f"The engine {name!r} takes no URL: leave it out or choose llama-server or ollama.")
    if name == "fake":
        from liob_core.engines.fake import FakeEngine  # noqa: PLC0415

        return FakeEngine(options or {})
    from liob_core.engines.embedded import EmbeddedEngine  # noqa: PLC0415

    return EmbeddedEngine(machine_dir)


def describe_engines(*, url: str | None = None, ollama_url: str | None = None) -> list[EngineStatus]:
    """The state of every engine that can measure; takes a second, for it starts a child."""
    return [_describe_embedded(), _describe_llama_server(url), describe_ollama(ollama_url)]


def default_engine() -> tuple[str, str]:
    """The engine to take where none is named, and one sentence on which and why."""
    ollama = describe_ollama()
    if ollama.available:
        return "ollama", f"Ollama is used, since it answers. {ollama.sentence}"
    return "embedded", f"The embedded engine is used. {ollama.sentence}"


def describe_ollama(url: str | None = None) -> EngineStatus:
    """The state of the Ollama server at `url` or OLLAMA_HOST; takes a few seconds where nobody answers."""
    from liob_core.engines.ollama_host import find_host  # noqa: PLC0415
    from liob_core.engines.ollama_models import OllamaModels  # noqa: PLC0415
    from liob_core.engines.ollama_server import find_binary  # noqa: PLC0415
    from liob_core.engines.ollama_stream import OllamaStream  # noqa: PLC0415

    try:
        host = find_host(url)
        stream = OllamaStream(host)
        try:
            models = OllamaModels(stream)
            version, n_models = models.version(), len(models.installed())
        finally:
            stream.close()
    except LiobError as error:
        sentence = str(error)
        if isinstance(error, EngineFailure) and error.outcome is Outcome.ENGINE_DIED and find_binary():
            sentence = f"Ollama is installed, but nothing answers at {host.url}: start it (`ollama serve`)."
        return EngineStatus(name="ollama", available=False, version=None, sentence=sentence)
    models_word = "model" if n_models == 1 else "models"
    return EngineStatus(
        name="ollama",
        available=True,
        version=f"ollama {version}",
        sentence=f"Ollama {version} answers at {host.url} with {n_models} installed {models_word}.",
    )


def _describe_embedded() -> EngineStatus:
    from liob_core.engines import engine_child  # noqa: PLC0415

    def unavailable(sentence: str) -> EngineStatus:
        return EngineStatus(name="embedded", available=False, version=None, sentence=sentence)

    try:
        done = subprocess.run(
            engine_child.COMMAND,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            env=engine_child.child_environment(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return unavailable(f"The embedded engine's child could not be started: {error}.")
    if done.returncode in engine_child.SIGILL_CODES:
        return unavailable(str(engine_child.unusable_processor()))
    try:
        facts = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        cause = last[0] if last else f"code {done.returncode}"
        return unavailable(f"The embedded engine's child ended without an answer ({cause}).")
    if facts["event"] == "missing":
        return unavailable(str(engine_child.missing_library(facts)))
    devices = tuple(f"{device['name']}: {device['description']}" for device in facts["devices"])
    sentence = f"Ready on {'; '.join(devices)}."
    if all(device["type"] == "cpu" for device in facts["devices"]) and has_nvidia_card():
        sentence += (
            " There is an NVIDIA card, but this build of xllamacpp uses the processor alone: "
            f"{GPU_WHEELS}, or use your own llama-server."
        )
    version = f"xllamacpp {facts['version']}"
    return EngineStatus(name="embedded", available=True, version=version, sentence=sentence, devices=devices)


def _describe_llama_server(url: str | None) -> EngineStatus:
    name = "llama-server"
    if not url:
        sentence = "Name the address of a llama-server that you run: --url http://127.0.0.1:8080."
        return EngineStatus(name=name, available=False, version=None, sentence=sentence)
    from liob_core.engines.llamaserver import LlamaServerClient  # noqa: PLC0415
    from liob_core.engines.remote import server_key  # noqa: PLC0415

    client = LlamaServerClient(url, server_key())
    try:
        props = client.props()
    except LiobError as error:
        return EngineStatus(name=name, available=False, version=None, sentence=str(error))
    finally:
        client.close()
    model = Path(str(props.get("model_path", ""))).name or "a model it does not name"
    return EngineStatus(
        name=name,
        available=True,
        version=str(props["build_info"]) if props.get("build_info") else None,
        sentence=f"Ready at {url} with {model}.",
    )
