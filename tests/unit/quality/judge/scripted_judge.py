"""A judge that says what a test wants, and a record of what it was asked."""

import json
import re
from collections.abc import Callable, Sequence

from liob_core.errors import EngineFailure
from liob_core.quality.judge.judge import Reply
from liob_core.types import Outcome, Sampling

MARKER = re.compile(r'\{"id": "([0-9a-f]+)"')


def marker_of(text: str) -> str:
    """The marker of a question, as a judge reads it from the closing instruction."""
    return MARKER.findall(text)[-1]


def verdict(text: str, **fields: object) -> str:
    """A well-formed reply to the question `text`."""
    return json.dumps({"id": marker_of(text), "reason": "as the test says", **fields})


def block_of(text: str, name: str) -> str:
    """What stands in the block `name` of a question."""
    marker = marker_of(text)
    _, _, rest = text.partition(f"=== {marker} {name} ===\n")
    return rest.partition(f"\n=== {marker} end of {name} ===")[0]


Step = str | Reply | EngineFailure | Callable[[str], str]


class ScriptedJudge:
    """Gives its steps one after another, the last one for ever; a function makes a reply of the question."""

    def __init__(self, *steps: Step, one_token: Sequence[str] = ()) -> None:
        self._steps = list(steps)
        self._one_token = set(one_token)
        self.asked: list[str] = []
        self.samplings: list[Sampling] = []

    def ask(self, text: str, sampling: Sampling) -> Reply:
        step = self._steps[min(len(self.asked), len(self._steps) - 1)]
        self.asked.append(text)
        self.samplings.append(sampling)
        if isinstance(step, Reply):
            return step
        if isinstance(step, EngineFailure):
            return Reply(failure=step)
        return Reply(text=step if isinstance(step, str) else step(text))

    def is_one_token(self, piece: str) -> bool:
        return piece in self._one_token


def died() -> EngineFailure:
    return EngineFailure(Outcome.ENGINE_DIED, "the engine died", needs_reload=True)
