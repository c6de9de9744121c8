"""Fetches what ranking asks for: deployed changes, series, stacks and set-up metrics around a regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.codec.inputs import change_from_json
from pipeline.detect.seasonal.daily import DAY_S
from pipeline.frames import element
from pipeline.model import BoolArray, Candidate, Change, FloatArray, Scan, SeriesMatrix, StackChange, Suspect
from pipeline.rootcause.attribution import NO_PART, Attribution, CallDistances, attribute, call_distances
from pipeline.rootcause.change_kind import modifies_no_code
from pipeline.rootcause.correlation import (
    SERVERS,
    correlations,
    names_metric,
    subjects_of,
    tells_of_changes,
)
from pipeline.rootcause.gates import Gates, affected_subroutines
from pipeline.rootcause.onset import Deployments, onset_density, weigh_deployments
from pipeline.rootcause.ranking import (
    Evidence,
    RankingConfig,
    candidate_changes,
    first_announcements,
    rank_suspects,
)
from pipeline.rootcause.text import ChangeTexts, chances, regression_words
from pipeline.stacks import StackIndex, index_stacks, stack_difference
from pipeline.stages.gather.change_words import ChangeWords
from pipeline.stages.gather.evidence import TOLERANCE_WINDOWS, cluster_by_time, rows_of_series, stacks_around
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

HISTORY_S = 30 * DAY_S
"""How far back changes are read: for the code behind a gate, and for what the service's texts are like."""

DELAYS = 6.0
"""How many lookbacks before a change point a change may have been deployed that acts late. A lookback is the
mean of an exponential delay: more than six of them are one case in four hundred."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found about one candidate."""

    suspects: tuple[Suspect, ...] = ()
    stacks: tuple[StackChange, ...] = ()


class SuspectFinder:
    """Gathers the evidence against the changes of a service, for all regressions of a scan at once."""

    def __init__(
        self, store: Store, *, gates: Gates | None = None, config: RankingConfig | None = None
    ) -> None:
        self._store = store
        self._gates = gates or {}
        self._config = config or RankingConfig()
        self._words = ChangeWords()

    def find(self, scan: Scan, workload: Workload) -> list[Findings]:
        """Return what was found about each of a scan's candidates, in their order."""
        if not scan.candidates:
            return []
        found: dict[int, Findings] = {}
        for place, evidence, stacks in self._gather(scan, workload):
            suspects = rank_suspects(evidence, self._config) if evidence else ()
            # An event tells what a change is about; its diff stays in the store.
            told = (replace(s, change=replace(s.change, content="")) for s in suspects)
            found[place] = Findings(tuple(told), stacks)
        return [found[place] for place in range(len(scan.candidates))]

    def evidence(self, scan: Scan, workload: Workload) -> list[Evidence | None]:
        """Return the evidence about each of a scan's candidates; None where no change comes into question."""
        found = {place: evidence for place, evidence, _ in self._gather(scan, workload)}
        return [found[place] for place in range(len(scan.candidates))]

    def servers(self, scan: Scan) -> float | None:
        """Return how many servers a service ran on when a scan ended, where a set-up metric says so."""
        span_s = max(scan.end - scan.start, 1.0)
        found = self._store.series(
            "setup", scan.service, scan.start, scan.end, span_s / 100, [("service", SERVERS)]
        )
        known = found.samples[np.isfinite(found.samples)]
        return float(known[-1]) if len(known) else None

    def _gather(
        self, scan: Scan, workload: Workload
    ) -> Iterator[tuple[int, Evidence | None, tuple[StackChange, ...]]]:
        """Yield place, evidence and changed stacks of every candidate, those of one time together."""
        context = _Context(self._store, scan, workload, self._gates)
        # What many hosts announced is one text: as many copies would make its own words common.
        texts = self._words.texts(scan.service, context.history)
        place_of = {(c.metric_kind, c.metric, c.kind): i for i, c in enumerate(scan.candidates)}
        gap_s = TOLERANCE_WINDOWS * workload.resolution_s
        for cluster in cluster_by_time(scan.candidates, gap_s):
            distances = None
            if workload.series != "service":
                matrix = stacks_around(self._store, scan, cluster, workload)
                distances = call_distances(index_stacks(matrix))
            for candidate in cluster:
                place = place_of[candidate.metric_kind, candidate.metric, candidate.kind]
                regressed = _holding(distances, candidate)
                stacks = stack_difference(distances.index.matrix, regressed) if distances else ()
                yield place, context.evidence(candidate, distances, regressed, texts), stacks


