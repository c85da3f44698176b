"""Make a ladder: several quantizations of one source file, each written by a child process."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from liob_core.config import PROJECT_DIR
from liob_core.errors import FileError, LiobError, MissingError
from liob_core.models.gguf import read_headers, read_model
from liob_core.models.labels import plain_stem
from liob_core.models.ladder_types import (
    UNQUANTIZED,
    LadderType,
    choose_types,
    known_types,
    planned_bytes,
)
from liob_core.types import ModelFile

__all__ = ["ADD_ON", "LadderProgress", "LadderType", "known_types", "make_ladder"]

ADD_ON = (
    "K and I types need the add-on llama-cpp-python: "
    "CMAKE_ARGS=-DGGML_NATIVE=OFF pip install -r requirements-closeness.txt (compiles for about 5 minutes)."
)
_ILLEGAL_INSTRUCTION = (-4, 0xC000001D)  # POSIX signal, Windows status
_KILLED = -9


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderProgress:
    """How far a ladder is: the share of the current file, 0 to 1, and which of `n_files` it is."""

    event: str  # warning | working | reused | done
    type_name: str
    path: Path
    n_file: int  # 1 for the first
    n_files: int
    share: float = 0.0
    message: str | None = None


def make_ladder(
    source: Path,
    types: Sequence[str],
    out_dir: Path,
    *,
    on_progress: Callable[[LadderProgress], None],
) -> list[Path]:
    """The files of a ladder, one per type, in the order asked.

    A file that is already there is used again if it is this model in this type, and never overwritten.
    From a quantized source the F16 (or BF16) file is made first, where it is asked for, and the others
    from that: they are compared with it. Nothing is written when the add-on is needed and absent.
    """
    chosen = choose_types(types)
    model, headers = read_model(source), read_headers(source)
    source, out_dir = Path(model.paths[0]).resolve(), out_dir.resolve()
    targets = {kind: out_dir / f"{plain_stem(source)}-{kind.name}.gguf" for kind in chosen}
    todo = [kind for kind in chosen if not _is_present(targets[kind], model, kind)]
    _check_add_on(todo)
    _make_room(out_dir, sum(planned_bytes(headers, kind) for kind in todo))
    warning = _source_warning(model)
    base = source
    for index, kind in enumerate(_making_order(chosen), start=1):
        target = targets[kind]
        report = _Report(on_progress, kind.name, target, index, len(chosen))
        if warning and index == 1:
            report("warning", message=warning)
        if kind in todo:
            _write_file(base, kind, target, report)
            report("done", share=1.0)
        else:
            report("reused", share=1.0, message=f"{target.name} is already there.")
        if warning and base == source and kind.name in UNQUANTIZED:
            base = target
    return list(targets.values())


@dataclass(frozen=True, slots=True)
class _Report:
    """Tells progress about one file."""

    on_progress: Callable[[LadderProgress], None]
    type_name: str
    path: Path
    n_file: int
    n_files: int

    def __call__(self, event: str, *, share: float = 0.0, message: str | None = None) -> None:
        self.on_progress(
            LadderProgress(
                event=event,
                type_name=self.type_name,
                path=self.path,
                n_file=self.n_file,
                n_files=self.n_files,
                share=share,
                message=message,
            )
        )


def _making_order(chosen: Sequence[LadderType]) -> list[LadderType]:
    """F16 first, then BF16, then as asked."""
    rank = {name: index for index, name in enumerate(UNQUANTIZED)}
    return sorted(chosen, key=lambda kind: rank.get(kind.name, len(rank)))


def _source_warning(model: ModelFile) -> str | None:
    lossy = [group.type_name for group in model.tensor_groups if group.has_offset is not None]
    if not lossy:
        return None
    return (
        f"The source is already quantized ({', '.join(lossy)}): every file made from it starts from its "
        "rounded weights, so compare the ladder with itself, not with the original model."
    )


def _is_present(target: Path, model: ModelFile, kind: LadderType) -> bool:
    if not target.exists():
        return False
    there = read_model(target)
    same = (there.architecture, there.n_params, there.name) == (
        model.architecture,
        model.n_params,
        model.name,
    )
    if same and there.content_label == kind.name:
        return True
    raise FileError(
        f"{target} exists and is not this model in {kind.name}. Move it away or choose another folder."
    )


def _check_add_on(todo: Sequence[LadderType]) -> None:
    if not any(kind.needs_add_on for kind in todo):
        return
    # Looked for, not imported: a build for another processor would take this process down.
    found = subprocess.run(
        [sys.executable, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('llama_cpp') is None)"],
        check=False,
    )
    if found.returncode:
        names = ", ".join(kind.name for kind in todo if kind.needs_add_on)
        raise MissingError(f"{names} cannot be made yet. {ADD_ON}")


def _make_room(out_dir: Path, n_bytes: int) -> None:
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(out_dir).free
    except OSError as error:
        raise FileError(f"{out_dir} cannot be used: {error.strerror or error}.") from error
    if n_bytes > free:
        raise MissingError(
            f"The ladder needs about {n_bytes / 1e9:.1f} GB, but {out_dir} has {free / 1e9:.1f} GB free. "
            "Free some space or choose another folder."
        )


def _write_file(source: Path, kind: LadderType, target: Path, report: _Report) -> None:
    """Write one file under a temporary name and rename it when it is complete."""
    with _temporary(target) as part:
        tail: list[str] = []
        failure: dict[str, Any] = {}
        with _child(source, kind, part) as child:
            for line in child.stdout or ():
                message = _parsed(line)
                if message is None:
                    tail[:] = [*tail[-4:], line.strip()]
                elif message["event"] == "failed":
                    failure = message
                elif message["event"] == "warning":
                    report("warning", share=1.0, message=message["message"])
                else:
                    report("working", share=message["share"])
            code = child.wait()
        if code:
            raise _child_error(kind, code, failure, tail)
        read_model(part)  # a file that cannot be read must not get its final name
        part.replace(target)


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """A name beside `target` that is gone afterwards; those of dead processes are removed first."""
    for old in target.parent.glob(f".{target.name}.*.part"):
        pid = old.name.split(".")[-2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            old.unlink(missing_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _child(source: Path, kind: LadderType, part: Path) -> Iterator["subprocess.Popen[str]"]:
    """The child at work; it is ended if the caller is interrupted."""
    child = subprocess.Popen(
        [sys.executable, "-m", "liob_core.models.quantize_child", str(source), kind.name, str(part)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=PROJECT_DIR,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe:
                pipe.close()


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and "event" in message else None


def _child_error(kind: LadderType, code: int, failure: dict[str, Any], tail: Sequence[str]) -> LiobError:
    """What a failed child becomes: one sentence with what to do."""
    if code in _ILLEGAL_INSTRUCTION:
        return MissingError(
            f"Making {kind.name} hit an instruction this processor does not have. Build the add-on again: "
            "CMAKE_ARGS=-DGGML_NATIVE=OFF pip install --force-reinstall --no-cache-dir "
            "-r requirements-closeness.txt"
        )
    if code == _KILLED:
        return MissingError(
            f"Making {kind.name} was killed, possibly for lack of memory. Close other programs."
        )
    if failure.get("kind") == "add_on":
        return MissingError(f"The add-on does not load ({failure['message']}). {ADD_ON}")
    if failure.get("kind") == "disk":
        return MissingError(f"{failure['message']} Free some space and make {kind.name} again.")
    if failure:
        return FileError(str(failure["message"]))
    said = f": {tail[-1]}" if tail else ""
    return FileError(f"Making {kind.name} stopped with code {code}{said}")
