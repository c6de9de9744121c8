"""``smidgen changes``: deployed commits of a git repository as messages."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import orjson

from agents.commands.options import agent_settings, checked_by, reader_names, roots_option, service_option
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
from pipeline.commands.options import Moment
from pipeline.commands.terminal import escape_controls, print_note, progress_lines
from pipeline.files.values import duration_s_of
from pipeline.messages.inputs import FUTURE_S, change_to_json
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted
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


@click.command(epilog=_EXAMPLES)
@click.option(
    "--repo",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Git repository of the service.",
)
@service_option
@click.option("--rev", default=None, metavar="REV", help="Commit that was deployed (default: HEAD).")
@click.option("--range", "revisions", metavar="A..B", help="Commits that were deployed, all after A up to B.")
@click.option(
    "--branch", metavar="NAME", help="Branch that is deployed: its tip, or with --follow what comes."
)
@click.option(
    "--tags",
    "pattern",
    metavar="GLOB",
    help="Tags that are deployed: the latest, or with --follow each new one, with all commits since the tag "
    "before it.",
)
@click.option(
    "--time",
    "--deployed-at",
    "time_",
    default="now",
    show_default=True,
    metavar="TIME",
    type=Moment(duration=None, words=("now", "commit")),
    help="When it was deployed: now, commit (when it was committed or tagged), ISO 8601 or epoch seconds.",
)
@click.option(
    "--follow",
    "interval_s",
    metavar="DURATION",
    callback=checked_by(duration_s_of),
    help="Look for new commits or tags this often, until Ctrl-C. Fetching is left to others.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File in which --follow remembers what it published; without it a restart begins anew.",
)
@click.option(
    "--gate-reader",
    "gate_readers",
    multiple=True,
    metavar="NAME",
    callback=checked_by(reader_names),
    help="A function that reads a gate, such as conf.get, besides those of common flag clients. May be "
    "repeated.",
)
@click.option(
    "--routes",
    is_flag=True,
    help="Read the routes of the web application too, and send how near each commit comes to them.",
)
@click.option("--dry-run", is_flag=True, help="Publish nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print each change as one line of JSON.")
@roots_option
@agent_settings
def changes(
    settings: Settings,
    repo: Path,
    service: str,
    rev: str | None,
    revisions: str | None,
    branch: str | None,
    pattern: str | None,
    time_: float | str,
    interval_s: float | None,
    state: Path | None,
    gate_readers: tuple[str, ...],
    routes: bool,
    dry_run: bool,
    as_json: bool,
    source_roots: tuple[str, ...],
) -> None:
    """Publish deployed commits of a git repository, with the subroutines that they modified.

    Merges are compared with their first parent, and a range follows first parents: what was merged counts
    as one change. What cannot be found out about a commit is said on stderr.
    """
    _check_selection((rev, revisions, branch, pattern), interval_s, state)
    _check_time(time_)
    quiet_client(settings)
    repository = Repository(repo)
    _check_roots(repository, source_roots, branch, pattern, rev or (revisions or "").rpartition("..")[2])
    topics = settings.read_topics()
    publisher = _Publisher(
        settings, topics, repository, service, time_, source_roots, gate_readers, routes, dry_run, as_json
    )
    watch = Branch(repository, branch) if branch else Tags(repository, pattern) if pattern else None
    if watch and interval_s is not None:
        state_file = State(None if dry_run else state, watch.name, service)
        with until_stopped() as stop:
            follow(watch, state_file, publisher.publish, interval_s=interval_s, stop=stop)
        return
    described = _once(repository, watch, rev, revisions)
    publisher.publish(described)
    if not described:
        click.echo("no commits in this range", err=True)


@dataclass(frozen=True, slots=True)
class _Publisher:
    """Describes deployments as messages, publishes and shows them."""

    settings: Settings
    topics: Topics
    repository: Repository
    service: str
    time: float | str  # time of the deployments: now, commit, or epoch seconds
    source_roots: tuple[str, ...]
    gate_readers: tuple[str, ...]
    routes: bool
    dry_run: bool
    as_json: bool

    def publish(self, deployments: Sequence[Deployment]) -> None:
        """Publish all of them at once, or nothing if that fails."""
        described = []
        with progress_lines("changes", counted(len(deployments), "commit")) as advance:
            for first in range(0, len(deployments), _AT_ONCE):
                for deployment in self._describe(deployments[first : first + _AT_ONCE]):
                    described.append(deployment)
                    advance()
        if self.routes and deployments:
            described = self._with_routes(described, deployments[-1].commit.sha)
        if not self.dry_run:
            publish_once(
                [change_message(deployment.change) for deployment in described], self.settings, self.topics
            )
        for deployment in described:
            _show(deployment, as_json=self.as_json)

    def _describe(self, deployments: Sequence[Deployment]) -> Iterator[Described]:
        self.repository.read_ahead([deployment.commit for deployment in deployments])
        for deployment in deployments:
            yield describe_commit(
                self.repository,
                deployment.commit,
                service=self.service,
                time=_deployed(self.time, deployment),
                source_roots=self.source_roots,
                gate_readers=self.gate_readers,
            )

    def _with_routes(self, described: list[Described], revision: str) -> list[Described]:
        """Return commits, each with its distance to the routes of the last commit's application."""
        from agents.source.routes import read_reaches

        try:
            reaches = read_reaches(self.repository, revision, self.source_roots)
        except ConfigError as error:  # the deployment is announced without routes
            print_note(f"no routes: {error}")
            return described
        return reaches.describe(described)


