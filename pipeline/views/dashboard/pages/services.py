"""Services: a list with their states, one with its funnel of a day, and one candidate of its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
from aiohttp import web

from pipeline.files.listing import listed
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.ledger import LedgerEntry, entry_from_row
from pipeline.model.errors import ConfigError
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.steps import funnel_steps, step_of
from pipeline.model.units import DAY_S
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard.figures import figure_json
from pipeline.views.dashboard.item import OPEN
from pipeline.views.dashboard.service_state import ServiceState
from pipeline.views.dashboard.site import Site, site_of
from pipeline.views.report.case import series_of
from pipeline.views.report.detectability import outlooks_of, sizes_of
from pipeline.views.report.explain import explain
from pipeline.views.report.figures import series_figure
from pipeline.views.report.ids import full_id, id_prefix
from pipeline.views.report.windows import windows_of

routes = web.RouteTableDef()

LINES = 200
"""Most dropped candidates on one page."""

_LIGHT = ("id", "workload", "metric_kind", "metric", "change_time", "before", "after", "step")


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """One step of a day's funnel."""

    step: str
    asks: str
    dropped: int
    left: int


def funnel_of(steps: Sequence[str]) -> list[FunnelStage]:
    """Return the funnel of candidates by the step that dropped each; empty for reported ones.

    Steps that dropped nothing are left out.
    """
    dropped = Counter(step for step in steps if step)
    left, stages = len(steps), []
    for step in funnel_steps(dropped):
        if dropped[step]:
            left -= dropped[step]
            stages.append(FunnelStage(step, step_of(step).question, dropped[step], left))
    return stages


def read_day(text: str, last_scan: float | None, now: float) -> tuple[date, float]:
    """Return a day and its start, epoch seconds: the given day, or that of the last scan.

    Raises:
        ConfigError: the text is no day, or one that no message can have.
    """
    try:
        day = date.fromisoformat(text) if text else _date(last_scan if last_scan is not None else now)
    except ValueError:
        raise ConfigError(f"day: should be as 2026-01-31, not {text[:40]!r}") from None
    start = datetime.combine(day, time(), UTC).timestamp()
    if text and not EARLIEST_S <= start < LATEST_S:
        raise ConfigError(f"day: should be between 2000 and 2100, not {text[:40]!r}")
    return day, start


@routes.get("/services")
async def show_list(request: web.Request) -> web.Response:
    """Show all services, those that need action first."""
    site = site_of(request)
    snapshot = site.board.snapshot
    counts = snapshot.open_items()
    shown = sorted(
        snapshot.services, key=lambda service: (-counts[service.name], not service.gaps, service.name)
    )
    return site.render(request, "services.html", services=shown, counts=counts)


@routes.get("/services/{service}")
async def show_one(request: web.Request) -> web.Response:
    """Show one service: its workloads, open regressions, and a day's funnel with dropped candidates."""
    site = site_of(request)
    state = _service(site, request.match_info["service"])
    day, start = read_day(request.query.get("day", ""), state.last_scan, site.sources.clock())
    step = request.query.get("step", "")
    rows, scans = await site.read(_read_day, site, state.name, start)
    steps = [row["step"] for row in rows]
    dropped = _once([row for row in rows if row["step"] and step in ("", row["step"])])
    items = [item for item in site.board.snapshot.items if item.service == state.name]
    return site.render(
        request,
        "service.html",
        service=state,
        open_items=[item for item in items if item.state in OPEN][:20],
        total=len(items),
        day=day,
        before=_date(start - DAY_S),
        after=_date(start + DAY_S),
        scans=len(scans),
        most_series=max((row["series"] for row in scans), default=0),
        candidates=len(rows),
        reported=steps.count(""),
        funnel=funnel_of(steps),
        step=step,
        dropped=[{**row, "ratio": is_gcpu(row["metric_kind"])} for row in dropped[:LINES]],
        more=max(0, len(dropped) - LINES),
        workloads=[workload for workload in site.sources.workloads.values() if workload.series == "gcpu"],
        scanned_by={workload.name for workload in state.workloads},
    )


