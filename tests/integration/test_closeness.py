"""The real library on the real ladder: figures equal to those of llama.cpp's own tool, to its digits."""

import importlib.util
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from liob_core.models.gguf import read_model
from liob_core.models.quantize import make_ladder
from liob_core.quality.closeness.corpora import find_text
from liob_core.quality.closeness.evaluate import evaluate
from liob_core.quality.closeness.fidelity import Fidelity
from liob_core.quality.closeness.records import Candidate, ClosenessSpec, Ending, WindowScore
from liob_core.quality.closeness.results import Evaluation

pytestmark = [
    pytest.mark.model,
    pytest.mark.ladder,
    pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None, reason="needs llama-cpp-python"),
    pytest.mark.timeout(600),
]
TYPES = ("F16", "Q8_0", "Q2_K")

# llama-perplexity of the same sources, built with -DGGML_NATIVE=OFF (AVX2), on the bundled text:
#   llama-perplexity -m F16.gguf -f data/corpora/adventures-1892.txt -c 512 --chunks 3 -t 2
@PPL@
