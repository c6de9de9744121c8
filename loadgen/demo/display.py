"""Displays of the demo: live panels in a terminal, plain lines elsewhere, and the table at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from loadgen.demo.comparison import DemoDeployment, EventSummary, ReportedDeployments, finding_of
from loadgen.demo.status import Status
from loadgen.demo.subscriber import SCANS
from pipeline.model.clock import Clock

_REFRESH_S = 0.5
_HEARTBEAT_S = 15.0

_DOES = {
    "initial": "the release to begin with",
    "harmless": "nothing to the speed",
    "slow": "makes one subroutine slower",
    "refactor": "moves work, adds none",
}


class Display:
    """Display of a status as it changes."""

    def __init__(self, console: Console, status: Status, clock: Clock) -> None:
        self._console = console
        self._status = status
        self._clock = clock


class LiveDisplay(Display):
    """Panels that are redrawn in place."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Do nothing: events stand in their panel."""

    async def run(self) -> None:
        """Redraw until cancelled."""
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(self._draw(), refresh=True)
                await asyncio.sleep(_REFRESH_S)

    def _draw(self) -> Group:
        status = self._status
        elapsed = self._clock() - status.started
        head = Text.assemble((f"{elapsed:5.0f} s  ", "dim"), (status.step, "bold"))
        parts: list[RenderableType] = [
            head,
            Panel(self._production(), title="production", title_align="left"),
        ]
        parts += [Panel(self._pipeline(), title="pipeline", title_align="left")]
        if status.events:
            lines = [Text(_sentence(finding_of(event)), style="yellow") for event in status.events]
            parts.append(Panel(Group(*lines), title="reported", title_align="left", border_style="yellow"))
        return Group(*parts)

    def _production(self) -> Table:
        status = self._status
        table = Table.grid(padding=(0, 2))
        for index, deployment in enumerate(status.deployments):
            current = index == len(status.deployments) - 1
            style = "bold" if current else "dim"
            at = f"{deployment.time - status.started:.0f} s"
            table.add_row(at, deployment.sha[:9], escape(deployment.title), style=style)
        table.add_row("", "", f"{len(status.deployments)} of {status.planned or '?'} deployed,"
                      f" {status.requests:,} requests answered", style="dim")  # fmt: skip
        return table

    def _pipeline(self) -> Table:
        status = self._status
        table = Table.grid(padding=(0, 2))
        alive = "  ".join(f"[green]●[/] {name}" for name, up in status.stages.items() if up)
        table.add_row("stages", alive or "[dim]none yet[/]")
        table.add_row("scans", str(status.scans.get("unique", 0)))
        table.add_row("dashboard", status.dashboard or "[dim]not yet[/]")
        candidates = " → ".join(f"{status.candidates.get(topic, 0)} on {topic}" for topic in SCANS)
        table.add_row("candidates", candidates)
        if dropped := [dropped for scan in status.ledger[-1:] for dropped in scan.dropped]:
            steps = [f"{drop.candidate.metric} ({drop.decision.step})" for drop in dropped[:3]]
            table.add_row("dropped last", escape(", ".join(steps)))
        if status.dead_letters:
            table.add_row("dead letters", f"[red]{len(status.dead_letters)}[/]")
        return table


class PlainDisplay(Display):
    """One line for every step and event, and a heartbeat."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Print an event as it comes."""
        self._say(f"reported: {_sentence(finding_of(event))}")

    async def run(self) -> None:
        """Print what is new, until cancelled."""
        step, dashboard, spoke = "", "", self._clock()
        while True:
            status = self._status
            if status.dashboard != dashboard:
                dashboard = status.dashboard
                self._say(f"dashboard: {dashboard}")
            if status.step != step:
                step, spoke = status.step, self._clock()
                self._say(step)
            elif self._clock() - spoke >= _HEARTBEAT_S:
                spoke = self._clock()
                funnel = ", ".join(f"{status.candidates.get(topic, 0)} on {topic}" for topic in SCANS)
                scans = status.scans.get("unique", 0)
                self._say(f"{scans} scans; candidates: {funnel}; {status.requests} requests")
            await asyncio.sleep(_REFRESH_S / 2)

    def _say(self, text: str) -> None:
        elapsed = self._clock() - self._status.started
        self._console.print(f"{elapsed:4.0f} s  {text}", markup=False, highlight=False, soft_wrap=True)


def show_outcome(
    console: Console,
    status: Status,
    comparison: ReportedDeployments,
    reports: Sequence[Path],
    elapsed_s: float,
) -> None:
    """Print the table of events against deployments, the outcome, and the report's path."""
    table = Table(title="What was done, and what was reported", title_justify="left")
    for name in ("at", "commit", "what it does", "reported", "named as the cause"):
        table.add_column(name, overflow="fold")
    for deployment, findings in zip(status.deployments, comparison.findings, strict=True):
        table.add_row(*_row(deployment, findings, status))
    console.print(table)
    if comparison.passed:
        console.print("[bold green]Passed:[/] the slow commit was reported once, and nothing else was.")
    else:
        console.print("[bold red]Failed:[/]")
        for problem in comparison.problems:
            console.print(f"  {problem}", markup=False, highlight=False, soft_wrap=True)
    scans, candidates = status.scans.get("unique", 0), status.candidates.get("change-points", 0)
    console.print(
        f"{scans} scans, {candidates} candidates, {status.requests:,} requests, {elapsed_s:.0f} s",
        highlight=False,
    )
    for path in reports:
        console.print(f"Report: {path}", markup=False, highlight=False, soft_wrap=True)


def _row(deployment: DemoDeployment, findings: Sequence[EventSummary], status: Status) -> list[str]:
    expected = deployment.kind == "slow"
    reported = "\n".join(
        f"{finding.metric}\n{finding.before:.1%} → {finding.after:.1%}" for finding in findings
    )
    named = "\n".join(f"{f.suspect[:9] or 'none'} (score {f.score:.2f})" for f in findings)
    style = "green" if expected == bool(findings) else "red"
    return [
        f"{deployment.time - status.started:.0f} s",
        f"{deployment.sha[:9]} {escape(deployment.title)}",
        _DOES[deployment.kind],
        f"[{style}]{escape(reported) or 'nothing'}[/]",
        escape(named),
    ]


def _sentence(finding: EventSummary) -> str:
    return (
        f"{finding.metric} went from {finding.before:.1%} to {finding.after:.1%}, "
        f"most likely by {finding.suspect[:9] or 'no known change'}"
    )
