"""``smidgen trial publish``: sends the trials of a file to a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click
import numpy as np

from pipeline.commands.options import Moment, settings_options
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


@click.command(epilog=_EXAMPLES)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--service", required=True, metavar="NAME", help="Whose code is tried.")
@click.option("--experiment", required=True, metavar="NAME", help="Its name, such as the change.")
@click.option("--same-code", is_flag=True, help="A/A trials, by which models are chosen: one code.")
@click.option("--release-a", default="", metavar="NAME", help="What side A ran.")
@click.option("--release-b", default="", metavar="NAME", help="What side B ran.")
@click.option("--factor", "factors", type=Pair(), multiple=True, help="Of the machine. May be repeated.")
@click.option(
    "--metric-threshold", type=METRIC_THRESHOLD, multiple=True, help="That of a metric, instead of 0.01."
)
@click.option("--worse-down", multiple=True, metavar="METRIC", help="Less of it is worse, as of throughput.")
@click.option("--time", type=Moment(), metavar="TIME", help="When the last trial ended (default: now).")
@click.option("--more", is_flag=True, help="More trials follow: do not end the experiment.")
@click.option("--sequential", is_flag=True, help="Judge after every trial, and end once it is decided.")
@settings_options("broker", "topics", "idempotent_producer", "log_level")
def publish(
    settings: Settings,
    path: Path,
    service: str,
    experiment: str,
    time: float | None,
    more: bool,
    metric_threshold: tuple[tuple[str, float], ...],
    worse_down: tuple[str, ...],
    **options: Any,
) -> None:
    """Send the trials of FILE to `smidgen worker judge`, and that the experiment has ended.

    FILE is as that of `smidgen trial verdict`. Sending it twice changes nothing but the time of its trials.
    """
    metrics = read_named_trials(path)
    check_known((*dict(metric_threshold), *worse_down), metrics, path)
    now = system_clock()
    end = now if time is None else time
    meant = {name: (dict(metric_threshold).get(name, 0.0), name in worse_down) for name in metrics}
    sides = _sides(metrics, meant, end, {"service": service, "experiment": experiment, **options})
    messages: list[TrialSide | ExperimentEnd] = [*sides]
    if not more:
        messages.append(ExperimentEnd(service, experiment, end, len(sides) // 2))
    try:
        for message in messages:
            decode_trial(encode_trial(message), now=now)
    except InvalidMessage as error:
        raise ConfigError(str(error)) from None
    _send([trial_message(message) for message in messages], settings)
    ending = "" if more else ", and its end"
    click.echo(f"{len(sides) // 2} trials of {escape_controls(experiment)} sent{ending}")


def _sides(
    metrics: dict[str, NamedTrials],
    meant: dict[str, tuple[float, bool]],
    end: float,
    options: dict[str, Any],
) -> list[TrialSide]:
    """Return both sides of every trial of a file, in its order."""
    names = list(dict.fromkeys(trial for points in metrics.values() for trial in points.trials))
    rows = {name: {trial: row for row, trial in enumerate(points.trials)} for name, points in metrics.items()}
    points = []
    for number, trial in enumerate(names):
        for side in get_args(SideName):
            measured = tuple(
                TrialMetric(
                    name,
                    _points(metric_points, side, rows[name][trial]),
                    threshold=meant[name][0],
                    direction="down" if meant[name][1] else "up",
                )
                for name, metric_points in metrics.items()
                if trial in rows[name]
            )
            points.append(
                TrialSide(
                    service=options["service"],
                    experiment=options["experiment"],
                    trial=trial,
                    side=side,
                    kind="A/A" if options["same_code"] else "A/B",
                    time=end - _STEP_S * (len(names) - 1 - number),
                    metrics=measured,
                    release=options["release_a" if side == "A" else "release_b"],
                    factors=dict(options["factors"]),
                    sequential=options["sequential"],
                )
            )
    return points


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
