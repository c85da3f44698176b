"""Hub repositories of GGUF files: how a user names one, and which variants its list of files holds."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, urlsplit

from huggingface_hub import constants, parse_hf_uri
from huggingface_hub.errors import HfUriError

from liob_core.errors import MissingError, UsageError
from liob_core.models.labels import published_label, shard_paths

_TAG = re.compile(r":(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]*)$")
_LOCATION_WORDS = frozenset({"blame", "blob", "raw", "resolve", "tree"})
# Not models: projectors beside a model, and importance matrices (those are named so without a label).
_PROJECTOR = re.compile(r"(?<![a-z])mmproj(?![a-z])", re.IGNORECASE)
_IMATRIX = re.compile(r"(?<![a-z])imatrix(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRef:
    """What a user named: a repository, perhaps a revision, and perhaps what is wanted of it.

    `path` is a file or folder in it, `label` a quantization such as Q4_K_M.
    """

    repo_id: str
    revision: str | None = None
    path: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """One file of a repository: its size in bytes and digests in hex (None: the Hub does not say)."""

    path: str
    n_bytes: int
    sha256: str | None
    git_sha1: str | None = None  # of files that the Hub keeps in git itself, which have no sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class HubVariant:
    """One model of a repository, all its parts in order. `label` is unique in the repository."""

    label: str
    files: tuple[HubFile, ...]
    problem: str | None = None  # why it cannot be used
    is_cached: bool = False  # every part is on this machine already

    @property
    def file_bytes(self) -> int:
        """The size of all parts in bytes."""
        return sum(file.n_bytes for file in self.files)

    @property
    def sha256s(self) -> tuple[str | None, ...]:
        """The digest of each part in hex."""
        return tuple(file.sha256 for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRepo:
    """What a repository holds at one commit. `gated` is auto or manual where access must be asked for."""

    repo_id: str
    revision: str | None
    commit: str
    gated: str | None
    private: bool
    variants: tuple[HubVariant, ...]
    note: str | None = None  # why this is only what the cache holds


def parse_repo(text: str) -> HubRef:
    """The repository that `text` names: OWNER/NAME, with @REVISION, :LABEL or a path, or a web address."""
    asked = text.strip().strip("\"'<>`").rstrip("/")
    tag = _TAG.search(asked)
    named = asked[: tag.start()] if tag and "/" in asked[: tag.start()] else asked
    label = tag["tag"] if tag and named != asked else None
    try:
        uri = parse_hf_uri(_as_uri(named), endpoint=constants.ENDPOINT)
    except (HfUriError, ValueError) as error:
        raise UsageError(
            f"{text.strip()!r} does not name a Hub repository. Write OWNER/NAME, such as "
            "Qwen/Qwen2.5-0.5B-Instruct-GGUF, or paste its web address."
        ) from error
    if uri.type != "model":
        raise UsageError(f"{text.strip()!r} is a {uri.type} on the Hub. Name a repository of models.")
    # The Hub's own viewer of a file's header puts the file's name there.
    shown = parse_qs(urlsplit(named).query).get("show_file_info", [])
    return HubRef(
        repo_id=uri.id,
        revision=uri.revision,
        path=(shown[0] if shown else uri.path_in_repo) or None,
        label=None if label == "latest" else label,
    )


def _as_uri(named: str) -> str:
    """`named` as the library's parser takes it."""
    if named.startswith(("/", ".")):
        raise ValueError("a path of this machine")
    head = named.split("/", 1)[0].lower()
    if "://" in named or head in constants.HF_URL_HOSTS:
        return named
    parts = named.split("/")
    if len(parts) > 2 and parts[2] in _LOCATION_WORDS:  # a web address without its host
        return f"https://huggingface.co/{named}"
    return constants.HF_PROTOCOL + named.split("?", 1)[0]


def group_files(files: Iterable[HubFile]) -> tuple[HubVariant, ...]:
    """The variants among a repository's files, the largest first; companions of models are left out."""
    models = {file.path: file for file in files if _is_model(file.path)}
    groups = {tuple(part.as_posix() for part in shard_paths(Path(path))) for path in models}
    labels = _unique_labels([group[0] for group in groups])
    variants = [_variant(labels[group[0]], group, models) for group in groups]
    return tuple(sorted(variants, key=lambda variant: (-variant.file_bytes, variant.label)))


def _is_model(path: str) -> bool:
    if not path.lower().endswith(".gguf") or _PROJECTOR.search(path):
        return False
    name = PurePosixPath(path).name
    return not _IMATRIX.search(name) or published_label(Path(name)) is not None


def _variant(label: str, group: tuple[str, ...], models: Mapping[str, HubFile]) -> HubVariant:
    present = tuple(models[path] for path in group if path in models)
    problem = None
    if len(present) < len(group):
        problem = f"Only {len(present)} of its {len(group)} parts are there, so it cannot be used."
    return HubVariant(label=label, files=present, problem=problem)


def _unique_labels(paths: Iterable[str]) -> dict[str, str]:
    """A label for each path: its quantization, or so much more of its name as tells it from the others."""
    labels = {path: _label(path) for path in paths}
    for longer in (_plain, str):
        counts = Counter(labels.values())
        labels = {path: label if counts[label] == 1 else longer(path) for path, label in labels.items()}
    return labels


def _label(path: str) -> str:
    file = PurePosixPath(path)
    published = published_label(Path(file.name))
    if published is None:
        folders = (published_label(Path(folder + ".gguf")) for folder in reversed(file.parts[:-1]))
        return next((label for label in folders if label), _plain(file.name))
    # Made with an importance matrix, as one publisher marks it: another file than the plain one.
    marked = re.search(rf"(?<![a-z0-9])i1-{re.escape(published)}", file.name, re.IGNORECASE)
    return f"i1-{published}" if marked else published


def _plain(path: str) -> str:
    """A path without its ending and part number."""
    return re.sub(r"(-\d{5}-of-\d{5})?\.gguf$", "", path, flags=re.IGNORECASE)


def select(ref: HubRef, variants: tuple[HubVariant, ...]) -> tuple[HubVariant, ...]:
    """The variants that `ref` asks for, all where it names none."""
    if not variants:
        raise MissingError(
            f"{ref.repo_id} holds no GGUF model. Choose a repository whose files end in .gguf "
            "(often the same name with -GGUF)."
        )
    wanted = tuple(variant for variant in variants if _is_wanted(ref, variant))
    if not wanted:
        known = ", ".join(variant.label for variant in variants)
        raise MissingError(f"{ref.repo_id} has no {ref.path or ref.label}. It has: {known}.")
    return wanted


def find_variants(variants: tuple[HubVariant, ...], names: Iterable[str], repo_id: str) -> list[HubVariant]:
    """The variants that labels, file names or folders name, each once, in the order of the names."""
    found: dict[str, HubVariant] = {}
    for name in names:
        by_label = [one for one in variants if _is_wanted(HubRef(repo_id=repo_id, label=name), one)]
        found.update(
            (one.label, one) for one in by_label or select(HubRef(repo_id=repo_id, path=name), variants)
        )
    return list(found.values())


def _is_wanted(ref: HubRef, variant: HubVariant) -> bool:
    if ref.label is not None and variant.label.upper() != ref.label.upper():
        return False
    if ref.path is None:
        return True
    return any(file.path == ref.path or file.path.startswith(f"{ref.path}/") for file in variant.files)
