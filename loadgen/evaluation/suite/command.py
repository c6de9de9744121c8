"""``smidgen bench accuracy``: how well the pipeline as it stands does on simulated fleets."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import orjson

from loadgen.evaluation.suite.ablation import ablation_jobs, parse_steps, worth_of_steps
from loadgen.evaluation.suite.against import Comparison, compare_suites
from loadgen.evaluation.suite.goals import goals_json
from loadgen.evaluation.suite.kept_runs import KeptRuns
from loadgen.evaluation.suite.page import accuracy_page
from loadgen.evaluation.suite.presets import HOSTS, LEFT_OUT, SLOW, WORLD
from loadgen.evaluation.suite.runs import Job, Run, mean_json, pooled, run_suite, scenario_means
from loadgen.evaluation.suite.table import print_against, print_suite, worth_table
from loadgen.fleet.scenario import load_scenario, preset_names
from loadgen.terminal import progress, read_file
from pipeline.commands.request import FILE, option, takes
from pipeline.commands.tables import print_json
from pipeline.files.outputs import check_outputs, write_output
from pipeline.messages import fields
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.steps import ABLATABLE as STEPS
from pipeline.model.units import format_duration
from pipeline.settings.workloads import Workload, load_workloads

VERSION = 1

PACKED = ".gz"
"""The ending of a result that is compressed: a record of 120 runs is 900 kB otherwise, and 60 kB so."""

SEEDS, LONG_SEEDS = 3, 10
WORKLOAD = "frontfaas-small"


@dataclass(frozen=True, slots=True)
class _AccuracyRequest:
    long: bool = option(help="Run ten seeds, and the large presets too, as for the record.")
    seeds: int | None = option(least=1, help="Seeds of each scenario (3; 10 with --long).")
    world: bool = option(help="Run the presets of renames, wrappers, gaps, holidays and the like instead.")
    hosts: bool = option(help="Run the presets of rollouts, regions, machines and traffic instead.")
    scenarios: str | None = option(metavar="NAME,FILE,...", help="Presets or scenario files (default: all).")
    workloads: tuple[str, ...] = option(flag="--workload", metavar="NAME|FILE", help="Workload of the scans.")
    processes: int | None = option(least=1, help="Runs at a time (one for each core).")
    without: str | None = option(metavar="STEP,...", help="Steps of the pipeline to leave out.")
    ablate: bool = option(help="Leave out each step in turn, and show its worth.")
    as_json: bool = option(flag="--json", help="Print the result as one JSON object.")
    out: Path | None = option(kind=FILE, help="JSON file of the result to write.")
    resume: bool = option(help="Continue an interrupted run of the same --out, from FILE.runs.")
    against: Path | None = option(kind=FILE, metavar="OLD.json", help="Earlier --out to compare with.")
    shown: tuple[Path, ...] = option(flag="--from", kind=FILE, help="Earlier --out to show, without a run.")
    page: Path | None = option(
        kind=FILE, metavar="FILE.md", help="Page in Markdown to write, with the tables."
    )


@click.command()
@takes
@click.pass_context
def accuracy(context: click.Context, request: _AccuracyRequest) -> int:
    """Measure accuracy on simulated fleets: scenarios × seeds, simulated, backtested and scored.

    With --out each run is kept in FILE.runs when it is done, until all are; --resume goes on from there.

    The same seeds give the same fleets, so two commits see the same data: --against pairs their runs. It
    exits with 1 if precision or recall over all common runs fell. --ablate does so without each step of the
    pipeline too, with --without only without those: from the same change points, if it comes after detection.

    --from shows what an earlier --out wrote; given twice, the second for what each step is worth. A
    FILE whose name ends in .gz is compressed.
    """
    check_outputs({"--out": request.out, "--page": request.page}, [request.against, *request.shown])
    old = read_suite(request.against) if request.against else None
    if request.shown:
        _refuse_to_run(context)
        result, ablated = _read_shown(request.shown)
    else:
        result = _measure(request)
        ablated = result if request.ablate else None
    if request.page:
        write_output(request.page, accuracy_page(result, ablated).encode())
    comparison = compare_suites(old["runs"], result["runs"]) if old else None
    if request.as_json:
        print_json({**result, "against": comparison.to_json()} if comparison else result)
    else:
        _print(result, comparison, ablated)
    return 1 if comparison and comparison.worse else 0


def _measure(request: _AccuracyRequest) -> dict[str, Any]:
    """Make all runs, and the runs without each step, and store the result."""
    jobs, steps = _planned(request)
    out, resume = request.out, request.resume
    if resume and not out:
        raise click.UsageError("--resume needs --out")
    runs_file = KeptRuns(out) if out and (out.is_file() or not out.exists()) else None
    everything = _run(
        ablation_jobs(jobs, steps),
        request.processes or os.cpu_count() or 1,
        runs_file,
        runs_file.read() if runs_file and resume else {},
    )
    result = suite_to_json(everything[: len(jobs)], jobs[0].workloads)
    if steps:
        result["ablation"] = [worth.to_json() for worth in worth_of_steps(everything)]
    if out:
        write_output(out, _encoded(result, packed=out.suffix == PACKED))
    if runs_file:
        runs_file.discard()
    return result


def _planned(request: _AccuracyRequest) -> tuple[list[Job], Sequence[str]]:
    """Return the runs to make, and the steps for the ablation."""
    chosen = request.workloads or (WORKLOAD,)
    least = min(load_workloads(chosen), key=lambda workload: workload.least_s)  # report mistakes first
    count = request.seeds or (LONG_SEEDS if request.long else SEEDS)
    steps = parse_steps(request.without) if request.without is not None else ()
    names = _scenarios(request.scenarios, long_run=request.long, world=request.world, hosts=request.hosts)
    _check_lengths(names, least)
    left_out = () if request.ablate else steps
    jobs = [Job(name, seed, chosen, left_out) for seed in range(1, count + 1) for name in names]
    return jobs, (steps or STEPS) if request.ablate else ()


def _refuse_to_run(context: click.Context) -> None:
    """Refuse options of a run beside options that show a stored result."""
    source = click.core.ParameterSource.COMMANDLINE
    parameters = {name for name in context.params if context.get_parameter_source(name) == source}
    if parameters - {"shown", "page", "against", "as_json"}:
        raise click.UsageError("--from runs nothing; it goes with --page, --against and --json")


def _read_shown(shown: Sequence[Path]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the first result, and the first with an ablation."""
    results = [read_suite(path) for path in shown]
    return results[0], next((result for result in results if result.get("ablation")), None)


