"""Python code in a model's answer: in fences of any shape, in a session's transcript, or bare.

Only text is looked at: parsing what a model wrote could end this process, so that is left to the child.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MAX_BLOCKS = 50  # the last ones of an answer: which needs which takes the square of their number
MAX_LINE_CHARS = 300  # of a line that may be a sentence or code

_OPENING = re.compile(
    r"^(?P<lead>[ \t>]{0,40}(?:[-*+]|\d{1,3}[.)])?[ \t]{0,40})(?P<marks>`{3,}|~{3,})(?P<info>[^`\n]*)$"
)
_LANGUAGE = re.compile(r"[\s{.]*([\w+#-]*)")
_PYTHON = {"python", "python2", "python3", "py", "py3", "pycon", "python-repl", "ipython"}
_UNNAMED = {"", "code", "plaintext", "text", "txt"}

_PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.)(?: |$)")
_IPYTHON_PROMPT = re.compile(r"^\s*In \[\d+\]: ")
_DEFINITION = re.compile(r"(?m)^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)")
_IMPORTED = re.compile(r"(?m)^(?:from[ \t]+\S+[ \t]+import|import)[ \t]+(.+)$")

# Where code without a fence begins, and the lines at the margin that it may go on with.
_BARE_START = re.compile(r"(?:async def|def|class) \w+.*:|(?:import|from) \w[\w.]*|@\w")
_BARE_NEXT = re.compile(
    r"(?:async def|def|class) \w|(?:import|from) \w[\w.]*(?: import\b| as\b|,|$)|@\w|#"
    r"|(?:if|for|while|with|try|elif|else|except|finally)\b.*:\s*(?:#.*)?$"
    r"|[\w.\[\]'\"]+(?:\s*:[^=]+)?\s*[-+*/|&]?=[^=]|[\w.]+\(.*\)\s*(?:#.*)?$|[)\]}]"
)


@dataclass(slots=True)
class _Fence:
    """A fence that is open: how it began, and its lines so far."""

    lead: str
    marks: str
    language: str
    lines: list[str] = field(default_factory=list)

    def is_closed_by(self, line: str) -> bool:
        text = line.strip().lstrip("> ")
        is_marks = len(text) >= len(self.marks) and set(text) == {self.marks[0]}
        # Marks that stand deeper than the opening ones belong to a text inside of the code.
        return is_marks and _indent(line) <= len(self.lead) + 3

    def is_ended_by(self, opening: re.Match[str]) -> bool:
        # A fence that names Python ends one that was left open, or a wrapper around the whole answer.
        named = _language(opening["info"])
        is_outer = self.language not in _PYTHON or len(opening["lead"]) <= len(self.lead)
        return named in _PYTHON and opening["marks"][0] == self.marks[0] and is_outer

    def code(self) -> str:
        depth = len(self.lead) if not self.lead.strip() else 0
        quoted = self.lead.lstrip().startswith(">")
        lines = [re.sub(r"^\s*> ?", "", line) if quoted else line for line in self.lines]
        return _plain_code([_unindent(line, depth) for line in lines])


def extract_python(answer: str, wanted: Sequence[str]) -> str | None:
    """The program of an answer that is to define the names `wanted`; None where there is no code.

    Of several blocks it is the last that defines all the names (else all that define any), after the
    earlier ones whose names it uses.
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    names = set(wanted)
    blocks = _blocks(text.split("\n"), names)[-MAX_BLOCKS:]
    if not blocks:
        return None
    whole = [i for i, block in enumerate(blocks) if names <= _defined(block)]
    if whole:
        chosen = whole[-1:]
    else:
        chosen = [i for i, block in enumerate(blocks) if names & _defined(block)] or [len(blocks) - 1]
    return "\n\n".join(blocks[i] for i in _with_needed(blocks, chosen))


