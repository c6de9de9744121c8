"""Flame graphs of any service and span, and who sent its samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from aiohttp import web

from pipeline.clock import from_iso
from pipeline.dashboard.flames import NOTHING, annotated, flames_of, within
from pipeline.dashboard.site import Site, site_of
from pipeline.errors import ConfigError, InvalidMessage
from pipeline.frames import series_of
from pipeline.model import METRIC_KINDS, StrataMatrix, Stratum
from pipeline.units import DAY_S, HOUR_S, MINUTE_S, WEEK_S

routes = web.RouteTableDef()

SPANS: Mapping[str, float] = {
    "15m": 15 * MINUTE_S,
    "1h": HOUR_S,
    "4h": 4 * HOUR_S,
    "1d": DAY_S,
    "3d": 3 * DAY_S,
    "7d": WEEK_S,
}
AGAINST: Mapping[str, str] = {
    "": "nothing",
    "before": "the span before",
    "day": "the day before",
    "week": "the week before",
}
"""What a span may be held against."""

_PREFIXES = [measure.prefix for measure in METRIC_KINDS.values() if measure.gcpu and measure.prefix]
_MOST_SENDERS = 60
_PARTS = 24  # of a span: counts of series may begin within it


@dataclass(frozen=True, slots=True)
class View:
    """What the explorer shows, as its URL says it."""

    service: str
    start: float
    end: float
    before: tuple[float, float]  # empty where nothing is compared
    span: str
    against: str
    within: str  # an element that every stack holds; empty: all stacks
    by: str  # senders by host, release or a label


@dataclass(frozen=True, slots=True)
class Sender:
    """Samples of one host, release or label."""

    name: str
    samples: float
    share: float  # of the service's samples
    gcpu: float | None  # of the element that is asked for; None without one


def read_view(given: Mapping[str, str], service: str, last: float) -> View:
    """Read the URL of the explorer.

    Args:
        given: Its parameters.
        service: The one that is shown unless another is named.
        last: Where the span ends unless it is said.

    Raises:
        ConfigError: the parameter that is wrong.
    """
    span, against = given.get("span") or "1d", given.get("against", "")
    if span not in SPANS:
        raise ConfigError(f"span: should be one of {', '.join(SPANS)}, not {span[:40]!r}")
    if against not in AGAINST:
        raise ConfigError(
            f"against: should be one of {', '.join(filter(None, AGAINST))}, not {against[:40]!r}"
        )
    try:
        end = from_iso(given["end"]) if given.get("end") else last
    except InvalidMessage as error:
        raise ConfigError(f"end: {error}") from None
    length = SPANS[span]
    back = {"": 0.0, "before": length, "day": DAY_S, "week": WEEK_S}[against]
    start = end - length
    before = (start - back, end - back) if back else (start, start)
    shown = given.get("service") or service
    return View(
        shown, start, end, before, span, against, given.get("within", "").strip(), given.get("by") or "host"
    )


def senders_of(strata: StrataMatrix, by: str) -> list[Sender]:
    """Return who sent samples by host, release or a label, the largest first."""
    totals, counted = strata.totals.sum(axis=1), strata.counted_totals
    whole = float(totals.sum())
    inside = strata.samples.sum(axis=0) if len(strata.series) else None
    groups: dict[str, list[int]] = {}
    for index, stratum in enumerate(strata.strata):
        groups.setdefault(parts_of(stratum).get(by, "") or "(not said)", []).append(index)
    found = []
    for name, rows in groups.items():
        samples = float(totals[rows].sum())
        known = float(counted[rows].sum())
        gcpu = float(np.sum(inside[rows])) / known if inside is not None and known else None
        found.append(Sender(name, samples, samples / whole if whole else 0.0, gcpu))
    return sorted(found, key=lambda one: (-one.samples, one.name))[:_MOST_SENDERS]


def parts_of(stratum: Stratum) -> dict[str, str]:
    """Return what is known of who sent samples: host, release and labels."""
    return {"host": stratum.host, "release": stratum.release, **dict(stratum.labels)}


@routes.get("/explorer")
async def show_explorer(request: web.Request) -> web.Response:
    """Show the form; its flame graphs come when the page is there."""
    site = site_of(request)
    view = _view(site, request)
    return site.render(
        request,
        "explorer.html",
        view=view,
        services=[one.name for one in site.board.snapshot.services],
        spans=list(SPANS),
        against=AGAINST,
        query=request.query_string,
    )


@routes.get("/explorer/flames")
async def show_flames(request: web.Request) -> web.Response:
    """Return flame graphs, largest shifts and senders of a span, as a part of the page."""
    site = site_of(request)
    view = _view(site, request)

    def draw() -> web.Response:
        stacks = site.store.stacks(view.service, view.before, (view.start, view.end))
        known = annotated(stacks, _PREFIXES)
        if view.within:
            stacks = within(stacks, view.within)
        names = [series_of(view.within)] if view.within else []
        strata = site.store.strata(
            view.service, view.start, view.end, (view.end - view.start) / _PARTS, names
        )
        labels = sorted({name for one in strata.strata for name in parts_of(one)})
        return site.render(
            request,
            "explorer_flames.html",
            flames=flames_of(stacks, view.service, view.within or NOTHING),
            senders=senders_of(strata, view.by),
            labels=labels,
            known=known,
            view=view,
        )

    return await site.draw(draw)


def _view(site: Site, request: web.Request) -> View:
    services = site.board.snapshot.services
    busiest = max(services, key=lambda one: one.samples_per_s, default=None)
    name = request.query.get("service") or (busiest.name if busiest else "")
    last = {one.name: one.last_scan for one in services}.get(name) or site.sources.clock()
    return read_view(request.query, name, last)
