"""Groups of commands of which some stand in ``agents``, which are imported when they are used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click


class GroupWithAgents(click.Group):
    """A group of a package's own commands and of those that ``of_agents`` names."""

    of_agents: ClassVar[Mapping[str, str]]
    """Command → module that defines it under its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all."""
        return sorted([*super().list_commands(ctx), *self.of_agents])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of either kind."""
        if cmd_name not in self.of_agents:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module(self.of_agents[cmd_name]), cmd_name)
        return command
