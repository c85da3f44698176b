"""A scripted, deterministic engine for tests: it measures nothing and is never a default.

The script is plain JSON (`RunSpec.engine_options`), every key optional:

    tokens_per_s         decode rate, 1000; `rates` maps a variant's label to its own
    prompt_tokens_per_s  prompt rate, 10000
    sleep                whether the times are really spent, true; else they are only reported
    load_s               how long a load takes, 0
    n_tokens             length of an answer that nothing else decides, 12
    answers              maps a piece of a prompt to the answer it gets
    thinking             text that every answer begins with, between <think> tags
    faults               list of {"kind", "variant", "prompt", "request", "load", "after_tokens", "times"}

A fault strikes where all of its conditions hold: the variant's label, a piece of the prompt, the number of
the request (from 1, counted over the engine's life), the number of the load; `times` limits how often.
Kinds while generating: die, hang, error, context, incomplete, garble, truncated, empty, loop. While
loading: load_fails, load_dies, slow_load (which lasts until it is aborted or out of time).
"""

import hashlib
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from liob_core.engines.options import sampling_problem
from liob_core.engines.protocol import Capabilities, Chunk, LoadReport, Request
from liob_core.engines.thinking import Splitter
from liob_core.errors import EngineFailure
from liob_core.types import Counters, JsonValue, LoadSettings, Message, Outcome, Variant

BOS_ID = 1
VOCABULARY = 32000
WORDS = (
    "the",
    "a",
    "of",
    "model",
    "runs",
    "small",
    "large",
    "fast",
    "answer",
    "is",
    "seven",
    "river",
    "north",
)
LOAD_FAULTS = {"load_fails", "load_dies", "slow_load"}
FAILURES: Mapping[str, tuple[Outcome, str, bool]] = {
    "die": (Outcome.ENGINE_DIED, "the engine died: killed by signal 9 (scripted)", True),
    "error": (Outcome.ENGINE_ERROR, "the engine says: scripted error", False),
    "context": (Outcome.CONTEXT_EXCEEDED, "the prompt does not fit (scripted)", False),
    "incomplete": (Outcome.INCOMPLETE, "the engine's answer ended without its end mark (scripted)", True),
    "garble": (Outcome.BAD_REPLY, "the engine sent an event that cannot be read (scripted)", True),
}


