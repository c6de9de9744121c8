"""``smidgen bench``: measures this machine, since figures from another one say little."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import click

from loadgen import harness
from loadgen.harness import Advance, Experiment, Result, print_results
from pipeline.commands.lazy_group import load
from pipeline.commands.request import EXISTING_FILE, argument, option
from pipeline.processes.allocation import keep_freed_memory

Measure = Callable[[Advance], list[Result]]


OF_SPEED = {
    "aggregate": "Messages a second: the stage alone, a whole worker, and the store without Smidgen.",
    "detect": "Series a second: the screen, the whole detector, and a naive CUSUM.",
    "scan": "Time of a scan of a whole fleet, by detector and filters, on all cores.",
    "stacks": "Time and memory of comparing all stacks of a service around one change.",
    "storage": "Bytes and rows that it takes to store who sent samples.",
    "peers": "Accuracy and speed of `smidgen detect`, beside other installed detectors.",
}
"""Benches of speed → one line of help."""

DEFAULT = ("aggregate", "detect", "scan")
"""What is measured unless names are given: not stacks, which take a gigabyte, nor what takes long."""

OF_THEIR_OWN = {
    "accuracy": ("loadgen.evaluation.suite.command", "Accuracy of the pipeline on simulated fleets."),
    "grouping": ("loadgen.evaluation.grouping.command", "Grouping of regressions by their cause."),
    "injected": ("loadgen.evaluation.injected", "Smallest steps that are detected in real series."),
    "faults": ("loadgen.bench.faults.command", "Messages that are lost or doubled under faults."),
    "soak": ("loadgen.bench.soak_report", "Memory of the pipeline over hours."),
    "catch-up": ("loadgen.bench.catch_up", "Time to catch up after workers were away for a day."),
    "live": ("loadgen.bench.live.command", "Steps of one process that the preset live reports in a minute."),
    "dashboard": ("loadgen.bench.dashboard", "Time until the first byte of each page of the dashboard."),
    "release": ("loadgen.bench.releases", "False and missed alarms of comparisons of two releases."),
    "scale": ("loadgen.bench.scale", "Cost of scans of many large services."),
    "feedback": ("loadgen.bench.feedback", "Gain of precision and suspects from people's verdicts."),
    "labeller": ("loadgen.bench.labeller", "Precision and recall of the classes of comments."),
    "sampling": ("loadgen.bench.sampling.command", "Savings and losses of adaptive rates and pruned stacks."),
    "gateway": ("loadgen.bench.gateway.command", "Load of a gateway under many agents."),
    "inprocess": ("loadgen.bench.inprocess", "Cost of the sampler inside a Python program."),
    "overhead": ("loadgen.bench.overhead.command", "Cost of sampling real programs."),
    "adaptive": (
        "loadgen.bench.overhead.adaptive",
        "Cost of sampling real programs at rates that follow profiles.",
    ),
    "replay": ("loadgen.bench.replay", "Punctuality of replayed requests."),
    "trials": ("loadgen.bench.trials.command", "Errors of the models of trials."),
    "requests": ("loadgen.requests.command", "Detection of requests that cost more in a new release."),
    "applications": (
        "loadgen.applications.command",
        "Detection of such requests in two real web applications.",
    ),
    "suspects": ("loadgen.requests.suspects", "Rank of the guilty commit among the suspects of a request."),
    "bisect": ("loadgen.bench.bisection.command", "Commits that `smidgen trial bisect` finds."),
    "histories": ("loadgen.bench.histories.command", "Changes in histories of benchmarks, beside peers."),
}
"""Benches with options of their own → (module that defines it under its name, one line of help)."""


class _Bench(click.Command):
    """The benches of speed; other benches are subcommands."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the bench that is asked for."""
        if not args or args[0] not in OF_THEIR_OWN:
            return super().make_context(info_name, args, parent=parent, **extra)
        name, *rest = args
        command: click.Command = getattr(load(OF_THEIR_OWN[name][0]), name.replace("-", "_"))
        return command.make_context(f"{info_name} {name}", rest, parent=parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and a line of each bench."""
        super().format_options(ctx, formatter)
        with formatter.section("Names"):
            formatter.write_dl([*OF_SPEED.items()])
        with formatter.section("Commands with options of their own"):
            formatter.write_dl([(name, line) for name, (_, line) in OF_THEIR_OWN.items()])


@dataclass(frozen=True, slots=True)
class _SpeedRequest:
    names: tuple[str, ...] = argument(click.Choice(tuple(OF_SPEED)), metavar="[NAME]...")
    series: int = option(80_000, least=1, help="Series of the fleet in scan; FBDetect's largest has 800,000.")
    stacks: int = option(100_000, least=1, help="Stacks of the service in stacks, each of 40 frames.")
    profile: Path | None = option(
        kind=EXISTING_FILE,
        help="Profile file: detect is measured on a fleet of its call tree too.",
    )


@harness.bench(json="one JSON object a result", cls=_Bench)
def bench(request: _SpeedRequest) -> Experiment[Result]:
    """Measure speed on this machine; without a NAME, of aggregate, detect and scan.

    `smidgen bench COMMAND` runs a bench with options of its own.
    """
    keep_freed_memory()
    benchmarks = _benchmarks(request)
    chosen = [benchmarks[name] for name in request.names or DEFAULT]
    return Experiment(
        lambda advance: chain.from_iterable(measure(advance) for measure, _ in chosen),
        sum(parts for _, parts in chosen),
        print_results,
    )


def _benchmarks(request: _SpeedRequest) -> dict[str, tuple[Measure, int]]:
    """Return name → (function that measures it, number of parts)."""
    from loadgen.bench.aggregate import PARTS, measure_aggregate
    from loadgen.bench.detect import measure_detect, parts_of
    from loadgen.bench.peers import measure_peers
    from loadgen.bench.scan import measure_scan, services_of
    from loadgen.bench.stacks import STEPS, measure_stacks
    from loadgen.bench.storage import CASES, measure_storage

    scan = partial(measure_scan, series=request.series, processes=os.cpu_count() or 1)
    return {
        "aggregate": (measure_aggregate, PARTS),
        "detect": (partial(measure_detect, profile=request.profile), parts_of(request.profile)),
        "scan": (scan, services_of(request.series)),
        "stacks": (partial(measure_stacks, stacks=request.stacks), STEPS),
        "storage": (measure_storage, len(CASES)),
        "peers": (measure_peers, 5),
    }
