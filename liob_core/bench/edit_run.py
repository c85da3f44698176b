"""Stores what a person says about a run: `python -m liob_core.bench.edit_run` with the edit as JSON on stdin.

The app runs this as a short-lived child, since its own process only ever opens the database to read.
"""

import json
import subprocess
import sys
from dataclasses import asdict

from liob_core.config import PROJECT_DIR, Settings, load_settings
from liob_core.errors import BusyError, LiobError, UsageError
from liob_core.store.connection import write
from liob_core.store.edits import Edit, apply_edit

_TIMEOUT_S = 60.0


def edit_in_child(settings: Settings, edit: Edit) -> None:
    """Store the edit in a child process; raises UsageError or BusyError with the child's own sentence."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "liob_core.bench.edit_run"],
            cwd=PROJECT_DIR,
            env=settings.environment(),
            input=json.dumps(asdict(edit)),
            check=False,
            capture_output=True,
            encoding="utf-8",
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise BusyError("The change could not be stored within a minute. Try it again.") from error
    if done.returncode == 0:
        return
    sentence = done.stdout.strip()
    if done.returncode == BusyError.exit_code:
        raise BusyError(sentence)
    if done.returncode == UsageError.exit_code and sentence:
        raise UsageError(sentence)
    raise RuntimeError(f"The child that stores an edit failed: {done.stderr[-2000:]}")


def main() -> int:
    """Exit code: 0 stored, 2 refused, 3 the database is held elsewhere; the sentence is on stdout."""
    try:
        edit = Edit(**json.load(sys.stdin))
        with write(load_settings().database) as con:
            apply_edit(con, edit)
    except LiobError as error:
        sys.stdout.write(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
