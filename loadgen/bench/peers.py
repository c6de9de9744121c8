"""`smidgen detect` beside its peers, each with its defaults, on the same series and machine in one run.

The two measures usual in comparisons of such detectors: F1 with a margin of five points, in which the start
of the series counts as a change that everybody finds, so that a steady series has an F1, too (van den Burg
and Williams 2020, with one annotator); and the covering of the true segments (Arbelaez et al., TPAMI 2011).
A false alarm is a series without any change in which one is reported.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from loadgen.bench.zoo import FAMILIES, Changes, draw
from loadgen.harness import BenchResult, offsets_of
from pipeline.analysis.detect.offline.segment import segment
from pipeline.model import FloatArray

MARGIN = 5
LENGTHS = (40, 120, 400)
SEEDS = 3
FIRST_SEED = 5000  # seed of series on which no setting was chosen; their families were
TIMED_POINTS = 500
PATIENCE_S = 5.0  # of timing one detector

Detect = Callable[[FloatArray], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Peer:
    """A detector with its defaults: a function that makes it from its module, and the module's source."""

    name: str
    module: str
    install: str  # argument of pip
    make: Callable[[Any], Detect]


def f1_score(truth: Changes, found: Sequence[int], *, margin: int = MARGIN) -> float:
    """Return the F1 of the reported changes, the start included; a report matches at most one change."""
    hits = len(offsets_of((0, *truth), (0, *found), margin))
    return 2 * hits / (len(truth) + len(found) + 2)


def covering(truth: Changes, found: Sequence[int], points: int) -> float:
    """Return the mean overlap (Jaccard) of true segments with their best reported one, weighted by points."""
    real, seen = ((0, *sorted(changes), points) for changes in (truth, found))
    covered = 0.0
    for first, end in zip(real, real[1:], strict=False):
        shares = [
            max(0, min(end, b) - max(first, a)) / (max(end, b) - min(first, a))
            for a, b in zip(seen, seen[1:], strict=False)
        ]
        covered += (end - first) * max(shares)
    return covered / points


def _smidgen(_: Any) -> Detect:
    return lambda values: [change.index for change in segment(values)]


def _penalised(search: str) -> Callable[[Any], Detect]:
    """Return a search of ruptures for changes of level under Schwarz's criterion; it has no default penalty.

    Two parameters a change; the noise variance comes from the median difference of neighbours.
    """

    def make(ruptures: Any) -> Detect:
        def detect(values: FloatArray) -> Sequence[int]:
            spread = float(np.median(np.abs(np.diff(values)))) / 0.6745
            variance = spread**2 / 2 or float(np.var(np.diff(values))) / 2
            if search == "KernelCPD":
                algorithm = ruptures.KernelCPD(kernel="linear", min_size=2, jump=1)
            else:
                algorithm = getattr(ruptures, search)(model="l2", min_size=2, jump=1)
            penalty = 2 * variance * float(np.log(len(values))) or 1e-9
            changes: list[int] = algorithm.fit(values).predict(pen=penalty)
            return changes[:-1]

        return detect

    return make


def _otava(analysis: Any) -> Detect:
    def detect(values: FloatArray) -> Sequence[int]:
        try:
            changes, _ = analysis.compute_change_points(values)
        except ValueError:  # version 0.8 splits some series, such as constant ones, into empty parts
            return []
        return [int(change.index) for change in changes]

    return detect


PEERS = (
    Peer("smidgen detect", "pipeline.analysis.detect.offline.segment", "smidgen", _smidgen),
    Peer("ruptures PELT, BIC", "ruptures", "ruptures", _penalised("Pelt")),
    Peer("ruptures Binseg, BIC", "ruptures", "ruptures", _penalised("Binseg")),
    Peer("ruptures KernelCPD, BIC", "ruptures", "ruptures", _penalised("KernelCPD")),
    Peer("Apache Otava", "otava.analysis", "apache-otava", _otava),
)


def measure_peers(advance: Callable[[], None]) -> list[BenchResult]:
    """Measure each installed detector; a line on standard error names each that is missing.

    Args:
        advance: Called after each detector, measured or missing.
    """
    results = []
    for peer in PEERS:
        try:
            module = importlib.import_module(peer.module)
        except ImportError as missing:
            click.echo(f"{peer.name} is left out ({missing}): pip install {peer.install}", err=True)
        else:
            results.append(measure(peer.name, peer.make(module)))
        advance()
    return results


def measure(
    name: str,
    detect: Detect,
    *,
    families: Sequence[str] = tuple(FAMILIES),
    lengths: Sequence[int] = LENGTHS,
    seeds: int = SEEDS,
    patience_s: float = PATIENCE_S,
) -> BenchResult:
    """Return percentages of F1, covering and false alarms over the zoo, and series of 500 points a second."""
    scores, covers, alarms = [], [], []
    for family in families:
        for points in lengths:
            for seed in range(seeds):
                specimen = draw(family, points, FIRST_SEED + seed)
                changes = detect(specimen.values)
                scores.append(f1_score(specimen.changes, changes))
                covers.append(covering(specimen.changes, changes, points))
                if not specimen.changes:
                    alarms.append(bool(changes))
    figures = {
        "% F1": 100 * float(np.mean(scores)),
        "% covering": 100 * float(np.mean(covers)),
        "% false alarms": 100 * float(np.mean(alarms)) if alarms else float("nan"),
        "series/s": _series_a_second(detect, families, patience_s),
    }
    return BenchResult(
        name, figures, {"series": float(len(scores)), "seeds": float(seeds), "points": float(TIMED_POINTS)}
    )


def _series_a_second(detect: Detect, families: Sequence[str], patience_s: float) -> float:
    """Return the series per second of processor time over the families in turn; at least one series."""
    done = 0
    series = [draw(family, TIMED_POINTS, seed=1000).values for family in families]
    began = time.process_time()
    for values in series * 5:
        detect(values)
        done += 1
        if time.process_time() - began > patience_s:
            break
    return done / (time.process_time() - began)
