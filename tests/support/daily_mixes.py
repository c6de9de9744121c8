"""Services whose groups of endpoints have daily cycles of their own, with regressions that changes caused.

``python -m tests.support.daily_mixes --seeds 1-6`` prints how often the true change is the first suspect.
Stacks are drawn, or those of a collapsed file (``--profile``): each endpoint runs a part of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.profiles.formats.collapsed import parse_collapsed
from pipeline.analysis.rootcause import find_causes
from pipeline.backtest.dataset import Dataset
from pipeline.model import Candidate, Change, FloatArray, Scan
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import Workload, load_workloads
from pipeline.stages.gather.changes import recent_changes
from pipeline.stages.gather.suspects import CauseEvidence, cause_config
from pipeline.storage.arrays import ArrayStore

Stack = tuple[str, ...]

WINDOW_S = 600.0
START = 1_700_006_400.0  # a midnight
DAYS = 13
REGRESSED_DAYS = 2.5  # at the end


@dataclass(frozen=True, slots=True)
class Mixes:
    """Settings of the drawn services."""

    endpoints: int = 12
    groups: int = 4
    amplitude: float = 0.25  # largest factor of a group's cycle; the smallest is half of it
    restless: float = 0.02  # relative difference of a group's share between days
    samples: float = 60_000.0  # in a window
    regressions: int = 8
    errors: float = 9.0  # size of a regression in standard errors of six hours
    changes_a_day: int = 25


@dataclass(frozen=True, slots=True)
class Truth:
    """One regression, and the change that caused it."""

    subroutine: str
    time: float
    size: float  # in gCPU
    change: str


def draw_service(seed: int, mixes: Mixes, profile: Sequence[Stack] = ()) -> tuple[Dataset, list[Truth]]:
    """Draw a service of thirteen days whose regressions fall into the last two and a half."""
    rng = np.random.default_rng(seed)
    stacks, endpoint = _stacks(rng, mixes, profile or _drawn_profile(rng))
    weights = rng.lognormal(0.0, 1.2, len(stacks))
    starts: FloatArray = START + np.arange(round(DAYS * DAY_S / WINDOW_S), dtype=np.float64) * WINDOW_S
    shares = (weights / weights.sum())[:, None] * _cycles(rng, mixes, starts)[endpoint]
    truth, changes = _regress(rng, mixes, stacks, shares, starts)
    changes += _other_changes(rng, mixes, stacks)
    counts = rng.poisson(shares * mixes.samples).astype(np.float64)
    names = tuple(regression.subroutine for regression in truth)
    samples = np.array([counts[[name in stack for stack in stacks]].sum(axis=0) for name in names])
    dataset = Dataset(
        service="shop",
        start=START,
        end=START + DAYS * DAY_S,
        window_s=WINDOW_S,
        stack_window_s=WINDOW_S,
        kinds=tuple("subroutine" for _ in names),
        names=names,
        samples=samples,
        totals=counts.sum(axis=0),
        stacks=tuple(stacks),
        stack_samples=counts,
        metrics=(),
        changes=tuple(sorted(changes, key=lambda change: change.time)),
    )
    return dataset, truth


def _regress(
    rng: np.random.Generator, mixes: Mixes, stacks: Sequence[Stack], shares: FloatArray, starts: FloatArray
) -> tuple[list[Truth], list[Change]]:
    """Raise subroutines in ``shares``, (stacks, windows), each just after a change that modified it."""
    truth, changes = [], []
    candidates = _subroutines_of_size(stacks, shares.mean(axis=1), 0.002, 0.15)
    span_s = REGRESSED_DAYS * DAY_S - 12 * 3600
    for number, name in enumerate(rng.choice(candidates, mixes.regressions, replace=False).tolist()):
        holds = np.array([name in stack for stack in stacks])
        at = (
            START
            + DAYS * DAY_S
            - REGRESSED_DAYS * DAY_S
            + (number + rng.random()) / mixes.regressions * span_s
        )
        at = START + np.ceil((at - START) / WINDOW_S) * WINDOW_S
        before = float(shares[holds].sum(axis=0).mean())
        size = max(mixes.errors * float(np.sqrt(2 * before / (mixes.samples * 36))), 0.0005)
        grown = holds & (np.array([stack[-1] == name for stack in stacks]) if rng.random() < 0.3 else True)
        grown = grown if grown.any() else holds
        part = float(shares[grown].sum(axis=0).mean())
        shares[np.ix_(grown, starts >= at)] *= 1 + size / part
        deployed = float(at - rng.uniform(30.0, WINDOW_S))
        change = Change(f"cause-{number}", "shop", deployed, title=f"Release {number}", subroutines=(name,))
        changes.append(change)
        truth.append(Truth(name, float(at), size, change.id))
    return truth, changes


def _other_changes(rng: np.random.Generator, mixes: Mixes, stacks: Sequence[Stack]) -> list[Change]:
    """Return changes that modified some subroutines and regressed none."""
    every = sorted({frame for stack in stacks for frame in stack})
    changes = []
    for number in range(mixes.changes_a_day * DAYS):
        names = tuple(rng.choice(every, int(rng.integers(1, 4)), replace=False).tolist())
        deployed = float(START + rng.random() * DAYS * DAY_S)
        changes.append(Change(f"other-{number}", "shop", deployed, title=f"Tidy {number}", subroutines=names))
    return changes


def name_causes(dataset: Dataset, truth: Sequence[Truth], workload: Workload) -> list[str]:
    """Return the first suspect of each regression, as a scan some hours later finds it; empty without."""
    store, named = ArrayStore(dataset), []
    for regression in truth:
        end = min(regression.time + 8 * 3600.0, dataset.end)
        rise = Candidate(
            "subroutine",
            regression.subroutine,
            "short_term",
            regression.time,
            0.01,
            0.01 + regression.size,
            1e-9,
            9.0,
        )
        analysis_end = end - (workload.extended_s or 0.0)
        scan = Scan(
            service=dataset.service,
            workload=workload.name,
            start=end - workload.historical_s - workload.analysis_s - (workload.extended_s or 0.0),
            analysis_start=analysis_end - workload.analysis_s,
            analysis_end=analysis_end,
            end=end,
            series=1,
            candidates=(rise,),
            dropped=(),
        )
        for cluster in CauseEvidence(store).gather(scan, workload, recent_changes(store, scan)):
            (cause,) = find_causes(cluster, cause_config(workload))
            named.append(cause.suspects[0].change.id if cause.suspects else "")
    return named


def _stacks(
    rng: np.random.Generator, mixes: Mixes, profile: Sequence[Stack]
) -> tuple[list[Stack], list[int]]:
    """Return the stacks of all endpoints, each of which runs a part of the profile, and their endpoints."""
    stacks: dict[Stack, int] = {}
    for number in range(mixes.endpoints):
        for stack in profile:
            if rng.random() < 0.5:
                cut = min(2, len(stack) - 1)
                stacks.setdefault((*stack[:cut], f"Endpoint{number}.handle", *stack[cut:]), number)
    return list(stacks), list(stacks.values())


def _drawn_profile(rng: np.random.Generator) -> list[Stack]:
    """Draw a call tree of 150 stacks, 4 to 20 frames deep."""
    names = [f"pkg{number % 23}.Type{number % 57}.call{number}" for number in range(400)]
    profile: list[Stack] = [("main", "loop", *rng.choice(names, 3, replace=False).tolist())]
    while len(profile) < 150:
        parent = profile[int(rng.integers(len(profile)))]
        prefix = parent[: int(rng.integers(2, len(parent) + 1))]
        more = [name for name in rng.choice(names, int(rng.integers(1, 4))).tolist() if name not in prefix]
        profile.append((*prefix, *more)[:20])
    return list(dict.fromkeys(profile))


def _cycles(rng: np.random.Generator, mixes: Mixes, starts: FloatArray) -> FloatArray:
    """Return the factor of each endpoint's load: (endpoints, windows)."""
    group = rng.permutation(mixes.endpoints) % mixes.groups
    amplitude = mixes.amplitude * rng.uniform(0.5, 1.0, mixes.groups)
    phase = rng.random(mixes.groups)
    day = (starts - START) / DAY_S
    drift = rng.normal(0.0, mixes.restless, (mixes.groups, DAYS))[:, day.astype(int)]
    wave = 1 + amplitude[:, None] * np.sin(2 * np.pi * (day[None, :] + phase[:, None])) + drift
    return np.asarray(wave[group], dtype=np.float64)


