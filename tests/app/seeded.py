"""Results of a run with several seeds, for tests of pages."""

import json
from pathlib import Path

from liob_core.store import database
from tests.unit.analysis.conftest import RUN, RunWriter


def make_seeded(path: Path) -> Path:
    """The database at `path`: two variants whose prompts were answered with three seeds, and two opinions."""
    with database.write(path):
        pass
    writer = RunWriter(path)
    writer.run(n_seeds=3, suite_repeats=3, temperature=0.8)
    writer.machine()
    patterns = {"F16": ("ppf", "fff", "ppp"), "Q2_K": ("fpf", "pff", "ppp")}
    for label, bits in (("F16", 16.0), ("Q2_K", 2.6)):
        writer.variant(label, bits)
        for number, pattern in enumerate(patterns[label]):
            for block, letter in enumerate(pattern):
                writer.answer(
                    label,
                    f"p{number}",
                    {"p": "pass", "f": "fail"}[letter],
                    block=block,
                    seed=1 + block,
                    sample_id=f"{label}-{number}-{block}",
                    response=f"{label} with seed {1 + block}",
                    thinking="let me think" if block == 1 else "",
                )
    for number in range(3):
        writer.prompt(f"p{number}", number)
    common = {"run_id": RUN, "prompt_id": "p0", "variant": "Q2_K", "sample_id": "Q2_K-0-0", "state": "scored"}
    writer.insert(
        "judgements",
        **common,
        judgement_id="j1",
        judge="tiny on embedded",
        judge_key="k",
        mode="single",
        score=3,
        reason="It is <b>wrong</b>.",
        calibration_share=0.4,
    )
    writer.insert(
        "judgements",
        **common,
        judgement_id="j2",
        judge="people",
        judge_key="people",
        mode="pairwise",
        result="loss",
        raw_reply=json.dumps({"vote": "left"}),
        reference_sample_id="F16-0-0",
    )
    writer.summarize()
    return Path(writer.close())
