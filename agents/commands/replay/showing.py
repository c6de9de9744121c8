"""Replays as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.box import SIMPLE
from rich.table import Column, Table
from rich.text import Text

from agents.experiments.replay.capacity import Comparison, Knee
from agents.experiments.replay.experiment import Result
from agents.experiments.replay.outcome import EndpointOutcome, Pace, percentile_ms
from pipeline.commands.terminal import escape_controls, table_console

_FIGURES = (
    "requests",
    "p50 A",
    "p50 B",
    "p99 A",
    "p99 B",
    "failed",
    "status differs",
    "body differs",
    "calls A",
    "calls B",
)


def is_finding(result: Result) -> bool:
    """Return whether sides answered differently, or side B alone calls downstream."""
    outcomes = result.by_endpoint().values()
    worse = any(outcome.status_differs or outcome.failed[1] > outcome.failed[0] for outcome in outcomes)
    return worse or any(name.startswith("downstream") for name in result.rows.zero_on_a())


def show_result(result: Result) -> None:
    """Print one row for each endpoint, latencies in milliseconds, and how well the replay kept pace."""
    table = Table("endpoint", *(Column(name, justify="right") for name in _FIGURES), box=SIMPLE)
    for endpoint, outcome in result.by_endpoint().items():
        table.add_row(
            Text(escape_controls(endpoint)),
            f"{outcome.requests:,}",
            *(_ms(outcome, side, share) for share in (50, 99) for side in (0, 1)),
            "/".join(f"{count:,}" for count in outcome.failed),
            f"{outcome.status_differs:,}",
            f"{outcome.body_differs:,}",
            *(f"{calls / outcome.requests:.3g}" for calls in outcome.calls),
        )
    table_console().print(table)
    for line in _remarks(result):
        click.echo(line)


def as_object(result: Result) -> dict[str, Any]:
    """Return a result as JSON."""
    endpoints = {
        endpoint: {
            "requests": outcome.requests,
            "latency_ms": {
                f"p{share}": [percentile_ms(outcome.latencies_s[side], share) for side in (0, 1)]
                for share in (50, 99)
            },
            "failed": outcome.failed,
            "server_errors": outcome.server_errors,
            "status_differs": outcome.status_differs,
            "body_differs": outcome.body_differs,
            "calls": outcome.calls,
        }
        for endpoint, outcome in result.by_endpoint().items()
    }
    return {
        "endpoints": endpoints,
        "pace": [asdict(pace) for pace in result.paces],
        "downstream": [dict(called) for called in result.called],
        "zero_on_a": result.rows.zero_on_a(),
    }


def show_knees(a: Sequence[Knee], b: Sequence[Knee], found: Comparison) -> None:
    """Print the knees of each repeat, and how they compare."""
    table = Table(
        "repeat", *(Column(name, justify="right") for name in ("A requests/s", "B requests/s")), box=SIMPLE
    )
    for number, knees in enumerate(zip(a, b, strict=True), 1):
        table.add_row(str(number), *(f"{'' if knee.broke else '> '}{knee.rate:.4g}" for knee in knees))
    table_console().print(table)
    click.echo(
        f"side B {found.difference:+.1%} ({found.low:+.1%} to {found.high:+.1%}), p {found.p_value:.2g}: "
        f"{found.a:.4g} requests a second of A, {found.b:.4g} of B"
    )


def _remarks(result: Result) -> list[str]:
    lines = [_pace(result.paces)]
    for side, called in zip("AB", result.called, strict=True):
        if called:
            most = ", ".join(f"{count:,} {escape_controls(name)}" for name, count in called.most_common(5))
            lines.append(f"downstream calls of side {side}: {most}")
    if result.unmatched:
        lines.append(f"{result.unmatched:,} downstream calls had no canned answer")
    if zero := result.rows.zero_on_a():
        lines.append(f"0 on side A and not on side B: {escape_controls(', '.join(zero))}")
    return lines


def _pace(paces: Sequence[Pace]) -> str:
    offered, sent = (
        sum(values) / len(paces) for values in zip(*((p.offered, p.sent) for p in paces), strict=True)
    )
    lag, skew = max(p.lag_p99_s for p in paces), max(p.skew_p99_s for p in paces)
    return (
        f"{offered:,.1f} requests a second offered, {sent:,.1f} sent; p99 of lateness {1e3 * lag:.2f} ms, "
        f"of skew between sides {1e6 * skew:,.0f} µs"
    )


def _ms(outcome: EndpointOutcome, side: int, share: float) -> str:
    latency = percentile_ms(outcome.latencies_s[side], share)
    return "?" if latency is None else f"{latency:.3g}"