def _subroutines_of_size(stacks: Sequence[Stack], shares: FloatArray, low: float, high: float) -> list[str]:
    sizes: dict[str, float] = {}
    for stack, share in zip(stacks, shares.tolist(), strict=True):
        for name in set(stack):
            sizes[name] = sizes.get(name, 0.0) + share
    return sorted(n for n, size in sizes.items() if low < size < high and not n.startswith("Endpoint"))


def main() -> None:
    """Print how often the true change is first, with and without the cycles."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.daily_mixes", description=__doc__)
    parser.add_argument("--seeds", default="1-6", help="FIRST-LAST")
    parser.add_argument("--profile", type=Path, help="a file of collapsed stacks")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    profile = list(parse_collapsed(options.profile.read_bytes()).stacks) if options.profile else []
    (workload,) = load_workloads(("frontfaas-small",))
    for amplitude in (0.0, 0.25):
        hits = events = wrong = 0
        began = time.perf_counter()
        for seed in range(int(first), int(last or first) + 1):
            dataset, truth = draw_service(seed, Mixes(amplitude=amplitude), profile)
            named = name_causes(dataset, truth, workload)
            right = [name == regression.change for name, regression in zip(named, truth, strict=True)]
            print(
                f"  seed {seed}: {len(dataset.stacks)} stacks, true change first {sum(right)} of {len(right)}"
            )
            hits, events = hits + sum(right), events + len(right)
            wrong += sum(bool(name) and not good for name, good in zip(named, right, strict=True))
        took = time.perf_counter() - began
        print(f"cycles of {amplitude:.0%}: first {hits} of {events}, wrong {wrong}, {took:.0f} s")


if __name__ == "__main__":
    main()
