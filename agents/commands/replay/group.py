"""The group of commands of ``smidgen replay``."""

from __future__ import annotations

import click

from agents.commands.replay.capacity import capacity
from agents.commands.replay.mock import mock
from agents.commands.replay.record import record
from agents.commands.replay.run import run
from agents.commands.replay.show import show


@click.group()
def replay() -> None:
    """Record requests of a service, and replay them against two builds of it at the same moment."""


for command in (record, show, run, capacity, mock):
    replay.add_command(command)
