"""``smidgen replay show``: what a recording holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents.commands.replay.options import notes, rules_option
from pipeline.commands.request import argument, json_option, takes
from pipeline.commands.tables import Column, print_json, print_table
from pipeline.commands.terminal import print_lines, print_note
from pipeline.model.units import counted

if TYPE_CHECKING:
    from agents.experiments.replay.summary import EndpointSummary


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
    from agents.experiments.replay.recording import read_recording
    from agents.experiments.replay.summary import summarise

    recording = read_recording(path)
    for note in notes(path, recording, rules):
        print_note(note)
    total = summarise(recording, rules)
    if as_json:
        print_json({**asdict(total), "head": recording.head})
        return
    print_table(_COLUMNS, total.endpoints)
    sessions = f", {counted(total.sessions, 'session')}, the longest of {total.longest_session:,}"
    print_lines(
        [
            f"{counted(total.requests, 'request')} for {total.came:,.0f} that came in "
            f"{total.duration_s:,.1f} s{sessions if total.sessions else ''}; {total.body_bytes:,} bytes of "
            f"bodies; sampling: {recording.head.get('sampling', '')}"
        ]
    )


_COLUMNS: tuple[Column[EndpointSummary], ...] = (
    Column("endpoint"),
    Column("requests", "recorded", ",d"),
    Column("share", form=".1%"),
    Column("requests/s", "rate", ".3g"),
    Column("p50 ms", "p50_ms", ".3g"),
    Column("errors", form=".1%"),
    Column("replayed", lambda row: "yes" if row.safe else "if allowed"),
)
