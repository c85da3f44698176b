"""What each variant of a Hub repository would be here, told by its remote header before any download."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from liob_core.errors import LiobError
from liob_core.models.hub import read_remote_model
from liob_core.models.hub_repo import HubRepo, HubVariant
from liob_core.models.memory import memory_need
from liob_core.types import LoadSettings, MemoryNeed, ModelFile

# Headers come from far away: several at once, but not so many that a Hub minds.
_N_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One variant with what its header says; `reason` where it could not be read."""

    variant: HubVariant
    model: ModelFile | None = None
    need: MemoryNeed | None = None
    reason: str | None = None


def read_offers(repo: HubRepo, load: LoadSettings, cache_dir: Path) -> list[Offer]:
    """Every variant of the repository with the memory it would need under `load`."""
    with ThreadPoolExecutor(_N_AT_ONCE) as pool:
        return list(pool.map(partial(_read_offer, repo, load, cache_dir), repo.variants))


def _read_offer(repo: HubRepo, load: LoadSettings, cache_dir: Path, variant: HubVariant) -> Offer:
    """One variant's facts; a refusal concerns it alone, so the list goes on."""
    try:
        model = read_remote_model(repo, variant, cache_dir)
    except LiobError as error:
        return Offer(variant=variant, reason=str(error))
    return Offer(variant=variant, model=model, need=memory_need(model, load))


def sentences_of(repo: HubRepo, offers: Iterable[Offer]) -> list[str]:
    """What must be said beside a list of offers, each sentence once."""
    said = [repo.note]
    for offer in offers:
        said += [offer.reason, offer.need.reason if offer.need else None]
        if offer.model and offer.model.label_warning:
            said.append(f"{Path(offer.model.paths[0]).name}: {offer.model.label_warning}")
    return list(dict.fromkeys(sentence for sentence in said if sentence))