class FakeEngine:
    """An engine whose text is a function of prompt, seed and variant, and whose faults are scripted."""

    def __init__(self, script: Mapping[str, JsonValue]) -> None:
        self._script = script
        self._faults = [dict(fault) for fault in script.get("faults", ())]
        self._aborted = threading.Event()
        self._variant: Variant | None = None
        self._n_ctx = 0
        self._n_loads = 0
        self._n_requests = 0

    @property
    def name(self) -> str:
        """The engine's name as stored in results."""
        return "fake"

    @property
    def capabilities(self) -> Capabilities:
        """The same as the embedded engine's."""
        return Capabilities(
            takes_token_ids=True,
            reports_cached_tokens=True,
            renders_templates=True,
            is_local=True,
            is_restartable=True,
        )

    def load(self, variant: Variant, settings: LoadSettings, *, log_path: Path, load_s: float) -> LoadReport:
        """What the script says a load takes."""
        self.unload()
        self._aborted.clear()
        self._n_loads += 1
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log_path.write_text(f"fake engine: load {self._n_loads} of {variant.label}\n", encoding="utf-8")
        started = time.perf_counter_ns()
        fault = self._fault(variant.label, "", of_load=True).get("kind")
        if fault == "load_fails":
            raise EngineFailure(
                Outcome.ENGINE_ERROR, f"{variant.label} could not be loaded: scripted.", needs_reload=True
            )
        if fault == "load_dies":
            raise EngineFailure(
                Outcome.ENGINE_DIED, "the engine ended while loading: scripted", needs_reload=True
            )
        wanted_s = float("inf") if fault == "slow_load" else float(self._script.get("load_s", 0))
        if self._aborted.wait(min(wanted_s, load_s)):
            raise EngineFailure(Outcome.CANCELLED, "loading was stopped", needs_reload=True)
        if wanted_s > load_s:
            raise EngineFailure(
                Outcome.TIMEOUT, f"{variant.label} was not loaded after {load_s:g} s", needs_reload=True
            )
        self._variant, self._n_ctx = variant, settings.n_ctx
        return LoadReport(
            load_ms=(time.perf_counter_ns() - started) / 1e6,
            effective={"n_ctx": settings.n_ctx},
            engine_version="fake 1",
        )

    def render(self, messages: Sequence[Message]) -> str:
        """A plain template: one line a turn."""
        turns = [f"<|{message.role}|>{message.content}\n" for message in messages]
        return "".join(turns) + "<|assistant|>"

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """One id a word, begun with BOS where `add_special`."""
        ids = [2 + zlib.crc32(word.encode("utf-8", "replace")) % (VOCABULARY - 2) for word in text.split()]
        return [BOS_ID, *ids] if add_special else ids

    def bos_id(self) -> int | None:
        """Always the same id."""
        return BOS_ID

    def generate(self, request: Request) -> Iterator[Chunk]:
        """The chunks of the scripted answer, one token each."""
        variant = self._variant
        if variant is None:
            raise EngineFailure(Outcome.ENGINE_ERROR, "no model is loaded", needs_reload=True)
        if problem := sampling_problem(request.sampling):
            raise EngineFailure(Outcome.ENGINE_ERROR, problem)
        self._n_requests += 1
        is_text = isinstance(request.prompt, str)
        prompt = request.prompt if isinstance(request.prompt, str) else ""
        n_prompt = len(self.tokenize(prompt, add_special=True)) if is_text else len(request.prompt)
        if n_prompt >= self._n_ctx:
            raise EngineFailure(
                Outcome.CONTEXT_EXCEEDED, f"the prompt does not fit: {n_prompt} of {self._n_ctx} tokens"
            )
        yield from self._answer(request, variant, prompt, n_prompt)

    def _answer(self, request: Request, variant: Variant, prompt: str, n_prompt: int) -> Iterator[Chunk]:
        fault = self._fault(variant.label, prompt, of_load=False)
        kind, after = str(fault.get("kind", "")), int(fault.get("after_tokens", 2))
        prompt_ms = 1000 * n_prompt / float(self._script.get("prompt_tokens_per_s", 10000))
        self._spend(prompt_ms)
        pieces, stop_type = self._pieces(request, variant, kind, prompt)
        room = self._n_ctx - n_prompt
        is_truncated = kind == "truncated" or len(pieces) > room
        if is_truncated:
            pieces, stop_type = pieces[: min(room, max(after, 1))] if kind else pieces[:room], "limit"
        token_ms = 1000 / self._tokens_per_s(variant)
        splitter = Splitter(request.starts_thinking)
        for number, piece in enumerate(pieces):
            if number:
                self._spend(token_ms)
            if number == after:
                self._fail(kind)
            answer, thinking = splitter.feed(piece)
            yield Chunk(text=answer, thinking=thinking)
        if len(pieces) <= after:
            self._fail(kind)
        answer, thinking = splitter.finish()
        yield Chunk(
            text=answer,
            thinking=thinking,
            n_tokens=0,
            truncated=is_truncated,
            counters=Counters(
                prompt_tokens=n_prompt,
                cached_tokens=0,
                output_tokens=len(pieces),
                engine_prompt_ms=prompt_ms,
                engine_eval_ms=max(token_ms * (len(pieces) - 1), 0.001),
                stop_type=stop_type,
            ),
        )

    def _pieces(self, request: Request, variant: Variant, kind: str, prompt: str) -> tuple[list[str], str]:
        """The answer's tokens, the end token's empty piece among them, and why it stopped."""
        limit = request.sampling.max_tokens
        if kind == "empty":
            return [""], "eos"
        if kind == "loop":
            return ["again and again "] * limit, "limit"
        text = next((text for part, text in self._script.get("answers", {}).items() if part in prompt), None)
        key = f"{request.prompt}|{request.sampling.seed}|{variant.label}"
        n_tokens = limit if request.sampling.ignore_eos else int(self._script.get("n_tokens", 12))
        words = text.split(" ") if text is not None else _words(key, n_tokens)
        pieces = [word if number == 0 else f" {word}" for number, word in enumerate(words)]
        if thinking := self._script.get("thinking"):
            pieces = [f"<think>{thinking}</think>", *pieces]
        if not request.sampling.ignore_eos:
            pieces.append("")
        return (pieces, "eos") if len(pieces) < limit else (pieces[:limit], "limit")

    def _fail(self, kind: str) -> None:
        if kind == "hang":
            self._aborted.wait()
            raise EngineFailure(Outcome.CANCELLED, "the engine was stopped", needs_reload=True)
        if kind in FAILURES:
            outcome, reason, needs_reload = FAILURES[kind]
            if needs_reload:
                self.unload()
            raise EngineFailure(outcome, reason, log_tail="scripted fault", needs_reload=needs_reload)

    def _spend(self, milliseconds: float) -> None:
        seconds = milliseconds / 1000 if self._script.get("sleep", True) else 0
        if self._aborted.wait(seconds):
            raise EngineFailure(Outcome.CANCELLED, "the engine was stopped", needs_reload=True)

    def _tokens_per_s(self, variant: Variant) -> float:
        rates = self._script.get("rates", {})
        return float(rates.get(variant.label, self._script.get("tokens_per_s", 1000)))

    def _fault(self, label: str, prompt: str, *, of_load: bool) -> Mapping[str, JsonValue]:
        """The first fault whose conditions all hold; empty where none does."""
        for fault in self._faults:
            conditions = (
                (fault["kind"] in LOAD_FAULTS) == of_load,
                fault.get("times", 1) > 0,
                fault.get("variant", label) == label,
                str(fault.get("prompt", "")) in prompt,
                fault.get("request", self._n_requests) == self._n_requests,
                fault.get("load", self._n_loads) == self._n_loads,
            )
            if all(conditions):
                if "times" in fault:
                    fault["times"] -= 1
                return fault
        return {}

    def abort(self) -> None:
        """Make what is under way fail at once; holds until the next load."""
        self._aborted.set()

    def pids(self) -> tuple[int, ...]:
        """No process ids: it lives in this process."""
        return ()

    def unload(self) -> None:
        """Forget the variant."""
        self._variant = None

    def close(self) -> None:
        """Nothing is left."""
        self.unload()


def _words(key: str, count: int) -> list[str]:
    words: list[str] = []
    while len(words) < count:
        digest = hashlib.sha256(f"{key}|{len(words)}".encode("utf-8", "replace")).digest()
        words.extend(WORDS[byte % len(WORDS)] for byte in digest)
    return words[:count]
