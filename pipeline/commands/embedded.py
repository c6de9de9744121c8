"""``smidgen embedded``: broker and store on loopback until Ctrl-C."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from pipeline.commands.request import FOLDER, option, takes
from pipeline.commands.tables import print_json
from pipeline.embedded.stack import EmbeddedStack
from pipeline.processes import until_stopped

_CHECK_S = 0.5


@click.command()
@takes
def embedded(
    data: Path | None = option(
        kind=FOLDER, help="Folder that keeps the store's tables; without it they go with the process."
    ),
) -> int:
    """Run a broker and a store on loopback until Ctrl-C.

    The first line printed is JSON with both addresses, for --broker and --store. The broker keeps everything
    in memory and nothing on disk. smidgen up runs the stages, too.
    """
    with until_stopped() as stop, EmbeddedStack(data) as stack:
        print_json({"broker": stack.broker, "store": stack.store})
        return _watch(stack, stop)


def _watch(stack: EmbeddedStack, stop: threading.Event) -> int:
    while not stop.wait(_CHECK_S):
        if dead := stack.died():
            click.echo(f"smidgen embedded: the {dead} ended by itself", err=True)
            return 1
    return 0
