from dataclasses import fields

from liob_core.analysis.runs import RunFacts
from liob_core.rendering.run_words import how


def facts(**changes):
    empty = dict.fromkeys((field.name for field in fields(RunFacts)), None)
    known = {
        "run_id": "r",
        "engine": "embedded",
        "engine_version": "1",
        "n_ctx": 512,
        "threads": 2,
        "gpus": (),
    }
    counts = {
        "n_blocks": 3,
        "max_tokens": 1024,
        "n_samples": 0,
        "n_failed": 0,
        "n_contended": 0,
        "n_variants": 2,
    }
    return RunFacts(**(empty | known | counts | {"tasks": ("closeness",)} | changes))


def test_a_run_of_closeness_alone_speaks_of_no_requests_and_no_engine():
    assert how(facts()) == "closeness alone, without an engine · context 512 · 2 threads · run r"


def test_a_run_with_requests_says_how_they_were_made():
    told = how(facts(tasks=("speed", "closeness"), n_samples=40))
    assert told.startswith("40 requests · 3 blocks · embedded 1 · context 512")
    assert told.endswith("answers up to 1024 tokens · run r")


def test_a_run_that_sent_nothing_says_so():
    assert how(facts(tasks=("speed",))).startswith("no request was sent")
