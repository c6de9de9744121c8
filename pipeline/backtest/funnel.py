"""The funnel of FBDetect's Table 5, and the ledger's lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.messages.ledger import dropped_entries, entry_to_json
from pipeline.model import Scan
from pipeline.model.steps import funnel_steps


@dataclass(frozen=True, slots=True)
class Funnel:
    """Numbers of candidates left after each step. ``series`` counts a series once per scan."""

    scans: int
    series: int
    change_points: int
    remaining: tuple[tuple[str, int], ...]  # (step, candidates left after it), in order
    reported: int
    unjudged: tuple[tuple[str, int], ...] = ()  # (code, scans with such series)


def count_funnel(scans: Iterable[Scan]) -> Funnel:
    """Count the funnel of scans of the last stage, which have all dropped candidates."""
    scan_count = series = reported = 0
    dropped: Counter[str] = Counter()
    unjudged: Counter[str] = Counter()
    for scan in scans:
        unjudged.update(reason.code for reason in scan.unjudged)
        scan_count += 1
        series += scan.series
        reported += len(scan.candidates)
        dropped.update(line.decision.step for line in scan.dropped)
    left = change_points = reported + dropped.total()
    remaining = []
    for step in funnel_steps(dropped):
        left -= dropped[step]
        remaining.append((step, left))
    return Funnel(scan_count, series, change_points, tuple(remaining), reported, tuple(unjudged.items()))


def funnel_by_workload(scans: Sequence[Scan]) -> dict[str, Funnel]:
    """Count the funnel of each workload, in the order of their first scans."""
    return {
        name: count_funnel(scan for scan in scans if scan.workload == name)
        for name in dict.fromkeys(scan.workload for scan in scans)
    }


def funnel_to_json(funnel: Funnel) -> dict[str, Any]:
    """Return a funnel as a JSON object; its first step is ``detected``."""
    steps = (("detected", funnel.change_points), *funnel.remaining)
    return {
        "scans": funnel.scans,
        "series": funnel.series,
        "change_points": funnel.change_points,
        "steps": [{"step": step, "remaining": left} for step, left in steps],
        "reported": funnel.reported,
        "unjudged": [{"code": code, "scans": scans} for code, scans in funnel.unjudged],
    }


def ledger_lines(scans: Iterable[Scan]) -> Iterator[dict[str, Any]]:
    """Yield one JSON object per dropped candidate, with step, statistic and bound."""
    for scan in scans:
        for entry in dropped_entries(scan):
            yield entry_to_json(entry)
