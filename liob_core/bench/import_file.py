"""Brings an uploaded file into the database, in a child process: the app's own only ever reads it."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liob_core.config import PROJECT_DIR, Settings
from liob_core.errors import BusyError, FileError

_TIMEOUT_S = 600.0
_LONGEST_NAME = 100


def import_upload(
    settings: Settings, name: str, content: bytes, *, machine: str | None = None
) -> Mapping[str, Any]:
    """What the command `import` says of the file: runs added, updated, unchanged, and n_samples.

    Raises FileError or BusyError with the command's own sentence, in which the file has the name it came by.
    """
    with tempfile.TemporaryDirectory(prefix="liob-upload-") as folder:
        # Only the last part of the name, and only what cannot be anything but a name.
        path = Path(folder) / (
            re.sub(r"[^A-Za-z0-9._-]", "_", name)[-_LONGEST_NAME:].lstrip(".-") or "upload"
        )
        path.write_bytes(content)
        named = [] if machine is None else ["--machine", machine]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "liob_core", "import", "--json", *named, "--", str(path)],
                cwd=PROJECT_DIR,
                env=settings.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                encoding="utf-8",
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise BusyError(
                "The file was not imported within ten minutes; nothing of it was merged."
            ) from error
    if done.returncode == 0:
        return dict(json.loads(done.stdout))
    sentence = " ".join(done.stderr.replace(f"{folder}/", "").replace(f"{folder}\\", "").split())
    if done.returncode == BusyError.exit_code:
        raise BusyError(sentence)
    if done.returncode == FileError.exit_code and "Traceback" not in sentence:
        raise FileError(sentence)
    raise RuntimeError(f"The child that imports a file failed: {done.stderr[-2000:]}")