class _Context:
    """What all candidates of a scan have in common."""

    def __init__(self, store: Store, scan: Scan, workload: Workload, gates: Gates) -> None:
        self._scan, self._workload, self._gates = scan, workload, gates
        rows = store.rows("changes", scan.service, scan.end - HISTORY_S, scan.end)
        self._announced = tuple(change_from_json(row) for row in rows)
        self.history = first_announcements(self._announced)
        self._subjects: dict[tuple[str, float], frozenset[str]] = {}
        self._place = {change.id: i for i, change in enumerate(self.history)}
        asked = sorted({(c.metric_kind, c.metric) for c in scan.candidates})
        span = (scan.service, scan.start, scan.end, workload.resolution_s)
        self._series = store.series(workload.series, *span, asked) if self.history else None
        self._setup = store.series("setup", *span) if self.history else None
        self._rows = rows_of_series(self._series) if self._series else {}

    def evidence(
        self, candidate: Candidate, distances: CallDistances | None, regressed: BoolArray, texts: ChangeTexts
    ) -> Evidence | None:
        """Return the evidence about one candidate; None where no change comes into question."""
        workload, scan = self._workload, self._scan
        earliest = candidate.change_time - DELAYS * workload.lookback_s
        if candidate.kind == "long_term":  # its start is known to a day at best, and the rise takes days
            earliest = min(earliest, scan.start)
        latest = min(candidate.change_time + workload.lookback_s, scan.end)
        changes = candidate_changes(self._announced, latest, lookback_s=latest - earliest, tolerance_s=0.0)
        if not changes or self._series is None or self._setup is None:
            return None
        words = regression_words(
            candidate.metric,
            candidate.metric_kind,
            _risen_frames(distances.index, regressed) if distances else {},
        )
        similarity = texts.similarities(words)
        places = [self._place[change.id] for change in changes]
        row = self._rows.get((candidate.metric_kind, candidate.metric))
        values, weights = _values(self._series, row)
        return Evidence(
            changes=changes,
            deployments=self._deployments(candidate, values, weights, changes, (earliest, latest)),
            attributions=self._attributions(distances, regressed, changes),
            similarity=similarity[places],
            similarity_chance=chances(similarity)[places],
            correlation=self._correlations(candidate, values, weights, self._setup, changes),
        )

    def _deployments(
        self,
        candidate: Candidate,
        values: FloatArray,
        weights: FloatArray,
        changes: Sequence[Change],
        span: tuple[float, float],
    ) -> Deployments:
        """Weigh the times of changes that may have been deployed anywhere in ``span``."""
        scan, step_s, lookback_s = self._scan, self._workload.resolution_s, self._workload.lookback_s
        earliest, latest = span
        # A step is seen best against what lay just before it; a slow rise needs all there is.
        since = earliest - lookback_s if candidate.kind == "short_term" else scan.start
        skipped = max(int((since - scan.start) // step_s), 0)
        ahead = max(-int((earliest - scan.start) // step_s), 0)  # windows before the series begins
        starts = scan.start + np.arange(skipped, len(values)) * step_s
        density = onset_density(
            values[skipped:],
            weights[skipped:],
            (starts > earliest - step_s) & (starts <= latest),
            slow=candidate.kind == "long_term",
        )
        return weigh_deployments(
            np.concatenate([np.zeros(ahead), density]),
            scan.start + (skipped - ahead) * step_s,
            step_s,
            [change.time for change in changes],
            allowed=max(round((latest - earliest) / step_s), 1),
            delay_s=lookback_s,
        )

    def _attributions(
        self, distances: CallDistances | None, regressed: BoolArray, changes: Sequence[Change]
    ) -> tuple[Attribution | None, ...]:
        affected = affected_subroutines(changes, self.history, self._gates, lookback_s=HISTORY_S)
        known = attribute(distances, regressed, affected) if distances else None
        found: list[Attribution | None] = []
        for place, change in enumerate(changes):
            one = None
            if distances and known is not None and not distances.are_definitions(affected[place]):
                one = known[place]
            found.append(NO_PART if one is None and modifies_no_code(change) else one)
        return tuple(found)

    def _correlations(
        self,
        candidate: Candidate,
        values: FloatArray,
        weights: FloatArray,
        setup: SeriesMatrix,
        changes: Sequence[Change],
    ) -> FloatArray:
        """Return the strongest correlation with a set-up metric that each change names; NaN without."""
        since = candidate.change_time - 2 * self._workload.lookback_s
        first = 0
        if candidate.kind == "short_term":
            first = max(int((since - self._scan.start) // self._workload.resolution_s), 0)
        found = np.abs(correlations(values[first:], weights[first:], setup.samples[:, first:]))
        strongest = np.full(len(changes), np.nan)
        moving = [r for r in np.flatnonzero(np.isfinite(found)).tolist() if tells_of_changes(setup.names[r])]
        for place, change in enumerate(changes if moving else ()):
            key = (change.id, change.time)
            if key not in self._subjects:
                self._subjects[key] = subjects_of(change)
            for row in moving:
                if names_metric(self._subjects[key], setup.names[row]):
                    strongest[place] = np.fmax(strongest[place], found[row])
        return strongest


def _holding(distances: CallDistances | None, candidate: Candidate) -> BoolArray:
    """Return which stacks hold a candidate's series: (stacks,)."""
    if distances is None:
        return np.zeros(0, dtype=np.bool_)
    return distances.index.holding([element(candidate.metric_kind, candidate.metric)])


def _values(matrix: SeriesMatrix, row: int | None) -> tuple[FloatArray, FloatArray]:
    """Return a series and the weight of each window, 0 without data: (windows,) both."""
    if row is None:
        nothing = np.zeros(len(matrix.totals))
        return nothing, nothing
    samples = matrix.samples[row]
    known = np.isfinite(samples) & (matrix.totals > 0)
    values = np.divide(samples, matrix.totals, out=np.zeros(len(samples)), where=known)
    return values, np.where(known, matrix.totals, 0.0)


def _risen_frames(index: StackIndex, regressed: BoolArray) -> dict[str, float]:
    """Return by how much of the regression's rise the stacks with each subroutine rose, 0 to 1."""
    rise = np.where(regressed, np.maximum(index.rise, 0.0), 0.0)
    whole = float(rise.sum())
    if whole <= 0:
        return {}
    shares = np.where(index.subroutine, index.sums(rise) / whole, 0.0)
    return {index.names[number]: float(shares[number]) for number in np.flatnonzero(shares > 0).tolist()}
