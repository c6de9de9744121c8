"""Bisections, with the user's commands, of commits of the demo's shop, one of which slows an endpoint."""

from __future__ import annotations

import random
import shlex
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.experiments.bisection import (
    BisectionPlan,
    BisectionTask,
    CommitRange,
    Journal,
    Session,
    Workbench,
    bisect_range,
    read_span,
    reading_of,
)
from loadgen.bench.lab.commits import write_code
from loadgen.target.history import Edit
from loadgen.target.repository import apply_edit, git
from pipeline.experiments.bisection import BeliefConfig, BisectionConfig, SearchOutcome, prior_of

COMMITS = 16
STEP = 0.05
"""Rounds of a password's hash that the slow commit adds; steps of less than THRESHOLD do not count."""
THRESHOLD = 0.02
CONFIDENCE = 0.99
RUN = f"{shlex.quote(sys.executable)} -m front.cost"
RUN_TIMEOUT_S = 300.0

_IDENTITY = {f"GIT_{role}_{key}": "lab" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
_SETTINGS = "shop/settings.py"


@dataclass(frozen=True, slots=True)
class Bisected:
    """Result of a bisection.

    Args:
        slow: Number of the slow commit, from 1 on.
        found: Numbers of the commits named: several if the bisection cannot decide; none if no commit is.
        builds: Number of versions built.
        runs: Number of measurements.
        noise: Standard deviation of runs of the same version, relative to their mean.
    """

    slow: int
    found: tuple[int, ...]
    builds: int
    runs: int
    noise: float

    @property
    def right(self) -> bool:
        """Whether the slow commit alone is named."""
        return self.found == (self.slow,)

    def __str__(self) -> str:
        named = " or ".join(f"commit {number}" for number in self.found) or "no commit"
        return (
            f"commit {self.slow} is slower, {named} found by {self.builds} builds and {self.runs} runs, "
            f"noise {self.noise:.2%}: {'right' if self.right else 'wrong'}"
        )


def summary(done: Sequence[Bisected]) -> str:
    """Return the number of right bisections, the mean numbers of builds and runs, and the median noise."""
    return (
        f"{sum(bisection.right for bisection in done)} of {len(done)} right; on average "
        f"{statistics.mean(bisection.builds for bisection in done):.1f} builds and "
        f"{statistics.mean(bisection.runs for bisection in done):.1f} runs; "
        f"noise of this machine {statistics.median(bisection.noise for bisection in done):.2%}"
    )


def write_range(folder: Path, slow: int) -> CommitRange:
    """Make a git repository of the shop with COMMITS commits on its base; ``slow`` counts from 1.

    Raises:
        ConfigError: git is missing or fails.
    """
    write_code(folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number in range(COMMITS + 1):
        if number:
            apply_edit(folder, _slow() if number == slow else _harmless(number))
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", f"--message=Commit {number}", environ=_IDENTITY)
    return read_span(folder, f"HEAD~{COMMITS}..HEAD")


def bisect_drawn(folder: Path, rng: random.Random) -> Bisected:
    """Bisect a range with a drawn slow commit, made in a new folder, as ``smidgen trial bisect`` does."""
    slow = rng.randint(1, COMMITS)
    span = write_range(folder, slow)
    versions = span.versions
    plan = BisectionPlan(
        span,
        prior_of(versions[1:], {}),
        BisectionConfig(CONFIDENCE, belief=BeliefConfig(threshold=THRESHOLD)),
        Session(None, RUN, reading_of(exit_code=False, results=None, benchmark=None), 1.0, RUN_TIMEOUT_S),
    )
    with (
        Journal(None, BisectionTask(versions[0], versions[-1], "", RUN, "number")) as journal,
        Workbench(folder) as workbench,
    ):
        standing = bisect_range(plan, workbench, journal)
    named = (
        tuple(number + 1 for number in standing.likeliest) if standing.outcome is SearchOutcome.FOUND else ()
    )
    runs = len(journal.of("value"))
    return Bisected(slow, named, len(journal.of("built")), runs, _noise(journal))


def _noise(journal: Journal) -> float:
    """Return the pooled relative standard deviation of runs of the same version."""
    values = defaultdict(list)
    for line in journal.of("value"):
        values[line["commit"]].append(float(line["value"]))
    repeated = [runs for runs in values.values() if len(runs) > 1]
    squares = sum(
        (len(runs) - 1) * (statistics.stdev(runs) / statistics.mean(runs)) ** 2 for runs in repeated
    )
    return float((squares / max(1, sum(len(runs) - 1 for runs in repeated))) ** 0.5)


def _slow() -> Edit:
    old = 60_000
    return Edit(
        path=_SETTINGS,
        old=f"PASSWORD_ROUNDS = {old:_}",
        new=f"PASSWORD_ROUNDS = {round(old * (1 + STEP)):_}",
    )


def _harmless(number: int) -> Edit:
    return Edit(path=f"shop/note_{number}.py", new=f'"""Note {number}."""\n\nNOTE = {number}\n')
