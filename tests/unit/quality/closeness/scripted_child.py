"""The closeness child with a scripted model in place of the library, and the crashes that tests ask for."""

import os
import signal
import time
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from liob_core.quality.closeness import closeness_child
from liob_core.quality.closeness.windows import Piece
from tests.unit.quality.closeness.scripted_model import ScriptedModel

_SIGNALS = {"killed": signal.SIGKILL, "illegal": signal.SIGILL, "crash": signal.SIGSEGV}


class CrashingModel(ScriptedModel):
    """Ends or holds up its process in its third window, or while loading, where its name says so."""

    def __init__(self, order: Mapping[str, Any], **settings: Any) -> None:
        super().__init__(order, **settings)
        self._crash("loading")

    def prefill(self, tokens: np.ndarray, piece: Piece) -> tuple[np.ndarray, int]:
        if self.n_windows == 3 and "loading" not in self.words:
            self._crash("")
        if "slow" in self.words:
            time.sleep(0.05)
        return super().prefill(tokens, piece)

    def _crash(self, when: str) -> None:
        for word, number in _SIGNALS.items():
            if word in self.words and (not when or when in self.words):
                os.kill(os.getpid(), number)


def _facts() -> dict[str, str]:
    version = os.environ.get("SCRIPTED_VERSION", "scripted 1")
    return {"version": version, "cpu_features": "AVX2 = 1"}


if __name__ == "__main__":
    import sys

    fault = os.environ.get("SCRIPTED_FAULT")
    if fault == "illegal":
        os.kill(os.getpid(), signal.SIGILL)
    name = "liob_core.quality.closeness.llama_model"
    library = types.ModuleType(name)
    library.start, library.LlamaModel = _facts, CrashingModel  # type: ignore[attr-defined]
    sys.modules[name] = library
    if fault == "missing":
        sys.modules[name] = None  # type: ignore[assignment]
    else:
        import liob_core.quality.closeness as package

        package.llama_model = library  # type: ignore[attr-defined]
    sys.exit(closeness_child.main())
