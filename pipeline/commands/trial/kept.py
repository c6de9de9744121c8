"""``smidgen trial kept``: the tests that fixed regressions left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import Duration, json_option, option, takes
from pipeline.commands.tables import print_json_lines
from pipeline.commands.terminal import print_lines
from pipeline.files.listing import listed
from pipeline.model.clock import system_clock
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.config import Settings
from pipeline.storage.interface import StackQuery

if TYPE_CHECKING:
    from pipeline.analysis.stacks import StackIndex
    from pipeline.experiments.selection import EndpointImpact, KeptTest


@click.command()
@takes
def kept(
    service: str = option(metavar="S", help="Service of the tests."),
    span: float = option("1d", kind=Duration(), help="Time of stacks, up to now."),
    as_json: bool = json_option("a test"),
    settings: Settings = settings_options("store", "workloads", "log_level"),
) -> None:
    """List the kept tests of a service: one for each regression that was fixed, and whose cause is known.

    A regression is fixed if a person says so and scans do not contradict, or if it is gone since a change
    that modifies its subroutines. Its cause is the change that a person names, or else the first suspect if
    it is likelier than not. The test is for the subroutine that regressed, and for those of the cause that
    rose with it; endpoints are those by which production reaches them in --span.
    """
    tests = [kept_to_json(*test) for test in _with_endpoints(settings, service, span)]
    if as_json:
        print_json_lines(tests)
    elif tests:
        print_lines(line for test in tests for line in kept_lines(test))
    else:
        print_lines([f"no kept tests of {service}: no fixed regression has a known cause"])


def endpoints_of(index: StackIndex, test: KeptTest) -> tuple[EndpointImpact, ...]:
    """Return the endpoints through which stacks reach a kept test's subroutines."""
    from pipeline.experiments.selection import impact_of

    return impact_of(index, test.labels).endpoints


def kept_to_json(test: KeptTest, endpoints: Sequence[EndpointImpact]) -> dict[str, Any]:
    """Return a kept test as an object; a relative size is null if the cost before was 0."""
    return {
        **asdict(test),
        "threshold": test.threshold if math.isfinite(test.threshold) else None,
        "endpoints": [asdict(endpoint) for endpoint in endpoints],
    }


def kept_lines(test: dict[str, Any]) -> Iterator[str]:
    """Yield lines that describe a kept test, given as an object."""
    yield f"{test['regression']}  {test['metric']} {_size(test)}, by {test['cause']}"
    if test["subroutines"]:
        yield f"  subroutines  {listed(test['subroutines'])}"
    if test["endpoints"]:
        replayed = [f"{part['endpoint']} {part['replay']:.1%}" for part in test["endpoints"]]
        yield f"  replay       {listed(replayed)}"
    for part in test["trials"]:
        yield f"  trials       {_needed(part['needed'])} by {part['metric']}"
    if test["experiments"]:
        yield f"  experiment   {listed(test['experiments'])}"


def _size(test: dict[str, Any]) -> str:
    size = test["threshold"]
    if size is None:
        return "from nothing"
    return f"+{size:.3%} of CPU" if is_gcpu(test["metric_kind"]) else f"by {size:.3%}"


def _needed(trials: int | None) -> str:
    from pipeline.experiments.trials.needed import MOST_TRIALS

    return f"{trials:,}" if trials else f"> {MOST_TRIALS:,}"


def _with_endpoints(
    settings: Settings, service: str, span_s: float
) -> list[tuple[KeptTest, tuple[EndpointImpact, ...]]]:
    from pipeline.analysis.stacks import index_stacks
    from pipeline.settings.names import read_namings
    from pipeline.settings.workloads import known_workloads
    from pipeline.stages.gather.kept_tests import gather_kept
    from pipeline.stages.gather.symbols import SymbolStore
    from pipeline.storage.connect import open_store

    now = system_clock()
    with closing(open_store(settings.store, existing=True)) as opened:
        store = SymbolStore(opened, read_namings(settings.names))
        tests = gather_kept(store, service, known_workloads(settings.workloads))
        if not tests:
            return []
        index = index_stacks(
            store.counts(StackQuery(service, (now - span_s, now - span_s), (now - span_s, now)))
        )
    return [(test, endpoints_of(index, test)) for test in tests]
