"""Operations: findings of ``smidgen doctor``, and the recent number of samples."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from pipeline.model.units import format_duration
from pipeline.views.dashboard.figures import figure_json
from pipeline.views.dashboard.site import Finding, site_of
from pipeline.views.dashboard.throughput import MOST_READ, SPANS, draw_throughput, read_throughput

routes = web.RouteTableDef()

WORST_FIRST = ("fail", "warn", "ok")

FRESH_S = 10.0
"""Time for which findings are shown again: a check takes seconds."""


@dataclass(frozen=True, slots=True)
class DoctorFindings:
    """Findings, and their time."""

    at: float
    findings: Sequence[Finding]


class Diagnosis:
    """The last check of broker and store; one check serves all requests."""

    def __init__(self) -> None:
        self._last: DoctorFindings | None = None
        self._looking = asyncio.Lock()

    async def look(self, request: web.Request) -> DoctorFindings | None:
        """Return the findings; None if the dashboard has nothing to check."""
        site = site_of(request)
        if site.sources.diagnose is None:
            return None
        async with self._looking:
            now = site.sources.clock()
            if self._last is None or now - self._last.at > FRESH_S:
                findings = await asyncio.to_thread(site.sources.diagnose)
                self._last = DoctorFindings(
                    now, sorted(findings, key=lambda finding: WORST_FIRST.index(finding.status))
                )
            return self._last


DIAGNOSIS = web.AppKey("diagnosis", Diagnosis)


@routes.get("/operations")
async def show_operations(request: web.Request) -> web.Response:
    """Show the store's data at once, and room for the findings."""
    site = site_of(request)
    snapshot = site.board.snapshot
    return site.render(
        request,
        "operations.html",
        services=snapshot.services,
        samples_per_s=sum(service.samples_per_s for service in snapshot.services),
        silent=[service for service in snapshot.services if service.samples_per_s == 0],
        lacking=[service for service in snapshot.services if service.gaps],
        scans=sum(workload.scans for service in snapshot.services for workload in service.workloads),
        looks=site.sources.diagnose is not None,
        spans=[*SPANS],
        read=MOST_READ,
    )


@routes.get("/operations/throughput.json")
async def show_throughput(request: web.Request) -> web.Response:
    """Return samples a second of the busiest services as a figure, over a named span."""
    site = site_of(request)
    span = request.query.get("span") or next(iter(SPANS))
    if span not in SPANS:
        raise web.HTTPNotFound(reason="no such span")
    ranked = sorted(site.board.snapshot.services, key=lambda service: -service.samples_per_s)
    busiest = [service.name for service in ranked[:MOST_READ]]

    def draw() -> str | None:
        figure = draw_throughput(read_throughput(site.store, busiest, span, site.sources.clock()))
        return None if figure is None else figure_json(figure)

    text = await site.draw(draw)
    if text is None:
        width = format_duration(SPANS[span][1])
        raise web.HTTPNotFound(reason=f"no {width} with samples are complete yet in this span")
    return web.Response(text=text, content_type="application/json")


@routes.get("/operations/findings")
async def show_findings(request: web.Request) -> web.Response:
    """Return the findings, as a part of the page."""
    site = site_of(request)
    return site.render(request, "findings.html", found=await request.app[DIAGNOSIS].look(request))
