"""Command groups whose commands may be defined by other packages, and are imported when they are used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click


class SharedGroup(click.Group):
    """A group of its package's own commands and of commands whose modules the command table names.

    ``elsewhere`` maps a command to the module that defines it under its name, and to one line of help, so
    that the group's help imports no such module. ``pipeline.cli`` sets it.
    """

    elsewhere: Mapping[str, tuple[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of either kind."""
        if cmd_name not in self.elsewhere:
            return super().get_command(ctx, cmd_name)
        module, _ = self.elsewhere[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, without importing those of other packages."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._short_help(name, limit)) for name in names])

    def _short_help(self, name: str, limit: int) -> str:
        if name in self.elsewhere:
            return self.elsewhere[name][1]
        return self.commands[name].get_short_help_str(limit)
