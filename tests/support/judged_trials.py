"""Experiments that judge has decided, in a store, for the pages of trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.experiments.trials import MODELS
from pipeline.messages.trials import decode_trial, encode_trial
from pipeline.model import ExperimentEnd, Record, TrialMetric, TrialSide
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S
from pipeline.stages.judge import JudgeStage
from pipeline.storage.interface import Store

FACTORS = ({"type": "m5.large", "kernel": "6.1"}, {"type": "m5.large", "kernel": "6.5"})

AA_TRIALS = 240
"""Enough for 20 experiments of six trials, and a history beside them."""


def trials_of(
    service: str,
    experiment: str,
    start: float,
    trials: int,
    *,
    slower: float = 0.0,
    seed: int = 1,
    **own: Any,
) -> list[TrialSide]:
    """Return both sides of each trial, a trial a minute, with a warm-up.

    Side B of ``cpu`` is slower by a share; ``latency_ms`` has no difference and a long tail.
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for number in range(trials):
        for side, factor in (("A", 1.0), ("B", 1.0 + slower)):
            points = rng.normal(100.0, 1.0, 40) * factor * rng.normal(1.0, 0.002)
            points[:5] *= np.linspace(1.4, 1.05, 5)
            tail = rng.lognormal(3.0, 0.4, 40)
            metrics = (TrialMetric("cpu", points, threshold=0.02), TrialMetric("latency_ms", tail, 2))
            machine = FACTORS[int(rng.integers(2))]
            name, time = f"t{number:03}", start + MINUTE_S * number
            drawn.append(
                TrialSide(
                    service,
                    experiment,
                    name,
                    side,  # type: ignore[arg-type]
                    own.get("kind", "A/B"),
                    time,
                    metrics,
                    release=f"r{side}",
                    factors=machine,
                    trials=own.get("expected", 0),
                )
            )
    return drawn


def judge_experiments(store: Store, end: float, service: str = "shop") -> None:
    """Judge changes: slower, harmless, with too few trials, with a revision, and unfinished.

    A/A trials come first, and again a day later, so that models are chosen twice. Times end before ``end``.
    """
    stage = JudgeStage(store=store, clock=lambda: end, models=MODELS)
    start = end - 2 * DAY_S
    for day in range(2):
        same = f"same-{day}"
        begin = start + day * 1.2 * DAY_S
        _take(stage, trials_of(service, same, begin, AA_TRIALS, kind="A/A", seed=10 + day))
        _take(
            stage, trials_of(service, f"pr-{day}", begin + 5 * HOUR_S, 6, slower=0.05, seed=day, expected=6)
        )
    _take(stage, trials_of(service, "feature/harmless", end - 10 * HOUR_S, 6, seed=4, expected=6))
    _take(stage, trials_of(service, "short", end - 9 * HOUR_S, 2, seed=5, expected=2))
    _take(stage, trials_of(service, "pr-1", end - 8 * HOUR_S, 8, slower=0.05, seed=6, expected=6))
    _take(stage, trials_of("search", "pr-0", end - 7 * HOUR_S, 6, seed=7, expected=6))
    _take(stage, trials_of(service, "pr-9", end - HOUR_S, 3, seed=8, expected=12))


def _take(stage: JudgeStage, messages: Sequence[TrialSide | ExperimentEnd]) -> None:
    stage.handle(
        [
            Record("trials", 0, offset, decode_trial(encode_trial(trial)))
            for offset, trial in enumerate(messages)
        ]
    )
    stage.settled()
