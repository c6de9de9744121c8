"""Figures of a score, from matched events. docs/scoring.md defines them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TypeVar

from loadgen.evaluation.matching import MatchedEvent, Matching, Tolerances, explain_cost, match
from loadgen.evaluation.model import RunFunnel, ScoredEvent, TruthRow
from loadgen.evaluation.rates import Rate, Spread, f_score, spread
from pipeline.model.metric_kind import is_gcpu

Key = TypeVar("Key", str, tuple[bool, str])

SIZES = (
    ("below 0.005 %", 0.0, 0.00005),
    ("0.005 – 0.05 %", 0.00005, 0.0005),
    ("0.05 – 0.5 %", 0.0005, 0.005),
    ("0.5 – 4 %", 0.005, 0.04),
    ("above 4 %", 0.04, float("inf")),
)
"""Decades of gCPU from the smallest regression of FBDetect Table 7 to the largest: name, from, below."""

LARGEST = SIZES[-1][1]
"""Upper bound of the last decade below it, to which a change of just this size belongs."""

NOTHING = "nothing happened"
"""Name of a false positive that no truth row explains."""

MISPLACED = "a regression, at another time"
"""Name of a false positive whose series did regress, within a day but outside the tolerance."""


DETECTABLE = 8.0
"""Standard errors from which on a step stands out: five make it significant among thousands of series, and
three more let noise take as much away as it will in one case of a thousand."""


@dataclass(frozen=True, slots=True)
class ScoreSlice:
    """The figures of one kind or size. ``rows`` is the share of its truth rows that have an event."""

    name: str
    expected: bool
    rows: Rate


@dataclass(frozen=True, slots=True)
class RootCause:
    """Quality of the suspects of true positives (FBDetect §5.5.3)."""

    top_1: Rate  # of true positives whose row has a root cause
    top_3: Rate
    suggested: Rate  # share of these that name any suspect
    right: Rate  # share of those naming suspects that have the root cause among the first three
    false_suggestions: Rate  # of true positives without a root cause, the share naming a change without part
    on_false_positives: Rate  # of false positives, the share that name any suspect


@dataclass(frozen=True, slots=True)
class Score:
    """A run's accuracy. Rates are of counts; delays are in seconds."""

    matching: Matching
    precision: Rate
    recall: Rate
    detectable: Rate  # recall of the steps that stand out of sampling noise, see DETECTABLE
    rollouts: Rate  # recall of staged rollouts that stand out, see DETECTABLE
    first_stage: Rate  # share of reported rollouts that are dated within the first stage
    false_positive_rate: Rate | None  # per scanned series; None without a funnel
    repeated: Rate  # of events
    kinds: tuple[ScoreSlice, ...]
    cost_shifts: tuple[tuple[str, Rate], ...]  # share of each form of cost shift that was reported
    false_kinds: Mapping[str, int]  # false positives by the kind of row that explains them
    event_kinds: tuple[tuple[str, Rate], ...]  # precision by the event's kind
    sizes: tuple[tuple[str, Rate], ...]  # recall by the row's size
    event_sizes: tuple[tuple[str, Rate], ...]  # precision by the event's size
    delay: Spread | None  # from a row's start to its true positive's detection
    shift: Spread | None  # distance of the true positive's change time from the row's onset
    coverage: Rate  # of true positives of steps, the share whose interval of the change time holds the onset
    interval_width: Spread | None  # width of these intervals
    group_precision: Rate
    group_recall: Rate
    root_cause: RootCause
    funnel: RunFunnel | None

    @property
    def f1(self) -> float | None:
        """Return the harmonic mean of precision and recall."""
        return f_score(self.precision.value, self.recall.value)


