"""Text forms of figures, for the terminal and for pages."""

from __future__ import annotations

from loadgen.evaluation.rates import Rate
from loadgen.evaluation.scoring import Score

NONE = "–"


def share(value: float | None) -> str:
    """Write a ratio in per cent with as many digits as are meaningful: 93.1 %, 0.0021 %, – for none."""
    if value is None:
        return NONE
    per_cent = value * 100
    if per_cent in (0, 100):
        return f"{per_cent:.0f} %"
    if per_cent >= 10:
        return f"{per_cent:.1f} %"
    return f"{per_cent:.2g} %"


def interval(rate: Rate) -> str:
    """Write a rate's interval, such as ``80.2 – 97.8 %``."""
    bounds = rate.interval
    if bounds is None:
        return NONE
    low, high = (share(bound).removesuffix(" %") for bound in bounds)
    return f"{low} – {high} %"


def counts(rate: Rate) -> str:
    """Write the counts behind a rate."""
    return f"{rate.hits:,} of {rate.of:,}"


def hours(seconds: float) -> str:
    """Write a delay in the unit that fits it."""
    for size, unit in ((2 * 86_400.0, "d"), (5_400.0, "h"), (90.0, "min")):
        if abs(seconds) >= size:
            divisor = {"d": 86_400.0, "h": 3_600.0, "min": 60.0}[unit]
            return f"{seconds / divisor:.1f} {unit}"
    return f"{seconds:.0f} s"


def points(delta: float) -> str:
    """Write a change of gCPU in per cent of the service's CPU, with its sign."""
    return f"{delta * 100:+.3g} %"


def cause_rates(score: Score) -> list[tuple[str, Rate]]:
    """Return the rates of root causes, each with its name."""
    cause = score.root_cause
    return [
        ("root cause is the first suspect", cause.top_1),
        ("root cause is among the first three", cause.top_3),
        ("right, where anything is suggested", cause.right),
        ("suggestions where there is no root cause", cause.false_suggestions),
        ("suggestions on false positives", cause.on_false_positives),
    ]


def group_rates(score: Score) -> list[tuple[str, Rate]]:
    """Return the rates of groups, each with its name."""
    return [
        ("pairs in a group that belong together", score.group_precision),
        ("pairs that belong together and are in a group", score.group_recall),
    ]
