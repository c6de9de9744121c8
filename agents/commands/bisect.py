"""``smidgen trial bisect``: which commit of a range made a cost rise, by builds and runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.box import SIMPLE
from rich.console import Console
from rich.status import Status
from rich.table import Column, Table
from rich.text import Text

from pipeline.backtest.seriesfile.content import read_content
from pipeline.commands.options import Duration, FiniteRange
from pipeline.commands.terminal import escape_controls, print_note, table_console
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted
from pipeline.settings.config import load_settings

if TYPE_CHECKING:  # scipy takes a second to load; a wrong option should be refused at once
    from agents.experiments.bisection import Journal, Plan, Span, Suspects
    from pipeline.experiments.bisection import Standing

_SHORT = 12  # characters of a commit's id
_TITLE = 60
_MOST_SHOWN = 5
_LEAST_SHOWN = 0.001

_EXAMPLES = """\b
Examples:
  smidgen trial bisect v1.4..v1.5 --build "make -s" --run "./bench --once"
  smidgen trial bisect main~64..main --run "python bench.py" --state bisect.jsonl --builds 12
  smidgen trial bisect --suspects change.json --run "go test -bench Sum > new.txt" --results new.txt
"""


@dataclass(frozen=True, slots=True)
class _Options:
    """The command line."""

    repo: Path
    build: str | None
    run: str
    exit_code: bool
    results: Path | None
    benchmark: str | None
    threshold: float
    worse_down: bool
    confidence: float
    none: float
    builds: int | None
    runs: int | None
    build_timeout: float
    run_timeout: float


@click.command(epilog=_EXAMPLES)
@click.argument("revisions", metavar="[A..B]", required=False)
@click.option("--repo", type=click.Path(path_type=Path), default=".", show_default=True, metavar="DIR")
@click.option("--build", metavar="COMMAND", help="Builds a commit, in a work tree of its own.")
@click.option("--run", required=True, metavar="COMMAND", help="Measures it once: prints a number last.")
@click.option("--exit-code", is_flag=True, help="Instead: 0 is good, 125 skips the commit, 1 to 127 is bad.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Instead: the file that --run leaves, in a format of smidgen benchmarks watch FILE.",
)
@click.option("--benchmark", metavar="NAME", help="Which of several in --results.")
@click.option(
    "--threshold",
    type=FiniteRange(min=0),
    default=0.01,
    show_default=True,
    help="Smallest relative step that counts.",
)
@click.option("--worse-down", is_flag=True, help="Less of it is worse, as of throughput.")
@click.option(
    "--confidence",
    type=FiniteRange(min=0.5, max=1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Posterior of one commit at which to stop.",
)
@click.option(
    "--none",
    type=FiniteRange(min=0, max=1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="How likely it is beforehand that none is it.",
)
@click.option("--builds", type=click.IntRange(min=1), metavar="N", help="Stop after so many builds.")
@click.option("--runs", type=click.IntRange(min=1), metavar="N", help="Stop after so many runs.")
@click.option("--build-timeout", type=Duration(), default="1h", show_default=True)
@click.option("--run-timeout", type=Duration(), default="10m", show_default=True)
@click.option(
    "--suspects",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON of an event, a change of benchmarks watch, or a list: these commits are likelier.",
)
@click.option("--event", metavar="ID", help="The suspects of a regression in the store.")
@click.option("--store", metavar="DSN", help="Where that is (SMIDGEN_STORE).")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keeps every measurement; another call with the same file goes on.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def bisect(
    revisions: str | None,
    suspects: Path | None,
    event: str | None,
    store: str | None,
    state: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Find the commit after A, up to B, from which on a cost is higher, by few builds and runs.

    Measurements may be noisy. Each commit has a probability of being it, and so has none. What is measured
    next is what says most for its time: a commit that is yet to be built, or one that is, once more. It ends
    at --confidence, or when a budget does.

    Commits are built and run in work trees of their own, which are removed at the end and by Ctrl-C. One that
    cannot be built or run is left out; its neighbours then are one suspect. Commits that a merge brought in
    count as that merge.

    Exit code: 0 if the commit is found, 1 if none of them is it, 3 if the budget ended before that is known,
    2 on bad usage or if A or B cannot be measured.
    """
    from agents.experiments.bisection import Journal, Workbench, bisect_range

    chosen = _Options(**options)
    _check(chosen, suspects, event)
    event_suspects = _suspects(suspects, event, store)
    plan = _plan(revisions or (event_suspects.range if event_suspects else None), event_suspects, chosen)
    with (
        Journal(state, _task(plan, chosen)) as journal,
        _ended_by_sigterm(),
        Workbench(chosen.repo) as workbench,
        _progress(plan.span) as report,
    ):
        standing = bisect_range(plan, workbench, journal, report)
    return _said(standing, plan.span, journal, as_json=as_json)


def _check(chosen: _Options, suspects: Path | None, event: str | None) -> None:
    if suspects and event:
        raise click.UsageError("--event: not with --suspects")
    if chosen.exit_code and chosen.results:
        raise click.UsageError("--results: not with --exit-code")
    if chosen.benchmark and not chosen.results:
        raise click.UsageError("--benchmark: is one of --results")


def _suspects(path: Path | None, event: str | None, store: str | None) -> Suspects | None:
    from agents.experiments.bisection import read_suspects

    if path:
        return read_suspects(read_content(path).data, str(path))
    if not event:
        return None
    from pipeline.storage.connect import open_store
    from pipeline.views.report.gather import find_event

    with closing(open_store(load_settings({"store": store}, local=True).store, existing=True)) as opened:
        document = find_event(opened, event)
    if document is None:
        raise ConfigError(f"no regression {event!r} in the store")
    return read_suspects(orjson.dumps(document), event)


