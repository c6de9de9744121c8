"""Trials as messages of the topic ``trials``, as rows of the store, and verdicts on them as CloudEvents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import orjson
import xxhash

from pipeline.experiments.trials import Choice, ExperimentSide, ExperimentState, MetricDecision, WholeTrial
from pipeline.experiments.trials.choice import Score
from pipeline.experiments.trials.verdict import MetricVerdict
from pipeline.messages import fields
from pipeline.messages.fitting import fitting
from pipeline.messages.inputs import not_ahead
from pipeline.messages.records import check, columns_of, plain, written
from pipeline.messages.schema import trials as shapes
from pipeline.messages.schema.trials import LARGEST, SMALLEST, VERDICT
from pipeline.model import ExperimentEnd, FloatArray, Outgoing, TrialMetric, TrialSide
from pipeline.model.errors import InvalidMessage

METRICS_BYTES = 384 * 1024  # in an event
MACHINES_BYTES = 32 * 1024
RELEASES_BYTES = 16 * 1024  # of each side

_CONTENT_TYPE = (("content-type", b"application/cloudevents+json"),)
_END = "end"
_WORST_FIRST = (MetricDecision.FAIL, MetricDecision.NOT_ENOUGH, MetricDecision.PASS)


def encode_trial(message: TrialSide | ExperimentEnd) -> bytes:
    """Encode one side of a trial, or the end of an experiment; the inverse of decode_trial."""
    texts = {name: value for name, value in plain(message).items() if value and name != "digest"}
    if isinstance(message, ExperimentEnd):
        return orjson.dumps({"kind": _END, **texts})
    texts["metrics"] = {metric.metric: _measured(metric) for metric in message.metrics}
    return orjson.dumps(texts)


def decode_trial(value: bytes | None, *, now: float | None = None) -> TrialSide | ExperimentEnd:
    """Decode and check a message of ``trials``. ``now`` (epoch seconds) bounds its time; None does not.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = fields.parse_object(value, max_depth=None)
    digest = xxhash.xxh3_128_hexdigest(value or b"")
    if check(shapes.OfTrials, raw)["kind"] == _END:
        end = {
            name: raw_field for name, raw_field in check(shapes.ExperimentEnd, raw).items() if name != "kind"
        }
        not_ahead(end["time"], "time", now)
        return ExperimentEnd(**end, digest=digest)
    side = check(shapes.TrialSide, raw)
    not_ahead(side["time"], "time", now)
    metrics = tuple(_metric(name, raw_field) for name, raw_field in sorted(side["metrics"].items()))
    return TrialSide(**{**side, "metrics": metrics}, digest=digest)


def trial_message(message: TrialSide | ExperimentEnd) -> Outgoing:
    """Return the message to send for a trial or an experiment, keyed by service and experiment."""
    return Outgoing("trials", f"{message.service}/{message.experiment}", encode_trial(message))


def side_row(message: TrialSide | ExperimentEnd) -> dict[str, Any]:
    """Return a message as a row of the table ``trials``, without its points."""
    common = {name: getattr(message, name) for name in ("service", "experiment", "time", "digest")}
    common["expected"] = message.trials
    if isinstance(message, ExperimentEnd):
        own = {"trial": "", "side": "", "kind": _END, "release": "", "factors": [], "sequential": 0}
        return {**common, **own, "points": 0}
    return {
        **common,
        **{name: getattr(message, name) for name in ("trial", "side", "kind", "release")},
        "factors": sorted(f"{name}={value}" for name, value in message.factors.items()),
        "sequential": int(message.sequential),
        "points": sum(len(metric.points) for metric in message.metrics),
    }


def side_of_row(row: Mapping[str, Any]) -> ExperimentSide:
    """Return the side of a trial, or the end of an experiment, that a row of ``trials`` holds."""
    own = ("trial", "side", "kind", "time", "digest", "release", "expected", "points")
    texts = tuple(row["factors"])
    return ExperimentSide(
        **{name: row[name] for name in own}, factors=texts, sequential=bool(row["sequential"])
    )


