"""``smidgen trial suggest``: whether a change is worth an experiment, and what to replay in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import Duration, argument, json_option, option, takes
from pipeline.commands.tables import Column, print_json, print_table
from pipeline.commands.terminal import print_lines, print_note
from pipeline.commands.trial.kept import endpoints_of, kept_lines, kept_to_json
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, counted
from pipeline.settings.config import Settings
from pipeline.storage.interface import RowQuery, StackQuery

if TYPE_CHECKING:
    from agents.source.changes.diff import FileDiff
    from pipeline.analysis.stacks import StackIndex
    from pipeline.experiments.selection import Budget, Chance, Impact, KeptTest, Worth
    from pipeline.model import Change, StackMatrix
    from pipeline.storage.interface import Store

_MOST_SHOWN = 10

_EXAMPLES = """\b
Examples:
  smidgen trial suggest main..HEAD --service shop --machines 8
  git diff main | smidgen trial suggest - --service shop
  smidgen trial suggest main..HEAD --data exported --trials 10 --trial-time 5m --json
"""


@dataclass(frozen=True, slots=True)
class _Production:
    """Stacks of a service, its past changes with those that regressed, and its kept tests."""

    stacks: StackMatrix
    changes: Sequence[Change]
    regressed: frozenset[str]
    days: float
    kept: Sequence[KeptTest] = ()


@dataclass(frozen=True, slots=True)
class _SuggestRequest:
    revisions: str = argument(metavar="A..B|-")
    repo: Path = option(".", metavar="DIR", help="Git repository of the commits.")
    service: str | None = option(
        metavar="S", help="Service that runs the code; its production is in the store."
    )
    roots: tuple[str, ...] = option(
        flag="--source-root", metavar="DIR", help="Folder that modules are named from."
    )
    data: Path | None = option(metavar="DIR", help="Data set folder to read instead of the store.")
    events: Path | None = option(help="File of the events of --data.")
    days: float = option(30.0, least=0.01, help="Days of past changes to learn from.")
    span: float = option("1d", kind=Duration(), help="Time of stacks, up to now.")
    machines: int = option(2, least=2, help="Machines that run trials, in pairs.")
    trials: int = option(25, least=1, help="Trials of an experiment.")
    trial_time: float = option("10m", kind=Duration(), help="Duration of a trial.")


@click.command(epilog=_EXAMPLES)
@takes
def suggest(
    request: _SuggestRequest,
    as_json: bool = json_option(help="Print the result as JSON."),
    settings: Settings = settings_options("store", "workloads", "log_level"),
) -> int:
    """Say whether the commits after A, up to B, are worth an experiment, and what to replay in it.

    With - it is what a diff on standard input changes, in the form of `git diff`, where the work tree of
    --repo is the version after it, or before it.

    The subroutines that they modify are looked for in production's stacks: which share of the samples holds
    one, and by which endpoints. How likely such a change regresses is learned from past changes of the
    service and from regressions of which one was the root cause; few examples leave it at a prior. What is
    expected to be at stake, that chance times the share, is compared with past changes: those with the most
    are worth it, as many as --machines can test. Kept tests of a subroutine that they modify (`smidgen trial
    kept`) are named first, and make them worth one in any case.

    Exit code: 0 if it is worth an experiment, 1 if not, 2 on bad usage.
    """
    from pipeline.analysis.stacks import index_stacks
    from pipeline.experiments.selection import Budget

    subroutines = _modified(request)
    production = _production(settings, request)
    if not production.stacks.total_after:
        raise ConfigError("no stack samples of the service in --span: nothing says what the change touches")
    budget = Budget(request.machines, request.trials, request.trial_time)
    result = _decided(production, index_stacks(production.stacks), subroutines, budget)
    if as_json:
        print_json(result)
    else:
        _show(result)
    return 0 if result["worth"] else 1


def _decided(
    production: _Production, index: StackIndex, subroutines: Collection[str], budget: Budget
) -> dict[str, Any]:
    """Return whether a change of some subroutines is worth an experiment, with the reasons."""
    from pipeline.experiments.selection import (
        Example,
        impact_of,
        learn_chance,
        score_of,
        touched_share,
        touched_tests,
        worth_of,
    )

    shares = [touched_share(index, change.subroutines) for change in production.changes]
    chance = learn_chance(
        [
            Example(share, change.id in production.regressed)
            for share, change in zip(shares, production.changes, strict=True)
        ]
    )
    impact, tests_kept = impact_of(index, subroutines), touched_tests(production.kept, subroutines)
    worth = worth_of(
        score_of(chance, impact.share, subroutines),
        [
            score_of(chance, share, past_change.subroutines)
            for share, past_change in zip(shares, production.changes, strict=True)
        ],
        len(shares) / production.days,
        budget,
        len(tests_kept),
    )
    tests = [kept_to_json(test, endpoints_of(index, test)) for test in tests_kept]
    return {**_to_json(impact, chance, worth), "kept": tests}


def _modified(request: _SuggestRequest) -> set[str]:
    from agents.source.changes import DIFF, Repository, Versions, WorkTree, describe_commit

    repository, revisions = Repository(request.repo), request.revisions
    versions: Versions
    if revisions == "-":
        versions, commits = WorkTree(repository, _read_diff()), [DIFF]
    else:
        versions, commits = repository, repository.commits(revisions)
        if not commits:
            raise ConfigError(f"{revisions}: has no commits")
        repository.read_ahead(commits)
    names: set[str] = set()
    for commit in commits:
        described = describe_commit(
            versions,
            commit,
            service=request.service or "service",
            time=commit.time,
            source_roots=request.roots,
        )
        if described.left_out:
            print_note(f"{commit.sha[:12]}: left out: {'; '.join(described.left_out)}")
        names.update(described.change.subroutines)
    return names


def _read_diff() -> Sequence[FileDiff]:
    from agents.source.changes import parse_diff
    from agents.source.changes.git import MAX_PATCH_BYTES

    data = click.get_binary_stream("stdin").read(MAX_PATCH_BYTES + 1)
    if len(data) > MAX_PATCH_BYTES:
        raise ConfigError(f"standard input: is larger than {MAX_PATCH_BYTES // 1024**2} MiB")
    try:
        return parse_diff(data)
    except ConfigError as error:
        raise ConfigError(f"standard input: {error}") from None


def _production(settings: Settings, request: _SuggestRequest) -> _Production:
    from pipeline.settings.names import read_namings
    from pipeline.settings.workloads import known_workloads
    from pipeline.stages.gather.change_findings import caused_regressions
    from pipeline.stages.gather.kept_tests import gather_kept
    from pipeline.stages.gather.symbols import SymbolStore
    from pipeline.storage.arrays import ArrayStore
    from pipeline.storage.connect import open_store

    if request.data:
        from pipeline.backtest.dataset import read_dataset

        data = read_dataset(request.data)
        days = min(request.days, (data.end - data.start) / DAY_S)
        of_data = _of_store(ArrayStore(data), data.service, (data.end, days), request.span)
        return replace(of_data, regressed=_read_causes(request.events) if request.events else frozenset())
    if request.events:
        raise click.UsageError("--events: are those of --data")
    service = request.service
    if not service:
        raise click.UsageError("give --service, whose production is in the store, or --data")
    now = system_clock()
    with closing(open_store(settings.store, existing=True)) as opened:
        store = SymbolStore(opened, read_namings(settings.names))
        production = _of_store(store, service, (now, request.days), request.span)
        caused = caused_regressions(store, service, now - request.days * DAY_S, now)
        tests = gather_kept(store, service, known_workloads(settings.workloads))
        return replace(production, regressed=frozenset(event.change for event in caused), kept=tests)


def _of_store(store: Store, service: str, until: tuple[float, float], span_s: float) -> _Production:
    """Return a service's stacks and changes from the store; ``until`` is the end and the days before it."""
    from pipeline.analysis.rootcause.ranking import first_announcements
    from pipeline.messages.inputs import change_from_row

    end, days = until
    stacks = store.counts(StackQuery(service, (end - span_s, end - span_s), (end - span_s, end)))
    rows = store.rows(RowQuery("changes", service, end - days * DAY_S, end))
    changes = first_announcements(change_from_row(row) for row in rows)
    return _Production(stacks, changes, frozenset(), days)


