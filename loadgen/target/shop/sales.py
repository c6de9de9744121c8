"""The sales report of the month."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence


def report(sales: Sequence[tuple[int, str, int]]) -> str:
    """Return the report as CSV: a line for each day and category."""
    return to_csv(group_sales(sales))


def group_sales(sales: Sequence[tuple[int, str, int]]) -> dict[tuple[int, str], list[int]]:
    """Gather amounts by day and category."""
    groups: dict[tuple[int, str], list[int]] = {}
    for day, category, cents in sales:
        groups.setdefault((day, category), []).append(cents)
    return groups


def spread(amounts: Sequence[int]) -> tuple[int, int, int]:
    """Return the 10th, 50th and 90th percentile, the nearest amount below."""
    ordered = sorted(amounts)
    last = len(ordered) - 1
    return ordered[last // 10], ordered[last // 2], ordered[last * 9 // 10]


def to_csv(groups: dict[tuple[int, str], list[int]]) -> str:
    """Write groups in order, amounts in euros."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["day", "category", "orders", "total", "p10", "p50", "p90"])
    for (day, category), amounts in sorted(groups.items()):
        low, middle, high = spread(amounts)
        euros = [f"{cents / 100:.2f}" for cents in (sum(amounts), low, middle, high)]
        writer.writerow([day + 1, category, len(amounts), *euros])
    return out.getvalue()
