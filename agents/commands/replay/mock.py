"""``smidgen replay mock``: canned answers instead of a service that others call."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from agents.commands.replay.options import listen_option
from pipeline.commands.request import option, takes
from pipeline.processes import stop_event


@click.command()
@takes
def mock(
    listen: tuple[str, int] = listen_option,
    path: Path = option(flag="--answers", help="YAML file of answers (docs/replay.md)."),
) -> int:
    """Answer from a file, and count what was asked, until Ctrl-C.

    The first line printed is the address. Exits with 1 if something was asked that the file does not
    answer.
    """
    from agents.experiments.replay.downstream import CallCounts, make_downstream, read_answers
    from agents.experiments.replay.proxy import serve

    counts = CallCounts()
    app = make_downstream(counts, answers=read_answers(path))

    async def work() -> None:
        await serve(app, *listen, click.echo, stop_event())

    asyncio.run(work())
    for endpoint, count in counts.by_endpoint.most_common():
        click.echo(f"{count:,} {endpoint}")
    if counts.unmatched:
        click.echo(f"{counts.unmatched:,} requests had no canned answer", err=True)
    return 1 if counts.unmatched else 0