def point_rows(message: TrialSide) -> list[dict[str, Any]]:
    """Return the points of a message as rows of the table ``trial_points``, one row per metric."""
    common = {
        name: getattr(message, name)
        for name in ("service", "experiment", "trial", "side", "kind", "time", "digest")
    }
    own = ("metric", "warm_up", "threshold", "direction")
    return [
        {**common, **{name: getattr(metric, name) for name in own}, "points": metric.points.tolist()}
        for metric in message.metrics
    ]


def metric_of_row(row: Mapping[str, Any]) -> TrialMetric:
    """Return the metric that a row of ``trial_points`` holds."""
    own = {name: row[name] for name in ("metric", "warm_up", "threshold", "direction")}
    return TrialMetric(points=np.asarray(row["points"], dtype=np.float64), **own)


@dataclass(frozen=True, slots=True)
class ExperimentVerdict:
    """The verdict of an experiment, with its revision."""

    standing: ExperimentState
    revision: int
    found: Sequence[MetricVerdict]

    @property
    def decision(self) -> MetricDecision:
        """The worst decision of all metrics; NOT_ENOUGH if the experiment is overdue."""
        if self.standing.overdue:
            return MetricDecision.NOT_ENOUGH
        decisions = {verdict.decision for verdict in self.found} or {MetricDecision.NOT_ENOUGH}
        return next(decision for decision in _WORST_FIRST if decision in decisions)


def verdict_id(standing: ExperimentState) -> str:
    """Derive the id of a verdict from its trials and from whether the experiment is complete."""
    trials = [[side.digest for side in trial.sides] for trial in standing.whole]
    experiment = standing.experiment
    content = [experiment.service, experiment.name, standing.complete, trials]
    return xxhash.xxh3_128_hexdigest(orjson.dumps(content))


def verdict_event(verdict: ExperimentVerdict) -> dict[str, Any]:
    """Return a verdict as a CloudEvent (structured mode)."""
    standing = verdict.standing
    experiment = standing.experiment
    by_severity = sorted(
        verdict.found, key=lambda metric_verdict: _WORST_FIRST.index(metric_verdict.decision)
    )
    data = written(
        shapes.TrialVerdictData,
        service=experiment.service,
        experiment=experiment.name,
        revision=verdict.revision,
        decision=verdict.decision.value,
        complete=standing.complete,
        trials=len(standing.whole),
        expected_trials=standing.expected or None,
        half_trials=standing.half,
        releases_a=_releases(standing.whole, 0),
        releases_b=_releases(standing.whole, 1),
        machines=fitting(_machines(standing.whole), MACHINES_BYTES),
        metrics=fitting([verdict_to_json(metric_verdict) for metric_verdict in by_severity], METRICS_BYTES),
        metrics_size=len(by_severity),
    )
    return written(
        shapes.TrialVerdict,
        specversion="1.0",
        id=verdict_id(standing),
        type=VERDICT,
        source=f"/smidgen/{experiment.service}",
        subject=experiment.name,
        time=standing.last_time,
        datacontenttype="application/json",
        data=data,
    )


def verdict_message(service: str, experiment: str, event: bytes) -> Outgoing:
    """Return an event as a message of ``trial-verdicts``."""
    return Outgoing("trial-verdicts", f"{service}/{experiment}", event, _CONTENT_TYPE)


def verdict_to_json(verdict: MetricVerdict) -> dict[str, Any]:
    """Return the verdict on one metric as an object; an infinite bound is null."""
    bounds = {name: getattr(verdict.bounds, name) for name in ("threshold", "alpha", "direction")}
    figures = ("mean_a", "mean_b", "difference", "low", "high", "p_value")
    # Only trials read from files have them: messages carry neither requests nor covariates.
    own = {"requests": verdict.requests, "covariate": verdict.adjustment}
    return {
        "metric": verdict.metric,
        "decision": verdict.decision.value,
        **bounds,
        **{name: _known(getattr(verdict.measured, name)) for name in figures},
        **{name: getattr(verdict, name) for name in ("model", "trials", "trials_needed")},
        **{name: list(getattr(verdict, name)) for name in ("warm_up", "unsteady")},
        "scores": [_score_to_json(score) for score in (verdict.choice.scores if verdict.choice else ())],
        **{name: plain(extra) for name, extra in own.items() if extra},
    }


