"""Changes of a forge's event: from a local clone where there is one, else from the payload."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agents.source.changes.bounds import fit
from agents.source.changes.git import Commit, GitError, Repository
from agents.source.changes.history import Described, describe_commit
from agents.source.changes.trailers import expected_costs
from agents.webhooks.forge_event import ForgeEvent, PayloadCommit
from agents.webhooks.mapping import WebhookSource
from pipeline.model import Change
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from agents.source.routes import Reaches

MAX_COMMITS = 200
"""Most commits of one webhook: the newest. A longer one brings in a history that was deployed before."""

_PLAIN = re.compile(r"(?!.*\.\.)[\w./+-]{1,200}")  # a tag's name, and none of git's operators

GIT_TIMEOUT_S = 5.0
"""Timeout of one call of git, in seconds: forges wait about ten seconds for an answer."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """The changes of one event, one for each commit and service, and remarks on parts that are left out."""

    changes: tuple[Change, ...]
    left_out: tuple[str, ...] = ()


def deployed_changes(event: ForgeEvent, source: WebhookSource, *, now: float) -> Deployed:
    """Return what an event of ``source`` deployed; nothing if no rule names the branch, tag or environment.

    With a clone that is every commit since the branch or environment was at ``event.before``, or since the
    tags before that deploy the same service; the last commit alone where that is not known. Without, it is
    what the webhook says.

    A change's time is what the webhook says, at most ``now`` (epoch seconds), which stands in where it says
    nothing. A change's id is the commit's, so that a repeated webhook repeats it; where not every webhook of
    a tag names its commit, it is ``repository@tag``. Runs git, so it belongs into a thread.
    """
    services = source.services(event.occasion, event.name)
    if not services:
        return Deployed(())
    time = now if event.time is None else min(event.time, now)
    from_clone = _from_clone(event, source, services, time)
    if from_clone.changes:
        return from_clone
    described = _from_payload(event, services, time)
    return replace(described, left_out=(*from_clone.left_out, *described.left_out))


def _from_clone(event: ForgeEvent, source: WebhookSource, services: Sequence[str], time: float) -> Deployed:
    """Describe the commits from the clone; none if there is no clone or it lacks them."""
    if source.clone is None:
        return Deployed(())
    try:
        repository = Repository(source.clone, timeout_s=GIT_TIMEOUT_S)
        last = _last_commit(repository, event)
        if last is None:
            named = event.after[:12] or event.name[:200]
            return Deployed((), (f"diffs: the clone does not have {named!r} yet",))
        changes: list[Change] = []
        reaches, left_out = _reaches(repository, source, last)
        for ancestors, those in _deployed_before(repository, event, source, services, last).items():
            commits, remarks = _since(repository, ancestors, last)
            described = [
                describe_commit(
                    repository,
                    commit,
                    service="",
                    time=time,
                    source_roots=source.source_roots,
                    gate_readers=source.gate_readers,
                )
                for commit in commits
            ]
            if reaches:
                described = reaches.describe(described)
            changes += _for_services(described, those)
            left_out += [*remarks, *_left_out(described)]
        return Deployed(tuple(changes), tuple(left_out))
    except GitError as error:
        return Deployed((), (f"diffs: {error}",))


def _reaches(repository: Repository, source: WebhookSource, last: Commit) -> tuple[Reaches | None, list[str]]:
    """Return what the routes of the deployed application reach, None without; and what is left out."""
    if not source.routes:
        return None, []
    from agents.source.routes import read_reaches

    try:
        return read_reaches(repository, last.sha, source.source_roots), []
    except ConfigError as error:  # a deployment is announced all the same
        return None, [f"routes: {error}"]


def _last_commit(repository: Repository, event: ForgeEvent) -> Commit | None:
    last = event.after
    if not last and event.occasion == "tag" and _PLAIN.fullmatch(event.name):
        last = f"refs/tags/{event.name}"
    return repository.commit(last) if last and repository.has_commit(last) else None


def _deployed_before(
    repository: Repository, event: ForgeEvent, source: WebhookSource, services: Sequence[str], last: Commit
) -> dict[tuple[str, ...], list[str]]:
    """Return the services by the commits that they had been deployed with, as far as these are known."""
    if event.occasion != "tag":
        heads = (event.before,) if event.before and repository.has_commit(event.before) else ()
        return {heads: list(services)}
    tags = repository.tags_without(last.sha)  # tags that hold it came later, or are other names for it
    deployed = {tag: source.services("tag", tag.name) for tag in tags}
    earlier: dict[tuple[str, ...], list[str]] = {}
    for service in services:
        earlier.setdefault(tuple(tag.sha for tag in tags if service in deployed[tag]), []).append(service)
    return earlier


def _since(repository: Repository, ancestors: Sequence[str], last: Commit) -> tuple[list[Commit], list[str]]:
    """Return the commits that came after the known ones, the last at least, and what is left out."""
    if not ancestors:
        return [last], []
    commits = repository.commits_since(ancestors, last.sha, at_most=MAX_COMMITS + 1) or [last]
    older = len(commits) > MAX_COMMITS
    return commits[-MAX_COMMITS:], [f"commits before the newest {MAX_COMMITS}"] if older else []


def _from_payload(event: ForgeEvent, services: Sequence[str], time: float) -> Deployed:
    commits = event.commits or (PayloadCommit(event.after, f"Push to {event.name}"),)
    lost = event.left_out + max(len(commits) - MAX_COMMITS, 0)
    remarks = [f"{lost} older commits of {event.name[:200]!r}"] if lost else []
    described = [_describe(commit, event, time) for commit in commits[-MAX_COMMITS:]]
    return Deployed(tuple(_for_services(described, services)), (*remarks, *_left_out(described)))


def _for_services(described: Sequence[Described], services: Sequence[str]) -> list[Change]:
    return [replace(change.change, service=service) for change in described for service in services]


def _left_out(described: Sequence[Described]) -> list[str]:
    return [f"{change.change.id[:12]}: {remark}" for change in described for remark in change.left_out]


def _describe(commit: PayloadCommit, event: ForgeEvent, time: float) -> Described:
    expected, wrong = expected_costs(commit.body)
    change, left_out = fit(
        Change(
            id=commit.sha or f"{event.repository}@{event.name}"[:400],
            service="",
            time=time,
            title=commit.title,
            author=commit.author,
            summary=commit.body,
            files=commit.files,
            expected=expected,
        )
    )
    return Described(change, (*wrong, *left_out))
