"""Evidence on each change that may have caused a regression, from the gathered data of a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pipeline.analysis.detect.matrix import rows_by_series
from pipeline.analysis.rootcause import request_evidence, setup_metrics
from pipeline.analysis.rootcause.attribution import (
    NO_PART,
    Attribution,
    CallDistances,
    attribute,
    call_distances,
)
from pipeline.analysis.rootcause.change_kind import modifies_no_code
from pipeline.analysis.rootcause.correlation import correlations, names_metric, shows_changes, subjects_of
from pipeline.analysis.rootcause.gates import GateHistory, Gates, affected_subroutines, switched_changes
from pipeline.analysis.rootcause.onset import Deployments, RiseOnset, onset_density, weigh_deployments
from pipeline.analysis.rootcause.ranking import (
    Evidence,
    RankingConfig,
    candidate_changes,
    leave_out,
    rank_over_cases,
)
from pipeline.analysis.rootcause.request_changes import request_words
from pipeline.analysis.rootcause.setup_metrics import Regressed, SetupMetrics, without_cycle
from pipeline.analysis.rootcause.text import ChangeTexts, chances, regression_words
from pipeline.analysis.rootcause.trials import TrialFinding, trial_evidence
from pipeline.analysis.stacks import StackIndex, against_control, carry_over, index_stacks, stack_difference
from pipeline.model import (
    BoolArray,
    Candidate,
    Change,
    FloatArray,
    RegressionKind,
    Scan,
    SeriesKey,
    SeriesMatrix,
    SetupExplanation,
    StackChange,
    StackMatrix,
    Suspect,
)
from pipeline.model.frames import element
from pipeline.model.step_codes import RELEASE_COSTS

INSERTED_FRAMES = "inserted_frames"
"""Key of the step that carries a stack's earlier cost over to the stack that it became."""

DELAYS = 6.0
"""How many lookbacks before a change point a change may have been deployed that acts late. A lookback is the
mean of an exponential delay: more than six of them are one case in four hundred."""


@dataclass(frozen=True, slots=True)
class CauseConfig:
    """Settings of a workload for root causes."""

    resolution_s: float
    lookback_s: float  # usual time from the deployment of a change to its change point, at most
    history_s: float  # how long before a change the code behind its gate may have been deployed
    ranking: RankingConfig = field(default_factory=RankingConfig)
    without: frozenset[str] = frozenset()  # keys of factors to leave out


