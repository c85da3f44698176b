"""Every way to carry out an order gives the same scores; one variant's failure leaves the others alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liob_core.quality.closeness.evaluator import Evaluator
from liob_core.quality.closeness.model import FailedError
from liob_core.quality.closeness.records import Ending, WindowScore, score_from_json
from tests.unit.quality.closeness.scripted_model import N_VOCAB, ScriptedModel

N_CTX = 16
WINDOW_BYTES = 7 * N_VOCAB * 4


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(bytes(range(32, 122)))  # 90 tokens: 5 windows of 16
    return path


def _candidate(name: str) -> dict[str, Any]:
    return {"label": name, "path": f"{name}.gguf"}


def _run(text: Path, *variants: str, reference: str = "reference", **changes: Any) -> list[dict[str, Any]]:
    order = {
        "text": str(text),
        "n_ctx": N_CTX,
        "n_batch": N_CTX,
        "n_windows": None,
        "from_start": True,
        "threads": 2,
        "reference": _candidate(reference),
        "batches": [[_candidate(name) for name in variants]],
        "spill_bytes": None,
        "temp_dir": str(text.parent),
        "done": {},
    } | changes
    lines: list[dict[str, Any]] = []
    ScriptedModel.opened.clear()
    Evaluator(order, lambda event, **facts: lines.append({"event": event, **facts}), ScriptedModel).run()
    return lines


def _scores(lines: list[dict[str, Any]]) -> dict[tuple[str, int], WindowScore]:
    found = [score_from_json(line) for line in lines if line["event"] == "score"]
    scores = {(one.variant, one.window): one for one in found}
    assert len(scores) == len(found)  # nothing is sent twice
    return scores


def _same(one: WindowScore, other: WindowScore) -> bool:
    return (
        np.array_equal(one.nll, other.nll)
        and np.array_equal(one.kld, other.kld)
        and np.array_equal(one.same_top, other.same_top)
    )


def _failed(lines: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    return {line["variant"]: (line["ending"], line["reason"]) for line in lines if line["event"] == "failed"}


def test_together_each_window_has_a_line_for_each_model(text: Path) -> None:
    scores = _scores(_run(text, "noise1", "noise3"))
    assert scores.keys() == {(v, w) for v in ("reference", "noise1", "noise3") for w in range(5)}
    assert len(scores["noise1", 0].nll) == 7
    assert scores["reference", 0].kld is None
    kld = {name: np.mean([scores[name, w].kld for w in range(5)]) for name in ("noise1", "noise3")}
    assert 0 < kld["noise1"] < kld["noise3"]


def test_scores_are_those_of_the_tokens_that_came(text: Path) -> None:
    score = _scores(_run(text, "noise1"))["noise1", 1]
    tokens = [byte % N_VOCAB for byte in text.read_bytes()][16:32]
    model = ScriptedModel(_candidate("noise1"), n_ctx=16, n_batch=16, threads=1)
    expected = []
    for position in range(8, 15):  # the second half without its last token, each predicting the next
        row = model.row(tokens[: position + 1])
        expected.append(np.log(np.exp(row).sum()) - row[tokens[position + 1]])
    assert score.nll == pytest.approx(expected, abs=1e-5)
    assert score.prefill_ns == 16_000


@pytest.mark.parametrize(
    "changes",
    [
        {"n_batch": 5},
        {"batches": [[_candidate("noise1")], [_candidate("noise3")]]},
        {"spill_bytes": 10**9},
        {"spill_bytes": 2 * WINDOW_BYTES},
        {"spill_bytes": 1},  # at least one window is taken
        {"spill_bytes": 3 * WINDOW_BYTES, "n_batch": 5},
    ],
)
def test_every_way_gives_the_same_scores(text: Path, changes: dict[str, Any]) -> None:
    plain = _scores(_run(text, "noise1", "noise3"))
    other = _scores(_run(text, "noise1", "noise3", **changes))
    assert plain.keys() == other.keys()
    assert all(_same(plain[key], other[key]) for key in plain)


def test_one_model_at_a_time_leaves_no_file(text: Path) -> None:
    _run(text, "noise1", spill_bytes=2 * WINDOW_BYTES)
    assert ScriptedModel.opened == ["reference", "noise1"] * 3
    assert [path.name for path in text.parent.iterdir()] == ["text.txt"]


def test_one_file_alone_is_evaluated(text: Path) -> None:
    assert _scores(_run(text)).keys() == {("reference", window) for window in range(5)}


@pytest.mark.parametrize("spill_bytes", [None, 2 * WINDOW_BYTES])
def test_done_windows_are_not_evaluated_again(text: Path, spill_bytes: int | None) -> None:
    done = {"reference": [0, 1, 2], "noise1": [0, 1], "noise3": [0, 1, 2, 3]}
    whole = _scores(_run(text, "noise1", "noise3"))
    rest = _scores(_run(text, "noise1", "noise3", done=done, spill_bytes=spill_bytes))
    assert rest.keys() == {key for key in whole if key[1] not in done[key[0]]}
    assert all(_same(whole[key], rest[key]) for key in rest)


def test_a_variant_that_is_done_is_not_loaded(text: Path) -> None:
    _run(text, "noise1", "noise3", done={"noise1": [0, 1, 2, 3, 4]})
    assert ScriptedModel.opened == ["reference", "noise3"]


def test_windows_begin_with_bos_where_the_reference_adds_one(text: Path) -> None:
    plain, with_bos = _scores(_run(text)), _scores(_run(text, reference="bos"))
    assert not np.array_equal(plain["reference", 0].nll, with_bos["bos", 0].nll)


@pytest.mark.parametrize("spill_bytes", [None, 2 * WINDOW_BYTES])
@pytest.mark.parametrize(
    ("name", "ending", "reason"),
    [
        ("larger", Ending.OTHER_VOCABULARY, "its vocabulary has 61 tokens, the reference's 60"),
        ("foreign", Ending.OTHER_VOCABULARY, "holds other tokens"),
        ("corrupt", Ending.BAD_FILE, "out of bounds"),
        ("fails", Ending.ENGINE_ERROR, "code -3"),
        ("nan", Ending.NOT_FINITE, "window 1"),
    ],
)
def test_a_failure_is_one_variants_own(
    text: Path, name: str, ending: Ending, reason: str, spill_bytes: int | None
) -> None:
    lines = _run(text, name, "noise1", spill_bytes=spill_bytes)
    (failed,) = _failed(lines).items()
    assert failed[0] == name
    assert failed[1][0] == ending
    assert reason in failed[1][1]
    alone = _scores(_run(text, "noise1"))
    scores = _scores(lines)
    assert all(_same(alone[key], scores[key]) for key in alone)


@pytest.mark.parametrize(
    ("name", "ending"),
    [("corrupt", Ending.BAD_FILE), ("fails", Ending.ENGINE_ERROR), ("nan", Ending.NOT_FINITE)],
)
def test_without_a_reference_nothing_goes_on(text: Path, name: str, ending: Ending) -> None:
    with pytest.raises(FailedError) as error:
        _run(text, "noise1", reference=name)
    assert error.value.ending == ending


def test_a_text_shorter_than_a_window_has_none(text: Path) -> None:
    lines = _run(text, "noise1", n_ctx=128)
    (told,) = [line for line in lines if line["event"] == "text"]
    assert (told["n_tokens"], list(told["windows"])) == (90, [])
    assert _scores(lines) == {}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w+b", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full)
        with pytest.raises(FailedError, match="do not fit the disk") as error:
            _run(text, "noise1", spill_bytes=10**6)
    assert error.value.ending == Ending.DISK_FULL
