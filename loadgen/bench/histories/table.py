"""Watchers × histories: share of known changes that each watcher finds, its accuracy, and false reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.bench.histories.simulate import NOISES, SimulatedHistory, draw_history
from loadgen.bench.histories.watchers import Watch, WatcherAnswer
from loadgen.harness import offsets_of, ratio_of
from pipeline.model import FloatArray

MARGIN = 5
"""Largest distance, in commits, between a change and its report."""

STEPS = (0.0, 0.02, 0.05, 0.1)
SPREADS = (0.01, 0.03)

POSITIONS = (0.25, 0.4, 0.55, 0.7)
"""Positions of injected steps in a real history, as shares of its length."""


@dataclass(frozen=True, slots=True)
class HistoryCase:
    """Histories that are counted together, such as those with one kind of noise and one size of step."""

    name: str
    histories: Sequence[SimulatedHistory]
    known: bool = True
    """Whether all changes of the histories are known; if not, further reports are not counted as false."""


@dataclass(frozen=True, slots=True)
class WatcherRow:
    """Result of one watcher in one case; shares are NaN where there is nothing to count."""

    case: str
    watcher: str
    histories: int
    changes: int
    reported: int
    found: int
    exact: int
    """Changes found that are reported at exactly their commit."""
    near: int
    """Changes found that are reported at their commit or the one next to it."""
    seconds: float
    """Seconds of processor time for all histories (for benchstat: of the clock)."""
    known: bool

    @property
    def precision(self) -> float:
        """Share of the reported changes that are known changes."""
        return ratio_of(self.found, self.reported) if self.known else float("nan")

    @property
    def recall(self) -> float:
        """Share of the known changes that are found."""
        return ratio_of(self.found, self.changes)


def simulated(histories: int, seed: int) -> list[HistoryCase]:
    """Return ``histories`` histories for each kind of noise, each spread of runs and each size of step."""
    cases = []
    for kind in NOISES:
        for noise in SPREADS:
            for step in STEPS:
                rng = np.random.default_rng((seed, list(NOISES).index(kind), SPREADS.index(noise)))
                drawn = [draw_history(kind, noise, step, rng) for _ in range(histories)]
                size = f"{step:.0%}" if step else "none"
                cases.append(HistoryCase(f"{kind} | {noise:.0%} | {size}", drawn))
    return cases


def injected(every: Mapping[str, FloatArray], step: float) -> HistoryCase:
    """Return real histories with one run a commit, each with an injected step up or down at one commit.

    A history may have changes of its own, so further reports are not counted as false.
    """
    histories = []
    for values in every.values():
        for at in (round(share * len(values)) for share in POSITIONS):
            for factor in (1.0 + step, 1.0 / (1.0 + step)):
                changed = np.where(np.arange(len(values)) >= at, values * factor, values)
                histories.append(SimulatedHistory(changed[:, None], (at,)))
    return HistoryCase(f"real, step injected | – | {step:.0%}", histories, known=False)


def measure(
    cases: Sequence[HistoryCase], watchers: Mapping[str, Watch], advance: Callable[[], None] = lambda: None
) -> list[WatcherRow]:
    """Return a row for each case and watcher; all watchers see the same histories.

    Args:
        cases: The histories to watch.
        watchers: Name → watcher.
        advance: Called after each watcher.
    """
    values = [history.values for case in cases for history in case.histories]
    answers = {}
    for name, watch in watchers.items():
        answers[name] = iter(watch(values))
        advance()
    return [
        _row(case, name, [next(answers[name]) for _ in case.histories]) for case in cases for name in watchers
    ]


def totals(rows: Sequence[WatcherRow]) -> list[WatcherRow]:
    """Return a row for each watcher over all cases whose changes are known."""
    names = dict.fromkeys(row.watcher for row in rows if row.known)
    return [_sum(name, [row for row in rows if row.watcher == name and row.known]) for name in names]


def _sum(watcher: str, rows: Sequence[WatcherRow]) -> WatcherRow:
    counts = ("histories", "changes", "reported", "found", "exact", "near")
    summed = {name: sum(getattr(row, name) for row in rows) for name in counts}
    return WatcherRow("all", watcher, seconds=sum(row.seconds for row in rows), known=True, **summed)


def _row(case: HistoryCase, watcher: str, answers: Sequence[WatcherAnswer]) -> WatcherRow:
    offsets = [
        offset
        for history, answer in zip(case.histories, answers, strict=True)
        for offset in offsets_of(history.changes, answer.changes, MARGIN)
    ]
    return WatcherRow(
        case.name,
        watcher,
        len(case.histories),
        sum(len(history.changes) for history in case.histories),
        sum(len(answer.changes) for answer in answers),
        len(offsets),
        sum(offset == 0 for offset in offsets),
        sum(offset <= 1 for offset in offsets),
        sum(answer.seconds for answer in answers),
        case.known,
    )
