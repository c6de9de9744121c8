"""``smidgen replay show``: what a recording holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from agents.commands.replay.options import notes, rules_option
from pipeline.commands.request import argument, json_option, takes


@click.command()
@takes
def show(
    path: Path = argument(metavar="FILE"),
    rules: tuple[tuple[str, str], ...] = rules_option,
    as_json: bool = json_option(),
) -> None:
    """Show the endpoints of a recording with their shares and rates, and its sessions.

    Shares and rates are those of the traffic that was sampled: a request counts for as many as it stands for.
    """
    import orjson
    from rich.box import SIMPLE
    from rich.table import Column, Table
    from rich.text import Text

    from agents.experiments.replay.recording import read_recording
    from agents.experiments.replay.summary import summarise
    from pipeline.commands.terminal import escape_controls, print_note, table_console
    from pipeline.model.units import counted

    recording = read_recording(path)
    for note in notes(path, recording):
        print_note(note)
    total = summarise(recording, rules)
    if as_json:
        click.echo(orjson.dumps({**asdict(total), "head": recording.head}).decode())
        return
    figures = ("requests", "share", "requests/s", "p50 ms", "errors")
    table = Table("endpoint", *(Column(name, justify="right") for name in figures), "replayed", box=SIMPLE)
    for endpoint in total.endpoints:
        table.add_row(
            Text(escape_controls(endpoint.endpoint)),
            f"{endpoint.recorded:,}",
            f"{endpoint.share:.1%}",
            f"{endpoint.rate:.3g}",
            f"{endpoint.p50_ms:.3g}",
            f"{endpoint.errors:.1%}",
            "yes" if endpoint.safe else "if allowed",
        )
    table_console().print(table)
    sessions = (
        f", {counted(total.sessions, 'session')}, the longest of {total.longest_session:,}"
        if total.sessions
        else ""
    )
    sampling = escape_controls(str(recording.head.get("sampling", "")))
    click.echo(
        f"{counted(total.requests, 'request')} for {total.came:,.0f} that came in {total.duration_s:,.1f} s"
        f"{sessions}; {total.body_bytes:,} bytes of bodies; sampling: {sampling}"
    )