def _check_selection(selectors: Sequence[str | None], interval_s: float | None, state: Path | None) -> None:
    """Refuse options that exclude each other; ``selectors`` are --rev, --range, --branch and --tags."""
    if sum(value is not None for value in selectors) > 1:
        raise click.UsageError("give one of --rev, --range, --branch and --tags")
    _, _, branch, pattern = selectors
    if interval_s is not None and branch is None and pattern is None:
        raise click.UsageError("--follow needs --branch or --tags")
    if state and interval_s is None:
        raise click.UsageError("--state is for --follow")


def _once(
    repository: Repository, watch: Watch | None, rev: str | None, revisions: str | None
) -> Sequence[Deployment]:
    if watch:
        return watch.news(None).deployments
    commits = repository.commits(revisions) if revisions else [repository.commit(rev or "HEAD")]
    return [Deployment(commit, commit.time) for commit in commits]


def _deployed(time_: float | str, deployment: Deployment) -> float:
    if time_ == "commit":
        return deployment.time
    return system_clock() if time_ == "now" else float(time_)


def _check_time(time_: float | str) -> None:
    if not isinstance(time_, str) and time_ > system_clock() + FUTURE_S:
        raise click.UsageError("--time: is in the future, where no change has been deployed")


def _check_roots(
    repository: Repository, roots: Sequence[str], branch: str | None, pattern: str | None, revision: str
) -> None:
    """Refuse a source root that is no folder in the newest commit that is asked for."""
    if not roots:
        return
    tags = repository.tags(pattern) if pattern else []
    newest = repository.branch_tip(branch) if branch else tags[-1].sha if tags else revision or "HEAD"
    for root in roots:
        if not repository.has_folder(newest, root):
            raise click.UsageError(f"--source-root: {root!r} is no folder in {newest:.12}, from its top")


def _show(described: Described, *, as_json: bool) -> None:
    change = described.change
    if as_json:
        line = {**change_to_json(change), "left_out": list(described.left_out)}
        click.echo(orjson.dumps(line).decode())
    else:
        summary = f"{change.id[:12]} {change.title} ({len(change.subroutines)} subroutines modified)"
        click.echo(escape_controls(summary))
    if described.left_out:
        click.echo(escape_controls(f"{change.id[:12]}: left out: {'; '.join(described.left_out)}"), err=True)


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """Give an event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, lambda *_: stop.set())
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
