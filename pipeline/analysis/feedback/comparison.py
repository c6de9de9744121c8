"""Two settings side by side (KDD 2018 §3.3): the candidates of the ledger that each reports.

The ledger holds size, p-value and the step that dropped each candidate, so the effect of other bounds of
threshold and significance can be computed. Later steps never judged a candidate that a bound dropped: such a
line is ``open``, at most one more event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pipeline.analysis.feedback.precision import is_right
from pipeline.analysis.feedback.thresholds import Measure
from pipeline.analysis.filters.significance import BY_CHANCE, judge_significance
from pipeline.analysis.filters.threshold import judge_threshold
from pipeline.model import Candidate, SeriesKey, Verdict

TRIED = ("threshold", "significance")
"""Steps with a bound that can be tried on the ledger, in the order of the pipeline."""

Fate = Literal["reported", "open", "silent"]
"""State of a regression under a setting; open: it passes the step that dropped it, later steps never ran."""


@dataclass(frozen=True, slots=True)
class TriedBounds:
    """Bounds of a workload that are tried."""

    measure: Measure
    threshold: float
    by_chance: float = BY_CHANCE  # false change points per scan that are tolerated


@dataclass(frozen=True, slots=True)
class LedgerCandidate:
    """A candidate of the ledger; ``step`` dropped it, empty if it was reported."""

    id: str
    service: str
    workload: str
    candidate: Candidate
    scan_end: float  # epoch seconds
    scan_series: int  # number of series in its scan
    step: str = ""


@dataclass(frozen=True, slots=True)
class SettingOutcome:
    """State of a regression under one setting, and the step that drops it, if any."""

    fate: Fate
    step: str = ""


@dataclass(frozen=True, slots=True)
class RegressionLine:
    """One regression, all scans that saw it together, under two settings."""

    shown: LedgerCandidate  # the one that was reported, else the last
    first: SettingOutcome
    second: SettingOutcome
    state: Verdict | None = None  # of its event, or of one of the same series at the same time
    right: bool | None = None  # None: nobody said

    @property
    def differs(self) -> bool:
        """Whether the two settings treat it differently."""
        return self.first.fate != self.second.fate


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """People's answer to an event, for lines of the same series and time."""

    event: str
    service: str
    series: SeriesKey
    change_time: float
    state: Verdict | None
    cause: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of lines, by people's answers."""

    lines: int
    right: int
    wrong: int


def compare_settings(
    found: Iterable[LedgerCandidate],
    first: TriedBounds,
    second: TriedBounds,
    *,
    same_s: float,
    answers: Sequence[EventAnswer] = (),
) -> tuple[RegressionLine, ...]:
    """Return the lines of candidates under two settings, the latest change first.

    Candidates that a step before the threshold dropped are left out: neither setting changes them.

    Args:
        found: Of one workload; one service or several.
        first: The setting on the left.
        second: The setting on the right.
        same_s: Within how many seconds change points of one series are one regression.
        answers: What people said of events.
    """
    lines = [_line(seen, first, second, same_s, answers) for seen in _regressions(found, same_s)]
    return tuple(sorted(lines, key=lambda line: (-line.shown.candidate.change_time, line.shown.id)))


def tally(lines: Iterable[RegressionLine]) -> Tally:
    """Count lines by what people say of them."""
    answers = [line.right for line in lines]
    return Tally(len(answers), answers.count(True), answers.count(False))


def fewer(lines: Iterable[RegressionLine]) -> list[RegressionLine]:
    """Return the lines that the first setting reports and the second does not."""
    return [line for line in lines if line.first.fate == "reported" and line.second.fate != "reported"]


def more(lines: Iterable[RegressionLine]) -> list[RegressionLine]:
    """Return the lines that the second setting may report though the first is silent."""
    return [line for line in lines if line.first.fate == "silent" and line.second.fate != "silent"]


def _line(
    seen: Sequence[LedgerCandidate],
    first: TriedBounds,
    second: TriedBounds,
    same_s: float,
    answers: Sequence[EventAnswer],
) -> RegressionLine:
    reported = [candidate for candidate in seen if not candidate.step]
    shown = reported[-1] if reported else seen[-1]
    answer = _answer(shown, answers, same_s)
    state, cause = (answer.state, answer.cause) if answer else (None, None)
    return RegressionLine(shown, _outcome(seen, first), _outcome(seen, second), state, is_right(state, cause))


def _outcome(seen: Sequence[LedgerCandidate], setting: TriedBounds) -> SettingOutcome:
    """Return the state of a regression that several scans saw."""
    outcomes = [_outcome_of(item, setting) for item in seen]
    for fate in ("reported", "open"):
        if any(item.fate == fate for item in outcomes):
            return SettingOutcome(fate)
    # A later sight was dropped as known; that ends if the setting drops the earlier sight.
    if any(not item.step for item in seen) and any(item.step == "same_regression" for item in outcomes):
        return SettingOutcome("open")
    return outcomes[-1]


def _outcome_of(candidate: LedgerCandidate, setting: TriedBounds) -> SettingOutcome:
    size = {setting.measure: setting.threshold}
    for decision in (
        judge_threshold(candidate.candidate, absolute=size.get("absolute"), relative=size.get("relative")),
        judge_significance(candidate.candidate, series=candidate.scan_series, expected=setting.by_chance),
    ):
        if not decision.passed:
            return SettingOutcome("silent", decision.step)
    if candidate.step in TRIED:
        return SettingOutcome("open")
    return SettingOutcome("silent", candidate.step) if candidate.step else SettingOutcome("reported")


def _regressions(candidates: Iterable[LedgerCandidate], same_s: float) -> list[list[LedgerCandidate]]:
    """Group the candidates of one series whose change points follow each other closely, in order of scans."""
    ordered = sorted(
        candidates,
        key=lambda candidate: (
            candidate.service,
            candidate.candidate.series,
            candidate.candidate.change_time,
            candidate.scan_end,
        ),
    )
    groups = [[candidate] for candidate in ordered[:1]]
    for last, candidate in pairwise(ordered):
        same = (last.service, last.candidate.series) == (candidate.service, candidate.candidate.series)
        if same and candidate.candidate.change_time - last.candidate.change_time <= same_s:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
    return [sorted(group, key=lambda candidate: candidate.scan_end) for group in groups]


def _answer(shown: LedgerCandidate, answers: Sequence[EventAnswer], same_s: float) -> EventAnswer | None:
    """Return the answer to a line's event, or to the nearest event of its series."""
    near = [
        (
            answer.event != shown.id,
            abs(answer.change_time - shown.candidate.change_time),
            answer.event,
            answer,
        )
        for answer in answers
        if (answer.service, answer.series) == (shown.service, shown.candidate.series)
        and (answer.event == shown.id or abs(answer.change_time - shown.candidate.change_time) <= same_s)
    ]
    return min(near, key=lambda row: row[:3])[3] if near else None
