"""judge: trials before a release in, verdicts on experiments out.

Trials are stored under their identity and a digest of their message: a repeated one changes nothing, and
their order does not matter. A verdict is decided from the store once an experiment is complete or overdue,
by the event time of later trials, or by the clock if none come. It is stored before it is published, under
an id derived from its trials, and noted as published afterwards. So after a crash the same verdict is
published; it is published twice only if the crash falls between publishing and noting.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.counting.quota.limits import Quotas
from pipeline.counting.quota.trials import Sent, admit_trials
from pipeline.experiments.trials import (
    Experiment,
    ExperimentState,
    MetricDecision,
    MetricVerdict,
    Model,
    ModelConfig,
    judge_trials,
    standing_of,
)
from pipeline.experiments.trials.experiment import OVERDUE_S
from pipeline.experiments.trials.verdict import with_marked
from pipeline.messages.events import encode_event
from pipeline.messages.records import columns_of
from pipeline.messages.trials import (
    ExperimentVerdict,
    choice_row,
    decode_trial,
    point_rows,
    side_row,
    verdict_columns,
    verdict_event,
    verdict_id,
    verdict_message,
)
from pipeline.model import ExperimentEnd, Outgoing, Record, TrialSide
from pipeline.model.clock import Clock
from pipeline.model.units import MINUTE_S
from pipeline.stages.abilities import Counted, Periodic, Skipping
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.trials import (
    ExperimentEvidence,
    gather_evidence,
    gather_experiments,
    gather_verdicts,
)
from pipeline.stages.quota_report import QuotaReport
from pipeline.storage.interface import RowQuery, Store
from pipeline.telemetry.metrics import LIMITED_TRIALS, REFUSED, TRIAL_VERDICTS, Sample

IDLE_S = 10 * MINUTE_S
"""Seconds between searches for overdue experiments; a service without new trials in between is quiet."""

POINTS_AT_ONCE = 2_000_000
"""Most points in one INSERT, unless one message has more."""

Message = TrialSide | ExperimentEnd
Row = Mapping[str, Any]


class JudgeStage(Stage, Skipping, Periodic, Counted):
    """The stage that stores trials, and judges experiments that are complete or overdue."""

    name = "judge"
    limits = LIMITED_TRIALS
    idle_s = IDLE_S

    def __init__(
        self, *, store: Store, clock: Clock, models: Mapping[str, Model], quotas: Quotas | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._models = models
        self._quotas = quotas or Quotas()
        self._report = QuotaReport(clock)
        self._refused: dict[str, Counter[str]] = {}
        self._unpublished: list[Row] = []
        self._quiet: dict[str, float] = {}  # service → time of its last trial, at the last search
        self._closed: dict[
            str, float
        ] = {}  # service → that time, once all verdicts overdue by then are published
        self._closing: dict[str, float] = {}
        self._decisions = Counter(dict.fromkeys(MetricDecision, 0))
        self.limited: Counter[str] = Counter()
        self.inputs: Mapping[str, Decoder] = {"trials": lambda value: decode_trial(value, now=clock())}

    def samples(self) -> list[Sample]:
        """Return the number of verdicts by decision."""
        stage = {"stage": self.name}
        return [
            (TRIAL_VERDICTS, {**stage, "decision": decision.value.replace(" ", "_")}, float(count))
            for decision, count in self._decisions.copy().items()
        ]

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Store the new trials of a batch and return the verdicts that are due for its services."""
        self._unpublished = []
        by_service: dict[str, list[Message]] = defaultdict(list)
        for record in batch:
            by_service[record.payload.service].append(record.payload)
        for service, messages in by_service.items():
            self._take(service, messages)
            self._unpublished += self._due(service)
        self._report.move(self._refused, self.limited)
        return self._messages()

    def idle(self) -> list[Outgoing]:
        """Return the verdicts on experiments of quiet services that are overdue by the clock."""
        self._unpublished, self._closing = [], {}
        now = self._clock()
        latest: dict[str, float] = {}
        for row in self._store.rows(RowQuery("trials", None, columns=("service",))):
            latest[row["service"]] = max(row["time"], latest.get(row["service"], row["time"]))
        quiet = {service for service, time in latest.items() if self._quiet.get(service) == time}
        self._quiet = latest
        for service in sorted(quiet):
            time = latest[service]
            if now - time >= OVERDUE_S and self._closed.get(service) != time:
                self._unpublished += self._due(service, now)
                self._closing[service] = time
        return self._messages()

    def _messages(self) -> list[Outgoing]:
        return [
            verdict_message(row["service"], row["experiment"], row["event"].encode())
            for row in self._unpublished
        ]

    def settled(self) -> None:
        """Note the published verdicts."""
        if self._unpublished:
            self._store.insert("trial_verdicts", verdict_columns(self._unpublished, "published"))
            self._decisions.update(MetricDecision(row["decision"]) for row in self._unpublished)
        self._closed |= self._closing
        self._unpublished, self._closing = [], {}

    def _take(self, service: str, messages: Sequence[Message]) -> None:
        """Store new messages of a service within its quota: points first, then the rows that use them."""
        stored = [
            Sent(experiment.name, side.time, side.points, side.digest)
            for experiment in gather_experiments(self._store, service)
            for side in experiment.sides
        ]
        quota = self._quotas.of(service)
        admitted, refused = admit_trials([(_sent(message), message) for message in messages], stored, quota)
        if refused:
            self._refused.setdefault(service, Counter())[REFUSED] += refused
        for rows in _blocks(message for message in admitted if isinstance(message, TrialSide)):
            self._store.insert("trial_points", columns_of(rows))
        if admitted:
            self._store.insert("trials", columns_of(map(side_row, admitted)))

    def _due(self, service: str, now: float = 0.0) -> list[Row]:
        """Return the unpublished verdicts of a service; new ones are decided and stored.

        The time is that of the service's last trial, or ``now`` if that is later.
        """
        experiments = gather_experiments(self._store, service)
        verdicts = gather_verdicts(self._store, service)
        states = {(row["id"], row["state"]): row for row in verdicts}
        now = max([now, *(side.time for one in experiments for side in one.sides)])
        due: list[Row] = []
        for standing in (standing_of(experiment, now) for experiment in experiments):
            event_id = verdict_id(standing)
            if not _is_due(standing) or (event_id, "published") in states:
                continue
            row: Row | None = states.get((event_id, "decided"))
            if row is None:
                ids = {row["id"] for row in verdicts if row["experiment"] == standing.experiment.name}
                row = self._decided(standing, experiments, len(ids) + 1)
            if row is not None:
                due.append(row)
        return due

    def _decided(
        self, standing: ExperimentState, experiments: Sequence[Experiment], revision: int
    ) -> Row | None:
        """Decide on an experiment and store the verdict; None if the experiment goes on undecided."""
        evidence = gather_evidence(self._store, standing, experiments, self._models)
        metric_verdicts = decide(evidence, self._models)
        verdict = ExperimentVerdict(standing, revision, metric_verdicts)
        if verdict.decision is MetricDecision.NOT_ENOUGH and not (standing.complete or standing.overdue):
            return None
        if choices := _choice_rows(evidence, metric_verdicts):
            self._store.insert("trial_models", columns_of(choices))
        event = verdict_event(verdict)
        row = {
            "id": event["id"],
            "service": standing.experiment.service,
            "experiment": standing.experiment.name,
            "time": standing.last_time,
            "revision": revision,
            "decision": verdict.decision.value,
            "event": encode_event(event).decode(),
        }
        self._store.insert("trial_verdicts", verdict_columns([row], "decided"))
        return row


