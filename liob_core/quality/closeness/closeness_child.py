"""The child process that evaluates models: JSON lines out, one for each window of each variant.

The order is one JSON line on standard input; what the library prints goes to standard error.
"""

import json
import os
import sys
from typing import Any

from liob_core.engines.embedded_child import die_with_parent, watch_parent
from liob_core.quality.closeness.evaluator import Evaluator
from liob_core.quality.closeness.model import FailedError

EXIT_MISSING = 3
EXIT_FAILED = 4


def main() -> int:
    """The exit code of one order."""
    parent_pid = int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid()
    die_with_parent(parent_pid)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the library prints must not come between the replies

    def reply(event: str, **facts: Any) -> None:
        replies.write(json.dumps({"event": event, **facts}) + "\n")
        replies.flush()

    try:
        from liob_core.quality.closeness import llama_model  # noqa: PLC0415
    except (ImportError, OSError, RuntimeError) as error:
        reply("missing", error=str(error), no_module=isinstance(error, ModuleNotFoundError))
        return EXIT_MISSING
    reply("host", **llama_model.start())
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    watch_parent(parent_pid)
    evaluator = Evaluator(json.loads(line), reply, llama_model.LlamaModel)
    try:
        evaluator.run()
    except FailedError as error:
        reply("reference_failed", ending=error.ending, reason=str(error))
        return EXIT_FAILED
    reply("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
