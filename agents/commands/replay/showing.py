"""Replays as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from agents.experiments.replay.capacity import CapacityComparison, Knee
from agents.experiments.replay.experiment import ReplayResult
from agents.experiments.replay.outcome import EndpointOutcome, Pace, percentile_ms
from pipeline.commands.tables import Column, print_table
from pipeline.commands.terminal import print_lines
from pipeline.files.listing import listed


def is_finding(result: ReplayResult) -> bool:
    """Return whether sides answered differently or failed too often, or side B alone calls downstream."""
    outcomes = result.by_endpoint().values()
    worse = any(outcome.status_differs or outcome.failed[1] > outcome.failed[0] for outcome in outcomes)
    return (
        worse
        or bool(_not_compared(result))
        or any(name.startswith("downstream") for name in result.rows.zero_on_a())
    )


def show_result(result: ReplayResult) -> None:
    """Print one row for each endpoint, latencies in milliseconds, and how well the replay kept pace."""
    print_table(_COLUMNS, result.by_endpoint().items())
    print_lines(_remarks(result))


def as_object(result: ReplayResult) -> dict[str, Any]:
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
            "errors": [dict(errors) for errors in outcome.errors],
            "both_bad": outcome.both_bad,
            "compared": outcome.compared,
            "status_differs": outcome.status_differs,
            "statuses": [[a, b, count] for (a, b), count in outcome.statuses.most_common()],
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


def show_knees(a: Sequence[Knee], b: Sequence[Knee], comparison: CapacityComparison) -> None:
    """Print the knees of each repeat, and how they compare."""
    columns: tuple[Column[tuple[int, Knee, Knee]], ...] = (
        Column("repeat", lambda row: str(row[0])),
        Column("A requests/s", lambda row: _knee(row[1]), str),
        Column("B requests/s", lambda row: _knee(row[2]), str),
    )
    print_table(columns, zip(range(1, len(a) + 1), a, b, strict=True))
    click.echo(
        f"side B {comparison.difference:+.1%} ({comparison.low:+.1%} to {comparison.high:+.1%}), p "
        f"{comparison.p_value:.2g}: "
        f"{comparison.a:.4g} requests a second of A, {comparison.b:.4g} of B"
    )


def _not_compared(result: ReplayResult) -> dict[str, EndpointOutcome]:
    """Return the endpoints of which both sides served fewer than half of the requests."""
    outcomes = result.by_endpoint().items()
    return {name: outcome for name, outcome in outcomes if 2 * outcome.compared < outcome.requests}


def _remarks(result: ReplayResult) -> list[str]:
    lines = [_pace(result.paces)]
    lines += _too_few_compared(_not_compared(result))
    lines += _differences(result)
    for side, called in zip("AB", result.called, strict=True):
        if called:
            most = ", ".join(f"{count:,} {name}" for name, count in called.most_common(5))
            lines.append(f"downstream calls of side {side}: {most}")
    if result.unmatched:
        lines.append(f"{result.unmatched:,} downstream calls had no canned answer")
    if zero := result.rows.zero_on_a():
        lines.append(f"0 on side A and not on side B: {', '.join(zero)}")
    return lines


def _too_few_compared(outcomes: Mapping[str, EndpointOutcome]) -> list[str]:
    failed = [name for name, outcome in outcomes.items() if outcome.both_bad == outcome.requests]
    unserved = [name for name, outcome in outcomes.items() if not outcome.compared and name not in failed]
    few = [
        f"{name} ({outcome.compared:,} of {outcome.requests:,})"
        for name, outcome in outcomes.items()
        if outcome.compared
    ]
    texts = (
        ("both sides failed every request, so nothing was compared", failed),
        ("no request was served by both sides, so nothing was compared", unserved),
        ("fewer than half of the requests were served by both sides", few),
    )
    return [f"{text}: {listed(names)}" for text, names in texts if names]


def _differences(result: ReplayResult) -> list[str]:
    """Return why sides did not answer, and how statuses differ: in both directions they are flaky."""
    lines, statuses = [], Counter[tuple[int, int]]()
    for side, name in enumerate("AB"):
        errors = Counter[str]()
        for outcome in result.by_endpoint().values():
            errors.update(outcome.errors[side])
        if errors:
            reasons = ", ".join(f"{error} ({count:,})" for error, count in errors.most_common(3))
            lines.append(f"side {name} failed {errors.total():,} requests: {reasons}")
    for outcome in result.by_endpoint().values():
        statuses.update(outcome.statuses)
    if failed := sum(outcome.both_bad for outcome in result.by_endpoint().values()):
        lines.append(f"both sides failed {failed:,} requests, which no trial holds")
    if statuses:
        pairs = ", ".join(f"{a} and {b} ({count:,})" for (a, b), count in statuses.most_common(5))
        lines.append(f"statuses that differ, of sides A and B: {pairs}")
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


Row = tuple[str, EndpointOutcome]


def _knee(knee: Knee) -> str:
    return f"{'' if knee.broke else '> '}{knee.rate:.4g}"


def _latency(side: int, share: float) -> Callable[[Row], float | None]:
    return lambda row: percentile_ms(row[1].latencies_s[side], share)


_COLUMNS: tuple[Column[Row], ...] = (
    Column("endpoint", lambda row: row[0]),
    Column("requests", lambda row: row[1].requests, ",d"),
    *(
        Column(f"p{share} {name}", _latency(side, share), ".3g")
        for share in (50, 99)
        for side, name in enumerate("AB")
    ),
    Column("failed", lambda row: "/".join(f"{count:,}" for count in row[1].failed), str),
    Column("status differs", lambda row: row[1].status_differs, ",d"),
    Column("body differs", lambda row: row[1].body_differs, ",d"),
    Column("calls A", lambda row: row[1].calls[0] / row[1].requests, ".3g"),
    Column("calls B", lambda row: row[1].calls[1] / row[1].requests, ".3g"),
)
