"""The worker's second pair of eyes: deadlines, cancel and the status file, off the measuring thread."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from liob_core.bench.measure import Ending
from liob_core.bench.status import Progress, RunStatus, write_status
from liob_core.monitor import clock
from liob_core.types import Cell, Limits, Outcome, Reading

CANCEL_FILE = "cancel"
TICK_S = 0.25  # each look takes time from what is measured
STATUS_EVERY_S = 1.0
TAIL_CHARS = 600


@dataclass(slots=True)
class _Request:
    """The request in flight. One thread writes each field, so plain attributes need no lock."""

    limits: Limits
    sent_s: float
    last_token_s: float | None = None
    first_token_s: float | None = None
    n_tokens: int | None = 0
    text: str = ""

    def overdue(self, now_s: float) -> str | None:
        if now_s - self.sent_s > self.limits.request_s:
            return f"the answer took longer than {self.limits.request_s:g} s"
        if self.last_token_s is None:
            if now_s - self.sent_s > self.limits.first_token_s:
                return f"no first token within {self.limits.first_token_s:g} s"
        elif now_s - self.last_token_s > self.limits.between_tokens_s:
            return f"no further token for {self.limits.between_tokens_s:g} s"
        return None

    def decode_tps(self) -> float | None:
        if self.n_tokens is None or self.n_tokens < 2 or self.first_token_s is None:
            return None
        elapsed_s = (self.last_token_s or 0.0) - self.first_token_s
        return (self.n_tokens - 1) / elapsed_s if elapsed_s > 0 else None


class Supervisor:
    """Watches one worker: aborts what is overdue or cancelled, and keeps `status.json` fresh."""

    def __init__(
        self,
        run_dir: Path,
        status: RunStatus,
        *,
        abort: Callable[[], None],
        latest: Callable[[], Reading | None],
    ) -> None:
        self._run_dir = run_dir
        self._status = status
        self._abort = abort
        self._latest = latest
        self._request: _Request | None = None
        self._aborted: Ending | None = None
        self._cancelled = threading.Event()
        self._stop = threading.Event()
        self._began_s = time.monotonic()
        self._done_at_start = status.n_done
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self, state: str, reason: str | None) -> None:
        """Stop watching and write the last status."""
        self._stop.set()
        self._thread.join()
        self._status = replace(
            self._status, state=state, reason=reason, text_tail="", activity=None, eta_s=None
        )
        self._write()

    @property
    def is_cancelled(self) -> bool:
        """Whether the user asked for the end of the run."""
        return self._cancelled.is_set()

    @property
    def cancelled(self) -> threading.Event:
        """Set when the user asks for the end of the run, for work that waits in threads of its own."""
        return self._cancelled

    @property
    def n_failed(self) -> int:
        """How many measured cells failed, those of earlier starts included."""
        return self._status.n_failed

    def cancel(self) -> None:
        """Ask for the end of the run, as the cancel file does; safe in a signal handler."""
        self._cancelled.set()

    def begin(self, cell: Cell, limits: Limits) -> None:
        """A cell's request is about to be sent."""
        prompt = cell.prompt_id or (cell.shape.value if cell.shape else "warm-up")
        self.begin_request(limits, variant=cell.variant, task=cell.task.value, prompt=prompt)

    def begin_request(self, limits: Limits, *, variant: str, task: str, prompt: str) -> None:
        """A request is about to be sent."""
        self._aborted = None
        self._status = replace(
            self._status, current_variant=variant, current_task=task, current_prompt=prompt, activity=None
        )
        self._request = _Request(limits, time.monotonic())

    def beat(self, n_tokens: int | None, text: str) -> None:
        """A token came; `n_tokens` is None where the event does not tell how many."""
        request = self._request
        if request is None:
            return
        now_s = time.monotonic()
        if request.first_token_s is None:
            request.first_token_s = now_s
        request.last_token_s = now_s
        request.n_tokens = (
            None if n_tokens is None or request.n_tokens is None else request.n_tokens + n_tokens
        )
        request.text = (request.text + text)[-TAIL_CHARS:]

    def end(self) -> Ending | None:
        """The request is over; why it was aborted, if it was."""
        self._request = None
        return self._aborted

    def say(self, activity: str, variant: str | None = None) -> None:
        """What the worker does between requests."""
        self._status = replace(
            self._status, activity=activity, current_variant=variant, current_task=None, current_prompt=None
        )

    def count(self, cell: Cell, *, failed: bool) -> None:
        """A measured cell is stored."""
        self.count_done(f"{cell.variant}|{cell.task.value}", failed=failed)

    def count_done(self, key: str, *, failed: bool) -> None:
        """One more of what the status counts under `key` is stored."""
        before = self._status.per_cell[key]
        after = Progress(total=before.total, done=before.done + 1, failed=before.failed + failed)
        self._status = replace(
            self._status,
            n_done=self._status.n_done + 1,
            n_failed=self._status.n_failed + failed,
            per_cell={**self._status.per_cell, key: after},
        )

    def plan(self, key: str, total: int) -> None:
        """The status counts up to `total` under `key`, now that it is known."""
        before = self._status.per_cell[key]
        self._status = replace(
            self._status,
            n_cells=self._status.n_cells + total - before.total,
            per_cell={**self._status.per_cell, key: replace(before, total=total)},
        )

    def _watch(self) -> None:
        next_status_s = 0.0
        while not self._stop.wait(TICK_S):
            self._check_cancel()
            self._check_deadline()
            if time.monotonic() >= next_status_s:
                next_status_s = time.monotonic() + STATUS_EVERY_S
                self._write()

    def _check_cancel(self) -> None:
        if (self._run_dir / CANCEL_FILE).exists():
            self._cancelled.set()
        if self._cancelled.is_set():
            self._aborted = Ending(Outcome.CANCELLED, "cancelled by the user")
            # Again on every tick: a load that began in between would otherwise run to its end.
            self._abort()

    def _check_deadline(self) -> None:
        request = self._request
        if request is None or self._aborted is not None:
            return
        reason = request.overdue(time.monotonic())
        if reason is not None:
            self._aborted = Ending(Outcome.TIMEOUT, reason)
            self._abort()

    def _write(self) -> None:
        request, reading = self._request, self._latest()
        self._status = replace(
            self._status,
            text_tail=request.text if request else "",
            decode_tps_live=request.decode_tps() if request else None,
            rss_bytes=reading.rss_bytes if reading else None,
            system_ram_bytes=reading.system_ram_bytes if reading else None,
            cpu_pct=reading.system_cpu_pct if reading else None,
            updated_utc=clock.utc_iso(clock.utc_ns()),
            eta_s=self._eta_s(),
        )
        with contextlib.suppress(OSError):  # a full disk stops the run through its journal, not here
            write_status(self._run_dir, self._status)

    def _eta_s(self) -> float | None:
        done = self._status.n_done - self._done_at_start
        if done < 3 or self._status.state != "running":
            return None
        elapsed_s = time.monotonic() - self._began_s
        return elapsed_s / done * (self._status.n_cells - self._status.n_done)