@dataclass(frozen=True)  # without slots: what is derived of it is kept
class ScanEvidence:
    """Data that all candidates of a scan share."""

    scan: Scan
    announced: tuple[Change, ...]  # every announcement of the last weeks, oldest first
    history: tuple[Change, ...]  # the first announcement of each change
    texts: ChangeTexts  # of the history
    gates: Gates
    series: SeriesMatrix | None  # of the candidates, from the scan's start to its end; None if not read
    setup: SeriesMatrix | None  # set-up metrics of the same windows; likewise
    trials: tuple[TrialFinding, ...] = ()  # verdicts on changes before their release

    @cached_property
    def rows(self) -> dict[SeriesKey, int]:
        """Row of each candidate's series."""
        return rows_by_series(self.series) if self.series else {}

    @cached_property
    def levels(self) -> FloatArray | None:
        """The series without the cycle that each day of the history repeats: (series, windows).

        None where the history is too short to know one.
        """
        return None if self.series is None else without_cycle(self.series, self.scan)

    @cached_property
    def setup_metrics(self) -> SetupMetrics | None:
        """The set-up metrics, as far as they may explain a regression."""
        return None if self.setup is None else SetupMetrics(self.scan, self.setup)

    @cached_property
    def index_of(self) -> Mapping[str, int]:
        """Index of each change in the history."""
        return {change.id: index for index, change in enumerate(self.history)}

    @cached_property
    def behind_gates(self) -> GateHistory:
        """Changes behind each gate, cached by query."""
        return GateHistory(self.history)

    @cached_property
    def subjects(self) -> dict[tuple[str, float], frozenset[str]]:
        """Subjects of changes, cached by query."""
        return {}

    def subjects_of(self, change: Change) -> frozenset[str]:
        """Return the subjects of a change."""
        key = (change.id, change.time)
        if key not in self.subjects:
            self.subjects[key] = subjects_of(change)
        return self.subjects[key]


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """Candidates of a scan whose change points follow each other closely, and the stacks around them."""

    common: ScanEvidence
    candidates: tuple[Candidate, ...]
    stacks: StackMatrix | None  # None for service-level metrics
    days: Sequence[StackMatrix] = ()  # the same hours of earlier days
    served: StackMatrix | None = None  # calls under endpoints, if requests cost more in a new release


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings on the cause of one candidate."""

    suspects: tuple[Suspect, ...] = ()
    stacks: tuple[StackChange, ...] = ()
    explanations: tuple[SetupExplanation, ...] = ()


def find_causes(cluster: ClusterEvidence, config: CauseConfig) -> list[Cause]:
    """Return the findings on each candidate of a cluster, in their order."""
    causes = []
    for weighing in _weighings(cluster, config):
        distances, evidence = weighing.distances, weighing.evidence()
        stacks = stack_difference(distances.index.matrix, weighing.regressed) if distances else ()
        suspects = rank_over_cases(weighing.cases(evidence), config.ranking) if evidence else ()
        named = tuple(_named(suspect, cluster.common, config) for suspect in suspects)
        causes.append(Cause(named, stacks, weighing.explanations(suspects)))
    return causes


def weigh_changes(cluster: ClusterEvidence, config: CauseConfig) -> list[Evidence | None]:
    """Return the evidence on each candidate of a cluster; None where no change comes into question."""
    return [weighing.evidence() for weighing in _weighings(cluster, config)]


def latest_value(matrix: SeriesMatrix) -> float | None:
    """Return the last value of a matrix of one service-level metric; None without points."""
    values = matrix.samples[np.isfinite(matrix.samples)]
    return float(values[-1]) if len(values) else None


@dataclass(frozen=True, slots=True)
class _Weighing:
    """One candidate and the changes before it."""

    common: ScanEvidence
    config: CauseConfig
    candidate: Candidate
    distances: CallDistances | None
    regressed: BoolArray  # (stacks,) which hold the candidate's series
    observed: request_evidence.ObservedCalls | None = (
        None  # of requests, where they cost more in a new release
    )

    def evidence(self) -> Evidence | None:
        """Return the evidence about one candidate; None where no change comes into question."""
        common, candidate = self.common, self.candidate
        earliest, latest = self._span()
        changes = candidate_changes(common.announced, latest, lookback_s=latest - earliest, tolerance_s=0.0)
        if not changes or common.series is None or common.setup is None:
            return None
        frames = _risen_frames(self.distances, self.regressed) if self.distances else {}
        words = regression_words(candidate.metric, candidate.metric_kind, frames)
        similarity = common.texts.similarities(words)
        indexes = [common.index_of[change.id] for change in changes]
        row = common.rows.get(candidate.series)
        values, weights = _values(common.series, row)
        evidence = Evidence(
            changes=changes,
            deployments=self._deployments(values, weights, row, changes),
            attributions=self._attributions(changes),
            similarity=similarity[indexes],
            similarity_chance=chances(similarity)[indexes],
            correlation=self._correlations(values, weights, common.setup, changes),
            trials=trial_evidence(changes, candidate, common.trials),
        )
        return leave_out(evidence, self.config.without)

    def cases(self, evidence: Evidence) -> list[tuple[float, Evidence]]:
        """Return the evidence for each type of request that may cost more; as it is where none does."""
        types = request_evidence.request_types(self.candidate)
        if not types:
            return [(1.0, evidence)]
        return [(probability, self._of_type(evidence, type_)) for type_, probability in types.items()]

    def _of_type(self, evidence: Evidence, type_: str) -> Evidence:
        """Return the evidence on the assumption that this type of request costs more."""
        reach = self.observed.reach(type_) if self.observed else None
        affected = zip(evidence.changes, self._affected(evidence.changes), strict=True)
        changes = [replace(change, subroutines=tuple(sorted(names))) for change, names in affected]
        parts = request_evidence.attribute_request(changes, type_, reach)
        similarity = self.common.texts.similarities(request_words(type_, reach.nearness if reach else {}))
        indexes = [self.common.index_of[change.id] for change in evidence.changes]
        case = replace(
            evidence,
            attributions=tuple(
                attribution if part is None else part
                for part, attribution in zip(parts, evidence.attributions, strict=True)
            ),
            similarity=similarity[indexes],
            similarity_chance=chances(similarity)[indexes],
        )
        return leave_out(case, self.config.without)

    def explanations(self, suspects: Sequence[Suspect]) -> tuple[SetupExplanation, ...]:
        """Return set-up metrics that explain the candidate better than changes, above all the suspects."""
        common, candidate = self.common, self.candidate
        wanted = candidate.kind == "short_term" and setup_metrics.STEP not in self.config.without
        row, metrics = common.rows.get(candidate.series), common.setup_metrics
        if not wanted or metrics is None or common.series is None or row is None:
            return ()
        begin, end = candidate.change_time_span
        earliest, latest = begin - self.config.lookback_s, end + self.config.resolution_s
        changes = [change for change in common.history if earliest <= change.time <= latest]
        # A metric that the change itself moved, such as the share of its gate, speaks for the change.
        steps = [
            step
            for step in metrics.stepping_with(candidate)
            if not any(names_metric(common.subjects_of(change), step.metric) for change in changes)
        ]
        values, weights = _values(common.series, row)
        values = values if common.levels is None else common.levels[row]
        regressed = Regressed(candidate, values, weights, sum(suspect.score for suspect in suspects))
        return metrics.explain(regressed, steps, [change.time for change in changes])

    def _span(self) -> tuple[float, float]:
        """Return the span in which a change that caused the candidate may have been deployed."""
        scan, candidate, lookback_s = self.common.scan, self.candidate, self.config.lookback_s
        earliest = candidate.change_time - DELAYS * lookback_s
        if candidate.kind == "long_term":  # its start is known to a day at best, and the rise takes days
            earliest = min(earliest, scan.start)
        return earliest, min(candidate.change_time + lookback_s, scan.end)

    def _deployments(
        self, values: FloatArray, weights: FloatArray, row: int | None, changes: Sequence[Change]
    ) -> Deployments:
        """Weigh the times of changes. A step is dated without the daily cycle; a slow rise takes days."""
        levels = self.common.levels if self.candidate.kind == "short_term" else None
        if levels is not None and row is not None:
            values = levels[row]
        scan, step_s, lookback_s = self.common.scan, self.config.resolution_s, self.config.lookback_s
        earliest, latest = self._span()
        # A step shows best against the windows just before it; a slow rise needs the whole history.
        since = earliest - lookback_s if self.candidate.kind == "short_term" else scan.start
        skipped = max(int((since - scan.start) // step_s), 0)
        ahead = max(-int((earliest - scan.start) // step_s), 0)  # windows before the series begins
        starts = scan.start + np.arange(skipped, len(values)) * step_s
        begun = self.candidate.change_time
        if _begins_with_release(self.candidate):
            density = np.where((starts <= begun) & (begun < starts + step_s), 1.0, 0.0)
        else:
            density = onset_density(
                values[skipped:],
                weights[skipped:],
                (starts > earliest - step_s) & (starts <= latest),
                slow=self.candidate.kind == "long_term",
            )
        return weigh_deployments(
            RiseOnset(
                np.concatenate([np.zeros(ahead), density]), scan.start + (skipped - ahead) * step_s, step_s
            ),
            [change.time for change in changes],
            allowed=max(round((latest - earliest) / step_s), 1),
            delay_s=lookback_s,
        )

    def _attributions(self, changes: Sequence[Change]) -> tuple[Attribution | None, ...]:
        distances, affected = self.distances, self._affected(changes)
        measured = attribute(distances, self.regressed, affected) if distances else None
        attributions: list[Attribution | None] = []
        for index, change in enumerate(changes):
            part = None
            if distances and measured is not None and not distances.are_definitions(affected[index]):
                part = measured[index]
            attributions.append(NO_PART if part is None and modifies_no_code(change) else part)
        return tuple(attributions)

    def _affected(self, changes: Sequence[Change]) -> tuple[frozenset[str], ...]:
        common = self.common
        return affected_subroutines(
            changes, common.behind_gates, common.gates, lookback_s=self.config.history_s
        )

    def _correlations(
        self, values: FloatArray, weights: FloatArray, setup: SeriesMatrix, changes: Sequence[Change]
    ) -> FloatArray:
        """Return the strongest correlation with a set-up metric that each change names; NaN without one."""
        since = self.candidate.change_time - 2 * self.config.lookback_s
        first = 0
        if self.candidate.kind == "short_term":
            first = max(int((since - self.common.scan.start) // self.config.resolution_s), 0)
        sizes = np.abs(correlations(values[first:], weights[first:], setup.samples[:, first:]))
        strongest = np.full(len(changes), np.nan)
        rows = np.flatnonzero(np.isfinite(sizes)).tolist()
        moving = [row for row in rows if shows_changes(setup.names[row])]
        for index, change in enumerate(changes if moving else ()):
            for row in moving:
                if names_metric(self.common.subjects_of(change), setup.names[row]):
                    strongest[index] = np.fmax(strongest[index], sizes[row])
        return strongest


def _begins_with_release(candidate: Candidate) -> bool:
    """Return whether a new release is what makes the difference, so that nothing else dates it."""
    return any(decision.step == RELEASE_COSTS and decision.passed for decision in candidate.passed)


def _named(suspect: Suspect, common: ScanEvidence, config: CauseConfig) -> Suspect:
    """Return a suspect in reported form: with the changes that it switches, without diffs and routes."""
    switches = switched_changes(suspect.change, common.behind_gates, lookback_s=config.history_s)
    return replace(
        suspect,
        change=replace(suspect.change, content="", routes=()),
        switches=tuple(replace(change, content="", routes=()) for change in switches),
    )


def _weighings(cluster: ClusterEvidence, config: CauseConfig) -> list[_Weighing]:
    if cluster.stacks is None:
        empty = np.zeros(0, dtype=np.bool_)
        calls = request_evidence.observed_calls(cluster.served.stacks) if cluster.served else None
        return [
            _Weighing(cluster.common, config, member, None, empty, calls) for member in cluster.candidates
        ]
    index = index_stacks(cluster.stacks)
    kinds = {candidate.kind for candidate in cluster.candidates}
    # A slow rise is in the earlier days too, and its spans are longer than some hours of a day.
    distances = {kind: call_distances(_compared(index, cluster, kind, config)) for kind in kinds}
    return [
        _Weighing(
            common=cluster.common,
            config=config,
            candidate=candidate,
            distances=distances[candidate.kind],
            regressed=index.holding([element(*candidate.series)]),
        )
        for candidate in cluster.candidates
    ]


def _compared(
    index: StackIndex, cluster: ClusterEvidence, kind: RegressionKind, config: CauseConfig
) -> StackIndex:
    if kind == "short_term":
        index = against_control(index, cluster.days)
    return index if INSERTED_FRAMES in config.without else carry_over(index).index


def _values(matrix: SeriesMatrix, row: int | None) -> tuple[FloatArray, FloatArray]:
    """Return a series and the weight of each window, 0 without data: (windows,) both."""
    if row is None:
        nothing = np.zeros(len(matrix.totals))
        return nothing, nothing
    samples = matrix.samples[row]
    finite = np.isfinite(samples) & (matrix.totals > 0)
    values = np.divide(samples, matrix.totals, out=np.zeros(len(samples)), where=finite)
    return values, np.where(finite, matrix.totals, 0.0)


def _risen_frames(distances: CallDistances, regressed: BoolArray) -> dict[str, float]:
    """Return the share of the regression's rise in stacks with each subroutine, 0 to 1.

    Subroutines stand in the order of reading stacks from the leaf up, which determines the rounding of sums.
    """
    index = distances.index
    rise = np.where(regressed, np.maximum(index.rise, 0.0), 0.0)
    whole = float(rise.sum())
    if whole <= 0:
        return {}
    shares = index.sums(rise) / whole
    numbers, first = np.unique(distances.label, return_index=True)
    in_order = numbers[np.lexsort((-distances.nearness[first], distances.stack[first]))]
    return {index.names[number]: float(shares[number]) for number in in_order.tolist() if shares[number] > 0}
