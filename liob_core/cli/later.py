"""Commands whose modules are imported only when they are called.

What one command needs (pandas, SciPy, a chart library) takes seconds to import; the others, and the list
of all, shall not wait for it.
"""

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class Later(TyperCommand):
    """A command by its name and what the list of commands says of it; `target` is `module:function`.

    The function may be a group of commands, a Typer, instead.
    """

    def __init__(self, name: str, target: str, help: str, *, hidden: bool = False) -> None:
        super().__init__(name, help=help, hidden=hidden)
        self.target = target

    def load(self) -> Any:
        """The command itself, with its options; imports its module."""
        module, _, name = self.target.partition(":")
        found = getattr(importlib.import_module(f"liob_core.cli.{module}"), name)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        alone = typer.Typer(add_completion=False)
        alone.command(self.name)(found)
        return typer.main.get_command(alone)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself, which is what is run then."""
        return self.load().make_context(info_name, args, parent=parent, **extra)


class LaterGroup(TyperGroup):
    """A group that is made of `Later` commands, in the order of `listed`."""

    listed: tuple[Later, ...] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in self.listed:
            self.add_command(command)
