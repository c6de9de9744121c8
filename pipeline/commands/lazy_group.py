"""Command groups whose commands are imported when they are used, so that ``--help`` stays instant."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Mapping
from types import ModuleType

import click

Table = Mapping[str, tuple[str, str]]
"""Command → (module that defines it under its name, one line of help)."""


def load(name: str) -> ModuleType:
    """Import a module with the garbage collector off: collecting takes a quarter of start-up."""
    if name in sys.modules:
        return sys.modules[name]
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()  # nor is it looked through later
        gc.enable()


class LazyGroup(click.Group):
    """A group of its own commands, and of those of a table, which other packages may define.

    ``table`` names the commands; ``inner`` is the table of each of them that is such a group itself.
    """

    table: Table = {}
    inner: Mapping[str, Table] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands: sorted, or in the order of the table if there are no others."""
        return sorted([*self.commands, *self.table]) if self.commands else list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported if the table names it."""
        if cmd_name not in self.table:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(load(self.table[cmd_name][0]), cmd_name)
        if isinstance(command, LazyGroup):
            command.table = self.inner.get(cmd_name, {})
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands without importing those of the table."""
        own = {name: ("", command.get_short_help_str(200)) for name, command in self.commands.items()}
        rows = own | dict(self.table)
        with formatter.section("Commands"):
            formatter.write_dl([(name, rows[name][1]) for name in self.list_commands(ctx)])
