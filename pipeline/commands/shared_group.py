"""Command groups that share their name with commands of another package."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click


class SharedGroup(click.Group):
    """A group of its package's own commands and of commands whose modules the command table names.

    ``elsewhere`` maps a command to the module that defines it under its name; the module is imported when the
    command is used.
    """

    elsewhere: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of either kind."""
        if cmd_name not in self.elsewhere:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module(self.elsewhere[cmd_name]), cmd_name)
        return command