def decide(evidence: ExperimentEvidence, models: Mapping[str, Model]) -> list[MetricVerdict]:
    """Return the verdict on each metric of an experiment."""
    standing = evidence.standing
    config = ModelConfig(models, sequential=standing.sequential, kept=evidence.kept, missed=evidence.missed)
    verdicts = judge_trials(evidence.metrics, evidence.bounds, evidence.history, config)
    return [
        with_marked(metric_verdict, evidence.marked[metric_verdict.metric]) for metric_verdict in verdicts
    ]


def _is_due(standing: ExperimentState) -> bool:
    """Return whether an experiment is to be judged; A/A trials only serve as history."""
    looked_at = standing.sequential and bool(standing.whole)
    return standing.kind == "A/B" and (standing.complete or standing.overdue or looked_at)


def _choice_rows(evidence: ExperimentEvidence, verdicts: Sequence[MetricVerdict]) -> list[dict[str, Any]]:
    """Return the new choices of models as rows."""
    standing = evidence.standing
    return [
        choice_row(
            standing.experiment.service,
            verdict,
            verdict.choice,
            trials=len(evidence.marked[verdict.metric]),
            time=standing.last_time,
            former=evidence.former.get(verdict.metric, ""),
        )
        for verdict in verdicts
        if verdict.choice and verdict.metric not in evidence.kept
    ]


def _sent(message: Message) -> Sent:
    points = sum(len(metric.points) for metric in message.metrics) if isinstance(message, TrialSide) else 0
    return Sent(message.experiment, message.time, points, message.digest)


def _blocks(sides: Iterable[TrialSide]) -> Iterable[list[dict[str, Any]]]:
    """Return the points of sides in blocks for one INSERT each."""
    rows: list[dict[str, Any]] = []
    points = 0
    for side in sides:
        own = _sent(side).points
        if rows and points + own > POINTS_AT_ONCE:
            yield rows
            rows, points = [], 0
        rows += point_rows(side)
        points += own
    if rows:
        yield rows
