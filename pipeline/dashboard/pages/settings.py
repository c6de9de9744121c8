"""Two settings of a workload side by side: what each reports of the last month, and the ROC by verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiohttp import web

from pipeline.dashboard.site import Site, site_of
from pipeline.errors import ConfigError
from pipeline.feedback import Roc
from pipeline.feedback.comparison import Line, Setting, fewer, more, tally
from pipeline.feedback.thresholds import rocs_of
from pipeline.stages.gather.reported import gather_answered
from pipeline.stages.gather.tried_settings import gather_comparison, setting_of
from pipeline.units import DAY_S
from pipeline.workloads import Workload

routes = web.RouteTableDef()

SPAN_S = 30 * DAY_S
MOST_LINES = 500
_BOUNDS = ("threshold", "chance", "other_threshold", "other_chance")


@routes.get("/settings", name="settings")
async def show_settings(request: web.Request) -> web.Response:
    """Show the list under the two settings of the URL, those lines first that differ."""
    site, asked = site_of(request), request.query
    scanning = sorted({item.workload for item in site.board.snapshot.items} & set(site.sources.workloads))
    name = asked.get("workload", "") or next(iter(scanning), "")
    service = asked.get("service", "")
    if not name:
        return _page(request, scanning, "", service, None, (), ())
    workload = site.workload(name)
    tried = _tried(workload, asked)
    lines, rocs = await site.draw(_read, site, workload, service or None, tried)
    return _page(request, scanning, name, service, tried, lines, rocs)


def _page(
    request: web.Request,
    scanning: Sequence[str],
    workload: str,
    service: str,
    tried: tuple[Setting, Setting] | None,
    lines: Sequence[Line],
    rocs: Sequence[Roc],
) -> web.Response:
    site = site_of(request)
    shown = sorted(lines, key=lambda line: not line.differs)  # stable: the latest change first
    return site.render(
        request,
        "settings.html",
        workloads=scanning,
        workload=workload,
        services=[one.name for one in site.board.snapshot.services],
        service=service,
        tried=tried,
        lines=shown[:MOST_LINES],
        total=len(lines),
        reported=sum(line.first.fate == "reported" for line in lines),
        fewer=tally(fewer(lines)),
        more=tally(more(lines)),
        curves=[(each.setting, each.area, _curve(each)) for each in rocs if each.points],
    )


def _read(
    site: Site, workload: Workload, service: str | None, tried: tuple[Setting, Setting]
) -> tuple[tuple[Line, ...], tuple[Roc, ...]]:
    now = site.sources.clock()
    lines = gather_comparison(site.store, workload, service, (now - SPAN_S, now), tried)
    answered = gather_answered(site.store, service)
    judged = [one for each in answered if (one := each.judged) and one.reported.workload == workload.name]
    return lines, rocs_of(judged, tried[0].measure)


def _tried(workload: Workload, asked: Mapping[str, str]) -> tuple[Setting, Setting]:
    """Return the setting on the left, the present one unless the URL has another, and that on the right."""
    bounds = {name: _bound(name, asked.get(name, "")) for name in _BOUNDS}
    return (
        setting_of(workload, bounds["threshold"], bounds["chance"]),
        setting_of(workload, bounds["other_threshold"], bounds["other_chance"]),
    )


def _bound(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        bound = float(text)
    except ValueError:
        bound = 0.0
    if not 0 < bound < float("inf"):
        raise ConfigError(f"{name}: should be a number above 0, not {text[:40]!r}")
    return bound


def _curve(found: Roc) -> str:
    """Return a curve as the points of an SVG polyline in a square of 100: wrong ones right, right ones up."""
    steps = [(0.0, 0.0), *((point.passed, point.kept) for point in found.points)]
    return " ".join(f"{x * 100:.1f},{100 - y * 100:.1f}" for x, y in steps)