def score(
    truth: Sequence[TruthRow],
    events: Sequence[ScoredEvent],
    *,
    tolerances: Tolerances | None = None,
    funnel: RunFunnel | None = None,
) -> Score:
    """Match events with truth and return every figure."""
    tolerances = tolerances or Tolerances()
    matching = match(truth, events, tolerances)
    true = matching.having("true_positive")
    false = matching.having("false_positive")
    counted = [item for item in matching.judged if item.outcome != "allowed"]
    reported = {judged.truth.id for judged in matching.judged if judged.truth}
    group_precision, group_recall = _grouping(matching, truth, tolerances)
    expected = [row for row in truth if row.expected]
    rollouts = [row for row in expected if row.stages and _stands_out(row)]
    staged = [_in_first_stage(item.event, item.truth) for item in true if item.truth and item.truth.stages]
    dated = _dated(true)
    return Score(
        matching=matching,
        precision=Rate(len(true), len(counted)),
        recall=Rate(len(true), len(expected)),
        detectable=_recall_of([row for row in expected if is_detectable(row)], reported),
        rollouts=_recall_of(rollouts, reported),
        first_stage=Rate(sum(staged), len(staged)),
        false_positive_rate=Rate(min(len(false), funnel.series), funnel.series) if funnel else None,
        repeated=Rate(len(matching.having("repeated")), len(counted)),
        kinds=_kinds(truth, reported),
        cost_shifts=_cost_shifts(truth, reported),
        false_kinds=_false_kinds(false),
        event_kinds=_precision_by(counted, _event_kind),
        sizes=_in_order(
            _recall_by((r for r in expected if r.gcpu), reported, lambda row: size_of(row.delta))
        ),
        event_sizes=_in_order(_precision_by(_on_gcpu(counted), lambda e: size_of(e.delta))),
        delay=spread([j.event.detected_time - j.truth.start for j in true if j.truth]),
        shift=spread([_shift(j.event, j.truth) for j in true if j.truth]),
        coverage=Rate(sum(interval[0] <= start <= interval[1] for interval, start in dated), len(dated)),
        interval_width=spread([interval[1] - interval[0] for interval, _ in dated]),
        group_precision=group_precision,
        group_recall=group_recall,
        root_cause=_root_cause(true, false),
        funnel=funnel,
    )


def is_detectable(row: TruthRow) -> bool:
    """Return whether a row is a step of gCPU that stands out of the sampling noise of its series."""
    return row.kind == "regression" and row.until <= row.start and _stands_out(row)


def _stands_out(row: TruthRow) -> bool:
    return row.standard_error is not None and abs(row.delta) >= DETECTABLE * row.standard_error


def size_of(delta: float) -> str:
    """Return the name of the decade of a change of gCPU."""
    # A size drawn as 0.00005 may have been rounded to just below; 4 % belongs to the decade below.
    size = abs(delta) * (1 + 1e-9)
    if abs(delta) <= LARGEST * (1 + 1e-9):
        size = min(size, LARGEST * (1 - 1e-9))
    return next(name for name, low, high in SIZES if low <= size < high)


def false_kind(judged: MatchedEvent) -> str:
    """Return the happening behind a false positive."""
    if judged.truth:
        return judged.truth.kind
    return MISPLACED if judged.near else NOTHING


def _kinds(truth: Sequence[TruthRow], reported: set[str]) -> tuple[ScoreSlice, ...]:
    rates = _recall_by(truth, reported, lambda row: (not row.expected, row.kind))
    return tuple(ScoreSlice(kind, not unexpected, rate) for (unexpected, kind), rate in rates)


def _cost_shifts(truth: Sequence[TruthRow], reported: set[str]) -> tuple[tuple[str, Rate], ...]:
    rows = [row for row in truth if row.kind == "cost_shift"]
    return _recall_by(rows, reported, lambda row: row.subkind or "cost_shift")


def _recall_by(
    rows: Iterable[TruthRow], reported: set[str], key: Callable[[TruthRow], Key]
) -> tuple[tuple[Key, Rate], ...]:
    rates: dict[Key, Rate] = {}
    for row in rows:
        rates[key(row)] = rates.get(key(row), Rate(0, 0)) + Rate(int(row.id in reported), 1)
    return tuple(sorted(rates.items(), key=lambda item: item[0]))


def _false_kinds(false: Iterable[MatchedEvent]) -> dict[str, int]:
    counts = Counter(false_kind(judged) for judged in false)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _precision_by(
    judged: Iterable[MatchedEvent], name: Callable[[ScoredEvent], str]
) -> tuple[tuple[str, Rate], ...]:
    rates: dict[str, Rate] = {}
    for item in judged:
        key = name(item.event)
        rates[key] = rates.get(key, Rate(0, 0)) + Rate(int(item.outcome == "true_positive"), 1)
    return tuple(sorted(rates.items()))


