"""A comparison of releases as a table and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from pipeline.commands.release.reading import ReleaseComparison
from pipeline.commands.terminal import escape_controls
from pipeline.model.clock import to_iso
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S
from pipeline.releases.gcpu.decision import Decided

_OTHERS = 5
"""Unchanged series in the table: those that may have risen the most."""

_FOLLOWERS = 4
"""Series shown under the one that explains them; JSON has all."""

_FIGURES = 60
"""Width of a table without its names."""

_SHORTEST_NAME = 16

_NAME = 60
"""Fewest characters of a name, on several lines if columns are few."""

_LONGEST_S = 365 * DAY_S
"""Longest time at the present rate after which missing samples are said to be there."""

_MOST_HOSTS = 10_000
"""Most hosts that are said to be missing."""

_LARGEST_RATIO = 1000.0
"""Relative rise above which a series counts as new: it began from practically nothing."""

_DECISIONS = {"slower": "slower", "steady": "not_slower", "open": "undecided"}


def missing(comparison: ReleaseComparison) -> dict[str, float | None]:
    """Return what a decision needs: samples of the candidate, seconds at its rate, hosts; None: unknown.

    More samples do not suffice if hosts differ too much: then more hosts of both releases are needed.
    """
    decided, matched = comparison.decided, comparison.matched
    if comparison.decision != "open":
        return {"samples": 0.0, "seconds": 0.0, "hosts": 0.0}
    needs: dict[str, float | None] = {"samples": None, "seconds": None, "hosts": None}
    # If blocks of time are the units, waiting brings more of them.
    by_time = matched.unit != "host" and not math.isfinite(decided.more_samples)
    times = decided.more_units if by_time else decided.more_samples
    start, end = matched.span
    if (times - 1) * (end - start) <= _LONGEST_S:
        needs["samples"] = math.ceil((times - 1) * matched.samples[1])
        needs["seconds"] = (times - 1) * (end - start)
        needs["hosts"] = 0.0
    elif (decided.more_units - 1) * sum(matched.hosts) <= _MOST_HOSTS:
        needs["hosts"] = math.ceil((decided.more_units - 1) * sum(matched.hosts))
    return needs


def to_json(comparison: ReleaseComparison) -> dict[str, Any]:
    """Return the whole comparison; shares are gCPU, intervals of 1 - alpha."""
    asked, matched = comparison.asked, comparison.matched
    contrast, config = comparison.contrast, comparison.asked.config
    labels = {"held": list(matched.held), "not_held": list(matched.not_held)}
    return {
        "service": comparison.service,
        "baseline": asked.baseline,
        "candidate": asked.candidate,
        "decision": _DECISIONS[comparison.decision],
        "missing": missing(comparison),
        "detectable": _finite(_largest(comparison)),
        "evidence": matched.evidence,
        "unit": matched.unit,
        "labels": labels,
        "start": to_iso(matched.span[0]),
        "end": to_iso(matched.span[1]),
        "hosts": dict(zip(("baseline", "candidate"), matched.hosts, strict=True)),
        "samples": dict(zip(("baseline", "candidate"), matched.samples, strict=True)),
        "threshold": {"absolute": config.threshold, "relative": config.relative},
        "alpha": config.alpha,
        "power": config.power,
        "sequential": config.sequential,
        "tested": int(comparison.decided.tested.sum()),
        "dispersion": contrast.dispersion,
        "spread": contrast.spread,
        "grouped": comparison.grouped,
        "series": [_series(comparison, row) for row in _order(comparison)],
    }


def _series(comparison: ReleaseComparison, row: int) -> dict[str, Any]:
    decided, contrast = comparison.decided, comparison.contrast
    key, cause = comparison.series[row], comparison.cause[row]
    baseline, change = float(decided.baseline[row]), float(contrast.change[row])
    return {
        "metric": key.name,
        "metric_kind": key.kind,
        "state": decided.state[row],
        "baseline": baseline,
        "candidate": float(decided.candidate[row]),
        "change": change,
        "relative": change / baseline if baseline > 0 else None,
        "lower": _finite(decided.lower[row]),
        "upper": _finite(decided.upper[row]),
        "p_value": float(decided.p_value[row]),
        "detectable": _finite(decided.detectable[row]),
        "explained_by": comparison.series[cause].name if cause != row else None,
        "one_host": _one_host(comparison, row),
    }


def show(console: Console, comparison: ReleaseComparison) -> None:
    """Print the compared samples, the changes, and the decision."""
    asked, matched, config = comparison.asked, comparison.matched, comparison.asked.config
    names = [escape_controls(name) for name in (comparison.service, asked.baseline, asked.candidate)]
    console.print(f"[bold]{names[0]}: {names[2]} against {names[1]}[/bold]", markup=True)
    where = f", within the same {', '.join(matched.held)}" if matched.held else ""
    how = "side by side" if matched.evidence == "side_by_side" else "one after the other"
    span = f"{to_iso(matched.span[0])[:16]} to {to_iso(matched.span[1])[:16]} UTC"
    console.print(f"{how}, {span}{where}", markup=False, soft_wrap=True)
    old, new = (
        f"{count:,.0f} samples of {_counted(hosts, 'host')}"
        for count, hosts in zip(matched.samples, matched.hosts, strict=True)
    )
    console.print(f"{asked.baseline}: {old}; {asked.candidate}: {new}", markup=False, soft_wrap=True)
    for line in _reservations(comparison):
        console.print(line, markup=False, soft_wrap=True)
    rows = _shown(comparison)
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("% of the CPU", overflow="fold", min_width=_SHORTEST_NAME)
    interval = f"{1 - config.alpha:.0%} interval"
    for name in ("before", "change", interval, "rel.", "p", "detectable"):
        table.add_column(name, justify="right", no_wrap=True)
    room = max(_NAME, console.width - _FIGURES)
    for row in rows:
        table.add_row(*_cells(comparison, row, room))
    if rows:
        console.print(table)
    console.print(_conclusion(comparison), markup=False, soft_wrap=True)


def _order(comparison: ReleaseComparison) -> list[int]:
    """Return tested series: causes first, with the series they explain, then by largest possible rise."""
    rank = {"slower": 0, "faster": 1, "open": 2, "steady": 3}
    states, upper = comparison.decided.state, comparison.decided.upper
    size = np.abs(comparison.contrast.change)

    def key(row: int) -> tuple[float, ...]:
        cause = comparison.cause[row]
        changed = states[cause] in ("slower", "faster")
        has_evidence = math.isfinite(comparison.decided.detectable[row])
        rise = size[cause] if changed else upper[row] if has_evidence else size[row]
        return (
            rank[states[cause]],
            -float(rise),
            float(cause),
            float(row != cause),
            -float(size[row]),
        )

    return sorted(np.flatnonzero(comparison.decided.tested).tolist(), key=key)


def _shown(comparison: ReleaseComparison) -> list[int]:
    order, states = _order(comparison), comparison.decided.state
    changed, followers = [], Counter[int]()
    for row in order:
        if states[row] in ("slower", "faster"):
            cause = comparison.cause[row]
            followers[cause] += row != cause
            if row == cause or followers[cause] <= _FOLLOWERS:
                changed.append(row)
    alone = [row for row in order if comparison.decided.alone[row]]
    unchanged = [row for row in order if states[row] in ("steady", "open") and row not in alone]
    return [*changed, *alone, *unchanged[:_OTHERS]]


def _cells(comparison: ReleaseComparison, row: int, room: int) -> list[str]:
    decided, contrast = comparison.decided, comparison.contrast
    key, state = comparison.series[row], decided.state[row]
    follows = "  follows: " if comparison.cause[row] != row else ""
    ending = ""
    if not follows and state in ("slower", "faster"):
        ending = f" {state}"
    elif host := _one_host(comparison, row):
        ending = f" (host {escape_controls(host)} alone)"
    beginning = follows if key.kind == "subroutine" else f"{follows}{key.kind} "
    name = escape_controls(key.name)
    left = max(room - len(beginning) - len(ending), _SHORTEST_NAME)
    name = name if len(name) <= left else f"…{name[1 - left :]}"  # names differ at their end
    name = f"{beginning}{name}{ending}".replace("[", "\\[")
    change, baseline = float(contrast.change[row]), float(decided.baseline[row])
    return [
        name,
        f"{baseline * 100:.3g}",
        f"{change * 100:+.3f}",
        _interval(decided, row),
        _relative(change, baseline),
        f"{decided.p_value[row]:.1g}",
        f"{decided.detectable[row] * 100:.3g}" if math.isfinite(decided.detectable[row]) else "nothing",
    ]


def _reservations(comparison: ReleaseComparison) -> list[str]:
    """Return the reasons that weaken the evidence."""
    matched = comparison.matched
    reservations = []
    if matched.evidence == "one_after_the_other":
        reservations.append(
            "weaker evidence: the releases did not run at the same time, and whatever else changed counts"
        )
    elif matched.unit == "host_and_block" and not matched.shared_host:
        reservations.append("weaker evidence: with so few hosts, what differs between them counts, too")
    if matched.not_held:
        labels = ", ".join(matched.not_held)
        reservations.append(f"not held apart, since the releases share too few values: {labels}")
    if not comparison.grouped:
        reservations.append("no stacks of that time: callers of what got slower stand by themselves")
    return reservations


def _conclusion(comparison: ReleaseComparison) -> str:
    config, states = comparison.asked.config, comparison.decided.state
    bound = f"{config.threshold * 100:g} % of the service's CPU"
    if config.relative:
        bound += f" and {config.relative:.0%} of the series"
    largest = _largest(comparison)
    detectable = f"a rise of {largest * 100:.3g} % would have been found in any series"
    if not math.isfinite(largest):
        detectable = "there is a series of which no rise would have been found"
    if comparison.decision == "slower":
        roots = [
            comparison.series[row].name
            for row, state in enumerate(states)
            if state == "slower" and comparison.cause[row] == row
        ]
        return f"slower: {', '.join(map(escape_controls, roots))}"
    if comparison.decision == "steady":
        return f"not slower: no series rose by {bound} ({detectable})"
    return f"undecided, whether a series rose by {bound} ({detectable}): {_wanted(comparison)}"


def _wanted(comparison: ReleaseComparison) -> str:
    lacking = missing(comparison)
    samples, seconds, hosts = lacking["samples"], lacking["seconds"], lacking["hosts"]
    if samples is not None and seconds is not None:
        return f"about {samples:,.0f} more samples of each release are missing, {_span(seconds)} at this rate"
    if hosts:
        more = _counted(hosts, "more host")
        verb = "is" if hosts == 1 else "are"
        return f"hosts differ too much for more samples alone: about {more} {verb} missing"
    if comparison.matched.evidence == "one_after_the_other":
        return "no evidence yet: run both releases at the same time, on several hosts each, or each for hours"
    return "no evidence yet: it takes more hosts, or more hours in which both releases run"


def _largest(comparison: ReleaseComparison) -> float:
    detectable = comparison.decided.detectable
    return float(np.nanmax(detectable)) if comparison.decided.tested.any() else math.nan


def _one_host(comparison: ReleaseComparison, row: int) -> str | None:
    if not comparison.decided.alone[row]:
        return None
    return comparison.matched.units[int(comparison.contrast.unit[row])]


def _counted(count: float, name: str) -> str:
    return f"{count:,.0f} {name}{'' if count == 1 else 's'}"


def _span(seconds: float) -> str:
    for unit, size in (("days", DAY_S), ("hours", HOUR_S), ("minutes", MINUTE_S)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _interval(decided: Decided, row: int) -> str:
    lower, upper, baseline = (
        float(bounds[row]) for bounds in (decided.lower, decided.upper, decided.baseline)
    )
    if lower <= -baseline and upper >= 1 - baseline:
        return "any"
    return f"{lower * 100:+.3f} to {upper * 100:+.3f}"


def _relative(change: float, baseline: float) -> str:
    if change > _LARGEST_RATIO * baseline:
        return "new"
    ratio = change / baseline if baseline > 0 else 0.0
    return f"{ratio:+.1%}" if abs(ratio) < 0.995 else f"{ratio:+.0%}"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
