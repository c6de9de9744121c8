"""``smidgen replay run``: the same requests to both sides at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents.commands.options import checked_by
from agents.commands.replay.options import read_chosen, selection_options, side_url
from pipeline.commands.options import FiniteRange
from pipeline.files.values import address_of
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from agents.experiments.replay.experiment import DownstreamConfig, Experiment, ReadCpu, Result
    from agents.experiments.replay.plan import NamedRequest

_EXAMPLES = """\b
Examples:
  smidgen replay run shop.jsonl.gz --a http://127.0.0.1:8001 --b http://127.0.0.1:8002 --to trials.csv
  smidgen replay run shop.jsonl.gz --a http://127.0.0.1:8001 --b http://127.0.0.1:8002 --allow 'POST /cart'
  smidgen trial verdict trials.csv --threshold 0.005
"""

_Reader = Callable[[], float | None]


@click.command(epilog=_EXAMPLES)
@selection_options
@click.option(
    "--rate",
    type=FiniteRange(min=0, min_open=True, max=1e6),
    help="Requests a second to each side (default: 50).",
)
@click.option(
    "--speed",
    type=FiniteRange(min=0, min_open=True),
    help="At recorded times instead, so many times as fast.",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="That are measured in each trial.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Requests before them in each trial, which are not.",
)
@click.option("--trials", type=click.IntRange(1, 10_000), default=1, show_default=True)
@click.option(
    "--timing",
    "timings",
    multiple=True,
    metavar="NAME",
    help="Metric of the answers' header Server-Timing. May be repeated.",
)
@click.option("--a-pid", type=click.IntRange(min=1), help="Process of side A, whose CPU time is measured.")
@click.option("--b-pid", type=click.IntRange(min=1), help="That of side B.")
@click.option(
    "--a-cgroup",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Its cgroup instead, such as a container's.",
)
@click.option("--b-cgroup", type=click.Path(path_type=Path), metavar="DIR", help="That of side B.")
@click.option(
    "--downstream-a",
    metavar="HOST:PORT",
    callback=checked_by(address_of),
    help="Listen here for the calls of side A, and count them.",
)
@click.option("--downstream-b", metavar="HOST:PORT", callback=checked_by(address_of), help="That of side B.")
@click.option(
    "--downstream",
    "upstream",
    metavar="URL",
    callback=checked_by(side_url),
    help="Service that these calls are passed on to.",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML file of canned answers to them (docs/replay.md).",
)
@click.option(
    "--to",
    "output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Trials, for `smidgen trial verdict` and `publish`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(path: Path, output: Path | None, as_json: bool, **options: Any) -> int:
    """Send the requests of a recording to two sides at the same moment, and measure what they make of them.

    Requests go out at a fixed rate whatever was answered before, and a latency counts from the moment at
    which its request was due. Which side is first alternates. Only GET, HEAD and OPTIONS are sent, unless
    --allow names an endpoint. Requests of a session go out in order, each after the answers to the last.

    Exit code: 1 if the status of answers differs, side B fails where A does not, or calls downstream where A
    does not; 2 on bad usage or input. Whether side B is slower says `smidgen trial verdict`.
    """
    from agents.commands.replay.showing import as_object, is_finding, show_result
    from agents.experiments.replay.plan import Choice
    from pipeline.files.outputs import check_outputs, write_output

    if options["rate"] and options["speed"]:
        raise click.UsageError("--rate and --speed: give one")
    check_outputs({"--to": output}, [path])
    choice = Choice(options["endpoints"], options["allowed"], options["mix"])
    downstream = _downstream(options)
    read_cpu = _cpu(options)
    chosen = read_chosen(path, choice, options["rules"])
    result = asyncio.run(_replay(chosen, _experiment(options), downstream, read_cpu))
    if output:
        content = result.rows.csv()
        if content.count(b"\n") < 2:
            raise ConfigError("no request was answered by both sides: there are no trials to write")
        write_output(output, content)
    if as_json:
        import orjson

        click.echo(orjson.dumps(as_object(result)).decode())
    else:
        show_result(result)
    return 1 if is_finding(result) else 0


async def _replay(
    chosen: list[NamedRequest],
    experiment: Experiment,
    downstream: DownstreamConfig | None,
    read_cpu: ReadCpu | None,
) -> Result:
    from agents.experiments.replay.experiment import counted_downstream, run_trials
    from pipeline.commands.terminal import print_note

    done = [0]

    def ended() -> None:
        done[0] += 1
        print_note(f"trial {done[0]} of {experiment.pace.trials}")

    async with AsyncExitStack() as stack:
        counts = await stack.enter_async_context(counted_downstream(downstream)) if downstream else ()
        return await run_trials(chosen, experiment, read_cpu=read_cpu, counts=counts, ended=ended)


def _experiment(options: dict[str, Any]) -> Experiment:
    from agents.experiments.replay.connection import address_of_url
    from agents.experiments.replay.experiment import Experiment, PaceConfig
    from agents.experiments.replay.plan import Rewriting
    from agents.experiments.replay.replayer import ReplayConfig

    rate = None if options["speed"] else options["rate"] or 50.0
    return Experiment(
        (address_of_url(options["url_a"]), address_of_url(options["url_b"])),
        PaceConfig(rate, options["speed"] or 1.0, options["requests"], options["warm_up"], options["trials"]),
        Rewriting(options["put"]),
        ReplayConfig(
            connections=options["connections"],
            timeout_s=options["timeout_s"],
            timings=options["timings"],
        ),
    )


def _downstream(options: dict[str, Any]) -> DownstreamConfig | None:
    addresses = [options["downstream_a"], options["downstream_b"]]
    if not any((*addresses, options["upstream"], options["answers"])):
        return None
    if not all(addresses):
        raise click.UsageError("--downstream-a and --downstream-b: give both, one address for each side")
    if not (options["upstream"] or options["answers"]):
        raise click.UsageError("--downstream or --answers: say what the calls of both sides are answered by")
    from agents.experiments.replay.downstream import read_answers
    from agents.experiments.replay.experiment import DownstreamConfig

    answers = read_answers(options["answers"]) if options["answers"] else ()
    return DownstreamConfig((addresses[0], addresses[1]), options["upstream"] or "", answers)


def _cpu(options: dict[str, Any]) -> ReadCpu | None:
    readers = [_reader(side, options[f"{side}_pid"], options[f"{side}_cgroup"]) for side in ("a", "b")]
    if not any(readers):
        return None
    a, b = readers
    if a is None or b is None:
        raise click.UsageError("CPU time: give a process or a cgroup of both sides")
    return lambda: (a(), b())


def _reader(side: str, pid: int | None, cgroup: Path | None) -> _Reader | None:
    from agents.experiments.replay.cpu import cgroup_cpu, process_cpu

    if pid and cgroup:
        raise click.UsageError(f"--{side}-pid and --{side}-cgroup: give one")
    try:
        return process_cpu(pid) if pid else cgroup_cpu(cgroup) if cgroup else None
    except ConfigError as error:
        raise ConfigError(f"--{side}-{'pid' if pid else 'cgroup'}: {error}") from None
