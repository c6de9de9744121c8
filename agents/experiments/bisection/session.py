"""One bisection: from the range of commits to the one that makes the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.experiments.bisection.journal import Journal
from agents.experiments.bisection.measurement import Reading
from agents.experiments.bisection.workbench import Workbench
from agents.source.changes.git import Commit, GitError, Repository
from pipeline.experiments.bisection import BisectionConfig, SearchRecord, SearchState, standing_of
from pipeline.model import FloatArray

MOST_COMMITS = 20_000
"""Most commits of a range; FBDetect §6.2 has up to as many suspects."""


@dataclass(frozen=True, slots=True)
class CommitRange:
    """A range of commits. Version 0 is ``first``, which is not suspected; version i is the i-th commit."""

    first: str
    commits: tuple[Commit, ...]

    @property
    def versions(self) -> tuple[str, ...]:
        """Ids of all versions."""
        return (self.first, *(commit.sha for commit in self.commits))


def read_span(repository: Path, revisions: str) -> CommitRange:
    """Return the commits of ``A..B``, along first parents: what a merge brought in counts as that merge.

    Raises:
        GitError: there are none, too many, or B does not come from A.
    """
    commits = Repository(repository).commits(revisions)
    if not commits:
        raise GitError(f"{revisions}: has no commits")
    if len(commits) > MOST_COMMITS:
        raise GitError(f"{revisions}: has more than {MOST_COMMITS:,} commits")
    if not commits[0].parent:
        raise GitError(f"{revisions}: begins with the first commit of all; nothing is before it")
    return CommitRange(commits[0].parent, tuple(commits))


@dataclass(frozen=True, slots=True)
class Session:
    """Commands that build and measure versions; without a build command versions are only checked out."""

    build: str | None
    run: str
    reading: Reading
    build_timeout_s: float
    run_timeout_s: float


@dataclass(frozen=True, slots=True, eq=False)
class BisectionPlan:
    """Plan of a bisection: the commits, their probabilities, when it ends, and how versions are measured."""

    span: CommitRange
    prior: FloatArray
    config: BisectionConfig
    session: Session


def bisect_range(
    plan: BisectionPlan,
    workbench: Workbench,
    journal: Journal,
    report: Callable[[SearchState, Sequence[object]], object] = lambda *_: None,
) -> SearchState:
    """Build and measure versions until the commit is found, or the budget ends.

    Args:
        plan: What is bisected.
        workbench: Where versions are built.
        journal: Earlier builds and measurements, to which new ones are added.
        report: Called before each step with the standing and the lines so far.
    """
    versions = plan.span.versions
    number = {sha: version for version, sha in enumerate(versions)}
    ready: set[int] = set()
    while True:
        standing = standing_of(_record(journal, number, ready), plan.prior, plan.config)
        report(standing, journal.lines)
        if standing.next is None:
            return standing
        sha = versions[standing.next]
        if standing.next not in ready:
            _build(sha, plan.session, workbench, journal)
            if journal.lines[-1].get("built"):
                ready.add(standing.next)
        else:
            _measure(sha, plan.session, workbench, journal)


def skipped(journal: Journal) -> dict[str, str]:
    """Return the versions that could not be measured, with reasons."""
    return {str(line["commit"]): str(line["skipped"]) for line in journal.of("skipped")}


def _record(journal: Journal, number: dict[str, int], ready: set[int]) -> SearchRecord:
    lines = [line for line in journal.lines if line["commit"] in number]
    built = [line for line in lines if "built" in line or line.get("of") == "build"]
    return SearchRecord(
        [(number[line["commit"]], float(line["value"])) for line in lines if "value" in line],
        frozenset(number[line["commit"]] for line in lines if "skipped" in line),
        [float(line["seconds"]) for line in built],
        [float(line["seconds"]) for line in lines if line not in built],
        frozenset(ready),
    )


def _build(sha: str, session: Session, workbench: Workbench, journal: Journal) -> None:
    workbench.check_out(sha)
    if session.build is None:
        journal.append({"commit": sha, "built": True, "seconds": 0.0})
        return
    done = workbench.run(sha, session.build, session.build_timeout_s)
    if done.code == 0:
        journal.append({"commit": sha, "built": True, "seconds": done.seconds})
    else:
        workbench.discard(sha)
        failure = f"build: {done.reason}"
        journal.append({"commit": sha, "skipped": failure, "of": "build", "seconds": done.seconds})


def _measure(sha: str, session: Session, workbench: Workbench, journal: Journal) -> None:
    done = workbench.run(sha, session.run, session.run_timeout_s)
    measure = session.reading(done, workbench.folder(sha))
    if measure.failure:
        journal.append({"commit": sha, "skipped": measure.failure, "of": "run", "seconds": done.seconds})
    else:
        journal.append({"commit": sha, "value": measure.value, "seconds": done.seconds})
