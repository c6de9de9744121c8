"""Flame graphs of any service, span and senders, compared with others, and the senders of the samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np
from aiohttp import web

from pipeline.model import StrataMatrix
from pipeline.views.dashboard.comparison import read_view_stacks
from pipeline.views.dashboard.flames import NOTHING, annotated, flames_of
from pipeline.views.dashboard.selection import (
    AGAINST,
    SPANS,
    View,
    choices_of,
    label_text,
    parts_of,
    read_view,
)
from pipeline.views.dashboard.site import Site, site_of

routes = web.RouteTableDef()

_MOST_SENDERS = 60
_NOT_SAID = "(not said)"


@dataclass(frozen=True, slots=True)
class SampleSender:
    """Samples of one host, release or label."""

    name: str
    samples: float
    share: float  # of the service's samples
    gcpu: float | None  # of the requested element; None without one


def senders_of(strata: StrataMatrix, by: str) -> list[SampleSender]:
    """Return the senders of samples by host, release or a label, the largest first."""
    totals, counted = strata.totals.sum(axis=1), strata.counted_totals
    whole = float(totals.sum())
    inside = strata.samples.sum(axis=0) if len(strata.series) else None
    groups: dict[str, list[int]] = {}
    for index, stratum in enumerate(strata.strata):
        groups.setdefault(parts_of(stratum).get(by, "") or _NOT_SAID, []).append(index)
    senders = []
    for name, rows in groups.items():
        samples = float(totals[rows].sum())
        total = float(counted[rows].sum())
        gcpu = float(np.sum(inside[rows])) / total if inside is not None and total else None
        senders.append(SampleSender(name, samples, samples / whole if whole else 0.0, gcpu))
    return sorted(senders, key=lambda sender: (-sender.samples, sender.name))[:_MOST_SENDERS]


def address(given: Mapping[str, str], **changed: str) -> str:
    """Return an address of the explorer with some parameters changed; empty ones are left out."""
    return urlencode({name: value for name, value in {**given, **changed}.items() if value})


@routes.get("/explorer")
async def show_explorer(request: web.Request) -> web.Response:
    """Show the form; its flame graphs are loaded afterwards."""
    site = site_of(request)
    view = view_of(site, request.query)
    return site.render(
        request,
        "explorer.html",
        view=view,
        services=[service.name for service in site.board.snapshot.services],
        spans=list(SPANS),
        against=AGAINST,
        query=request.rel_url.raw_query_string,
    )


@routes.get("/explorer/flames")
async def show_flames(request: web.Request) -> web.Response:
    """Return flame graphs, largest shifts and senders of a selection, as a part of the page."""
    site = site_of(request)
    view = view_of(site, request.query)

    def draw() -> web.Response:
        comparison = read_view_stacks(site.store, view)
        return site.render(
            request,
            "explorer_flames.html",
            flames=flames_of(comparison, view.service, view.within or NOTHING, view.within),
            found=comparison,
            senders=senders_of(comparison.strata, view.by),
            choices=choices_of(comparison.strata.strata),
            endpoints=annotated(comparison.stacks),
            view=view,
            query=request.rel_url.raw_query_string,
            narrowed=narrowed(request.query, view.by),
        )

    return await site.draw(draw)


def narrowed(given: Mapping[str, str], by: str) -> Mapping[str, object]:
    """Return functions for addresses of one sender, of one compared with all others, and of an endpoint."""
    nobody = {"other_release": "", "other_host": "", "other_label": ""}

    def only(name: str) -> str:
        return "" if name == _NOT_SAID else address(given, **_of(by, name))

    def apart(name: str) -> str:
        return "" if name == _NOT_SAID else address(given, **_of(by, name), **nobody, against="same")

    return {"only": only, "apart": apart, "within": lambda name: address(given, within=name)}


def _of(by: str, name: str) -> dict[str, str]:
    return {by: name} if by in ("release", "host") else {"label": label_text(f"{by}={name}")}


def view_of(site: Site, given: Mapping[str, str]) -> View:
    """Return the view of an address: by default the busiest service, up to its last scan.

    Raises:
        ConfigError: the parameter that is wrong.
    """
    services = site.board.snapshot.services
    busiest = max(services, key=lambda service: service.samples_per_s, default=None)
    name = given.get("service") or (busiest.name if busiest else "")
    last = {service.name: service.last_scan for service in services}.get(name) or site.sources.clock()
    return read_view(given, name, last)
