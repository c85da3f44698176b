"""The child that hosts llama.cpp's server: one process a load, standard library and xllamacpp only.

Orders come as JSON lines on standard input, replies go as JSON lines to what was standard output; all
that the engine itself prints goes to standard error, which the parent points at a log file.
`Server()` holds the interpreter lock while it loads, so no Python thread runs then: what must hold
during a load (dying with the parent) has to be the operating system's work.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG = 1
POLL_S = 0.25
EXIT_MISSING = 3
EXIT_LOAD_FAILED = 4


def die_with_parent(parent_pid: int) -> None:
    """Have the system kill this process when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.name == "posix" and os.getppid() != parent_pid:  # it died before the line above
        os._exit(0)


def watch_parent(parent_pid: int) -> None:
    """End this process when standard input ends or, on POSIX, when it gets another parent."""

    def until_input_ends() -> None:
        while os.read(0, 4096):  # not through sys.stdin, whose lock would then hold up the exit
            pass
        os._exit(0)

    def until_orphaned() -> None:
        while os.getppid() == parent_pid:
            time.sleep(POLL_S)
        os._exit(0)

    threading.Thread(target=until_input_ends, daemon=True).start()
    if os.name == "posix" and sys.platform != "linux":
        threading.Thread(target=until_orphaned, daemon=True).start()


def host_facts(xllamacpp: Any) -> dict[str, Any]:
    """The version, CPU features and devices of the library, as plain JSON."""
    devices = [
        {
            "name": device["name"],
            "description": device["description"],
            "type": str(device["type"].name).removeprefix("GGML_BACKEND_DEVICE_TYPE_").lower(),
            "memory_total_bytes": int(device["memory_total"]),
        }
        for device in xllamacpp.get_device_info()
    ]
    return {
        "version": xllamacpp.__version__,
        "system_info": xllamacpp.get_system_info().strip(" |"),
        "devices": devices,
    }


def make_params(xllamacpp: Any, order: dict[str, Any]) -> Any:
    """Server parameters with every setting that changes a number written out."""
    params = xllamacpp.CommonParams()
    params.model.path = order["model"]
    params.n_ctx = order["n_ctx"]  # in all: the engine divides it among the slots
    params.n_parallel = order["n_parallel"]
    params.kv_unified = False
    params.n_batch = order["n_batch"]
    params.n_ubatch = order["n_ubatch"]
    params.cpuparams.n_threads = order["threads"]
    params.cpuparams_batch.n_threads = order["threads"]
    # The library takes -1 as all that it can; a build without devices leaves everything on the processor.
    params.n_gpu_layers = -1 if order["gpu_layers"] is None else order["gpu_layers"]
    flash_attn = {"auto": "AUTO", "on": "ENABLED", "off": "DISABLED"}[order["flash_attn"]]
    params.flash_attn_type = getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{flash_attn}")
    params.cache_type_k = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{order['kv_type_k'].upper()}")
    params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{order['kv_type_v'].upper()}")
    params.load_mode = getattr(xllamacpp.llama_load_mode, f"LLAMA_LOAD_MODE_{order['load_mode'].upper()}")
    params.no_extra_bufts = not order["repack"]
    params.fit_params = False
    params.warmup = False
    params.ctx_shift = False
    params.check_tensors = True  # random bytes inside tensors would load and run silently
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.n_ctx_checkpoints = 0
    params.sse_ping_interval = 0
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.ui = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["api_key"]]
    params.verbosity = 4  # the lowest level that tells buffer sizes and effective settings
    return params


def serve(reply: Callable[[dict[str, Any]], None], parent_pid: int) -> int:
    """The exit code after hosting one load until standard input ends."""
    try:
        import xllamacpp
    except (ImportError, OSError) as error:
        reply({"event": "missing", "error": str(error), "no_module": isinstance(error, ModuleNotFoundError)})
        return EXIT_MISSING
    reply({"event": "host", **host_facts(xllamacpp)})
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    watch_parent(parent_pid)
    try:
        server = xllamacpp.Server(make_params(xllamacpp, json.loads(line)))
    except (RuntimeError, AttributeError, KeyError, TypeError, ValueError, MemoryError) as error:
        reply({"event": "failed", "error": f"{type(error).__name__}: {error}"})
        return EXIT_LOAD_FAILED
    reply({"event": "ready", "address": server.listening_address})
    threading.Event().wait()  # the thread that watches standard input ends the process
    return 0


def main() -> int:
    """The exit code of one hosted load; where standard input is empty, only the facts are told."""
    parent_pid = int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid()
    die_with_parent(parent_pid)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the library prints must not come between the replies

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    return serve(reply, parent_pid)


if __name__ == "__main__":
    sys.exit(main())
