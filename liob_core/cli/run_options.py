"""The options of `run`, each with what its help says."""

from enum import StrEnum
from typing import Annotated

import typer

from liob_core.types import Task


class PromptMode(StrEnum):
    """What an engine is sent: the rendered text as it is, or the turns, to apply its own template to."""

    RAW = "raw"
    ENGINE = "engine"


Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A GGUF file, a folder, or a name on Ollama; repeat for more."),
]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        help="ollama, embedded, or llama-server; repeat to compare. Ollama where it answers.",
    ),
]
Url = Annotated[str | None, typer.Option(help="Address of your Ollama or llama-server.")]
Reference = Annotated[str | None, typer.Option(help="The file or label all others are compared with.")]
Tasks = Annotated[
    list[Task] | None,
    typer.Option("--task", help="speed, suite (both if none is given), closeness."),
]
SuiteName = Annotated[str, typer.Option(help="A suite's name or file.")]
Repeats = Annotated[int, typer.Option(help="Blocks: loads and repetitions of each variant.", min=1)]
SuiteRepeats = Annotated[int | None, typer.Option(help="Blocks that run the suite.", min=1)]
MaxTokens = Annotated[int, typer.Option(help="Longest answer, in tokens.", min=1)]
Seed = Annotated[int, typer.Option(help="Seed of the sampler.", min=0)]
Seeds = Annotated[
    int,
    typer.Option("--seeds", help="Answers a prompt, each with a seed of its own.", min=1),
]
Temperature = Annotated[float | None, typer.Option(help="Of several seeds, 0.8; one answer is greedy.")]
Threads = Annotated[int | None, typer.Option(help="Threads of the engine.", min=1)]
Context = Annotated[
    int | None,
    typer.Option(help="Context in tokens, 4096; of closeness alone, its windows, 512.", min=8),
]
KvTypes = Annotated[
    list[str] | None,
    typer.Option("--kv-type", help="Type of the KV cache, f16; repeat for variants of each."),
]
TextName = Annotated[str, typer.Option(help="Of closeness: bundled, wikitext-2, or a text file.")]
Windows = Annotated[int, typer.Option(help="Of closeness, spread over the text; 0: all.", min=0)]
FromStart = Annotated[bool, typer.Option("--from-start", help="Its first windows instead.")]
StopAt = Annotated[
    float | None,
    typer.Option(help="End closeness once every ln PPL ratio is known to this +-.", min=0.0),
]
GpuLayers = Annotated[
    str,
    typer.Option(metavar="auto|N", help="Layers on the GPU: as many as there is room for, or a number."),
]
Mmap = Annotated[bool, typer.Option(help="Map the file instead of reading it into memory.")]
OwnTemplate = Annotated[bool, typer.Option(help="Render with each file's own template.")]
PromptModeOption = Annotated[
    PromptMode,
    typer.Option(help="raw: the same text to all; engine: each applies its own template."),
]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Let checks run code from answers, within limits."),
]
NoEnergy = Annotated[
    bool,
    typer.Option("--no-energy", help="Leave out the energy of speed, which takes time of its own."),
]
