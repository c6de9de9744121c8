"""A webhook's notice as changes: described by a local clone where there is one, else as far as it tells."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace

from agents.changes.bounds import fit
from agents.changes.git import Commit, GitError, Repository
from agents.changes.history import Described, describe_commit
from agents.webhooks.mapping import Source
from agents.webhooks.notice import Notice, ToldCommit
from pipeline.model import Change

log = logging.getLogger(__name__)

MAX_COMMITS = 200
"""Most commits of one push: the newest. A longer one brings in a history that was deployed before."""

_PLAIN = re.compile(r"(?!.*\.\.)[\w./+-]{1,200}")  # a tag's name, and none of git's operators

GIT_TIMEOUT_S = 5.0
"""How long one call of git may take: forges wait about ten seconds for an answer."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """The changes of one notice, one for each commit and service, and what was left out of them."""

    changes: tuple[Change, ...]
    left_out: tuple[str, ...] = ()


def deployed_changes(notice: Notice, source: Source, *, now: float) -> Deployed:
    """Return what a notice of ``source`` deployed; nothing if no rule names the branch, tag or environment.

    A change's time is what the webhook says, at most ``now`` (epoch seconds), which stands in where it says
    nothing. A change's id is the commit's, so that a repeated webhook repeats it; a release whose commit is
    unknown has ``repository@tag``. Runs git, so it belongs into a thread.
    """
    services = source.services(notice.occasion, notice.name)
    if not services:
        return Deployed(())
    time = now if notice.time is None else min(notice.time, now)
    described, left_out = _from_clone(notice, source, time)
    if not described:
        described, lost = _from_payload(notice, time)
        left_out = [*left_out, *lost]
    for each in described:
        left_out += [f"{each.change.id[:12]}: {remark}" for remark in each.left_out]
    changes = tuple(replace(d.change, service=service) for d in described for service in services)
    return Deployed(changes, tuple(left_out))


def _from_clone(notice: Notice, source: Source, time: float) -> tuple[list[Described], list[str]]:
    """Describe the commits from the clone; none if there is no clone or it lacks them."""
    if source.clone is None:
        return [], []
    try:
        repository = Repository(source.clone, timeout_s=GIT_TIMEOUT_S)
        commits = _commits(repository, notice)
        if not commits:
            return [], [f"diffs: the clone does not have {notice.after[:12] or notice.name[:200]!r} yet"]
        return [
            describe_commit(repository, commit, service="", time=time, source_roots=source.source_roots)
            for commit in commits
        ], []
    except GitError as error:
        return [], [f"diffs: {error}"]


def _commits(repository: Repository, notice: Notice) -> list[Commit]:
    last = notice.after
    if not last and notice.occasion == "tag" and _PLAIN.fullmatch(notice.name):
        last = f"refs/tags/{notice.name}"
    if not last or not repository.has_commit(last):
        return []
    if notice.occasion == "branch" and notice.before and repository.has_commit(notice.before):
        return repository.commits_between(notice.before, last, at_most=MAX_COMMITS)
    return [repository.commit(last)]


def _from_payload(notice: Notice, time: float) -> tuple[list[Described], list[str]]:
    commits = notice.commits or (ToldCommit(notice.after, f"Push to {notice.name}"),)
    lost = notice.left_out + max(len(commits) - MAX_COMMITS, 0)
    remarks = [f"{lost} older commits of {notice.name[:200]!r}"] if lost else []
    return [_describe(commit, notice, time) for commit in commits[-MAX_COMMITS:]], remarks


def _describe(commit: ToldCommit, notice: Notice, time: float) -> Described:
    change, left_out = fit(
        Change(
            id=commit.sha or f"{notice.repository}@{notice.name}"[:400],
            service="",
            time=time,
            title=commit.title,
            author=commit.author,
            summary=commit.body,
            files=commit.files,
        )
    )
    return Described(change, tuple(left_out))
