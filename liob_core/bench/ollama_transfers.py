"""What Ollama is given (files of this machine) or pulls by itself, each in a process of its own."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from liob_core.bench.downloads import CANCEL_FILE, REQUEST_FILE, DownloadStatus, Told, begin, carry_out
from liob_core.config import Settings, load_settings
from liob_core.models.hub_download import DownloadCancelledError
from liob_core.models.hub_repo import HubRepo, HubVariant
from liob_core.models.ollama_files import open_registry, register_variant, variant_to_register
from liob_core.models.ollama_pulls import pull, pull_name
from liob_core.store.journal import read_record
from liob_core.types import LoadSettings

MODULE = "liob_core.bench.ollama_transfers"
CANCELLED = "It was cancelled; start it again to go on from there."


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaRequest:
    """A file to register, or the name of a model to pull."""

    file: str | None = None
    pull: str | None = None


def start_register(path: Path, n_bytes: int, settings: Settings) -> str:
    """The id of the registration of a file with the Ollama at OLLAMA_HOST."""
    return _start(f"register {path.name}", n_bytes, OllamaRequest(file=str(path)), settings)


def start_pull(repo: HubRepo, variant: HubVariant, settings: Settings) -> str:
    """The id of Ollama's own pull of a Hub variant; raises UsageError where it cannot be named to it."""
    name = pull_name(repo, variant)
    return _start(f"pull {name}", variant.file_bytes, OllamaRequest(pull=name), settings)


def _start(label: str, n_bytes: int, request: OllamaRequest, settings: Settings) -> str:
    asked = DownloadStatus(
        download_id="", repo_id="Ollama", label=label, state="starting", total_bytes=n_bytes
    )
    return begin(MODULE, asked, json.dumps(asdict(request)), settings)


def main(arguments: Sequence[str]) -> int:
    """Exit code of one transfer: 0 done, else that of the error."""
    folder = Path(arguments[0])
    request: OllamaRequest = read_record(OllamaRequest, (folder / REQUEST_FILE).read_text(encoding="utf-8"))
    return carry_out(folder, lambda told: _work(request, folder, told))


def _work(request: OllamaRequest, folder: Path, told: Told) -> DownloadStatus:
    total = told.status.total_bytes

    def check() -> None:
        if (folder / CANCEL_FILE).exists():
            raise DownloadCancelledError(CANCELLED)

    def tell_share(_: str, share: float | None) -> None:
        check()
        told(round((share or 0.0) * total), total)

    def tell_bytes(_: str, done: int | None, whole: int | None) -> None:
        check()
        told(done or 0, whole or total)

    with open_registry() as registry:
        if request.file is None:
            name = str(request.pull)
            pull(registry, name, tell_bytes, n_bytes=total)
            return replace(told.status, ollama_name=name)
        cache_dir = load_settings().cache_dir
        variant = variant_to_register(Path(request.file), LoadSettings(), cache_dir)
        check()
        register_variant(registry, variant, cache_dir, tell_share)
        return replace(told.status, ollama_name=variant.engine_model, paths=(request.file,))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
