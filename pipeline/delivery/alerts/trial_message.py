"""Messages on experiments: failed and undecided metrics, sizes, models, and machines."""

from __future__ import annotations

from pipeline.delivery.alerts.markup import Line, StyledText, shown, unlinked
from pipeline.delivery.alerts.outcome import MetricOutcome, TrialOutcome

_MOST_SHOWN = 5
"""Metrics with a line of their own."""

_OPENINGS = {"fail": "Failed: ", "not enough": "Not decided: ", "pass": "Passed: "}


def trial_title(outcome: TrialOutcome, service: str) -> str:
    """Return a title in one line."""
    return f"{shown(service)}: experiment {shown(outcome.experiment)} {_says(outcome)}"


def trial_lines(outcome: TrialOutcome, service: str) -> tuple[Line, ...]:
    """Return the text on an experiment: its decision, the metrics that led to it, sides and machines."""
    revision = f" (revision {outcome.revision})" if outcome.revision > 1 else ""
    what: Line = (
        StyledText(_OPENINGS[outcome.decision], "bold"),
        StyledText("experiment "),
        StyledText(shown(outcome.experiment), "code"),
        StyledText(" of "),
        StyledText(shown(service), "bold"),
        StyledText(f" {_says(outcome)}{revision}"),
    )
    listed = outcome.metrics[:_MOST_SHOWN]
    more = outcome.metrics_size - len(listed)
    rest: tuple[Line, ...] = ((StyledText(f"and {more} more"),),) if more else ()
    return (what, *map(_figures, listed), *rest, _sides(outcome))


def trial_entry(outcome: TrialOutcome, service: str) -> Line:
    """Return the line of a digest."""
    return (
        StyledText(shown(service), "bold"),
        StyledText(" experiment "),
        StyledText(shown(outcome.experiment), "code"),
        StyledText(f" {_says(outcome)}"),
    )


def _says(outcome: TrialOutcome) -> str:
    if outcome.decision == "pass":
        return "is within its thresholds"
    if not outcome.complete:
        of = f" of {outcome.expected_trials}" if outcome.expected_trials > outcome.trials else ""
        return f"did not end: {_trials(outcome.trials)}{of}, and none for a day"
    if not outcome.metrics:
        return f"has nothing to compare in {_trials(outcome.trials)}"
    first = outcome.metrics[0]
    more = f", and {outcome.metrics_size - 1} more" if outcome.metrics_size > 1 else ""
    if outcome.decision == "not enough":
        return f"is not decided by {_trials(outcome.trials)}: {shown(first.metric)}{more}"
    return f"fails: {shown(first.metric)} {_signed(first.difference)}{more}"


def _figures(metric: MetricOutcome) -> Line:
    threshold = -metric.threshold if metric.direction == "down" else metric.threshold
    needed = ""
    if metric.decision == "not enough":
        needed = f"; {metric.trials_needed or 'more'} needed"
    p_value = "" if metric.p_value is None else f", p {metric.p_value:.2g}"
    return (
        StyledText(shown(metric.metric), "code"),
        StyledText(
            f" {_signed(metric.difference)} ({_interval(metric)}){p_value}, threshold {threshold:+.3%}, "
            f"{_trials(metric.trials)} by {shown(metric.model)}{needed}"
        ),
    )


def _sides(outcome: TrialOutcome) -> Line:
    a, b = (unlinked(", ".join(side)) or "not said" for side in (outcome.releases_a, outcome.releases_b))
    machines = f"; machines: {unlinked(', '.join(outcome.machines))}" if outcome.machines else ""
    return (
        StyledText("Side B "),
        StyledText(b, "code"),
        StyledText(" against A "),
        StyledText(a, "code"),
        StyledText(machines),
    )


def _interval(metric: MetricOutcome) -> str:
    if metric.low is None and metric.high is None:
        return "no interval"
    low, high = (
        end if bound is None else f"{bound:+.2%}" for bound, end in ((metric.low, "-∞"), (metric.high, "∞"))
    )
    return f"{low} to {high}"


def _signed(ratio: float | None) -> str:
    return "by an unknown difference" if ratio is None else f"{ratio:+.2%}"


def _trials(count: int) -> str:
    return f"{count} trial{'' if count == 1 else 's'}"
