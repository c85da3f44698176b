"""One model in this process through llama-cpp-python's low-level API: tokens in, logits out.

Imported only by the closeness child: importing the library can end a process by an illegal instruction.
"""

import ctypes
import hashlib
import os
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import llama_cpp
import numpy as np
from gguf import GGMLQuantizationType
from llama_cpp import llama_cpp as api
from numpy.typing import NDArray

from liob_core.quality.closeness.model import ModelError
from liob_core.quality.closeness.records import UNQUANTIZED_KV
from liob_core.quality.closeness.windows import Piece

last_lines: deque[str] = deque(maxlen=8)
_DEBUG = 1  # GGML_LOG_LEVEL_DEBUG


@api.llama_log_callback  # type: ignore[untyped-decorator]
def _on_log(level: int, text: bytes, _user_data: ctypes.c_void_p) -> None:
    if level == _DEBUG:  # several lines for every window
        return
    line = text.decode("utf-8", errors="replace")
    sys.stderr.write(line)
    if line.strip(" .\n"):
        last_lines.append(line.strip())


def start() -> dict[str, str]:
    """The version and CPU features of the library, made ready for use."""
    api.llama_log_set(_on_log, ctypes.c_void_p(0))
    api.llama_backend_init()
    features = api.llama_print_system_info().decode("utf-8", errors="replace").strip(" |\n")
    return {"version": f"llama-cpp-python {llama_cpp.__version__}", "cpu_features": features}


class LlamaModel:
    """A loaded model with one context of `n_ctx` tokens; `close` gives its memory back."""

    def __init__(self, order: Mapping[str, Any], *, n_ctx: int, n_batch: int, threads: int) -> None:
        last_lines.clear()
        started = time.perf_counter_ns()
        self._model = _load(order["path"], order["gpu_layers"])
        self._context = _make_context(self._model, order, n_ctx, n_batch, threads)
        if not self._context:
            api.llama_model_free(self._model)
            raise ModelError(_said("its context could not be made"))
        self.load_ns = time.perf_counter_ns() - started
        self._vocab = api.llama_model_get_vocab(self._model)
        self.n_vocab = int(api.llama_vocab_n_tokens(self._vocab))
        self._batch = api.llama_batch_init(n_batch, 0, 1)
        self._views = _batch_views(self._batch, n_batch)

    @property
    def bos(self) -> int | None:
        """The id that starts every window, or None where the vocabulary adds none."""
        adds = api.llama_vocab_get_add_bos(self._vocab)
        return int(api.llama_vocab_bos(self._vocab)) if adds else None

    def tokenize(self, text: bytes) -> NDArray[np.int32]:
        """The ids of the whole text, as llama.cpp's perplexity tool cuts it."""
        text = text.removesuffix(b"\n")  # the tool drops the one that ends a file
        buffer = (ctypes.c_int32 * (len(text) + 8))()
        n = api.llama_tokenize(self._vocab, text, len(text), buffer, len(buffer), True, False)
        if n < 0:
            raise ModelError(_said("the text could not be cut into tokens"))
        return np.ctypeslib.as_array(buffer)[:n].copy()

    def vocabulary_digest(self) -> str:
        """A digest over the text of every token: files that share it read and write the same tokens."""
        digest = hashlib.sha256()
        for token in range(self.n_vocab):
            digest.update(api.llama_vocab_get_text(self._vocab, token) + b"\0")
        return digest.hexdigest()

    def start_window(self) -> None:
        """Forget the tokens of the window before."""
        api.llama_memory_clear(api.llama_get_memory(self._context), True)

    def prefill(self, tokens: NDArray[np.int32], piece: Piece) -> tuple[NDArray[np.float32], int]:
        """The logits of a piece's scored positions, one row each, and the ns that it took.

        The rows are a view of the library's own buffer: they last until this model's next piece.
        """
        n = piece.stop - piece.start
        self._views["token"][:n] = tokens[piece.start : piece.stop]
        self._views["pos"][:n] = np.arange(piece.start, piece.stop)
        wanted = self._views["logits"][:n]
        wanted[:] = 0
        first = piece.first_scored - piece.start
        wanted[first : first + piece.n_scored] = 1
        self._batch.n_tokens = n
        started = time.perf_counter_ns()
        code = api.llama_decode(self._context, self._batch)
        if code:
            raise ModelError(_said(f"evaluating a window failed with code {code}"))
        api.llama_synchronize(self._context)
        took = time.perf_counter_ns() - started
        if not piece.n_scored:
            return np.empty((0, self.n_vocab), dtype=np.float32), took
        pointer = api.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, (piece.n_scored, self.n_vocab)), took

    def close(self) -> None:
        """Give back the memory; the model and all views of its logits are gone."""
        self._views.clear()
        api.llama_batch_free(self._batch)
        api.llama_free(self._context)
        api.llama_model_free(self._model)


def _load(path: str, gpu_layers: int) -> Any:
    params = api.llama_model_default_params()
    params.n_gpu_layers = gpu_layers
    model = api.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise ModelError(_said("it could not be loaded"))
    return model


def _make_context(model: Any, order: Mapping[str, Any], n_ctx: int, n_batch: int, threads: int) -> Any:
    params = api.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_batch = params.n_ubatch = n_batch
    params.n_threads = params.n_threads_batch = threads
    params.type_k = GGMLQuantizationType[order["kv_type_k"].upper()].value
    params.type_v = GGMLQuantizationType[order["kv_type_v"].upper()].value
    if order["kv_type_v"] not in UNQUANTIZED_KV:  # quantized values exist only with flash attention
        params.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_ENABLED
    return api.llama_init_from_model(model, params)


def _batch_views(batch: Any, n_batch: int) -> dict[str, NDArray[Any]]:
    """The batch's own arrays as numpy views, all of one sequence."""
    np.ctypeslib.as_array(batch.n_seq_id, (n_batch,))[:] = 1
    for index in range(n_batch):
        batch.seq_id[index][0] = 0
    return {
        name: np.ctypeslib.as_array(getattr(batch, name), (n_batch,)) for name in ("token", "pos", "logits")
    }


def _said(what: str) -> str:
    telling = [line for line in last_lines if "error" in line.lower() or "fail" in line.lower()]
    lines = telling or list(last_lines)
    return f"{what}: {lines[0]}" if lines else what
