"""Takes paths, hosts and names of people out of texts that leave the machine.

Better one word too many than a name that leaks. Prompts and answers are the user's own words and are not
touched.
"""

import getpass
import re
import socket
from collections.abc import Iterable
from pathlib import Path

import duckdb

from liob_core.store.rows import base_name

# Where LIOB or an engine writes sentences, options and log lines.
_COLUMNS = {
    "runs": ("title", "reason", "engine_options", "machine"),
    "machines": ("gpu_reason", "missing_sources"),
    "variants": ("engine_model", "label_warning", "fallback_warning", "imatrix", "need_reason", "model"),
    "loads": ("reason", "asked", "effective", "system_info", "peak_vram_reason"),
    "samples": ("reason", "check_reason"),
    "energy": ("reason",),
    "events": ("detail",),
    "summary": ("unknown",),
    "paired_deltas": ("reason",),
    "judgements": ("judge", "reason"),
    "calibrations": ("judge",),
    "fidelities": ("reason",),
}

_HOST = re.compile(r"(\w+://)[^/\s\"']+")
# A home folder's name may hold spaces, so it reaches to the next separator.
_HOME = re.compile(r"(?:[A-Za-z]:)?[\\/]{1,2}(?:home|Users)[\\/]{1,2}[^\\/\"\n]+(?=[\\/])", re.IGNORECASE)
_POSIX_PATH = re.compile(r"(?<![\w/~.])~?(?:/[^\s/\"'`,;:()<>\[\]]+){2,}")
_WINDOWS_PATH = re.compile(r"(?<![A-Za-z])(?:[A-Za-z]:|~)(?:[\\/]{1,2}[^\\/\s\"'<>|:*?]+)+")
_COMMON_NAMES = frozenset({"root", "user", "admin", "test", "localhost", "ubuntu", "runner"})
_SHORTEST_NAME = 3


def scrub_run(con: duckdb.DuckDBPyConnection) -> None:
    """Take what must not leave the machine out of an export's own database."""
    con.execute("UPDATE raw.runs SET engine_url = NULL")
    models = con.execute("SELECT DISTINCT engine_model FROM raw.variants").fetchall()
    folders = {str(Path(model).parent) for (model,) in models if model and base_name(model) != model}
    secrets = {*folders, str(Path.home())} - {"/", "."}
    names = own_names()
    for table, columns in _COLUMNS.items():
        for column in columns:
            found = con.execute(
                f"SELECT DISTINCT {column}::VARCHAR FROM raw.{table} WHERE {column} IS NOT NULL"  # noqa: S608
            ).fetchall()
            for (text,) in found:
                clean = scrub(text, secrets, names)
                if clean != text:
                    con.execute(
                        f"UPDATE raw.{table} SET {column} = ? WHERE {column}::VARCHAR = ?",  # noqa: S608
                        [clean, text],
                    )


def own_names() -> set[str]:
    """Names of this machine and of its user that tell something."""
    names = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    try:
        names.add(getpass.getuser())
    except (OSError, KeyError):  # an account without a name has none to hide
        return names
    return {name for name in names if len(name) >= _SHORTEST_NAME and name.lower() not in _COMMON_NAMES}


def scrub(text: str, folders: Iterable[str], names: Iterable[str]) -> str:
    """The text with paths cut down to their last part, without hosts, `folders` and `names`."""
    for folder in sorted(folders, key=len, reverse=True):
        for spelling in (folder, folder.replace("\\", "\\\\")):
            text = text.replace(spelling + "/", "").replace(spelling + "\\", "").replace(spelling, "~")
    text = _HOST.sub(r"\1(host)", text)
    text = _HOME.sub("~", text)
    for pattern in (_WINDOWS_PATH, _POSIX_PATH):  # D:/models/a holds a POSIX path
        text = pattern.sub(lambda match: base_name(match[0].rstrip("/\\")) or "", text)
    for name in names:
        text = re.sub(rf"\b{re.escape(name)}\b", "(name)", text)
    return text
