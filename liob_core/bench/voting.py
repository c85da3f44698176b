"""Storing a person's blind vote: one more line in the run's journal, never in place of another."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from liob_core.bench.judge_jobs import JUDGING_DIR
from liob_core.bench.status import read_status_file
from liob_core.config import Settings
from liob_core.errors import BusyError, MissingError, UsageError
from liob_core.monitor import clock
from liob_core.quality.judge.people import PEOPLE, BlindPair, Choice, of_vote
from liob_core.store.journal import SPEC_FILE, Journal, read_lines
from liob_core.types import JsonValue, Judgement, JudgeState

LOCK_FILE = "votes.lock"
_WAIT_S = 5.0

Lines = Sequence[Mapping[str, JsonValue]]


def cast_vote(pair: BlindPair, choice: Choice, settings: Settings) -> Judgement:
    """The vote as stored; raises UsageError where the pair has one already or the run is still at work."""
    run_dir = settings.runs_dir / pair.run_id
    if not (run_dir / SPEC_FILE).exists():
        raise MissingError(
            f"Votes are kept in a run's folder, and that of run {pair.run_id} is not here: vote where "
            "the run was made."
        )
    try:
        # Two sessions at once: opening a journal cuts off what looks like the line of a crash.
        with FileLock(run_dir / LOCK_FILE, timeout=_WAIT_S):
            return _append(run_dir, pair, choice)
    except Timeout as error:
        raise BusyError(f"Another vote on run {pair.run_id} is being stored. Try again.") from error


def _append(run_dir: Path, pair: BlindPair, choice: Choice) -> Judgement:
    for folder in (run_dir, run_dir / JUDGING_DIR):
        status = read_status_file(folder)
        if status is not None and status.is_live:
            raise UsageError(f"Run {pair.run_id} is still at work; vote once it has ended.")
    lines, _ = read_lines(run_dir)
    if _has_vote(pair, lines):
        raise UsageError("There is a vote on these two answers already; votes are never replaced.")
    texts = {
        line["data"]["sample_id"]: str(line["data"]["response"]) for line in lines if line["kind"] == "sample"
    }
    if pair.sample_id not in texts or pair.base_sample_id not in texts:
        raise UsageError(f"Run {pair.run_id} has no such two answers; load the page again.")
    now_ns = clock.utc_ns()
    vote = of_vote(
        pair,
        choice,
        answer=texts[pair.sample_id],
        base_answer=texts[pair.base_sample_id],
        judgement_id=f"{pair.run_id}/vote-{now_ns}",
        utc=clock.utc_iso(now_ns),
    )
    with Journal(run_dir) as journal:
        journal.append(vote)
    return vote


def _has_vote(pair: BlindPair, lines: Lines) -> bool:
    """Whether there is an opinion of people on these two answers; a skip is none."""
    wanted = {pair.sample_id, pair.base_sample_id}
    return any(
        line["kind"] == "judgement"
        and line["data"]["judge_key"] == PEOPLE
        and line["data"]["state"] == JudgeState.SCORED
        and {line["data"]["sample_id"], line["data"]["reference_sample_id"]} == wanted
        for line in lines
    )
