"""New deployments of a repository: commits on a branch, or the commits that a new tag brings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import orjson

from agents.source.changes.git import Commit, GitError, Repository, Tag
from pipeline.files.outputs import write_output
from pipeline.model.errors import BrokerUnavailable, ConfigError

log = logging.getLogger(__name__)

MAX_COMMITS = 1000
"""Most commits of one deployment; a longer history is that of a first import, and explains nothing."""

Seen = frozenset[str]
"""State of publishing: the tip of a branch, or the names of tags."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A commit that was deployed. ``time`` is the commit's, or that of the tag which brought it."""

    commit: Commit
    time: float


@dataclass(frozen=True, slots=True)
class News:
    """Deployments since ``Seen``, oldest first, and the state after them."""

    deployments: tuple[Deployment, ...]
    seen: Seen


class Watch(Protocol):
    """A branch or tags of a repository that move when a service is deployed."""

    name: str

    def present(self) -> Seen:
        """Return what is there now."""

    def news(self, seen: Seen | None) -> News:
        """Return what is new since ``seen``; the latest alone if that is None."""


class Branch:
    """A branch whose commits are deployed as they arrive; what a merge brought in is one commit."""

    def __init__(self, repository: Repository, branch: str) -> None:
        self.name = f"branch {branch}"
        self._repository = repository
        self._branch = branch

    def present(self) -> Seen:
        """Return the branch's tip."""
        return frozenset({self._repository.branch_tip(self._branch)})

    def news(self, seen: Seen | None) -> News:
        """Return the commits since the tip that was seen; only the tip if that one is gone."""
        tip = self._repository.branch_tip(self._branch)
        if seen and tip in seen:
            return News((), seen)
        before = next(iter(seen or ()), "")
        if before and not self._repository.has_commit(before):
            log.warning("%s: %.12s is gone; only the tip is taken for deployed", self.name, before)
            before = ""
        commits = _since(self._repository, before, tip)
        return News(tuple(Deployment(commit, commit.time) for commit in commits), frozenset({tip}))


class Tags:
    """Tags that match a glob; each deploys the commits since the matching tag before it."""

    def __init__(self, repository: Repository, pattern: str) -> None:
        self.name = f"tags {pattern}"
        self._repository = repository
        self._pattern = pattern

    def present(self) -> Seen:
        """Return the names of all tags."""
        return frozenset(tag.name for tag in self._repository.tags(self._pattern))

    def news(self, seen: Seen | None) -> News:
        """Return the commits of all tags that were not seen; of the latest tag if that is None."""
        tags = self._repository.tags(self._pattern)
        before: list[Tag | None] = [None, *tags]
        pairs = list(zip(before, tags, strict=False))
        if seen is None and not pairs:
            raise GitError(f"--tags: no tag matches {self._pattern!r}")
        wanted = pairs[-1:] if seen is None else [pair for pair in pairs if pair[1].name not in seen]
        deployments = [
            Deployment(commit, new.time)
            for old, new in wanted
            for commit in _since(self._repository, old.sha if old else "", new.sha)
        ]
        return News(tuple(deployments), frozenset(tag.name for tag in tags))


def _since(repository: Repository, before: str, last: str) -> Sequence[Commit]:
    if not before:
        return [repository.commit(last)]
    commits = repository.commits_between(before, last, at_most=MAX_COMMITS)
    if len(commits) == MAX_COMMITS:
        log.warning("more than %d commits up to %.12s: the older ones are left out", MAX_COMMITS, last)
    return commits


class PublishedState:
    """Remembers what was published, in a file if there is one, so that a restart goes on from there."""

    def __init__(self, path: Path | None, watch: str, service: str) -> None:
        self._path = path
        self._key = {"service": service, "watch": watch}

    def read(self) -> Seen | None:
        """Return what was published, None if nothing is remembered.

        Raises:
            ConfigError: the file is not a state, or another service's or branch's.
        """
        if not self._path or not self._path.exists():
            return None
        try:
            raw = orjson.loads(self._path.read_bytes())
            seen = frozenset(raw.pop("published"))
            if not all(isinstance(text, str) for text in (*raw.values(), *seen)):
                raise TypeError  # nor could it be shown, however deep it goes
        except OSError as error:
            raise ConfigError(f"--state: {self._path}: {error.strerror}") from None
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            raise ConfigError(f"--state: {self._path}: not a state file") from None
        if raw != self._key:
            raise ConfigError(f"--state: {self._path}: belongs to {raw}, not {self._key}")
        return seen

    def write(self, seen: Seen) -> None:
        """Replace what is remembered, whole or not at all.

        Raises:
            ConfigError: the file cannot be written.
        """
        if not self._path:
            return
        write_output(self._path, orjson.dumps({**self._key, "published": sorted(seen)}), durable=True)


def follow(
    watch: Watch,
    state: PublishedState,
    publish: Callable[[Sequence[Deployment]], None],
    *,
    interval_s: float,
    stop: threading.Event,
) -> None:
    """Publish what is new, and look again every ``interval_s`` seconds until ``stop`` is set.

    Without a state it begins with what comes after now. Each deployment is published once; twice only if
    the process ends between publishing and writing the state. While git or the broker fails nothing is lost:
    the repository keeps it, and the next look finds it.

    Raises:
        ConfigError: the state, or at the first look the repository, is wrong.
    """
    seen = state.read()
    if seen is None:
        seen = watch.present()
        state.write(seen)
    while True:
        try:
            news = watch.news(seen)
            if news.deployments:
                publish(news.deployments)
        except (GitError, BrokerUnavailable) as error:
            log.warning("%s; trying again in %g s", error, interval_s)
        else:
            if news.seen != seen:
                seen = news.seen
                state.write(seen)
        if stop.wait(interval_s):
            return
