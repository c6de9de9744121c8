"""Verdicts on trials in words: differences, intervals, reasons for a model, and discarded points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.experiments.trials import MODELS

SEQUENTIAL = "anytime-valid t-test"

_ERRORS = ("false_positives", "false_negatives")

_WITHOUT_CHOICE = {
    "paired-t-test": "there are too few A/A trials of this metric to choose by, so trials' differences count",
    "t-test-none": "there are too few A/A trials to choose by, and too few trials here, so points count",
    "none": "there was nothing to compare: no trial became steady, or all of side A is 0",
}


def difference(ratio: float | None) -> str:
    """Write a relative difference with its sign; a dash if unknown."""
    return "–" if ratio is None else f"{ratio * 100:+.3g} %"


def interval(low: float | None, high: float | None) -> str:
    """Write an interval, of which a side may be unbounded."""
    if low is None and high is None:
        return "unbounded"
    first, last = (
        end if bound is None else f"{bound * 100:+.3g}" for bound, end in ((low, "−∞"), (high, "∞"))
    )
    return f"{first} to {last} %"


def why_model(metric: Mapping[str, Any]) -> str:
    """Write why its model judged a metric of a verdict's event."""
    name, scores = metric["model"], metric["scores"]
    if name == SEQUENTIAL:
        return "it is looked at after every trial, and this test holds its errors for all looks together"
    own = next((score for score in scores if score["model"] == name), None)
    held = [score for score in scores if score["holds"]]
    bound = f"{metric['alpha']:.0%}".replace("%", " %")
    if own is not None and own["holds"]:
        errors = (f"{100 * own[name]:.1f} % {name.replace('_', ' ')}" for name in _ERRORS)
        return (
            f"on A/A tests {len(held)} of {len(scores)} models held {bound} of false positives, "
            f"and of these it had the fewest errors: {', '.join(errors)}"
        )
    if scores:
        return (
            f"none of {len(scores)} models held {bound} of false positives on A/A tests; it is the usual one"
        )
    return _WITHOUT_CHOICE.get(name, "it was asked for")


def about_model(name: str) -> str:
    """Write what a model compares; empty for an unknown model."""
    if name == SEQUENTIAL:
        return "A mixture of likelihood ratios of the t statistic of trials' differences."
    model = MODELS.get(name)
    return model.about if model else ""


def discarded(warm_up: Sequence[int], unsteady: Sequence[int]) -> str:
    """Write how many points of each side were discarded as warm-up, and which trials were left out."""
    lost = [count for at, count in enumerate(warm_up) if at not in set(unsteady)]
    if not any(lost):
        text = "no points"
    else:
        least, most = min(lost), max(lost)
        points = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        text = f"{sum(lost):,} points of each side, {points} a trial"
    if unsteady:
        named = ", ".join(str(at + 1) for at in unsteady[:12]) + (" …" if len(unsteady) > 12 else "")
        is_single = len(unsteady) == 1
        text += (
            f"; trial {named} never became steady and is left out"
            if is_single
            else f"; trials {named} never became steady and are left out"
        )
    return text