def _event_kind(event: ScoredEvent) -> str:
    return f"{event.kind.replace('_', '-')}, {event.metric_kind}"


def _on_gcpu(judged: Iterable[MatchedEvent]) -> list[MatchedEvent]:
    return [item for item in judged if is_gcpu(item.event.metric_kind)]


def _recall_of(rows: Sequence[TruthRow], reported: set[str]) -> Rate:
    return Rate(sum(row.id in reported for row in rows), len(rows))


def _in_order(rates: tuple[tuple[str, Rate], ...]) -> tuple[tuple[str, Rate], ...]:
    names = [name for name, _, _ in SIZES]
    return tuple(sorted(rates, key=lambda item: names.index(item[0])))


def _shift(event: ScoredEvent, row: TruthRow) -> float:
    return max(row.start - event.change_time, event.change_time - row.until, 0.0)


def _dated(true: Sequence[MatchedEvent]) -> list[tuple[tuple[float, float], float]]:
    """Return the interval of the change time and the onset of each step that was reported.

    Slow rises are left out: their onset is a span.
    """
    return [
        (judged.event.interval, judged.truth.start)
        for judged in true
        if judged.truth and judged.event.interval and judged.truth.until == judged.truth.start
    ]


def _in_first_stage(event: ScoredEvent, row: TruthRow) -> bool:
    """Return whether a rollout is dated within its first stage, or its interval holds that begin."""
    begin, end = row.stages[:2]
    held = event.interval is not None and event.interval[0] <= begin <= event.interval[1]
    return held or begin <= event.change_time < max(end, begin + 1)


def _grouping(matching: Matching, truth: Sequence[TruthRow], tolerances: Tolerances) -> tuple[Rate, Rate]:
    """Return pairwise precision and recall of groups against the truth.

    Each series of each event is one item. Its label is the row that explains it, with preference for its
    event's own row; an unexplained item has a unique label. Precision: of all pairs of items within events,
    the share with equal labels. Recall: of all pairs with equal labels, the share within one event.
    """
    together = same = 0
    labels: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for judged in matching.judged:
        items = Counter(_labels(judged, truth, tolerances))
        unknown = items.pop("", 0)
        together += comb(items.total() + unknown, 2)
        for label, count in items.items():
            same += comb(count, 2)
            within[label] += comb(count, 2)
        labels.update(items)
    pairs = {label: comb(count, 2) for label, count in labels.items()}
    return Rate(same, together), Rate(within.total(), sum(pairs.values()))


def _labels(judged: MatchedEvent, truth: Sequence[TruthRow], tolerances: Tolerances) -> list[str]:
    """Return the id of the row that explains each of an event's series, empty if none does."""
    event, own = judged.event, judged.truth
    tolerance = tolerances.of(event.workload)
    near = [row for row in truth if row.series and explain_cost(row, event, tolerance) < float("inf")]
    labels = []
    for series in event.series:
        if own is not None and (series in own.series or not own.series):
            labels.append(own.id)
            continue
        holding = sorted((row.series.index(series), row.id) for row in near if series in row.series)
        labels.append(holding[0][1] if holding else "")
    return labels


def _root_cause(true: Sequence[MatchedEvent], false: Sequence[MatchedEvent]) -> RootCause:
    caused = [(j.truth.change, j.event.suspects) for j in true if j.truth and j.truth.change is not None]
    uncaused = [
        bool(j.event.suspects) and not set(j.event.suspects[:3]) & set(j.truth.changes)
        for j in true
        if j.truth and j.truth.change is None
    ]
    suggested = sum(bool(suspects) for _, suspects in caused)
    top_3 = sum(cause in suspects[:3] for cause, suspects in caused)
    return RootCause(
        top_1=Rate(sum(cause in suspects[:1] for cause, suspects in caused), len(caused)),
        top_3=Rate(top_3, len(caused)),
        suggested=Rate(suggested, len(caused)),
        right=Rate(top_3, suggested),
        false_suggestions=Rate(sum(uncaused), len(uncaused)),
        on_false_positives=Rate(sum(bool(j.event.suspects) for j in false), len(false)),
    )
