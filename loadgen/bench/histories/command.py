"""``smidgen bench histories``: histories of benchmarks, watched by Smidgen and by its peers in one run."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadgen.terminal import print_rows, progress
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


@click.command()
@click.option("--histories", type=click.IntRange(min=1), default=20, show_default=True, help="Of each case.")
@click.option("--otava", metavar="PYTHON", help="Of an environment that has apache-otava.")
@click.option("--benchstat", metavar="PROGRAM", help="Default: as found in PATH.")
@click.option(
    "--labelled",
    nargs=3,
    multiple=True,
    metavar="FILE METRIC COMMITS",
    help="A real history, and commits that changed it, numbered from 0, such as 15,71. May be repeated.",
)
@click.option(
    "--injected",
    nargs=2,
    multiple=True,
    metavar="FILE METRIC",
    help="Real histories into which steps are put. May be repeated.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each case and watcher.")
def histories(
    histories: int,
    otava: str | None,
    benchstat: str | None,
    labelled: tuple[tuple[str, str, str], ...],
    injected: tuple[tuple[str, str], ...],
    seed: int,
    as_json: bool,
) -> None:
    """Measure how well changes in histories of benchmarks are found: `smidgen benchmarks watch` beside peers.

    Simulated histories have 80 commits with ten runs each, and one or two steps, or none. Apache Otava and
    smidgen see the median of a commit's runs, benchstat all of them, each commit against the one before. FILE
    is one of Nyrkiö's: a JSON list of results ({timestamp, metrics: [{name, value}]}), or a tar archive of
    such. They have one run a commit: there benchstat compares ten commits with the ten before, and of a row
    of commits that differ the one with the smallest p-value counts. A change is found if one is reported
    within five commits of it.
    """
    from loadgen.bench.histories.table import measure

    watchers = _watchers(otava, benchstat)
    cases = _cases(histories, seed, labelled, injected)
    with progress("histories", len(watchers)) as advance:
        rows = measure(cases, watchers, advance)
    print_rows(rows, _tables, as_json=as_json)


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


def _cases(
    histories: int,
    seed: int,
    labelled: Sequence[tuple[str, str, str]],
    injected: Sequence[tuple[str, str]],
) -> list[Case]:
    from loadgen.bench.histories import table
    from loadgen.bench.histories.simulate import History
    from loadgen.evaluation.injected import read_results

    cases = table.simulated(histories, seed)
    for file, metric, commits in labelled:
        known = tuple(_numbers(commits))
        read = read_results(Path(file), metric)
        every = [History(values[:, None], known) for values in read.values()]
        if any(max(known) >= len(history.values) for history in every):
            raise ConfigError(f"--labelled: {file} has no commit {max(known)}")
        cases.append(table.Case(f"real, labelled | – | {metric}", every, known=False))
    for file, metric in injected:
        read = read_results(Path(file), metric)
        cases += [table.injected(read, step) for step in table.STEPS if step]
    return cases


def _numbers(commits: str) -> list[int]:
    try:
        numbers = [int(one) for one in commits.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise ConfigError(f"--labelled: {commits!r} is no list of numbers of commits")
    return numbers


def _tables(rows: Sequence[Row]) -> Iterable[str]:
    from loadgen.bench.histories.table import totals

    names = list(dict.fromkeys(row.watcher for row in rows))
    yield f"| noise | of a run | step | {' | '.join(names)} |"
    yield f"| --- | ---: | ---: | {' | '.join('---' for _ in names)} |"
    for case in dict.fromkeys(row.case for row in rows):
        yield f"| {case} | {' | '.join(_cell(row) for row in rows if row.case == case)} |"
    yield ""
    yield "| watcher | precision | recall | the commit | within one | reported, no step | ms a history |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in totals(rows):
        quiet = [one for one in rows if one.watcher == row.watcher and one.known and not one.changes]
        false = sum(one.reported for one in quiet) / sum(one.histories for one in quiet)
        yield (
            f"| {row.watcher} | {_share(row.precision)} | {_share(row.recall)} | "
            f"{_share(_of(row.exact, row))} | {_share(_of(row.near, row))} | {false:.2f} | "
            f"{1e3 * row.seconds / row.histories:.1f} |"
        )


def _cell(row: Row) -> str:
    """Return precision, recall, and how exactly; without a step how many are reported in a history."""
    if not row.changes:
        return f"{row.reported / row.histories:.2f} a history"
    parts = [row.recall, _of(row.exact, row), _of(row.near, row)]
    if row.known:
        return " / ".join(map(_share, [row.precision, *parts]))
    return f"{' / '.join(map(_share, parts))}, {row.reported / row.histories:.1f} a history"


def _of(count: int, row: Row) -> float:
    return count / row.found if row.found else math.nan


def _share(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) else "–"