def _read_causes(path: Path) -> frozenset[str]:
    from pipeline.messages.events import DETECTED, decode_event
    from pipeline.model.errors import InvalidMessage, file_errors
    from pipeline.stages.gather.change_findings import causes_of

    with file_errors(path):
        lines = path.read_bytes().splitlines()
    try:
        events = [decode_event(line) for line in lines]
        return frozenset(causes_of(event for event in events if event["type"] == DETECTED))
    except (InvalidMessage, KeyError, TypeError) as error:
        raise ConfigError(f"--events: {path}: {error}") from None


def _to_json(impact: Impact, chance: Chance, worth: Worth) -> dict[str, Any]:
    return {
        "worth": worth.worth,
        "share": impact.share,
        "chance": chance.of(impact.share),
        "score": worth.score,
        "threshold": worth.threshold,
        "tested": worth.tested,
        "examples": chance.examples,
        "regressions": chance.regressions,
        "subroutines": [{"subroutine": name, "gcpu": share} for name, share in impact.subroutines],
        "unseen": list(impact.unseen),
        "endpoints": [asdict(endpoint) for endpoint in impact.endpoints],
    }


_SUBROUTINES: tuple[Column[dict[str, Any]], ...] = (Column("subroutine"), Column("gCPU", "gcpu", ".3%"))
_ENDPOINTS: tuple[Column[dict[str, Any]], ...] = (
    Column("endpoint"),
    Column("replay", form=".1%"),
    Column("touched", form=".1%"),
)


def _show(result: dict[str, Any]) -> None:
    because = ""
    if tests := result["kept"]:
        because = f" because of {counted(len(tests), 'kept test')}"
        print_lines(line for test in tests for line in kept_lines(test))
    learned = f"{counted(result['examples'], 'past change')}, {result['regressions']} of which regressed"
    print_lines(
        (
            f"{'worth an experiment' if result['worth'] else 'not worth an experiment'}{because}: it touches "
            f"{result['share']:.3%} of the samples, and regresses with {result['chance']:.2%}",
            f"learned from {learned}; the machines test {result['tested']:.0%} of changes",
        )
    )
    print_table(_SUBROUTINES, result["subroutines"][:_MOST_SHOWN])
    if result["unseen"]:
        click.echo(f"{counted(len(result['unseen']), 'modified subroutine')} did not run in production")
    if result["endpoints"]:
        print_table(_ENDPOINTS, result["endpoints"][:_MOST_SHOWN])
