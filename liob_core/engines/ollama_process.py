"""Ollama's processes on this machine: the server, and the runner that holds one model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psutil

from liob_core.engines.children import is_alive
from liob_core.engines.ollama_models import blob_name

# Children of the server that never hold a model.
PASSING = ("--list-devices", "gpu-discover")
RUNNER_FLAGS: Mapping[str, str] = {
    "-c": "n_ctx_total",
    "-np": "n_parallel",
    "-b": "n_batch",
    "-ub": "n_ubatch",
    "-t": "threads",
    "-ngl": "gpu_layers",
    "--main-gpu": "main_gpu",
    "--flash-attn": "flash_attn",
    "--cache-type-k": "kv_type_k",
    "--cache-type-v": "kv_type_v",
    "--load-mode": "load_mode",
}
# Settings of the server that change numbers; no API tells them. Nothing here names a person or a path.
SERVER_VARIABLES = (
    "OLLAMA_NUM_PARALLEL",
    "OLLAMA_MAX_LOADED_MODELS",
    "OLLAMA_KV_CACHE_TYPE",
    "OLLAMA_FLASH_ATTENTION",
    "OLLAMA_CONTEXT_LENGTH",
    "OLLAMA_SCHED_SPREAD",
    "OLLAMA_GPU_OVERHEAD",
    "OLLAMA_LLM_LIBRARY",
    "OLLAMA_VULKAN",
    "OLLAMA_GO_TEMPLATE",
    "LLAMA_ARG_CACHE_RAM",
    "CUDA_VISIBLE_DEVICES",
)


@dataclass(frozen=True, slots=True)
class Runner:
    """The process that holds one model; `command` is how the server started it."""

    pid: int
    started_s: float
    command: tuple[str, ...]

    def is_running(self) -> bool:
        """Whether this very process still runs."""
        return is_alive(self.pid, self.started_s)

    def settings(self) -> dict[str, str]:
        """What its command line says of how the model was loaded."""
        pairs = zip(self.command, self.command[1:], strict=False)
        return {RUNNER_FLAGS[flag]: value for flag, value in pairs if flag in RUNNER_FLAGS}


def find_runner(blob_path: str) -> Runner | None:
    """The newest process that holds the model in this file, or None where none can be seen."""
    name = blob_name(blob_path)
    found = [runner for runner in _runners() if name in map(blob_name, runner.command)]
    return max(found, key=lambda runner: runner.started_s, default=None)


def _runners() -> Iterator[Runner]:
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if is_runner(command) and process.status() != psutil.STATUS_ZOMBIE:
                yield Runner(process.pid, process.create_time(), tuple(command))
        except psutil.Error:  # ended meanwhile, or another user's
            continue


def is_runner(command: Sequence[str]) -> bool:
    """Whether a command line is that of a process which holds a model: `llama-server` or `ollama runner`."""
    if not command or "--model" not in command or any(word in command for word in PASSING):
        return False
    program = blob_name(command[0]).lower().removesuffix(".exe")
    return program == "llama-server" or (program == "ollama" and command[1:2] == ["runner"])


def server_environment(runner: Runner) -> dict[str, str] | None:
    """The settings of the server that started `runner`, or None where its environment cannot be read."""
    try:
        parent = psutil.Process(runner.pid).parent()
        environment = parent.environ() if parent is not None else None
    except psutil.Error:
        return None
    if environment is None:
        return None
    return {name: environment[name] for name in SERVER_VARIABLES if name in environment}
