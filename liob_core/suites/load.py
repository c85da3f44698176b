"""Prompt suites: found by name or path, validated, hashed over their content."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from liob_core.config import SHIPPED_SUITES
from liob_core.errors import FileError, LiobError, MissingError, UsageError
from liob_core.suites.params import first_problem
from liob_core.suites.schema import PromptEntry, SuiteFile
from liob_core.types import Message, Prompt, Suite, to_json

MAX_SUITE_BYTES = 10_000_000
PASTED_CATEGORY = "pasted"

_SUFFIXES = (".toml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteInfo:
    """One suite file of a folder; `error` says why it cannot be used, and the rest is then unknown."""

    name: str
    path: Path
    description: str | None = None
    n_prompts: int | None = None
    n_checked: int | None = None
    categories: tuple[str, ...] = ()
    error: str | None = None


def load_suite(name_or_path: str | Path, folders: Sequence[Path] = (SHIPPED_SUITES,)) -> Suite:
    """The suite in a file, or the one of that name in the first folder that has it."""
    return _read(_find(str(name_or_path), folders))


def list_suites(folders: Sequence[Path] = (SHIPPED_SUITES,)) -> list[SuiteInfo]:
    """Every suite file in the folders, in their order; broken ones carry their error."""
    found: list[SuiteInfo] = []
    first_of: dict[str, Path] = {}
    for path in _suite_files(folders):
        first = first_of.setdefault(path.stem, path)
        if first == path:
            found.append(_describe(path))
        else:
            error = f"{path}: {first} has the same name and is used instead; rename one of them."
            found.append(SuiteInfo(name=path.stem, path=path, error=error))
    return found


def suite_from_text(text: str, name: str = "pasted") -> Suite:
    """A suite of unchecked prompts, one for each part of the text between lines of `---`."""
    if len(text.encode(errors="replace")) > MAX_SUITE_BYTES:
        raise UsageError(f"The pasted text is over {MAX_SUITE_BYTES // 1_000_000} MB; paste fewer prompts.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("The pasted text holds broken characters; paste it again as UTF-8.") from error
    parts = [part.strip() for part in re.split(r"(?m)^-{3,}[ \t]*\r?$", text)]
    prompts = tuple(
        Prompt(
            prompt_id=f"p{number}",
            category=PASTED_CATEGORY,
            messages=(Message(role="user", content=part),),
        )
        for number, part in enumerate((part for part in parts if part), start=1)
    )
    if not prompts:
        raise UsageError("There is no prompt in the pasted text; write at least one.")
    return Suite(name=name, description="", version="1", sha256=hash_prompts(prompts), prompts=prompts)


def parse_suite(data: bytes, source: Path) -> Suite:
    """The suite in a file's bytes; `source` names it, and a subset's other suite lies beside it."""
    if len(data) > MAX_SUITE_BYTES:
        raise FileError(
            f"{source}: the file is over {MAX_SUITE_BYTES // 1_000_000} MB; split it into smaller suites."
        )
    tree = _parse_tree(data, source)
    try:
        file = SuiteFile.model_validate(tree)
    except ValidationError as error:
        raise FileError(_sentence(error, tree, source)) from error
    if file.subset_of is not None:
        prompts = _subset(file, source)
    else:
        entries = file.prompts or []
        _refuse_duplicates(entries, source)
        prompts = tuple(entry.to_record() for entry in entries)
    return Suite(
        name=source.stem,
        description=file.description,
        version=file.version,
        sha256=hash_prompts(prompts),
        prompts=prompts,
    )


def hash_prompts(prompts: Iterable[Prompt]) -> str:
    """The sha256 over the prompts' canonical JSON, in the order of their ids."""
    content = [to_json(prompt) for prompt in sorted(prompts, key=lambda prompt: prompt.prompt_id)]
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _find(wanted: str, folders: Sequence[Path]) -> Path:
    path = Path(wanted).expanduser()
    if path.suffix.lower() in _SUFFIXES or path.name != wanted:
        return path
    files = _suite_files(folders)
    for file in files:
        if file.stem == wanted:
            return file
    known = ", ".join(sorted({file.stem for file in files})) or "none"
    raise MissingError(f"There is no suite {wanted!r}; known suites: {known}; or give a file's path.")


def _suite_files(folders: Sequence[Path]) -> list[Path]:
    # The user's folder and the shipped one are the same place unless LIOB_DATA_DIR moves the first.
    unique = dict.fromkeys(folder.expanduser().resolve() for folder in folders)
    return [
        file
        for folder in unique
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")
    ]


