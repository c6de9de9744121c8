"""``smidgen trial publish``: sends the trials of a file to a judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click
import numpy as np

from pipeline.commands.options import settings_options
from pipeline.commands.request import Moment, argument, option, takes
from pipeline.commands.terminal import escape_controls
from pipeline.commands.trial.options import METRIC_THRESHOLD, Pair, check_known
from pipeline.commands.trial.reading import NamedTrials, read_named_trials
from pipeline.messages.trials import decode_trial, encode_trial, trial_message
from pipeline.model import ExperimentEnd, FloatArray, Outgoing, SideName, TrialMetric, TrialSide
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.settings.config import Settings

_EXAMPLES = """\b
Examples:
  smidgen trial publish trials.csv --service shop --experiment pr-1234 --release-a 3f2a --release-b 9bc1
  smidgen trial publish aa-trials.csv --service shop --experiment aa-2026-11-25 --same-code
"""

_STEP_S = 0.001
"""Seconds between the ends of a file's trials: the store keeps milliseconds."""


@dataclass(frozen=True, slots=True)
class _PublishRequest:
    path: Path = argument(metavar="FILE")
    service: str = option(metavar="NAME", help="Service whose code is tried.")
    experiment: str = option(metavar="NAME", help="Name of the experiment, such as the change.")
    same_code: bool = option(help="Both sides ran the same code: A/A trials, by which models are chosen.")
    release_a: str = option("", metavar="NAME", help="Release that side A ran.")
    release_b: str = option("", metavar="NAME", help="Release that side B ran.")
    factors: tuple[tuple[str, str], ...] = option(
        flag="--factor", kind=Pair(), help="Property of the machine."
    )
    metric_threshold: tuple[tuple[str, float], ...] = option(
        kind=METRIC_THRESHOLD, help="Threshold of a metric, instead of 0.01."
    )
    worse_down: tuple[str, ...] = option(
        metavar="METRIC", help="Metric that is worse when it is lower, such as throughput."
    )
    time: float | None = option(kind=Moment(), help="Time at which the last trial ended (default: now).")
    more: bool = option(help="Leave the experiment open: more trials follow.")
    sequential: bool = option(help="Judge after every trial, and end once it is decided.")


@click.command(epilog=_EXAMPLES)
@takes
def publish(
    request: _PublishRequest,
    settings: Settings = settings_options("broker", "topics", "idempotent_producer", "log_level"),
) -> None:
    """Send the trials of FILE to `smidgen worker judge`, and that the experiment has ended.

    FILE is as that of `smidgen trial verdict`. Sending it twice changes nothing but the time of its trials.
    """
    metrics = read_named_trials(request.path)
    check_known((*dict(request.metric_threshold), *request.worse_down), metrics, request.path)
    now = system_clock()
    end = now if request.time is None else request.time
    sides = _sides(request, metrics, end)
    messages: list[TrialSide | ExperimentEnd] = [*sides]
    if not request.more:
        messages.append(ExperimentEnd(request.service, request.experiment, end, len(sides) // 2))
    try:
        for message in messages:
            decode_trial(encode_trial(message), now=now)
    except InvalidMessage as error:
        raise ConfigError(str(error)) from None
    _send([trial_message(message) for message in messages], settings)
    ending = "" if request.more else ", and its end"
    click.echo(f"{len(sides) // 2} trials of {escape_controls(request.experiment)} sent{ending}")


def _sides(request: _PublishRequest, metrics: dict[str, NamedTrials], end: float) -> list[TrialSide]:
    """Return both sides of every trial of a file, in its order."""
    names = list(dict.fromkeys(trial for points in metrics.values() for trial in points.trials))
    rows = {name: {trial: row for row, trial in enumerate(points.trials)} for name, points in metrics.items()}
    thresholds = dict(request.metric_threshold)
    sides = []
    for number, trial in enumerate(names):
        for side in get_args(SideName):
            measured = tuple(
                TrialMetric(
                    name,
                    _points(points, side, rows[name][trial]),
                    threshold=thresholds.get(name, 0.0),
                    direction="down" if name in request.worse_down else "up",
                )
                for name, points in metrics.items()
                if trial in rows[name]
            )
            sides.append(
                TrialSide(
                    service=request.service,
                    experiment=request.experiment,
                    trial=trial,
                    side=side,
                    kind="A/A" if request.same_code else "A/B",
                    time=end - _STEP_S * (len(names) - 1 - number),
                    metrics=measured,
                    release=request.release_a if side == "A" else request.release_b,
                    factors=dict(request.factors),
                    sequential=request.sequential,
                )
            )
    return sides


def _points(named_trials: NamedTrials, side: str, row: int) -> FloatArray:
    points = (named_trials.sides.a if side == "A" else named_trials.sides.b)[row]
    result: FloatArray = points[~np.isnan(points)]
    return result


def _send(messages: list[Outgoing], settings: Settings) -> None:
    """Send messages in order and wait for all replicas."""
    import asyncio

    from pipeline.kafka import Broker
    from pipeline.kafka.producer import Producer, ProducerOptions

    async def send() -> None:
        options = ProducerOptions(settings.idempotent_producer, "smidgen-trials")
        producer = await Producer.open(Broker.of(settings), settings.read_topics(), options)
        try:
            for message in messages:
                await producer.send(message)
        finally:
            await producer.close()

    asyncio.run(send())
