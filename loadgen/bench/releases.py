"""``smidgen bench release``: how often two releases are called different, where they are and where not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from scipy.sparse import csr_array

from loadgen.fleet.profile_tree import read_stacks
from loadgen.harness import Advance, Experiment, bench, results_of_workers
from pipeline.commands.request import EXISTING_FILE, option, seed_option
from pipeline.commands.tables import Column, print_table
from pipeline.model import FloatArray, StrataMatrix, Stratum
from pipeline.model.errors import ConfigError
from pipeline.model.frames import series_of
from pipeline.model.units import HOUR_S
from pipeline.releases.gcpu import CompareConfig, Decided, Samples, collect, decide, match, measure

_LEAVES = 150  # of the call tree that is drawn where no profile is given
_DEPTH = 8
_ENDPOINTS = 8


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings from which a pair of releases is drawn."""

    hosts: tuple[int, int] = (6, 6)
    blocks: int = 8  # hours, with one look of a watch each
    samples: int = 20_000  # samples of a host in an hour
    spread: float = 0.01  # relative spread of each stack's cost over hosts
    drift: float = 0.0  # relative drift of a host from hour to hour
    regions: int = 2


SETTINGS = {
    "six hosts of each": Setting(),
    "three hosts of each": Setting(hosts=(3, 3), regions=1),
    "a canary of one host in twenty": Setting(hosts=(20, 1), samples=10_000),
    "hosts that drift": Setting(drift=0.02),
    "hosts that are equal": Setting(spread=0.0),
    "few samples": Setting(samples=200),
    "many looks": Setting(blocks=24, samples=2_000, spread=0.003),
}


@dataclass(frozen=True, slots=True)
class Task:
    """One pair to draw and compare."""

    name: str
    seed: int
    rise: float  # rise of one subroutine's gCPU; 0 if the releases are the same
    subroutine: str
    threshold: float
    profile: Path | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result for a pair."""

    once: str  # the decision on all data
    watched: str  # the decision of a watch
    hours: int  # until the watch decided, or all hours
    samples: float  # samples of the candidate until then
    found: bool  # whether the subroutine that rose is among those called slower on all data
    besides: bool  # whether a series without that subroutine is called slower


class Tree:
    """Stacks with their weights, and the series that they belong to."""

    def __init__(self, stacks: Sequence[tuple[str, ...]], weights: FloatArray) -> None:
        names = sorted({name for stack in stacks for name in stack})
        row = {name: number for number, name in enumerate(names)}
        cells = sorted({(row[name], column) for column, stack in enumerate(stacks) for name in stack})
        rows, columns = zip(*cells, strict=True)
        self.stacks, self.weights = stacks, weights / weights.sum()
        self.holds = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(stacks)))
        self.series = tuple(map(series_of, names))
        endpoints = [next((name for name in stack if name.startswith("endpoint=")), "") for stack in stacks]
        self.endpoint = np.unique(np.array(endpoints), return_inverse=True)[1]

    def holding(self, subroutine: str) -> FloatArray:
        """Return 1 where a stack holds a subroutine: (stacks,)."""
        return np.array([float(subroutine in stack) for stack in self.stacks])


def drawn_tree(seed: int) -> Tree:
    """Draw a call tree, whose leaves' weights are log-normal."""
    rng = np.random.default_rng(seed)
    stacks = []
    for leaf in range(_LEAVES):
        endpoint = int(rng.integers(_ENDPOINTS))
        path = [f"f{endpoint}.{'.'.join(map(str, rng.integers(0, 2, depth)))}" for depth in range(1, _DEPTH)]
        keep = int(rng.integers(1, _DEPTH))
        shared = [f"shared{int(rng.integers(10))}"] if rng.random() < 0.4 else []
        stacks.append(("main", f"endpoint=/{endpoint}", *path[:keep], *shared, f"leaf{leaf}"))
    return Tree(stacks, rng.lognormal(0.0, 1.2, len(stacks)))


def read_tree(profile: Path) -> Tree:
    """Return the stacks of a profile file.

    Raises:
        ConfigError: it cannot be read, or holds no stack.
    """
    weights = read_stacks(profile)
    return Tree(list(weights), np.array(list(weights.values()), dtype=np.float64))


def draw_pair(tree: Tree, setting: Setting, rise: float, subroutine: str, seed: int) -> Samples:
    """Draw the counts of two releases that run side by side.

    Each host's cost of a stack varies by a factor of the stack and one of its endpoint; regions and hours
    vary in the same way. Counts are multinomial.
    """
    rng = np.random.default_rng(seed)
    endpoints = int(tree.endpoint.max()) + 1

    def factors(spread: float) -> FloatArray:
        own = spread * np.exp(rng.normal(0.0, 0.5, len(tree.weights))) * rng.normal(size=len(tree.weights))
        return np.asarray(own + spread * rng.normal(size=endpoints)[tree.endpoint])

    hosts = sum(setting.hosts)
    regions = [factors(0.2) for _ in range(setting.regions)]
    differs = [factors(setting.spread) for _ in range(hosts)]
    rates = setting.samples * np.exp(rng.normal(0.0, 0.3, hosts))
    holds = tree.holding(subroutine) * tree.weights
    more = rise * holds / holds.sum() if rise else np.zeros(len(holds))
    parts = []
    for hour in range(setting.blocks):
        course = factors(0.1)
        counts: dict[Stratum, FloatArray] = {}
        for host in range(hosts):
            region, new = host % setting.regions, host >= setting.hosts[0]
            share = tree.weights * np.exp(regions[region] + differs[host] + course + factors(setting.drift))
            share = share / share.sum() + more * new
            drawn = rng.multinomial(max(1, round(rates[host])), share / share.sum())
            stratum = Stratum.of(
                {"region": f"r{region}"}, host=f"h{host:02d}", release="new" if new else "old"
            )
            counts[stratum] = drawn.astype(np.float64)
        strata = tuple(sorted(counts))
        by_stack = np.array([counts[stratum] for stratum in strata]).T
        totals = by_stack.sum(axis=0)[:, None]
        samples = np.asarray(tree.holds @ by_stack)
        parts.append(StrataMatrix(hour * HOUR_S, HOUR_S, strata, totals, tree.series, samples))
    pair = collect(parts)
    assert pair is not None
    return pair