def _read(path: Path) -> Suite:
    if path.suffix.lower() not in _SUFFIXES:
        raise FileError(f"{path}: a suite is a .toml or .json file; give one of these.")
    if not path.exists():
        raise MissingError(f"{path}: there is no such file; check the path.")
    if not path.is_file():
        raise FileError(f"{path}: this is not a file; give a .toml or .json file.")
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SUITE_BYTES + 1)
    except OSError as error:
        raise FileError(f"{path}: the file cannot be read ({error.strerror}); check its rights.") from error
    return parse_suite(data, path)


def _parse_tree(data: bytes, source: Path) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{source}: line {line} is not UTF-8; save the file as UTF-8.") from error
    is_json = source.suffix.lower() == ".json"
    try:
        tree = json.loads(text, object_pairs_hook=_unique_keys) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if is_json else "TOML"
        raise FileError(f"{source}: this is not valid {kind} ({error}); correct the file.") from error
    if not isinstance(tree, dict):
        raise FileError(f"{source}: a suite is an object with a list 'prompts'; correct the file.")
    return tree


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # JSON keeps the last of two equal keys and says nothing; in a suite that hides a mistake.
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"the key {key!r} is given twice")
        table[key] = value
    return table


def _sentence(error: ValidationError, tree: dict[str, Any], source: Path) -> str:
    location, message = first_problem(error)
    more = error.error_count() - 1
    rest = f" ({more} more mistake{'s' if more > 1 else ''} in this file)" if more else ""
    if location[:1] == ("prompts",) and len(location) > 1 and isinstance(location[1], int):
        who = f"prompt {_prompt_name(tree['prompts'][location[1]], location[1])}, "
        location = location[2:]
    else:
        who = ""
    field = ".".join(str(part) for part in location)
    where = f"{who}field {field!r}" if field else who.removesuffix(", ")
    return f"{source}: {where}: {message}{rest}."


def _prompt_name(entry: object, index: int) -> str:
    name = entry.get("id") if isinstance(entry, dict) else None
    return repr(name) if isinstance(name, str) else f"number {index + 1}"


def _refuse_duplicates(entries: Sequence[PromptEntry], source: Path) -> None:
    first_at: dict[str, int] = {}
    for number, entry in enumerate(entries, start=1):
        # Ids that differ in case alone would be one file on some systems and one word to most people.
        first = first_at.setdefault(entry.id.lower(), number)
        if first != number:
            raise FileError(
                f"{source}: prompt {entry.id!r}, field 'id': "
                f"prompts {first} and {number} have the same id; rename one."
            )


def _subset(file: SuiteFile, source: Path) -> tuple[Prompt, ...]:
    chosen = file.prompt_ids or []
    if file.subset_of == source.stem:
        raise FileError(f"{source}: field 'subset_of': a suite cannot be a subset of itself.")
    candidates = [source.with_name(f"{file.subset_of}{suffix}") for suffix in _SUFFIXES]
    base_path = next((path for path in candidates if path.is_file()), None)
    if base_path is None:
        raise FileError(
            f"{source}: field 'subset_of': there is no suite {file.subset_of!r} in {source.parent}."
        )
    base = _parse_tree(base_path.read_bytes(), base_path)
    if "subset_of" in base:
        raise FileError(f"{source}: field 'subset_of': {base_path.name} is itself a subset; name its source.")
    prompts = {prompt.prompt_id: prompt for prompt in _read(base_path).prompts}
    for prompt_id in chosen:
        if prompt_id not in prompts:
            raise FileError(
                f"{source}: prompt {prompt_id!r}, field 'prompt_ids': {base_path.name} has no such prompt."
            )
        if chosen.count(prompt_id) > 1:
            raise FileError(f"{source}: prompt {prompt_id!r}, field 'prompt_ids': it is named twice.")
    return tuple(prompts[prompt_id] for prompt_id in chosen)


def _describe(path: Path) -> SuiteInfo:
    try:
        suite = _read(path)
    except LiobError as error:
        return SuiteInfo(name=path.stem, path=path, error=str(error))
    return SuiteInfo(
        name=suite.name,
        path=path,
        description=suite.description,
        n_prompts=len(suite.prompts),
        n_checked=sum(prompt.check is not None for prompt in suite.prompts),
        categories=tuple(dict.fromkeys(prompt.category for prompt in suite.prompts)),
    )
