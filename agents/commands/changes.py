"""``smidgen changes``: deployed commits of a git repository as messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from agents.commands.options import agent_settings, reader_names, roots_option, service_option
from agents.publishing.broker import publish_once, quiet_client
from agents.source.changes import (
    Branch,
    Deployment,
    Described,
    Repository,
    State,
    Tags,
    Watch,
    change_message,
    describe_commit,
    follow,
)
from pipeline.commands.request import FILE, Moment, json_option, option, takes
from pipeline.commands.tables import print_json
from pipeline.commands.terminal import print_lines, print_note, progress_lines
from pipeline.files.values import duration_s_of
from pipeline.messages.inputs import FUTURE_S, change_to_json
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted
from pipeline.processes import until_stopped
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

_AT_ONCE = 50  # commits that git compares in one call
_EXAMPLES = """\b
Examples, as the last step of a deployment:
  smidgen changes --repo . --service shop
  smidgen changes --repo . --service shop --range v1.4..v1.5
  smidgen changes --repo . --service shop --rev 3f2a91c --time 2026-03-01T12:00:00Z
  smidgen changes --repo . --service shop --tags 'v*' --routes
Or beside a clone that something else fetches into:
  smidgen changes --repo . --service shop --branch origin/main --follow 30s --state shop.json
  smidgen changes --repo . --service shop --tags 'v*' --follow 1m
To look at a change without publishing it:
  smidgen changes --repo . --service shop --dry-run --json
"""


@dataclass(frozen=True, slots=True)
class _ChangesRequest:
    repo: Path = option(".", metavar="DIR", help="Git repository of the service.")
    service: str = service_option
    rev: str | None = option(metavar="REV", help="Commit that was deployed (default: HEAD).")
    revisions: str | None = option(
        flag="--range", metavar="A..B", help="Commits that were deployed, all after A up to B."
    )
    branch: str | None = option(
        metavar="NAME", help="Branch that is deployed: its tip, or with --follow each new commit."
    )
    pattern: str | None = option(
        flag="--tags",
        metavar="GLOB",
        help="Tags that are deployed: the latest, or with --follow each new tag; all commits since the "
        "tag before "
        "belong to it.",
    )
    time_: float | str = option(
        "now",
        flag="--time/--deployed-at",
        kind=Moment(duration=None, words=("now", "commit")),
        help="Time of the deployment: now, commit (when it was committed or tagged), ISO 8601 or epoch "
        "seconds.",
    )
    interval_s: float | None = option(
        flag="--follow",
        parse=duration_s_of,
        metavar="DURATION",
        help="Interval at which new commits or tags are looked for, until Ctrl-C; something else has to "
        "fetch them.",
    )
    state: Path | None = option(
        kind=FILE,
        help="File in which --follow remembers what it published; without it a restart begins anew.",
    )
    gate_readers: tuple[str, ...] = option(
        flag="--gate-reader",
        parse=reader_names,
        metavar="NAME",
        help="Function that reads a gate, such as conf.get, besides those of common flag clients.",
    )
    routes: bool = option(
        help="Read the routes of the web application too, and send the distance of each commit to them."
    )
    dry_run: bool = option(help="Publish nothing.")
    as_json: bool = json_option(help="Print each change as one line of JSON.")
    source_roots: tuple[str, ...] = roots_option

    def __post_init__(self) -> None:
        """Refuse options that exclude or miss each other, and a deployment in the future."""
        if sum(value is not None for value in (self.rev, self.revisions, self.branch, self.pattern)) > 1:
            raise click.UsageError("give one of --rev, --range, --branch and --tags")
        if self.interval_s is not None and self.branch is None and self.pattern is None:
            raise click.UsageError("--follow needs --branch or --tags")
        if self.state and self.interval_s is None:
            raise click.UsageError("--state is for --follow")
        if not isinstance(self.time_, str) and self.time_ > system_clock() + FUTURE_S:
            raise click.UsageError("--time: is in the future, where no change has been deployed")


@click.command(epilog=_EXAMPLES)
@takes
def changes(request: _ChangesRequest, settings: Settings = agent_settings) -> None:
    """Publish deployed commits of a git repository, with the subroutines that they modified.

    Merges are compared with their first parent, and a range follows first parents: what was merged counts
    as one change. What cannot be found out about a commit is said on stderr.
    """
    quiet_client(settings)
    repository = Repository(request.repo)
    _check_roots(repository, request)
    publisher = _Publisher(request, settings, settings.read_topics(), repository)
    watch = (
        Branch(repository, request.branch)
        if request.branch
        else Tags(repository, request.pattern)
        if request.pattern
        else None
    )
    if watch and request.interval_s is not None:
        state_file = State(None if request.dry_run else request.state, watch.name, request.service)
        with until_stopped() as stop:
            follow(watch, state_file, publisher.publish, interval_s=request.interval_s, stop=stop)
        return
    deployments = _once(repository, watch, request)
    publisher.publish(deployments)
    if not deployments:
        click.echo("no commits in this range", err=True)


@dataclass(frozen=True, slots=True)
class _Publisher:
    """Describes deployments as messages, publishes and shows them."""

    request: _ChangesRequest
    settings: Settings
    topics: Topics
    repository: Repository

    def publish(self, deployments: Sequence[Deployment]) -> None:
        """Publish all of them at once, or nothing if that fails."""
        described = []
        with progress_lines("changes", counted(len(deployments), "commit")) as advance:
            for first in range(0, len(deployments), _AT_ONCE):
                for deployment in self._describe(deployments[first : first + _AT_ONCE]):
                    described.append(deployment)
                    advance()
        if self.request.routes and deployments:
            described = self._with_routes(described, deployments[-1].commit.sha)
        if not self.request.dry_run:
            publish_once(
                [change_message(deployment.change) for deployment in described], self.settings, self.topics
            )
        for deployment in described:
            _show(deployment, as_json=self.request.as_json)

    def _describe(self, deployments: Sequence[Deployment]) -> Iterator[Described]:
        self.repository.read_ahead([deployment.commit for deployment in deployments])
        for deployment in deployments:
            yield describe_commit(
                self.repository,
                deployment.commit,
                service=self.request.service,
                time=_deployed(self.request.time_, deployment),
                source_roots=self.request.source_roots,
                gate_readers=self.request.gate_readers,
            )

    def _with_routes(self, described: list[Described], revision: str) -> list[Described]:
        """Return commits, each with its distance to the routes of the last commit's application."""
        from agents.source.routes import read_reaches

        try:
            reaches = read_reaches(self.repository, revision, self.request.source_roots)
        except ConfigError as error:  # the deployment is announced without routes
            print_note(f"no routes: {error}")
            return described
        return reaches.describe(described)