def try_pair(task: Task) -> Outcome:
    """Draw a pair and compare it: with all data, and as a watch does."""
    setting = SETTINGS[task.name]
    tree = read_tree(task.profile) if task.profile else drawn_tree(task.seed)
    subroutine = task.subroutine or _typical(tree)
    samples = draw_pair(tree, setting, task.rise, subroutine, task.seed)
    config = CompareConfig(threshold=task.threshold)
    once = _decided(samples, config)
    hours, watched = 0, "open"
    while watched == "open" and hours < setting.blocks:
        hours += 1
        watched = _decided(samples.only(samples.block < hours), replace(config, sequential=True)).state_of_all
    new = samples.of("new") & (samples.block < hours)
    slower = {key for key, state in zip(samples.series, once.state, strict=True) if state == "slower"}
    holds = {name for stack in tree.stacks if subroutine in stack for name in stack}
    return Outcome(
        once=once.state_of_all,
        watched=watched,
        hours=hours,
        samples=float(samples.totals[new].sum()),
        found=series_of(subroutine) in slower,
        besides=bool(slower - set(map(series_of, holds if task.rise else ()))),
    )


def _decided(samples: Samples, config: CompareConfig) -> Decided:
    matched = match(samples, "old", "new")
    assert matched is not None
    return decide(measure(matched.observed), config)


def _typical(tree: Tree) -> str:
    """Return the subroutine whose gCPU is nearest to a tenth."""
    shares = tree.holds @ tree.weights
    kinds = np.array([key.kind == "subroutine" for key in tree.series], dtype=np.bool_)
    return tree.series[int(np.where(kinds, np.abs(shares - 0.1), np.inf).argmin())].name


@dataclass(frozen=True, slots=True)
class _ReleaseRequest:
    pairs: int = option(100, least=1, help="Pairs of each setting.")
    rise: float = option(0.0, least=0, most=0.5, help="Rise of the subroutine's gCPU.")
    subroutine: str = option(
        "", metavar="NAME", help="Subroutine that rises (default: one of about a tenth)."
    )
    threshold: float = option(CompareConfig().threshold, above=0, most=1, help="Smallest rise that counts.")
    profile: Path | None = option(
        kind=EXISTING_FILE,
        help="Profile file whose stacks are drawn, instead of random call trees.",
    )
    names: tuple[str, ...] = option(flag="--setting", choices=SETTINGS, help="Setting (default: all).")
    seed: int = seed_option()


@bench(json="one JSON object a setting")
def release(request: _ReleaseRequest) -> Experiment[Mapping[str, float | str]]:
    """Measure how often `smidgen release compare` calls releases different: false alarms, and rises found.

    Pairs of releases are drawn: hosts that differ, regions, hours, and every stack's samples. Each pair is
    compared with all its samples, and as a watch that looks every hour and stops.
    Without --rise the releases are the same, and all that is called slower is a false alarm.
    """
    if request.profile:
        tree = read_tree(request.profile)
        if request.subroutine and series_of(request.subroutine) not in tree.series:
            raise ConfigError(f"--subroutine {request.subroutine}: not in {request.profile}")
    names = request.names or tuple(SETTINGS)
    return Experiment(
        lambda advance: [_measure(name, request, advance) for name in names],
        request.pairs * len(names),
        _show,
    )


def _measure(name: str, request: _ReleaseRequest, advance: Advance) -> Mapping[str, float | str]:
    tasks = [
        Task(
            name, request.seed + number, request.rise, request.subroutine, request.threshold, request.profile
        )
        for number in range(request.pairs)
    ]
    outcomes = results_of_workers(try_pair, tasks, os.cpu_count() or 1, advance)
    return {
        "setting": name,
        "pairs": request.pairs,
        "rise": request.rise,
        **_figures(outcomes, request.rise),
    }


def _show(rows: Iterable[Mapping[str, float | str]]) -> None:
    listed = list(rows)
    text, *numbers = dict.fromkeys(name for row in listed for name in row)
    print_table((Column(text), *(Column(name, form=_figure) for name in numbers)), listed)


def _figure(value: float) -> str:
    return f"{value:,.3g}" if isinstance(value, float) else f"{value}"


def _figures(outcomes: Sequence[Outcome], rise: float) -> dict[str, float]:
    """Return shares of the pairs, and the hours and samples that a watch took to decide."""
    count = len(outcomes)
    shares = {
        "slower": sum(outcome.once == "slower" for outcome in outcomes) / count,
        "not slower": sum(outcome.once == "steady" for outcome in outcomes) / count,
        "watched: slower": sum(outcome.watched == "slower" for outcome in outcomes) / count,
        "watched: not slower": sum(outcome.watched == "steady" for outcome in outcomes) / count,
    }
    if rise:
        shares["found"] = sum(outcome.found for outcome in outcomes) / count
        shares["others slower"] = sum(outcome.besides for outcome in outcomes) / count
    decided = [outcome for outcome in outcomes if outcome.watched != "open"]
    if decided:
        shares["hours of a watch"] = float(median(outcome.hours for outcome in decided))
        shares["samples of a watch"] = float(median(outcome.samples for outcome in decided))
    return shares
