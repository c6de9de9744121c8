"""``smidgen bench histories``: histories of benchmarks, watched by Smidgen and by its peers in one run."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadgen.harness import Experiment, bench, ratio_of
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import Column, print_markdown
from pipeline.commands.terminal import print_note
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:  # scipy takes a second to load
    from loadgen.bench.histories.table import Case, Row
    from loadgen.bench.histories.watchers import Watch

_OTAVA = (
    "give --otava: the Python of an environment with it (python3 -m venv E && E/bin/pip install apache-otava)"
)
_BENCHSTAT = (
    "benchstat is not installed (go install golang.org/x/perf/cmd/benchstat@latest): its test, that of Mann "
    "and Whitney, is done here"
)


TOTALS: tuple[Column[Row], ...] = (
    Column("watcher"),
    Column("precision", form=".0%"),
    Column("recall", form=".0%"),
    Column("the commit", lambda row: ratio_of(row.exact, row.found), ".0%"),
    Column("within one", lambda row: ratio_of(row.near, row.found), ".0%"),
    Column("ms a history", lambda row: 1e3 * row.seconds / row.histories, ".1f"),
)


@dataclass(frozen=True, slots=True)
class _HistoriesRequest:
    histories: int = option(20, least=1, help="Histories of each case.")
    otava: str | None = option(metavar="PYTHON", help="Python of an environment that has apache-otava.")
    benchstat: str | None = option(metavar="PROGRAM", help="Path of benchstat (default: that in PATH).")
    labelled: tuple[tuple[str, str, str], ...] = option(
        nargs=3,
        multiple=True,
        metavar="FILE METRIC COMMITS",
        help="Real history, and the commits that changed it, numbered from 0, such as 15,71.",
    )
    injected: tuple[tuple[str, str], ...] = option(
        nargs=2,
        multiple=True,
        metavar="FILE METRIC",
        help="Real history into which steps are injected.",
    )
    seed: int = seed_option()


@bench(json="one JSON object for each case and watcher")
def histories(request: _HistoriesRequest) -> Experiment[Row]:
    """Measure how well changes in histories of benchmarks are found: `smidgen benchmarks watch` beside peers.

    Simulated histories have 80 commits with ten runs each, and one or two steps, or none. Apache Otava and
    smidgen see the median of a commit's runs, benchstat all of them, each commit against the one before. FILE
    is one of Nyrkiö's: a JSON list of results ({timestamp, metrics: [{name, value}]}), or a tar archive of
    such. They have one run a commit: there benchstat compares ten commits with the ten before, and of a row
    of commits that differ the one with the smallest p-value counts. A change is found if one is reported
    within five commits of it.
    """
    from loadgen.bench.histories.table import measure

    watchers = _watchers(request.otava, request.benchstat)
    cases = _cases(request)
    return Experiment(lambda advance: measure(cases, watchers, advance), len(watchers), _show)


def _watchers(otava: str | None, benchstat: str | None) -> dict[str, Watch]:
    from loadgen.bench.histories import watchers as known

    watchers: dict[str, Watch] = {"smidgen": known.by_smidgen}
    if otava:
        watchers["Apache Otava"] = known.by_otava(otava)
    else:
        print_note(f"Apache Otava is left out; {_OTAVA}")
    program = benchstat or shutil.which("benchstat")
    if program:
        watchers["benchstat"] = known.by_neighbours(known.benchstat(program))
    else:
        print_note(_BENCHSTAT)
        watchers["Mann-Whitney"] = known.by_neighbours(known.mann_whitney)
    return watchers


def _cases(request: _HistoriesRequest) -> list[Case]:
    from loadgen.bench.histories import table
    from loadgen.bench.histories.simulate import History
    from loadgen.evaluation.injected import read_results

    cases = table.simulated(request.histories, request.seed)
    for file, metric, commits in request.labelled:
        labelled_commits = tuple(_numbers(commits))
        read = read_results(Path(file), metric)
        every = [History(values[:, None], labelled_commits) for values in read.values()]
        if any(max(labelled_commits) >= len(history.values) for history in every):
            raise ConfigError(f"--labelled: {file} has no commit {max(labelled_commits)}")
        cases.append(table.Case(f"real, labelled | – | {metric}", every, known=False))
    for file, metric in request.injected:
        read = read_results(Path(file), metric)
        cases += [table.injected(read, step) for step in table.STEPS if step]
    return cases


def _numbers(commits: str) -> list[int]:
    try:
        numbers = [int(number) for number in commits.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise ConfigError(f"--labelled: {commits!r} is no list of numbers of commits")
    return numbers


def _show(rows: Iterable[Row]) -> None:
    """Print how each watcher does in each case, and in all cases whose changes are known."""
    from loadgen.bench.histories.table import totals

    listed = list(rows)
    names = list(dict.fromkeys(row.watcher for row in listed))
    click.echo(f"| noise | of a run | step | {' | '.join(names)} |")
    click.echo(f"| --- | ---: | ---: | {' | '.join('---' for _ in names)} |")
    for case in dict.fromkeys(row.case for row in listed):
        click.echo(f"| {case} | {' | '.join(_cell(row) for row in listed if row.case == case)} |")
    click.echo()
    false = Column("reported, no step", partial(_false_reports, listed), ".2f")
    print_markdown((*TOTALS[:-1], false, TOTALS[-1]), totals(listed))


def _false_reports(rows: Sequence[Row], row: Row) -> float:
    """Return how many changes a watcher reports in a history without a step."""
    quiet = [
        case_row
        for case_row in rows
        if case_row.watcher == row.watcher and case_row.known and not case_row.changes
    ]
    return sum(case_row.reported for case_row in quiet) / sum(case_row.histories for case_row in quiet)


def _cell(row: Row) -> str:
    """Return precision, recall, and how exactly; without a step how many are reported in a history."""
    if not row.changes:
        return f"{row.reported / row.histories:.2f} a history"
    parts = [row.recall, ratio_of(row.exact, row.found), ratio_of(row.near, row.found)]
    if row.known:
        return " / ".join(map(_share, [row.precision, *parts]))
    return f"{' / '.join(map(_share, parts))}, {row.reported / row.histories:.1f} a history"


def _share(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) else "–"