def _once(repository: Repository, watch: Watch | None, request: _ChangesRequest) -> Sequence[Deployment]:
    if watch:
        return watch.news(None).deployments
    if request.revisions:
        commits = repository.commits(request.revisions)
    else:
        commits = [repository.commit(request.rev or "HEAD")]
    return [Deployment(commit, commit.time) for commit in commits]


def _deployed(time_: float | str, deployment: Deployment) -> float:
    if time_ == "commit":
        return deployment.time
    return system_clock() if time_ == "now" else float(time_)


def _check_roots(repository: Repository, request: _ChangesRequest) -> None:
    """Refuse a source root that is no folder in the newest commit that is asked for."""
    if not request.source_roots:
        return
    tags = repository.tags(request.pattern) if request.pattern else []
    if request.branch:
        newest = repository.branch_tip(request.branch)
    elif tags:
        newest = tags[-1].sha
    else:
        newest = request.rev or (request.revisions or "").rpartition("..")[2] or "HEAD"
    for root in request.source_roots:
        if not repository.has_folder(newest, root):
            raise click.UsageError(f"--source-root: {root!r} is no folder in {newest:.12}, from its top")


def _show(described: Described, *, as_json: bool) -> None:
    change = described.change
    if as_json:
        print_json({**change_to_json(change), "left_out": described.left_out})
    else:
        print_lines([f"{change.id[:12]} {change.title} ({len(change.subroutines)} subroutines modified)"])
    if described.left_out:
        print_lines([f"{change.id[:12]}: left out: {'; '.join(described.left_out)}"], err=True)
