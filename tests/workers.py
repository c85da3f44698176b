"""Which tests run on the same worker, where there are several."""

from xdist.scheduler import LoadScopeScheduling

MEASURING = ("tests/browser/", "tests/integration/", "tests/live/")


class MeasuringApart(LoadScopeScheduling):
    """What measures, or drives a browser, shares one worker, so that no two engines run at once.

    Of the others each file is whole, so that its fixtures are made once.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "measuring" if nodeid.startswith(MEASURING) else nodeid.partition("::")[0]
