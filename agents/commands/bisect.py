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
from rich.console import Console
from rich.status import Status
from rich.text import Text

from pipeline.backtest.seriesfile.content import read_content
from pipeline.commands.request import Duration, argument, json_option, option, takes
from pipeline.commands.tables import Column, print_json, print_table
from pipeline.commands.terminal import print_lines, print_note
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted
from pipeline.settings.config import load_settings

if TYPE_CHECKING:  # scipy takes a second to load; a wrong option should be refused at once
    from agents.experiments.bisection import BisectionPlan, CommitRange, Journal, Suspects
    from pipeline.experiments.bisection import SearchState

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
class _BisectRequest:
    revisions: str | None = argument(metavar="[A..B]")
    repo: Path = option(".", metavar="DIR", help="Git repository of the range.")
    build: str | None = option(
        metavar="COMMAND", help="Command that builds a commit, in a work tree of its own."
    )
    run: str = option(
        metavar="COMMAND", help="Command that measures a commit once: its last output is a number."
    )
    exit_code: bool = option(
        help="Read the exit code of --run instead: 0 is good, 125 skips the commit, 1 to 127 is bad."
    )
    results: Path | None = option(
        help="Read the file that --run leaves instead, in a format of benchmarks watch.",
    )
    benchmark: str | None = option(
        metavar="NAME", help="Benchmark to read, of several in --results: its name, or name and unit."
    )
    threshold: float = option(0.01, least=0, help="Smallest relative step that counts.")
    worse_down: bool = option(help="Lower numbers are worse, as with throughput.")
    confidence: float = option(0.95, above=0.5, under=1, help="Posterior of one commit at which to stop.")
    none: float = option(
        0.1, above=0, under=1, help="Prior probability that no commit of the range is to blame."
    )
    builds: int | None = option(least=1, metavar="N", help="Most builds.")
    runs: int | None = option(least=1, metavar="N", help="Most runs.")
    build_timeout: float = option("1h", kind=Duration(), help="Longest build.")
    run_timeout: float = option("10m", kind=Duration(), help="Longest run.")
    suspects: Path | None = option(
        help="JSON of an event, a change of benchmarks watch, or a list: these commits are likelier.",
    )
    event: str | None = option(metavar="ID", help="Regression in the store whose suspects are likelier.")
    store: str | None = option(metavar="DSN", help="Store of --event (SMIDGEN_STORE).")
    state: Path | None = option(
        help="File that keeps every measurement; another call with the same file goes on."
    )

    def __post_init__(self) -> None:
        """Refuse options that exclude or miss each other."""
        if self.suspects and self.event:
            raise click.UsageError("--event: not with --suspects")
        if self.exit_code and self.results:
            raise click.UsageError("--results: not with --exit-code")
        if self.benchmark and not self.results:
            raise click.UsageError("--benchmark: is one of --results")


@click.command(epilog=_EXAMPLES)
@takes
def bisect(request: _BisectRequest, as_json: bool = json_option(help="Print the result as JSON.")) -> int:
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

    suspects = _suspects(request)
    plan = _plan(request, suspects)
    with (
        Journal(request.state, _task(plan, request)) as journal,
        _ended_by_sigterm(),
        Workbench(request.repo) as workbench,
        _progress(plan.span) as report,
    ):
        standing = bisect_range(plan, workbench, journal, report)
    return _said(standing, plan.span, journal, as_json=as_json)


def _suspects(request: _BisectRequest) -> Suspects | None:
    from agents.experiments.bisection import read_suspects

    if request.suspects:
        return read_suspects(read_content(request.suspects).data, str(request.suspects))
    if not request.event:
        return None
    from pipeline.storage.connect import open_store
    from pipeline.views.report.gather import find_event

    settings = load_settings({"store": request.store}, local=True)
    with closing(open_store(settings.store, existing=True)) as opened:
        document = find_event(opened, request.event)
    return read_suspects(orjson.dumps(document), request.event)


