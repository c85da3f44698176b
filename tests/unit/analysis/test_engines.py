"""The same weights on two engines: what is compared with what, and what is warned of."""

import json

import pytest

from liob_core.analysis.engines import same_weights
from liob_core.analysis.overview import headline
from liob_core.analysis.results import warnings


def two_engines(writer, **run):
    writer.run(reference="F16 embedded", engine="embedded", **run)
    for engine, reference in (("embedded", True), ("ollama", False)):
        changes = {"engine": engine, "weights_sha256": "a" * 64, "is_reference": reference}
        writer.variant(f"F16 {engine}", 16.0, engine_model="tiny:f16", **changes)
        writer.load(f"F16 {engine}", engine_version=f"{engine} 1")
        writer.speed(f"F16 {engine}", 0, chat_ms=1270.0 if engine == "embedded" else 2540.0)
    writer.variant("Q8_0", 8.5, engine="embedded", weights_sha256="b" * 64)


def answers(writer, *, bytes_differ=0, tokens_differ=0, text_differs=0):
    for number in range(10):
        writer.prompt(f"p{number}", template_sha256="t")
        for engine in ("embedded", "ollama"):
            other = engine == "ollama"
            writer.answer(
                f"F16 {engine}",
                f"p{number}",
                "pass",
                prompt_sha256="y" if other and number < bytes_differ else "x",
                prompt_tokens=65 if other and number < tokens_differ else 64,
                response="else" if other and number < text_differs else "text",
            )


def test_rows_are_those_whose_weights_ran_on_both(writer):
    two_engines(writer)
    answers(writer, bytes_differ=1, tokens_differ=2, text_differs=3)
    writer.summarize()
    frame = same_weights(writer.close(), writer.run_id)
    assert list(frame["variant"]) == ["F16 embedded", "F16 ollama"]
    assert list(frame["engine_version"]) == ["embedded 1", "ollama 1"]
    assert list(frame["decode_tps"]) == pytest.approx([100.0, 50.0])
    pair = frame.iloc[1]
    assert pair["compared_with"] == "F16 embedded"
    told = (pair["n_prompts"], pair["n_same_bytes"], pair["n_same_tokens"], pair["n_same_answers"])
    assert told == (10, 9, 8, 7)


def test_one_engine_alone_has_no_rows(writer):
    writer.run()
    writer.variant("F16", 16.0, weights_sha256="a" * 64)
    writer.variant("F16 mmap", 16.0, weights_sha256="a" * 64)
    writer.summarize()
    assert same_weights(writer.close(), writer.run_id).empty


def test_engines_and_what_they_were_sent_are_warned_of(writer):
    two_engines(writer)
    answers(writer, tokens_differ=2)
    writer.summarize()
    found = " ".join(warnings(writer.close(), writer.run_id))
    assert "different engines (embedded, ollama)" in found
    assert "different numbers of tokens in 2 prompts" in found
    assert "did not reach every variant" not in found


def test_other_bytes_are_warned_of(writer):
    two_engines(writer)
    answers(writer, bytes_differ=3)
    writer.summarize()
    assert "3 prompts did not reach every variant with the same bytes." in warnings(
        writer.close(), writer.run_id
    )


def test_templates_of_the_engines_own_are_warned_of(writer):
    two_engines(writer, prompt_mode="engine")
    answers(writer, bytes_differ=3)
    writer.summarize()
    found = " ".join(warnings(writer.close(), writer.run_id))
    assert "Each engine applied its own template" in found
    assert "did not reach every variant" not in found


def test_what_a_load_became_is_told_once_a_variant(writer):
    two_engines(writer)
    sentence = "Ollama took a context of 2048 tokens instead of 4096"
    for block in (1, 2):
        writer.load("F16 ollama", block, effective=json.dumps({"n_ctx": 2048, "warnings": [sentence]}))
    writer.load("F16 ollama", 3, effective=json.dumps({"n_ctx": 2048}))
    writer.summarize()
    found = warnings(writer.close(), writer.run_id)
    assert [one for one in found if sentence in one] == [f"F16 ollama: {sentence}."]


def test_prompts_that_ollama_rendered_are_told(writer):
    writer.run(engine="ollama")
    writer.variant("F16", 16.0, engine="ollama")
    writer.prompt("p0", template_sha256=None)
    writer.summarize()
    assert any("a template of its own" in one for one in warnings(writer.close(), writer.run_id))


def test_pick_on_ollama_is_run_by_ollama(writer):
    writer.run(engine="ollama")
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw, engine="ollama", engine_model=f"tiny:{label.lower()}")
        for number in range(80):
            writer.answer(label, f"p{number}", "pass")
    writer.summarize()
    assert headline(writer.close(), writer.run_id).command == "ollama run tiny:q8_0"


def test_prompts_that_the_engines_templates_make_differ_are_counted(writer):
    two_engines(writer, prompt_mode="engine")
    answers(writer, bytes_differ=3)
    writer.summarize()
    found = " ".join(warnings(writer.close(), writer.run_id))
    assert "3 prompts became other text on some variants than on others" in found


@pytest.mark.parametrize(
    ("names", "is_told"),
    [
        (("liob/tiny:f16-1", "hf.co/me/tiny:Q8_0"), True),
        (("tiny:f16", "hf.co/me/tiny:Q8_0"), True),
        (("liob/tiny:f16-1", "liob/tiny:q8_0-2"), False),
    ],
)
def test_two_ways_of_registering_are_told_where_templates_depend_on_them(writer, names, is_told):
    writer.run(engine="ollama", prompt_mode="engine")
    for label, bpw, name in zip(("F16", "Q8_0"), (16.0, 8.5), names, strict=True):
        writer.variant(label, bpw, engine="ollama", engine_model=name)
    writer.summarize()
    found = " ".join(warnings(writer.close(), writer.run_id))
    assert ("take one way for all" in found) is is_told
