"""Every error LIOB raises on purpose.

LiobError               one sentence for the user, shown without a traceback
├── UsageError          the user asked for something that cannot be
├── MissingError        something LIOB needs is not there; says how to get it
├── BusyError           another run or process holds what is needed
├── FileError           a file is not what it should be
└── EngineFailure       an engine could not do its part; carries the outcome its sample gets

Anything else that escapes is a bug and stays loud.
"""

from liob_core.types import Outcome


class LiobError(Exception):
    """One clear sentence about what is wrong and what to do."""

    exit_code = 2


class UsageError(LiobError):
    """The user asked for something that cannot be."""


class MissingError(LiobError):
    """Something LIOB needs is not there; the sentence says how to get it."""


class BusyError(LiobError):
    """Another run or process holds what is needed."""

    exit_code = 3


class FileError(LiobError):
    """A file is not what it should be."""


class EngineFailure(LiobError):  # noqa: N818 - the outcome of a sample, not only an error
    """An engine could not do its part.

    `outcome` is what the sample in flight becomes, `log_tail` the last lines the engine wrote, and
    `needs_reload` says that the engine must be loaded again before the next request.
    """

    exit_code = 1

    def __init__(
        self, outcome: Outcome, reason: str, *, log_tail: str = "", needs_reload: bool = False
    ) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.log_tail = log_tail
        self.needs_reload = needs_reload
