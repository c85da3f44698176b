"""A judge on any engine: loaded once, loaded again after a breakdown, watched like every request."""

from pathlib import Path
from time import perf_counter_ns

from liob_core.bench.loading import reason_of
from liob_core.bench.measure import Recording, record
from liob_core.bench.prompts import plain_text, without_doubled_bos
from liob_core.bench.runner import Cancelled
from liob_core.bench.supervisor import Supervisor
from liob_core.engines.protocol import Engine, Request
from liob_core.errors import EngineFailure, LiobError
from liob_core.monitor import clock
from liob_core.quality.judge.judge import Reply
from liob_core.types import Limits, Message, Outcome, Sampling, Variant


class EngineJudge:
    """The judge's model, asked one question at a time; raises `Cancelled` where the user ends it."""

    def __init__(
        self, engine: Engine, variant: Variant, *, supervisor: Supervisor, folder: Path, limits: Limits
    ) -> None:
        self._engine = engine
        self._variant = variant
        self._supervisor = supervisor
        self._folder = folder
        self._limits = limits
        self._n_loads = 0
        self._is_loaded = False
        self._topic = ("", "")

    def load(self) -> None:
        """Load it; raises LiobError where it cannot be."""
        self._stop_if_cancelled()
        self._supervisor.say("loading the judge", self._variant.label)
        try:
            self._load()
        except EngineFailure as failure:
            self._stop_if_cancelled()
            raise LiobError(f"The judge could not be loaded: {reason_of(failure)}") from failure

    def about(self, variant: str, prompt: str) -> None:
        """Say what the next questions are about, for who watches."""
        self._topic = (variant, prompt)

    def ask(self, text: str, sampling: Sampling) -> Reply:
        """The reply to one user turn, with the failure that ended it, if any did."""
        self._stop_if_cancelled()
        recording, failure = Recording(clock.utc_ns()), None
        try:
            if not self._is_loaded:
                self._load()
            self._generate(self._request(text, sampling), recording)
        except EngineFailure as error:
            failure = error
        aborted = self._supervisor.end()
        self._stop_if_cancelled()
        if aborted is not None:  # even where the reply was whole by then, the engine was stopped
            failure = EngineFailure(aborted.outcome, aborted.reason or "", needs_reload=True)
        if failure is not None and failure.needs_reload:
            self._is_loaded = False
        return Reply(text=recording.response, is_cut_off=_is_cut_off(recording), failure=failure)

    def is_one_token(self, piece: str) -> bool:
        """Whether its tokenizer reads `piece` as a single token; True where that cannot be told."""
        if not self._is_loaded or not self._engine.capabilities.tokenizes:
            return True
        try:
            return len(self._engine.tokenize(piece, add_special=False)) == 1
        except EngineFailure:
            return True  # the request that follows will tell what is wrong

    def _load(self) -> None:
        self._n_loads += 1
        log_path = self._folder / f"engine-{self._n_loads:04d}.log"
        settings = self._variant.load_settings
        self._engine.load(self._variant, settings, log_path=log_path, load_s=self._limits.load_s)
        self._is_loaded = True

    def _request(self, text: str, sampling: Sampling) -> Request:
        messages = [Message(role="user", content=text)]
        model, capabilities = self._variant.model, self._engine.capabilities
        has_template = capabilities.renders_templates and (model is None or model.has_chat_template)
        prompt = self._engine.render(messages) if has_template else plain_text(messages)
        n_tokens = None
        if capabilities.tokenizes:
            prompt, n_tokens = without_doubled_bos(prompt, self._engine)
        # The schema holds from the first token on, so the reply never starts inside a thinking tag.
        return Request(prompt=prompt, sampling=sampling, limits=self._limits, expected_prompt_tokens=n_tokens)

    def _generate(self, request: Request, recording: Recording) -> None:
        variant, prompt = self._topic
        self._supervisor.begin_request(request.limits, variant=variant, task="judge", prompt=prompt)
        record(recording, self._engine.generate(request), perf_counter_ns(), self._supervisor.beat)
        if recording.counters is None:
            raise EngineFailure(Outcome.INCOMPLETE, "the stream ended without its end mark")

    def _stop_if_cancelled(self) -> None:
        if self._supervisor.is_cancelled:
            raise Cancelled


def _is_cut_off(recording: Recording) -> bool:
    hit_limit = recording.counters is not None and recording.counters.stop_type == "limit"
    return recording.truncated or hit_limit