def choice_row(
    service: str, verdict: MetricVerdict, choice: Choice, *, trials: int, time: float, former: str
) -> dict[str, Any]:
    """Return the choice of a model for experiments of ``trials`` trials as a row of ``trial_models``."""
    return {
        "service": service,
        "metric": verdict.metric,
        "time": time,
        "trials": trials,
        "threshold": verdict.bounds.threshold,
        "alpha": verdict.bounds.alpha,
        "model": choice.model or "",
        "former": former,
        "experiments": choice.experiments,
        "scores": orjson.dumps([_score_to_json(score) for score in choice.scores]).decode(),
    }


def choice_of_row(row: Mapping[str, Any]) -> Choice:
    """Return the choice that a row of ``trial_models`` holds."""
    scores = tuple(_score_of(raw) for raw in orjson.loads(row["scores"]))
    return Choice(row["model"] or None, scores, int(row["experiments"]))


def verdict_columns(
    verdicts: Iterable[Mapping[str, Any]], state: Literal["decided", "published"]
) -> dict[str, list[Any]]:
    """Return verdicts as columns of the table ``trial_verdicts``, with the state ``state``."""
    return columns_of({**row, "state": state} for row in verdicts)


def _measured(metric: TrialMetric) -> dict[str, Any]:
    own: dict[str, Any] = {"points": metric.points.tolist()}
    if metric.warm_up:
        own["warm_up"] = metric.warm_up
    if metric.threshold:
        own["threshold"] = metric.threshold
    if metric.direction != "up":
        own["direction"] = metric.direction
    return own


def _metric(name: str, raw: Mapping[str, Any]) -> TrialMetric:
    where = f"metrics.{name[:100]}."
    try:
        points = _points(fields.listing(raw, "points"))
    except InvalidMessage as error:
        raise InvalidMessage(f"{where}{error}") from None
    return TrialMetric(metric=name, **{**raw, "points": points})


def _points(values: Sequence[Any]) -> FloatArray:
    if not values:
        raise InvalidMessage("points: empty")
    if not set(map(type, values)) <= {int, float}:  # exactly: numpy would take True for 1
        raise InvalidMessage("points: should be numbers")
    try:
        points = np.array(values, dtype=np.float64)
    except OverflowError:
        points = np.array([np.inf])
    wrong = ~((points == 0) | ((points >= SMALLEST) & (points <= LARGEST)))
    if wrong.any():
        where = f"points[{int(wrong.argmax())}]"
        raise InvalidMessage(f"{where}: should be 0, or from {SMALLEST:g} to {LARGEST:g}")
    return points


def _releases(trials: Sequence[WholeTrial], side: int) -> list[str]:
    return fitting(sorted({trial.sides[side].release for trial in trials} - {""}), RELEASES_BYTES)


def _machines(trials: Sequence[WholeTrial]) -> list[dict[str, Any]]:
    """Return the machines of each side: every combination of factors, with its number of trials."""
    counts: dict[tuple[str, tuple[str, ...]], int] = {}
    for trial in trials:
        for side in trial.sides:
            if side.factors:
                key = (side.side, side.factors)
                counts[key] = counts.get(key, 0) + 1
    return [
        {"side": side, "factors": dict(factor.split("=", 1) for factor in factors), "trials": count}
        for (side, factors), count in sorted(counts.items())
    ]


def _score_to_json(score: Score) -> dict[str, Any]:
    return {**plain(score), "detectability": _known(score.detectability)}


def _score_of(raw: Mapping[str, Any]) -> Score:
    detectability = raw["detectability"]
    return Score(**{**raw, "detectability": math.inf if detectability is None else detectability})


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None
