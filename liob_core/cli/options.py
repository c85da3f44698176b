"""Arguments and options that several commands take."""

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
RunArgument = Annotated[str, typer.Argument(help="A run's id, its beginning, or `last`.")]
