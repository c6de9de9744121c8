"""``smidgen bench accuracy``: how well the pipeline as it stands does on simulated fleets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from loadgen.bench.ablation import ablation_jobs, parse_steps, worth_of_steps
from loadgen.bench.accuracy_table import print_against, print_suite, print_worth
from loadgen.bench.against import Comparison, compare_suites
from loadgen.bench.kept_runs import KeptRuns
from loadgen.bench.suite import Job, Run, mean_json, pooled, run_suite, scenario_means
from loadgen.fleet.scenario import load_scenario, preset_names
from pipeline.codec import fields
from pipeline.errors import ConfigError, InvalidMessage
from pipeline.stages.ablation import STEPS
from pipeline.workloads import load_workloads

VERSION = 1

LEFT_OUT = ("tiny",)
"""Its three days are shorter than half of any history in Table 3, which is the least that is judged."""

SLOW = ("large", "figure-9")
"""Presets of the long variant only."""

SEEDS, LONG_SEEDS = 3, 10
WORKLOAD = "frontfaas-small"

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--long", "long_run", is_flag=True, help="All presets with ten seeds, for the record.")
@click.option("--seeds", type=click.IntRange(min=1), help="Seeds for each scenario (3; 10 with --long).")
@click.option("--scenarios", metavar="NAME,FILE,...", help="Only these presets or scenario files.")
@click.option("--workload", "workloads", multiple=True, metavar="NAME|FILE", help="What to scan by.")
@click.option("--processes", type=click.IntRange(min=1), help="Runs at a time (one for each core).")
@click.option("--without", metavar="STEP,...", help="Leave steps of the pipeline out.")
@click.option("--ablate", is_flag=True, help="Leave out each step in turn, and show what it is worth.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--out", type=_FILE, metavar="FILE", help="Write the result as JSON.")
@click.option("--resume", is_flag=True, help="Go on with what was done of the same --out, from FILE.runs.")
@click.option("--against", type=_FILE, metavar="OLD.json", help="Compare with an earlier --out.")
def accuracy(
    long_run: bool,
    seeds: int | None,
    scenarios: str | None,
    workloads: tuple[str, ...],
    processes: int | None,
    without: str | None,
    ablate: bool,
    as_json: bool,
    out: Path | None,
    resume: bool,
    against: Path | None,
) -> int:
    """Measure accuracy on simulated fleets: scenarios × seeds, simulated, backtested and scored.

    With --out each run is kept in FILE.runs when it is done, until all are; --resume goes on from there.

    The same seeds give the same fleets, so two commits see the same data: --against pairs their runs. It
    exits with 1 if precision or recall over all common runs fell. --ablate does so without each step of the
    pipeline too, with --without only without those: from the same change points, if it comes after detection.
    """
    old = read_suite(against) if against else None
    names = _scenarios(scenarios, long_run)
    chosen = workloads or (WORKLOAD,)
    load_workloads(chosen)  # a mistake is found before the work
    count = seeds or (LONG_SEEDS if long_run else SEEDS)
    steps = parse_steps(without) if without is not None else ()
    jobs = [
        Job(name, seed, chosen, () if ablate else steps) for seed in range(1, count + 1) for name in names
    ]
    if resume and not out:
        raise click.UsageError("--resume needs --out")
    kept = KeptRuns(out) if out else None
    everything = _run(
        ablation_jobs(jobs, steps or STEPS) if ablate else jobs,
        processes or os.cpu_count() or 1,
        kept,
        kept.read() if kept and resume else {},
    )
    runs = everything[: len(jobs)]
    worth = worth_of_steps(everything) if ablate else []
    result = suite_to_json(runs, chosen)
    if ablate:
        result["ablation"] = [one.to_json() for one in worth]
    if out and kept:
        _write(out, result)
        kept.discard()
    comparison = compare_suites(old["runs"], runs) if old else None
    if as_json:
        shown = {**result, "against": comparison.to_json()} if comparison else result
        click.echo(orjson.dumps(shown).decode())
    else:
        _print(runs, comparison)
        if ablate:
            print_worth(Console(highlight=False), result["all"], worth)
    return 1 if comparison and comparison.worse else 0


def suite_to_json(runs: Sequence[Run], workloads: Sequence[str]) -> dict[str, Any]:
    """Return a suite's result as it is stored."""
    means = {
        scenario: {name: mean_json(mean) for name, mean in figures.items()}
        for scenario, figures in scenario_means(runs).items()
    }
    ordered = sorted(runs, key=lambda run: (run["scenario"], run["seed"]))
    return {
        "version": VERSION,
        "workloads": list(workloads),
        "scenarios": means,
        "all": pooled(runs),
        "runs": ordered,
    }


def read_suite(path: Path) -> dict[str, Any]:
    """Read what ``--out`` wrote.

    Raises:
        ConfigError: it cannot be read, or the key that is wrong.
    """
    try:
        raw = fields.parse_object(path.read_bytes())
        if fields.integer(raw, "version") != VERSION:
            raise InvalidMessage(f"version: should be {VERSION}")
        for index, run in enumerate(fields.listing(raw, "runs")):
            if not isinstance(run, dict) or not isinstance(run.get("score"), dict):
                raise InvalidMessage(f"runs[{index}]: should be an object with a score")
            fields.text(run, "scenario")
            fields.integer(run, "seed")
        try:
            pooled(raw["runs"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidMessage(f"runs: a score lacks {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except InvalidMessage as error:
        raise ConfigError(f"{path}: {error}") from None
    return raw


def _scenarios(given: str | None, long_run: bool) -> tuple[str, ...]:
    if given is None:
        left_out = LEFT_OUT if long_run else (*LEFT_OUT, *SLOW)
        return tuple(name for name in preset_names() if name not in left_out)
    names = tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if not names:
        raise click.UsageError("--scenarios names nothing")
    for name in names:
        load_scenario(name)
    return names


def _run(jobs: Sequence[Job], processes: int, kept: KeptRuns | None, known: dict[Job, Run]) -> list[Run]:
    if kept:
        kept.start(known)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("runs", total=len(jobs), completed=sum(job in known for job in jobs))

        def advance(job: Job, run: Run) -> None:
            progress.advance(task)
            if kept:
                kept.add(job, run)

        return run_suite(jobs, processes=processes, known=known, advance=advance)


def _print(runs: Sequence[Run], comparison: Comparison | None) -> None:
    console = Console(highlight=False)
    print_suite(console, runs)
    if comparison:
        print_against(console, comparison)


def _write(path: Path, result: dict[str, Any]) -> None:
    try:
        path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
