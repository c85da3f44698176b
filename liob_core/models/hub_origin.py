"""Which repository and commit of the Hub a file on this machine came from, told by where it lies."""

import re
from dataclasses import dataclass

# As the Hub's library lays out its cache, whatever the system's separator is.
_IN_CACHE = re.compile(r"[/\\]models--(?P<repo>[^/\\]+)[/\\]snapshots[/\\](?P<commit>[0-9a-f]{40})[/\\]")


@dataclass(frozen=True, slots=True)
class HubOrigin:
    """The repository (OWNER/NAME) and the commit of a file."""

    repo_id: str
    commit: str


def hub_origin(path: str) -> HubOrigin | None:
    """Where a file in the Hub's cache came from; None for a file that lies elsewhere."""
    found = _IN_CACHE.search(path)
    return HubOrigin(found["repo"].replace("--", "/", 1), found["commit"]) if found else None
