"""The functions of each service and release with the most self CPU, as metrics of Prometheus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from pipeline.model import StackMatrix
from pipeline.model.frames import series_of
from pipeline.model.units import HOUR_S, MINUTE_S
from pipeline.storage.interface import StackQuery, Store, StrataQuery
from pipeline.telemetry.metrics import TOP_FUNCTION_GCPU, Sample, exposition
from pipeline.views.dashboard.site import Site, site_of

SPAN_S = HOUR_S
"""Length of the span, the last whole hour: stacks are counted in windows that divide an hour."""

LATE_S = 2 * MINUTE_S
MOST_FUNCTIONS = 20
MOST_RELEASES = 3
MOST_SERVICES = 100
"""Bounds of a page: functions of a release, releases of a service (those with the most samples), services."""

KEPT_S = 60.0
"""Time for which a page is reused: it takes a query of stacks for each service and release."""

routes = web.RouteTableDef()


@dataclass(frozen=True, slots=True)
class TopFunction:
    """A function and its self share of a release's samples."""

    service: str
    release: str  # empty: unknown
    function: str
    gcpu: float


def self_shares(stacks: StackMatrix, most: int) -> list[tuple[str, float]]:
    """Return functions and their self shares of the second span's samples, the largest first."""
    if not stacks.total_after > 0:
        return []
    samples: defaultdict[str, float] = defaultdict(float)
    for stack, count in zip(stacks.stacks, stacks.after.tolist(), strict=True):
        names = (series.name for series in map(series_of, reversed(stack)) if series.kind == "subroutine")
        if (leaf := next(names, None)) is not None and count > 0:
            samples[leaf] += count
    order = sorted(samples, key=lambda name: (-samples[name], name))
    return [(name, samples[name] / stacks.total_after) for name in order[:most]]


def read_top_functions(
    store: Store, services: Sequence[str], now: float, most: int = MOST_FUNCTIONS
) -> Iterator[TopFunction]:
    """Yield the top functions of services over the last whole hour, by release if senders are known.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    for service in services:
        end = (now - LATE_S) // SPAN_S * SPAN_S
        span, nothing = (end - SPAN_S, end), (end - SPAN_S, end - SPAN_S)
        matrix = store.counts(StrataQuery(service, *span, SPAN_S, []))
        strata: defaultdict[str, list[int]] = defaultdict(list)
        samples: defaultdict[str, float] = defaultdict(float)
        for stratum, total in zip(matrix.strata, matrix.totals.sum(axis=1).tolist(), strict=True):
            strata[stratum.release].append(stratum.id)
            samples[stratum.release] += total
        releases = sorted(strata, key=lambda release: -samples[release])[:MOST_RELEASES]
        for release in releases or [""]:
            sides = ((), strata[release]) if releases else None
            stacks = store.counts(StackQuery(service, nothing, span, strata=sides))
            for function, gcpu in self_shares(stacks, most):
                yield TopFunction(service, release, function, gcpu)


class TopFunctionsPage:
    """The page, and its time."""

    def __init__(self) -> None:
        self._text = ""
        self._made_at = float("-inf")

    def text(self, site: Site) -> str:
        """Return the page, a new one if the last is old."""
        now = site.sources.clock()
        if now - self._made_at >= KEPT_S:
            services = sorted(site.board.snapshot.services, key=lambda state: -state.samples_per_s)
            names = [state.name for state in services[:MOST_SERVICES]]
            self._text = exposition(map(_sample, read_top_functions(site.store, names, now)))
            self._made_at = now
        return self._text


PAGE = web.AppKey("top_functions", TopFunctionsPage)


@routes.get("/metrics")
async def show_metrics(request: web.Request) -> web.Response:
    """Return the top functions and failures of background tasks for Prometheus."""
    site = site_of(request)
    functions = await site.read(request.app[PAGE].text, site)
    return web.Response(text=functions + exposition(site.tasks.samples()))


def _sample(top: TopFunction) -> Sample:
    labels = {"service": top.service, "release": top.release, "function": top.function}
    return TOP_FUNCTION_GCPU, labels, top.gcpu