def suite_to_json(runs: Sequence[Run], workloads: Sequence[str]) -> dict[str, Any]:
    """Return a suite's result in its stored form."""
    means = {
        scenario: {name: mean_json(mean) for name, mean in figures.items()}
        for scenario, figures in scenario_means(runs).items()
    }
    ordered = sorted(runs, key=lambda run: (run["scenario"], run["seed"]))
    return {
        "version": VERSION,
        "workloads": list(workloads),
        "scenarios": means,
        "goals": goals_json(ordered),
        "all": pooled(runs),
        "runs": ordered,
    }


def read_suite(path: Path) -> dict[str, Any]:
    """Read a file that ``--out`` wrote; it is unpacked if the name ends in .gz.

    Raises:
        ConfigError: the file cannot be read, or a key is wrong.
    """
    try:
        raw = fields.parse_object(_read(path))
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
        try:
            if "ablation" in raw:
                worth_table(raw["all"], raw["ablation"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidMessage(f"ablation: it lacks {error}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(f"{path}: {error}") from None
    except InvalidMessage as error:
        raise ConfigError(f"{path}: {error}") from None
    return raw


def _scenarios(scenarios: str | None, *, long_run: bool, world: bool, hosts: bool = False) -> tuple[str, ...]:
    if world + hosts + (scenarios is not None) > 1:
        raise click.UsageError("give one of --hosts, --world and --scenarios")
    if world or hosts:
        return WORLD if world else HOSTS
    if scenarios is None:
        left_out = (*LEFT_OUT, *WORLD, *HOSTS, *(() if long_run else SLOW))
        return tuple(name for name in preset_names() if name not in left_out)
    names = tuple(dict.fromkeys(name.strip() for name in scenarios.split(",") if name.strip()))
    if not names:
        raise click.UsageError("--scenarios names nothing")
    for name in names:
        load_scenario(name)
    return names


def _check_lengths(scenarios: Sequence[str], least: Workload) -> None:
    """Refuse scenarios too short for any workload: all figures would be 0."""
    for name in scenarios:
        if (lasts_s := load_scenario(name).duration_s) < least.least_s:
            raise ConfigError(
                f"{name}: lasts {format_duration(lasts_s)}, which is too short to find anything; workload "
                f"{least.name} needs {format_duration(least.least_s)}"
            )


def _run(
    jobs: Sequence[Job], processes: int, runs_file: KeptRuns | None, done_runs: dict[Job, Run]
) -> list[Run]:
    if runs_file:
        runs_file.start(done_runs)
    with progress("runs", len(jobs), sum(job in done_runs for job in jobs)) as done:

        def advance(job: Job, run: Run) -> None:
            done()
            if runs_file:
                runs_file.add(job, run)

        return run_suite(jobs, processes=processes, known=done_runs, advance=advance)


def _print(
    result: Mapping[str, Any], comparison: Comparison | None, ablated: Mapping[str, Any] | None
) -> None:
    print_suite(result["runs"])
    if comparison:
        print_against(comparison)
    if ablated:
        worth_table(ablated["all"], ablated["ablation"]).show()


def _read(path: Path) -> bytes:
    content = read_file(path)
    return gzip.decompress(content) if path.suffix == PACKED else content


def _encoded(result: Mapping[str, Any], *, packed: bool) -> bytes:
    """Return a result as JSON: indented for readers, or compressed to reproducible bytes."""
    if packed:
        return gzip.compress(orjson.dumps(result), mtime=0)
    return orjson.dumps(result, option=orjson.OPT_INDENT_2)
