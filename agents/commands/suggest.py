"""``smidgen trial suggest``: whether a change is worth an experiment, and what to replay in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.box import SIMPLE
from rich.table import Column, Table
from rich.text import Text

from pipeline.commands.options import Duration, FiniteRange, settings_options
from pipeline.commands.terminal import escape_controls, print_note, table_console
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


@click.command(epilog=_EXAMPLES)
@click.argument("revisions", metavar="A..B|-")
@click.option("--repo", type=click.Path(path_type=Path), default=".", show_default=True, metavar="DIR")
@click.option("--service", metavar="S", help="That runs it; its production is in the store.")
@click.option("--source-root", "roots", multiple=True, metavar="DIR", help="Of modules. May be repeated.")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="Instead of the store: a data set folder."
)
@click.option("--events", type=click.Path(path_type=Path), metavar="FILE", help="Events of --data.")
@click.option("--days", type=FiniteRange(min=0.01), default=30.0, show_default=True, help="Of past changes.")
@click.option("--span", type=Duration(), default="1d", show_default=True, help="Of stacks, the latest.")
@click.option(
    "--machines", type=click.IntRange(min=2), default=2, show_default=True, help="That run trials, in pairs."
)
@click.option(
    "--trials", type=click.IntRange(min=1), default=25, show_default=True, help="Of one experiment."
)
@click.option("--trial-time", type=Duration(), default="10m", show_default=True, help="Of one trial.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@settings_options("store", "workloads", "log_level")
def suggest(settings: Settings, revisions: str, repo: Path, as_json: bool, **options: Any) -> int:
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

    subroutines = _modified(repo, revisions, options["service"] or "", options["roots"])
    production = _production(settings, options)
    if not production.stacks.total_after:
        raise ConfigError("no stack samples of the service in --span: nothing says what the change touches")
    budget = Budget(options["machines"], options["trials"], options["trial_time"])
    result = _decided(production, index_stacks(production.stacks), subroutines, budget)
    if as_json:
        click.echo(orjson.dumps(result).decode())
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


def _modified(repo: Path, revisions: str, service: str, roots: Sequence[str]) -> set[str]:
    from agents.source.changes import DIFF, Repository, Versions, WorkTree, describe_commit

    repository = Repository(repo)
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
            versions, commit, service=service or "service", time=commit.time, source_roots=roots
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


def _production(settings: Settings, options: dict[str, Any]) -> _Production:
    from pipeline.settings.names import read_namings
    from pipeline.settings.workloads import known_workloads
    from pipeline.stages.gather.change_findings import caused_regressions
    from pipeline.stages.gather.kept_tests import gather_kept
    from pipeline.stages.gather.symbols import SymbolStore
    from pipeline.storage.arrays import ArrayStore
    from pipeline.storage.connect import open_store

    if options["data"]:
        from pipeline.backtest.dataset import read_dataset

        data = read_dataset(options["data"])
        days = min(options["days"], (data.end - data.start) / DAY_S)
        of_data = _of_store(ArrayStore(data), data.service, (data.end, days), options["span"])
        return replace(
            of_data, regressed=_read_causes(options["events"]) if options["events"] else frozenset()
        )
    if options["events"]:
        raise click.UsageError("--events: are those of --data")
    service = options["service"]
    if not service:
        raise click.UsageError("give --service, whose production is in the store, or --data")
    now = system_clock()
    with closing(open_store(settings.store, existing=True)) as opened:
        store = SymbolStore(opened, read_namings(settings.names))
        production = _of_store(store, service, (now, options["days"]), options["span"])
        caused = caused_regressions(store, service, now - options["days"] * DAY_S, now)
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


def _show(result: dict[str, Any]) -> None:
    console = table_console()
    because = ""
    if tests := result["kept"]:
        because = f" because of {counted(len(tests), 'kept test')}"
        for line in (line for test in tests for line in kept_lines(test)):
            console.print(Text(escape_controls(line)), soft_wrap=True)
    console.print(
        f"{'worth an experiment' if result['worth'] else 'not worth an experiment'}{because}: it touches "
        f"{result['share']:.3%} of the samples, and regresses with {result['chance']:.2%}"
    )
    learned = f"{counted(result['examples'], 'past change')}, {result['regressions']} of which regressed"
    console.print(f"learned from {learned}; the machines test {result['tested']:.0%} of changes")
    table = Table("subroutine", Column("gCPU", justify="right"), box=SIMPLE)
    for row in result["subroutines"][:_MOST_SHOWN]:
        table.add_row(Text(escape_controls(row["subroutine"])), f"{row['gcpu']:.3%}")
    console.print(table)
    if result["unseen"]:
        console.print(f"{counted(len(result['unseen']), 'modified subroutine')} did not run in production")
    if result["endpoints"]:
        columns = (Column("replay", justify="right"), Column("touched", justify="right"))
        table = Table("endpoint", *columns, box=SIMPLE)
        for row in result["endpoints"][:_MOST_SHOWN]:
            table.add_row(
                Text(escape_controls(row["endpoint"])), f"{row['replay']:.1%}", f"{row['touched']:.1%}"
            )
        console.print(table)