def _plan(revisions: str | None, suspects: Suspects | None, chosen: _Options) -> Plan:
    from agents.experiments.bisection import Plan, Session, read_span, reading_of
    from pipeline.experiments.bisection import BeliefConfig, SearchConfig, prior_of

    if not revisions:
        raise click.UsageError(
            "give the range A..B, or --suspects of smidgen benchmarks watch, which has one"
        )
    span = read_span(chosen.repo, revisions)
    shas = [commit.sha for commit in span.commits]
    weights = suspects.of(shas) if suspects else {}
    if suspects and not weights:
        print_note(f"none of the suspects is in {revisions}: all commits are as likely")
    belief = BeliefConfig(chosen.none, chosen.threshold, "down" if chosen.worse_down else "up")
    return Plan(
        span,
        prior_of(shas, weights),
        SearchConfig(chosen.confidence, chosen.builds, chosen.runs, belief),
        Session(
            chosen.build,
            chosen.run,
            reading_of(exit_code=chosen.exit_code, results=chosen.results, benchmark=chosen.benchmark),
            chosen.build_timeout,
            chosen.run_timeout,
        ),
    )


def _task(plan: Plan, chosen: _Options) -> Any:
    from agents.experiments.bisection import Task

    reads = (
        "exit code" if chosen.exit_code else f"{chosen.results or 'number'} {chosen.benchmark or ''}".strip()
    )
    versions = plan.span.versions
    return Task(versions[0], versions[-1], chosen.build or "", chosen.run, reads)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM, by which CI systems end a job, clean up as Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress(span: Span) -> Iterator[Callable[[Standing, Sequence[object]], None]]:
    console = Console(stderr=True)
    with Status("", console=console) as status:

        def report(standing: Standing, lines: Sequence[Any]) -> None:
            builds = sum("built" in line or line.get("of") == "build" for line in lines)
            best = standing.likeliest
            named = f"{span.commits[best[0]].sha[:_SHORT]} {standing.commits[list(best)].sum():.0%}"
            figures = f"{counted(builds, 'build')}, {counted(len(lines) - builds, 'run')}"
            status.update(Text(f"{figures}; likeliest {named}, none {standing.none:.0%}"))

        yield report


def _said(standing: Standing, span: Span, journal: Journal, *, as_json: bool) -> int:
    """Print the result and return the exit code."""
    from pipeline.experiments.bisection import Outcome

    result = _to_json(standing, span, journal)
    if standing.outcome is Outcome.UNMEASURED:
        ends = {span.versions[0], span.versions[-1]}
        why = next(skip for skip in result["skipped"] if skip["commit"] in ends)
        raise ConfigError(
            f"{why['commit'][:_SHORT]}, an end of the range, cannot be measured: {why['reason']}"
        )
    if as_json:
        click.echo(orjson.dumps(result).decode())
    else:
        _show(result)
    return {Outcome.FOUND: 0, Outcome.NONE: 1}.get(standing.outcome, 3)


def _to_json(standing: Standing, span: Span, journal: Journal) -> dict[str, Any]:
    from agents.experiments.bisection import skipped

    best, belief = standing.likeliest, standing.belief
    order = sorted(range(len(span.commits)), key=lambda number: -standing.commits[number])
    shown = [number for number in order[:_MOST_SHOWN] if standing.commits[number] >= _LEAST_SHOWN]
    at = max(best, key=lambda number: standing.commits[number])
    levels = (
        {}
        if belief is None
        else {"before": float(belief.before[at]), "after": float(belief.after[at])}
        | {"noise": float(belief.variance[at] ** 0.5)}
    )
    builds = len(journal.of("built")) + sum(line.get("of") == "build" for line in journal.lines)
    return {
        "outcome": standing.outcome.value,
        "commits": [span.commits[number].sha for number in best] if standing.outcome == "found" else [],
        "none": standing.none,
        "posterior": [
            {
                "commit": span.commits[number].sha,
                "posterior": float(standing.commits[number]),
                "author": span.commits[number].author,
                "title": span.commits[number].title,
            }
            for number in shown
        ],
        **levels,
        "range": len(span.commits),
        "builds": builds,
        "runs": len(journal.lines) - builds,
        "skipped": [{"commit": sha, "reason": reason} for sha, reason in skipped(journal).items()],
    }


_SENTENCES = {
    "found": "the commit is found",
    "none": "none of the commits is it",
    "spent": "the budget ended before the commit was found",
}


def _show(result: dict[str, Any]) -> None:
    console = table_console()
    table = Table(Column("posterior", justify="right"), "commit", "author", "title", box=SIMPLE)
    for entry in result["posterior"]:
        texts = (entry["commit"][:_SHORT], entry["author"], entry["title"][:_TITLE])
        table.add_row(f"{entry['posterior']:.1%}", *(Text(escape_controls(text)) for text in texts))
    table.add_row(f"{result['none']:.1%}", "none", "", "")
    work = f"{counted(result['builds'], 'build')}, {counted(result['runs'], 'run')}"
    sentence = _SENTENCES[result["outcome"]]
    if len(result["commits"]) > 1:
        sentence = f"it is one of {len(result['commits'])} commits, between which none could be measured"
    console.print(Text(f"{sentence}: {work} for {counted(result['range'], 'commit')}"))
    console.print(table)
    if "before" in result:
        levels = f"{result['before']:.6g} before, {result['after']:.6g} after"
        console.print(Text(f"{levels}; one run strays by {result['noise']:.3g}"))
    for entry in result["skipped"]:
        console.print(Text(escape_controls(f"left out {entry['commit'][:_SHORT]}: {entry['reason']}")))
