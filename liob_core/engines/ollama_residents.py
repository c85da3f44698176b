"""The models in a server's memory: which are there, and having one of them leave."""

import time

from liob_core.engines.ollama_models import PING_TIMEOUT_S, LoadedModel, OllamaModels, full_name
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import EngineFailure
from liob_core.types import Outcome

POLL_S = 0.05


class Residents:
    """What one server holds in memory, asked over one stream; whoever stops that stops the questions."""

    def __init__(self, stream: OllamaStream) -> None:
        self._stream = stream
        self._models = OllamaModels(stream)

    def names(self) -> set[str]:
        """The full names of the models in memory now."""
        return {full_name(model.name) for model in self._models.loaded()}

    def entry(self, name: str, answer_s: float = PING_TIMEOUT_S) -> LoadedModel | None:
        """What the server says of a model in memory; None where it is not there."""
        wanted = full_name(name)
        loaded = self._models.loaded(timeout_s=min(answer_s, PING_TIMEOUT_S))
        return next((model for model in loaded if full_name(model.name) == wanted), None)

    def make_leave(self, name: str, *, wait_s: float, answer_s: float) -> bool:
        """Whether a model is out of memory now; it is asked to leave, and waited for within limits."""
        try:
            if self.entry(name, answer_s) is None:
                return True
        except EngineFailure as failure:
            if failure.outcome is not Outcome.TIMEOUT:
                raise  # it is busy where it does not answer in time, and still told to free the model
        body = {"model": name, "prompt": "", "keep_alive": 0}
        self._stream.call("POST", "/api/generate", body, timeout_s=answer_s)
        until = time.monotonic() + wait_s
        while self.entry(name, answer_s) is not None:
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        return True
