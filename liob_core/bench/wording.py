"""Prompts of a wanted length for engines that take only text, calibrated by what the engine counted.

Ids cannot be sent to such an engine, and random ids do not survive as text, so prompts are made of words
that are one token each in most vocabularies; the engine's own count of one prompt sets the next one.
"""

import hashlib
import random

from liob_core.types import Cell, RunSpec

# So far may a prompt be from the length its shape asks for, and still stand for it.
TOLERANCE_SHARE = 0.05
TOLERANCE_TOKENS = 8
# After a word or two many models end their answer at once, and such an engine cannot make them go on.
FEWEST_TOKENS = 16
# Greedy decoding of a list of words falls into a loop, which Ollama ends.
TEMPERATURE = 1.0
_WORDS = """
time year people way day man thing woman life child world school state family student group country problem
hand part place case week company system program question work government number night point home water room
mother area money story fact month lot right study book eye job word business issue side kind head house
service friend father power hour game line end member law car city community name president team minute idea
body information back parent face level office door health person art war history party result change
morning reason research girl guy moment air teacher force education foot boy age policy process music market
sense nation plan college interest death course experience effect use class control field development role
effort rate heart drug show leader light voice wife police mind price report decision son view relationship
town road arm difference value building action season society tax director position player record paper
space ground form event matter center couple site project activity star table need court oil situation cost
industry figure street image phone data picture practice piece land product doctor wall patient worker news
test movie north love support technology
"""
WORDS = tuple(_WORDS.split())


class Calibration:
    """Words against tokens, as one engine counted them for one variant."""

    def __init__(self) -> None:
        self._tokens: dict[int, int] = {}

    def learn(self, prompt: str, n_tokens: int) -> None:
        """Take the count of one prompt into account."""
        self._tokens[n_words(prompt)] = n_tokens

    @property
    def is_sure(self) -> bool:
        """Whether nothing or two lengths are known; after a single one, another length should follow."""
        return len(self._tokens) != 1

    def words_for(self, n_tokens: int) -> int:
        """How many words give `n_tokens`: from the nearest count, by the rise between the outermost two."""
        if not self._tokens:
            return max(1, n_tokens)
        near = min(self._tokens, key=lambda words: abs(self._tokens[words] - n_tokens))
        least, most = min(self._tokens), max(self._tokens)
        rise = (self._tokens[most] - self._tokens[least]) / (most - least) if most > least else 1.0
        return max(1, round(near + (n_tokens - self._tokens[near]) / (rise if rise > 0 else 1.0)))


def speed_text(spec: RunSpec, cell: Cell, words: int) -> str:
    """That many words, other ones from the first on in every cell, so that no cache can serve them."""
    seed = hashlib.sha256(f"{spec.run_id}:{cell.cell_id}".encode()).digest()
    picker = random.Random(seed)  # noqa: S311 - it must be reproducible, not secret
    return "".join(f" {picker.choice(WORDS)}" for _ in range(words))


def n_words(prompt: str) -> int:
    """The words of a prompt that `speed_text` made."""
    return prompt.count(" ")


def is_near(n_counted: int | None, n_wanted: int) -> bool:
    """Whether a count stands for the wanted one."""
    slack = max(TOLERANCE_TOKENS, TOLERANCE_SHARE * n_wanted)
    return n_counted is not None and abs(n_counted - n_wanted) <= slack
