"""Worth of verdicts: precision and suspects before and after them, where the truth is known.

Simulated fleets are backtested, and their truth answers every event. The first answers teach thresholds and
weights of evidence; the other answers are held out to measure these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.evaluation.matching import Tolerances, match, tolerance_s
from loadgen.evaluation.reading import events_from_json, truth_from_json
from loadgen.fleet.scenario import load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.analysis.feedback import (
    AnsweredEvent,
    Confirmation,
    Reported,
    Share,
    ThresholdConfig,
    learn_ranking,
    propose_thresholds,
)
from pipeline.analysis.feedback.thresholds import Measure, size_of
from pipeline.analysis.rootcause import FEATURES, RankingConfig, confidences, weights_of
from pipeline.backtest.run import run_backtest
from pipeline.messages.events import DETECTED
from pipeline.model import FloatArray
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.verdicts import evidence_of

CHANGES = 8
"""Changes that were deployed before a drawn regression; one of them did it."""

STRONG = 3.0
"""Mean evidence for the true change in nats, where evidence is informative."""

_DRAWN = ("deployment", "attribution", "rank", "text")


@dataclass(frozen=True, slots=True)
class AnsweredSimulation:
    """An event of a simulated fleet with the verdict that its truth gives."""

    judged: AnsweredEvent
    confirmation: Confirmation | None  # where a change caused it


@dataclass(frozen=True, slots=True)
class Lesson:
    """Effect of the learnt answers on held-out events."""

    answers: int
    precision: tuple[Share, Share]  # before and after
    kept: Share  # right events that pass the learnt thresholds
    first: tuple[Share, Share]  # share with the true change first among the suspects named
    thresholds: Mapping[str, float]  # proposed, by workload


def answer_fleet(scenario: str, seed: int, workloads: Sequence[Workload]) -> list[AnsweredSimulation]:
    """Backtest a simulated fleet and answer each of its events; repeated events count as duplicates."""
    dataset = simulate(load_scenario(scenario), seed).dataset
    backtest = run_backtest(dataset, workloads)
    tolerances = Tolerances({workload.name: tolerance_s(workload) for workload in workloads})
    raw = {event["id"]: event for event in backtest.events if event["type"] == DETECTED}
    matching = match(truth_from_json(dataset.truth), events_from_json(backtest.events), tolerances)
    answered = []
    for judged in matching.judged:
        if judged.outcome == "allowed":
            continue
        event, right = judged.event, judged.outcome == "true_positive"
        reported = Reported(
            id=f"{scenario}-{seed}-{event.id}",
            service="fleet",
            workload=event.workload,
            metric_kind="subroutine",
            metric=event.metric,
            change_time=event.change_time,
            detected_time=event.detected_time,
            before=event.before,
            after=event.after,
        )
        evidence = evidence_of(raw[event.id])
        caused = judged.truth.change if right and judged.truth else None
        confirmation = Confirmation(evidence, caused) if caused and evidence else None
        answered.append(AnsweredSimulation(AnsweredEvent(reported, right, (), event.p_value), confirmation))
    return answered


def learn(
    answered: Sequence[AnsweredSimulation], workloads: Sequence[Workload], teach: int, keep: float = 1.0
) -> Lesson:
    """Learn from the first answers and measure on the others.

    Args:
        answered: Events in the order in which they are answered.
        workloads: Workloads that reported the events.
        teach: Number of answers, the first ones, to learn from.
        keep: Least share of right events that a proposed threshold keeps.
    """
    taught, held = answered[:teach], answered[teach:]
    present = {item.name: _threshold(item) for item in workloads}
    proposals = propose_thresholds([item.judged for item in taught], present, ThresholdConfig(keep=keep))
    bounds = {item.workload: item.proposed for item in proposals if item.proposed is not None}

    def passes(item: AnsweredSimulation) -> bool:
        reported = item.judged.reported
        return size_of(reported, present[reported.workload][0]) >= bounds.get(reported.workload, 0.0)

    passed = [item for item in held if passes(item)]
    right = [item for item in held if item.judged.right]
    shipped = RankingConfig()
    learnt = learn_ranking(shipped, [item.confirmation for item in taught if item.confirmation])
    causes = [item.confirmation for item in held if item.confirmation]
    return Lesson(
        answers=len(taught),
        precision=(_precision(held), _precision(passed)),
        kept=Share(sum(map(passes, right)), len(right)),
        first=(_first(causes, shipped), _first(causes, learnt)),
        thresholds=bounds,
    )


def draw_confirmations(rng: np.random.Generator, events: int, silent: str = "") -> list[Confirmation]:
    """Draw regressions of an organisation, with the evidence on every change deployed before each.

    Evidence on the other changes is random: minus the logarithm of a uniform number.

    Args:
        rng: Random numbers.
        events: Number of regressions.
        silent: Weight whose evidence is random for the true change, too, such as ``text`` if titles are
            ticket numbers; empty if all evidence is informative.
    """
    confirmations = []
    for _ in range(events):
        table = rng.exponential(1.0, (CHANGES, len(_DRAWN)))
        means = [1.0 if name == silent else STRONG for name in _DRAWN]
        table[0] = rng.exponential(means)
        evidence = {
            f"c{number}": dict(zip(_DRAWN, row.tolist(), strict=True)) for number, row in enumerate(table)
        }
        confirmations.append(Confirmation(evidence, "c0"))
    return confirmations


def first_by_confirmations(
    seeds: Iterable[int], counts: Sequence[int], silent: str = "", held: int = 1000
) -> dict[int, list[float]]:
    """Return the share of first-ranked true changes after each number of confirmations, one share a seed.

    A confirmation has evidence on the changes that the shipped weights would have named: at most three.
    """
    shares: dict[int, list[float]] = {count: [] for count in counts}
    for seed in seeds:
        rng = np.random.default_rng([seed, 20])
        taught = list(map(_named, draw_confirmations(rng, max(counts), silent)))
        tests = draw_confirmations(rng, held, silent)
        for count in counts:
            config = learn_ranking(RankingConfig(), taught[:count])
            shares[count].append(_first(tests, config).share)
    return shares


def _named(confirmation: Confirmation) -> Confirmation:
    """Return the confirmation with evidence only on the changes that an event would name."""
    config = RankingConfig()
    confidence = confidences(_table(confirmation), weights_of(config))
    names = [list(confirmation.evidence)[index] for index in np.argsort(-confidence)[: config.most]]
    return Confirmation({name: confirmation.evidence[name] for name in names}, confirmation.cause)


def _first(causes: Sequence[Confirmation], config: RankingConfig) -> Share:
    """Return how often the true change has the highest confidence of those with evidence."""
    weights = weights_of(config)
    hits = sum(
        list(confirmation.evidence)[int(np.argmax(confidences(_table(confirmation), weights)))]
        == confirmation.cause
        for confirmation in causes
    )
    return Share(hits, len(causes))


def _table(confirmation: Confirmation) -> FloatArray:
    rows = [
        [1.0 if name == "base" else row.get(name, 0.0) for name in FEATURES]
        for row in confirmation.evidence.values()
    ]
    return np.array(rows)


def _precision(answered: Sequence[AnsweredSimulation]) -> Share:
    return Share(sum(answer.judged.right for answer in answered), len(answered))


def _threshold(workload: Workload) -> tuple[Measure, float]:
    threshold: Any = workload.threshold
    return (
        ("absolute", threshold.absolute)
        if threshold.absolute is not None
        else ("relative", threshold.relative)
    )
