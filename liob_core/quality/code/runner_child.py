"""The process that runs an answer's code: limits itself, runs code and tests, reports each result.

Its order comes as one line of JSON on standard input. What it reports goes to what was its standard
output, each line behind a word that only the parent and this file know; what the tested code prints
goes nowhere. A right value, too, is not known here: see `steps`.
"""

import json
import os
import sys
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from liob_core.quality.code.confine import set_limits, try_out
from liob_core.quality.code.values import NotPlainError, pack

Report = Callable[[Mapping[str, Any]], None]

MAX_ERROR_CHARS = 300
LINGER_S = 5.0
_NAME = "answer"


def main() -> None:
    """Do one order. It ends without Python's own shutdown, in which tested code could run again."""
    order = json.loads(sys.stdin.buffer.readline())
    report = _open_channel(order["nonce"])
    set_limits(
        Path(order["folder"]),
        cpu_s=order["cpu_s"],
        memory_bytes=order["memory_bytes"],
        leave_out=order["leave_out"],
    )
    outside, parent = Path(order["outside"]), order["parent"]
    report({"ready": try_out(outside, parent=parent, memory_bytes=order["memory_bytes"])})
    # The tested code shall import the standard library, and nothing of LIOB.
    del sys.path[0]
    for name in [name for name in sys.modules if name.split(".")[0] == "liob_core"]:
        del sys.modules[name]
    _run(order["code"], order["steps"], report)
    # While this process lives, the parent finds what it started, and ends both.
    time.sleep(LINGER_S)
    os._exit(0)


def _run(code: str, steps: list[list[str]], report: Report) -> None:
    module = types.ModuleType(_NAME)
    sys.modules[_NAME] = module  # dataclasses and pickle look their module up
    space = module.__dict__
    try:
        exec(compile(code, f"<{_NAME}>", "exec"), space)  # noqa: S102 - what this process is for
    except BaseException as error:  # SystemExit and KeyboardInterrupt end no tests either
        report({"load_error": _describe(error)})
        return
    report({"loaded": True})
    space["raises"] = raises
    for i, (kind, text) in enumerate(steps):
        try:
            result = _do(kind, text, space)
        except BaseException as error:
            result = {"error": _describe(error)}
        report({"step": i, **result})
    report({"done": True})


def _do(kind: str, text: str, space: dict[str, Any]) -> dict[str, Any]:
    if kind == "run":
        exec(compile(text, "<tests>", "exec"), space)  # noqa: S102
        return {}
    value = eval(compile(text, "<tests>", "eval"), space)  # noqa: S307
    if kind == "truth":
        return {"value": bool(value)}
    try:
        return {"value": pack(value)}
    except NotPlainError as reason:
        return {"other": str(reason)[:MAX_ERROR_CHARS]}


def raises(kind: type[BaseException], call: Callable[..., object], *arguments: object) -> bool:
    """Whether the call raises an exception of that kind; another one passes through."""
    try:
        call(*arguments)
    except kind:
        return True
    return False


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # the tested code's own exceptions may do anything
        text = ""
    name = type.__repr__(type(error)).split("'")[1].removeprefix(f"{_NAME}.")
    return f"{name}: {text}"[:MAX_ERROR_CHARS] if text else name


def _open_channel(nonce: str) -> Report:
    channel = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(nowhere)
    # Held here, so that a module the tested code changes does not change the report.
    write, dumps = os.write, json.JSONEncoder(ensure_ascii=True).encode

    def report(facts: Mapping[str, Any]) -> None:
        rest = f"{nonce} {dumps(facts)}\n".encode()
        while rest:
            rest = rest[write(channel, rest) :]

    return report


if __name__ == "__main__":
    main()
