"""``smidgen replay run``: the same requests to both sides at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents.commands.replay.options import SelectionRequest, side_url
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import print_json
from pipeline.files.values import address_of
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from agents.experiments.replay.experiment import DownstreamConfig, ReadCpu, ReplayExperiment, ReplayResult
    from agents.experiments.replay.plan import NamedRequest

_EXAMPLES = """\b
Examples:
  smidgen replay run shop.jsonl.gz --a http://127.0.0.1:8001 --b http://127.0.0.1:8002 --to trials.csv
  smidgen replay run shop.jsonl.gz --a http://127.0.0.1:8001 --b http://127.0.0.1:8002 --allow 'POST /cart'
  smidgen trial verdict trials.csv --threshold 0.005
"""

_Reader = Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class _RunRequest:
    rate: float | None = option(above=0, most=1e6, help="Requests a second to each side (default: 50).")
    speed: float | None = option(
        above=0, help="Factor on the recorded speed, instead of --rate: requests go out at recorded times."
    )
    requests: int = option(1000, least=1, help="Requests that are measured in each trial.")
    warm_up: int = option(100, least=0, help="Requests before these in each trial, not measured.")
    trials: int = option(1, least=1, most=10_000, help="Number of trials.")
    timings: tuple[str, ...] = option(
        flag="--timing", metavar="NAME", help="Metric of the answers' header Server-Timing."
    )
    a_pid: int | None = option(least=1, help="Process of side A, whose CPU time is measured.")
    b_pid: int | None = option(least=1, help="Process of side B.")
    a_cgroup: Path | None = option(
        metavar="DIR", help="Cgroup of side A instead of --a-pid, such as a container's."
    )
    b_cgroup: Path | None = option(metavar="DIR", help="Cgroup of side B.")
    downstream_a: tuple[str, int] | None = option(
        parse=address_of, metavar="HOST:PORT", help="Address at which calls of side A are taken and counted."
    )
    downstream_b: tuple[str, int] | None = option(
        parse=address_of, metavar="HOST:PORT", help="Address at which calls of side B are taken and counted."
    )
    upstream: str | None = option(
        flag="--downstream", parse=side_url, metavar="URL", help="Service that the calls are passed on to."
    )
    answers: Path | None = option(help="YAML file of canned answers to the calls (docs/replay.md).")
    output: Path | None = option(
        flag="--to",
        help="File of trials to write, for `smidgen trial verdict` and `publish`.",
    )


@click.command(epilog=_EXAMPLES)
@takes
def run(selection: SelectionRequest, request: _RunRequest, as_json: bool = json_option()) -> int:
    """Send the requests of a recording to two sides at the same moment, and measure what they make of them.

    Requests go out at a fixed rate whatever was answered before, and a latency counts from the moment at
    which its request was due. Which side is first alternates. Only GET, HEAD and OPTIONS are sent, unless
    --allow names an endpoint. Requests of a session go out in order, each after the answers to the last.

    Exit code: 1 if the status of answers differs, side B fails where A does not, calls downstream where A
    does not, or both sides serve fewer than half of the requests of an endpoint (a request is not served by
    no answer, 5xx, or 4xx or a redirect unlike the recorded answer, and is in no trial); 2 on bad usage or
    input. Whether side B is slower says `smidgen trial verdict`.
    """
    from agents.commands.replay.showing import as_object, is_finding, show_result
    from pipeline.commands.terminal import print_note
    from pipeline.files.outputs import check_outputs, write_output

    if request.rate and request.speed:
        raise click.UsageError("--rate and --speed: give one")
    check_outputs({"--to": request.output}, [selection.path])
    downstream, read_cpu = _downstream(request), _cpu(request)
    experiment = _experiment(selection, request)
    result = asyncio.run(_replay(selection.read(), experiment, downstream, read_cpu))
    if as_json:
        print_json(as_object(result))
    else:
        show_result(result)
    if request.output:
        content = result.rows.csv()
        if content.count(b"\n") > 1:
            write_output(request.output, content)
        else:
            print_note(f"{request.output}: not written, no request was served by both sides")
    return 1 if is_finding(result) else 0


async def _replay(
    chosen: list[NamedRequest],
    experiment: ReplayExperiment,
    downstream: DownstreamConfig | None,
    read_cpu: ReadCpu | None,
) -> ReplayResult:
    from agents.experiments.replay.experiment import counted_downstream, run_trials
    from pipeline.commands.terminal import print_note

    done = [0]

    def ended() -> None:
        done[0] += 1
        print_note(f"trial {done[0]} of {experiment.pace.trials}")

    async with AsyncExitStack() as stack:
        counts = await stack.enter_async_context(counted_downstream(downstream)) if downstream else ()
        return await run_trials(chosen, experiment, read_cpu=read_cpu, counts=counts, ended=ended)


def _experiment(selection: SelectionRequest, request: _RunRequest) -> ReplayExperiment:
    from agents.experiments.replay.experiment import PaceConfig, ReplayExperiment
    from agents.experiments.replay.plan import Rewriting
    from agents.experiments.replay.replayer import ReplayConfig

    rate = None if request.speed else request.rate or 50.0
    return ReplayExperiment(
        selection.addresses,
        PaceConfig(rate, request.speed or 1.0, request.requests, request.warm_up, request.trials),
        Rewriting(selection.put),
        ReplayConfig(
            connections=selection.connections, timeout_s=selection.timeout_s, timings=request.timings
        ),
    )


def _downstream(request: _RunRequest) -> DownstreamConfig | None:
    a, b = request.downstream_a, request.downstream_b
    if not (a or b or request.upstream or request.answers):
        return None
    if not (a and b):
        raise click.UsageError("--downstream-a and --downstream-b: give both, one address for each side")
    if not (request.upstream or request.answers):
        raise click.UsageError("--downstream or --answers: say what the calls of both sides are answered by")
    from agents.experiments.replay.downstream import read_answers
    from agents.experiments.replay.experiment import DownstreamConfig

    answers = read_answers(request.answers) if request.answers else ()
    return DownstreamConfig((a, b), request.upstream or "", answers)


def _cpu(request: _RunRequest) -> ReadCpu | None:
    a = _reader("a", request.a_pid, request.a_cgroup)
    b = _reader("b", request.b_pid, request.b_cgroup)
    if a is None and b is None:
        return None
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
