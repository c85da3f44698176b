"""Workers as processes of their own, which outlive the page, the browser and the server."""

import subprocess
import sys
from pathlib import Path

from liob_core.config import PROJECT_DIR, Settings


def launch(module: str, run_dir: Path, log_path: Path, settings: Settings) -> None:
    """Start `python -m module RUN_DIR` detached; what it prints goes to the end of `log_path`."""
    with log_path.open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", module, str(run_dir.resolve())],
            cwd=PROJECT_DIR,
            env=settings.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