def _plan(request: _BisectRequest, suspects: Suspects | None) -> BisectionPlan:
    from agents.experiments.bisection import BisectionPlan, Session, read_span, reading_of
    from pipeline.experiments.bisection import BeliefConfig, BisectionConfig, prior_of

    revisions = request.revisions or (suspects.range if suspects else None)
    if not revisions:
        raise click.UsageError(
            "give the range A..B, or --suspects of smidgen benchmarks watch, which has one"
        )
    span = read_span(request.repo, revisions)
    shas = [commit.sha for commit in span.commits]
    weights = suspects.of(shas) if suspects else {}
    if suspects and not weights:
        print_note(f"none of the suspects is in {revisions}: all commits are as likely")
    belief = BeliefConfig(request.none, request.threshold, "down" if request.worse_down else "up")
    return BisectionPlan(
        span,
        prior_of(shas, weights),
        BisectionConfig(request.confidence, request.builds, request.runs, belief),
        Session(
            request.build,
            request.run,
            reading_of(exit_code=request.exit_code, results=request.results, benchmark=request.benchmark),
            request.build_timeout,
            request.run_timeout,
        ),
    )


def _task(plan: BisectionPlan, request: _BisectRequest) -> Any:
    from agents.experiments.bisection import BisectionTask

    reads = (
        "exit code"
        if request.exit_code
        else f"{request.results or 'number'} {request.benchmark or ''}".strip()
    )
    versions = plan.span.versions
    return BisectionTask(versions[0], versions[-1], request.build or "", request.run, reads)


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
def _progress(span: CommitRange) -> Iterator[Callable[[SearchState, Sequence[object]], None]]:
    console = Console(stderr=True)
    with Status("", console=console) as status:

        def report(standing: SearchState, lines: Sequence[Any]) -> None:
            builds = sum("built" in line or line.get("of") == "build" for line in lines)
            best = standing.likeliest
            named = f"{span.commits[best[0]].sha[:_SHORT]} {standing.commits[list(best)].sum():.0%}"
            figures = f"{counted(builds, 'build')}, {counted(len(lines) - builds, 'run')}"
            status.update(Text(f"{figures}; likeliest {named}, none {standing.none:.0%}"))

        yield report


def _said(standing: SearchState, span: CommitRange, journal: Journal, *, as_json: bool) -> int:
    """Print the result and return the exit code."""
    from pipeline.experiments.bisection import SearchOutcome

    result = _to_json(standing, span, journal)
    if standing.outcome is SearchOutcome.UNMEASURED:
        ends = {span.versions[0], span.versions[-1]}
        why = next(skip for skip in result["skipped"] if skip["commit"] in ends)
        raise ConfigError(
            f"{why['commit'][:_SHORT]}, an end of the range, cannot be measured: {why['reason']}"
        )
    if as_json:
        print_json(result)
    else:
        _show(result)
    return {SearchOutcome.FOUND: 0, SearchOutcome.NONE: 1}.get(standing.outcome, 3)


def _to_json(standing: SearchState, span: CommitRange, journal: Journal) -> dict[str, Any]:
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
_COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    Column("posterior", form=".1%"),
    Column("commit", lambda entry: entry["commit"][:_SHORT]),
    Column("author"),
    Column("title", lambda entry: entry["title"][:_TITLE]),
)


def _show(result: dict[str, Any]) -> None:
    work = f"{counted(result['builds'], 'build')}, {counted(result['runs'], 'run')}"
    sentence = _SENTENCES[result["outcome"]]
    if len(result["commits"]) > 1:
        sentence = f"it is one of {len(result['commits'])} commits, between which none could be measured"
    click.echo(f"{sentence}: {work} for {counted(result['range'], 'commit')}")
    none = {"posterior": result["none"], "commit": "none", "author": "", "title": ""}
    print_table(_COLUMNS, [*result["posterior"], none])
    if "before" in result:
        levels = f"{result['before']:.6g} before, {result['after']:.6g} after"
        click.echo(f"{levels}; one run strays by {result['noise']:.3g}")
    print_lines(f"left out {entry['commit'][:_SHORT]}: {entry['reason']}" for entry in result["skipped"])