@routes.get("/services/{service}/detectable")
async def show_detectable(request: web.Request) -> web.Response:
    """Show the sizes that a workload detects in the service's traffic, as a part of the page."""
    site = site_of(request)
    state = _service(site, request.match_info["service"])
    workload = site.workload(request.query.get("workload", ""))
    end = state.last_scan if state.last_scan is not None else site.sources.clock()
    try:
        traffic, outlooks = await site.draw(outlooks_of, site.store, state.name, workload, end)
    except ConfigError as error:
        return site.render(request, "detectable.html", traffic=None, outlooks=[], note=str(error))
    return site.render(
        request,
        "detectable.html",
        traffic=traffic,
        outlooks=outlooks,
        sizes=sizes_of(workload),
        workload=workload,
        note="",
    )


@routes.get("/services/{service}/candidates/{id}")
async def show_candidate(request: web.Request) -> web.Response:
    """Show the story of one candidate, step by step."""
    site = site_of(request)
    entry = await site.read(_read_entry, site, request.match_info["service"], request.match_info["id"])
    candidate = entry.candidate
    return site.render(
        request,
        "candidate.html",
        ratio=is_gcpu(candidate.metric_kind),
        entry=entry,
        story=explain(entry),
        drawn=entry.scan.workload in site.sources.workloads,
    )


@routes.get("/services/{service}/candidates/{id}/series.json")
async def show_series(request: web.Request) -> web.Response:
    """Return a candidate's series over the windows of its scan, as a figure."""
    site = site_of(request)

    def draw() -> str | None:
        entry = _read_entry(site, request.match_info["service"], request.match_info["id"])
        workload, candidate = site.workload(entry.scan.workload), entry.candidate
        series = series_of(site.store, entry, workload)
        if series is None or not np.isfinite(series[0].values).any():
            return None
        windows = windows_of(entry.scan, workload)
        levels = (candidate.change_time, candidate.before, candidate.after)
        figure = series_figure(series[0], windows, *levels, interval=candidate.change_time_interval)
        figure.update_yaxes(rangemode="normal")
        figure.update_xaxes(title=None)
        return figure_json(figure)

    text = await site.draw(draw)
    if text is None:
        raise web.HTTPNotFound(reason="the store no longer has this series")
    return web.Response(text=text, content_type="application/json")


def _service(site: Site, name: str) -> ServiceState:
    for state in site.board.snapshot.services:
        if state.name == name:
            return state
    names = listed([state.name for state in site.board.snapshot.services], name)
    raise web.HTTPNotFound(reason=f"no service {name[:100]!r} has sent anything; there are: {names}")


def _once(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the first row of each series that a step dropped in scans of a workload, and their number."""
    shown: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        key = (row["workload"], row["metric_kind"], row["metric"], row["step"])
        shown.setdefault(key, {**row, "scans": 0})["scans"] += 1
    return list(shown.values())


def _read_day(site: Site, service: str, start: float) -> tuple[list[Any], list[Any]]:
    rows = site.store.rows(RowQuery("ledger", service, start, start + DAY_S, columns=_LIGHT))
    scans: list[Mapping[str, Any]] = list(site.store.rows(RowQuery("scans", service, start, start + DAY_S)))
    return sorted(rows, key=lambda row: (-row["time"], -abs(row["after"] - row["before"]))), scans


def _read_entry(site: Site, service: str, key: str) -> LedgerEntry:
    try:
        prefix = id_prefix(key)
        rows = {row["id"]: row for row in site.store.rows(RowQuery("ledger", service, id_prefix=prefix))}
        return entry_from_row(rows[full_id(prefix, rows, f"the ledger of {service} has no such candidate")])
    except ConfigError as error:
        raise web.HTTPNotFound(reason=str(error)) from None


def _date(epoch_s: float) -> date:
    return datetime.fromtimestamp(epoch_s, tz=UTC).date()
