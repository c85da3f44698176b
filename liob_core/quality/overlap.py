"""How much of a reference text an answer shares: ROUGE-L, BLEU and token F1, each 0 to 1.

Several references: the best one counts for ROUGE-L and token F1; BLEU takes them together.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

MAX_WORDS = 5_000  # of an answer; the time of ROUGE-L grows with the product of both lengths

_WORD = re.compile(r"\w+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def rouge_l(answer: str, references: Sequence[str]) -> float:
    """ROUGE-L, 0 to 1: the F-measure of the longest common subsequence of words (Lin 2004).

    As the package `rouge-score` computes it without stemming, except that words of every script count.
    """
    said = _WORD.findall(answer.casefold())[:MAX_WORDS]
    return max(_rouge_l(said, _WORD.findall(text.casefold())) for text in references)


def _rouge_l(said: Sequence[str], meant: Sequence[str]) -> float:
    return _f1(LCSseq.similarity(said, meant), len(said), len(meant))


def token_f1(answer: str, references: Sequence[str]) -> float:
    """Token F1, 0 to 1, as SQuAD defines it (Rajpurkar et al. 2016, the official evaluation script).

    Words are compared in lower case, without punctuation and the articles a, an, the.
    """
    said = Counter(_squad_words(answer))
    return max(_token_f1(said, Counter(_squad_words(text))) for text in references)


def _token_f1(said: Counter[str], meant: Counter[str]) -> float:
    if not said or not meant:  # as SQuAD 2.0 has it: nothing equals only nothing
        return float(said == meant)
    return _f1((said & meant).total(), said.total(), meant.total())


def _squad_words(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def bleu(answer: str, references: Sequence[str]) -> float:
    """Sentence BLEU, 0 to 1: sacreBLEU's, with its default tokens and smoothing, as a share of 100."""
    # A third of a second to import, and few suites ask for it.
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415

    words = answer.split()[:MAX_WORDS]
    # Scores of single sentences, so the order of n-grams goes no further than the sentence is long.
    score = BLEU(effective_order=True).sentence_score(" ".join(words), list(references)).score
    # Rounding puts the score of equal texts a hair above 100.
    return min(score / 100, 1.0)


def _f1(n_shared: int, n_said: int, n_meant: int) -> float:
    if n_shared == 0:
        return 0.0
    precision, recall = n_shared / n_said, n_shared / n_meant
    return 2 * precision * recall / (precision + recall)