def _with_needed(blocks: Sequence[str], chosen: Sequence[int]) -> list[int]:
    """The chosen blocks and the earlier ones whose names they use without defining them."""
    taken = sorted(chosen)
    for i in range(taken[0] - 1, -1, -1):
        text = "\n".join(blocks[j] for j in taken)
        offered = _offered(blocks[i]) - _defined(text) - _imported(text)
        if any(re.search(rf"\b{name}\b", text) for name in offered):
            taken.insert(0, i)
    return taken


def _blocks(lines: Sequence[str], names: set[str]) -> list[str]:
    """The answer's blocks of code that may be the program, of the likeliest kind that defines a name."""
    fences = list(_fences(lines))
    kinds = (
        [fence.code() for fence in fences if fence.language in _PYTHON],
        # Fences without a name hold output as often as code.
        [fence.code() for fence in fences if fence.language in _PYTHON | _UNNAMED],
        [fence.code() for fence in fences],
        _bare(lines),
    )
    found = [blocks for kind in kinds if (blocks := [block for block in kind if block.strip()])]
    return next(
        (blocks for blocks in found if names & _defined("\n".join(blocks))), found[0] if found else []
    )


def _fences(lines: Sequence[str]) -> Iterator[_Fence]:
    fence: _Fence | None = None
    for line in lines:
        opening = _OPENING.match(line)
        if fence is None:
            if opening:
                fence = _opened(opening)
        elif fence.is_closed_by(line):
            yield fence
            fence = None
        elif opening and fence.is_ended_by(opening):
            yield fence
            fence = _opened(opening)
        else:
            fence.lines.append(line)
    if fence is not None:
        yield fence


def _opened(opening: re.Match[str]) -> _Fence:
    return _Fence(opening["lead"].expandtabs(4), opening["marks"], _language(opening["info"]))


def _language(info: str) -> str:
    match = _LANGUAGE.match(info)
    return match[1].lower() if match else ""


def _bare(lines: Sequence[str]) -> list[str]:
    """Code between sentences: from a line that begins a program to the first that is none of it."""
    if any(line.lstrip().startswith(">>> ") for line in lines):
        return [_plain_code(list(lines))]
    found: list[list[str]] = []
    is_inside = False
    for line in lines:
        if is_inside:
            is_inside = not line.strip() or line[0] in " \t" or bool(_BARE_NEXT.match(line[:MAX_LINE_CHARS]))
        elif _BARE_START.match(line):
            is_inside = True
            found.append([])
        if is_inside:
            found[-1].append(line)
    return ["\n".join(block).rstrip() + "\n" for block in found]


def _plain_code(lines: list[str]) -> str:
    """The lines as a program: what an interactive session printed is left out, and so is its prompt."""
    if any(line.lstrip().startswith(">>> ") for line in lines):
        typed = [_PROMPT.sub("", line) for line in lines if _PROMPT.match(line)]
    elif any(_IPYTHON_PROMPT.match(line) for line in lines):
        typed = [_IPYTHON_PROMPT.sub("", line) for line in lines if not re.match(r"\s*Out\[\d+\]: ", line)]
    else:
        typed = lines
    written = [line for line in typed if line.strip()]
    margin = min((_indent(line) for line in written), default=0)
    return "\n".join(_unindent(line, margin) for line in typed) + "\n"


def _indent(line: str) -> int:
    plain = line.expandtabs(4)
    return len(plain) - len(plain.lstrip())


def _unindent(line: str, depth: int) -> str:
    if depth == 0:
        return line
    spaced = line.expandtabs(4) if line[:1] in " \t" else line
    return spaced[min(depth, _indent(spaced)) :]


def _defined(code: str) -> set[str]:
    return {a or b for a, b in _DEFINITION.findall(code)}


def _offered(code: str) -> set[str]:
    """What a block may be needed for: functions, classes, imports, constants; not its example data."""
    return {a or b for a, b in _DEFINITION.findall(code) if a or b.isupper()} | _imported(code)


def _imported(code: str) -> set[str]:
    return {name for line in _IMPORTED.findall(code) for name in re.findall(r"\w+", line)} - {"as"}
