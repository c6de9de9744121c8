"""``smidgen bench``: measures this machine, since figures from another one say little."""

from __future__ import annotations

import importlib
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
from pipeline.commands.request import EXISTING_FILE, argument, option
from pipeline.processes.allocation import keep_freed_memory

Measure = Callable[[Advance], list[Result]]


NAMES = ("aggregate", "detect", "scan", "stacks", "storage", "peers")

OF_THE_PRODUCT = ("aggregate", "detect", "scan")
"""What is measured unless names are given: not stacks, which take a gigabyte, nor what takes long."""


OF_THEIR_OWN = {
    "accuracy": "loadgen.evaluation.suite.command",
    "grouping": "loadgen.evaluation.grouping.command",
    "injected": "loadgen.evaluation.injected",
    "faults": "loadgen.bench.faults.command",
    "soak": "loadgen.bench.soak_report",
    "catch-up": "loadgen.bench.catch_up",
    "live": "loadgen.bench.live.command",
    "dashboard": "loadgen.bench.dashboard",
    "release": "loadgen.bench.releases",
    "scale": "loadgen.bench.scale",
    "feedback": "loadgen.bench.feedback",
    "labeller": "loadgen.bench.labeller",
    "sampling": "loadgen.bench.sampling.command",
    "gateway": "loadgen.bench.gateway.command",
    "inprocess": "loadgen.bench.inprocess",
    "overhead": "loadgen.bench.overhead.command",
    "adaptive": "loadgen.bench.overhead.adaptive",
    "replay": "loadgen.bench.replay",
    "trials": "loadgen.bench.trials.command",
    "requests": "loadgen.requests.command",
    "applications": "loadgen.applications.command",
    "suspects": "loadgen.requests.suspects",
    "bisect": "loadgen.bench.bisection.command",
    "histories": "loadgen.bench.histories.command",
}
"""Benchmarks with options of their own → the module that defines each under its name."""


class _Bench(click.Command):
    """The benchmarks of speed; other benchmarks are subcommands."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the one that is asked for."""
        if not args or args[0] not in OF_THEIR_OWN:
            return super().make_context(info_name, args, parent=parent, **extra)
        name, *rest = args
        command: click.Command = getattr(importlib.import_module(OF_THEIR_OWN[name]), name.replace("-", "_"))
        return command.make_context(f"{info_name} {name}", rest, parent=parent, **extra)


@dataclass(frozen=True, slots=True)
class _SpeedRequest:
    names: tuple[str, ...] = argument(click.Choice(NAMES), metavar="[NAME]...")
    series: int = option(80_000, least=1, help="Of the fleet in scan; FBDetect's largest has 800,000.")
    stacks: int = option(100_000, least=1, help="Of the service in stacks, each of 40 frames.")
    profile: Path | None = option(
        kind=EXISTING_FILE,
        help="A profile file: detect is measured on a fleet of its call tree, too.",
    )


@harness.bench(_SpeedRequest, json="one JSON object a result", cls=_Bench)
def bench(request: _SpeedRequest) -> Experiment[Result]:
    """Measure speed on this machine: aggregate, detect, scan, or, when named, stacks, storage or peers.

    aggregate: messages and samples a second, of the clock and of processor time, for the stage alone, for a
    worker process from Kafka to the store, on an embedded broker and store, and for the same store without
    Smidgen, which is given JSON rows and counts them by a materialised view. detect: series of 500 and
    1,500 windows a second, by the screen alone, by the whole detector, and by a naive CUSUM of numpy, on
    steady noise and, given --profile, on a fleet of a real call tree in which much moves. scan: a whole
    fleet, by detector and filters, on all cores. stacks: time and memory of comparing all stacks of a
    service around one change with those of a week. storage: what it costs to know who sent samples, in
    bytes a sample and rows that a scan reads. peers: `smidgen detect` beside other detectors that are
    installed, accuracy and speed.

    How accurate the pipeline is measures `smidgen bench accuracy`, and how well it groups regressions by
    cause `smidgen bench grouping`; from what size on steps in real series are found `smidgen bench
    injected`. Which steps of one process the preset live reports within a minute measures `smidgen bench
    live`. How often releases are called slower that are or are not measures `smidgen bench release`. What
    it loses or doubles under faults measures `smidgen bench faults`, whether its memory stays flat `smidgen
    bench soak`, how workers that were away for a day catch up `smidgen bench catch-up`, and what scans of
    many large services take `smidgen bench scale`. What people's verdicts teach measures `smidgen bench
    feedback`, and how well comments are classed `smidgen bench labeller`. What sampling at rates that
    follow profiles and pruned stacks save measures `smidgen bench sampling`, what a gateway takes under
    many agents `smidgen bench gateway`, and how often models of trials err `smidgen bench trials`. How
    often a request that costs more in a new release is seen and named measures `smidgen bench requests`, in
    two real web applications `smidgen bench applications`, how often its commit is the first suspect
    `smidgen bench suspects`, and how often `smidgen trial bisect` names the right commit `smidgen bench
    bisect`. How well changes in histories of benchmarks are found, beside peers, measures `smidgen bench
    histories`. What sampling costs real programs measures `smidgen bench overhead`, with rates that follow
    profiles `smidgen bench adaptive`, and what the sampler inside a Python program costs it `smidgen bench
    inprocess`. Whether requests are replayed when they are due measures `smidgen bench replay`. These have
    options of their own.
    """
    keep_freed_memory()
    benchmarks = _benchmarks(request)
    chosen = [benchmarks[name] for name in request.names or OF_THE_PRODUCT]
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
