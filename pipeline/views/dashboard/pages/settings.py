"""Settings of a workload: two side by side over a month, and precision and thresholds by verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from aiohttp import web

from pipeline.analysis.feedback import (
    AnsweredEvent,
    Precision,
    Proposal,
    Roc,
    ThresholdConfig,
    precision_table,
    propose_thresholds,
)
from pipeline.analysis.feedback.comparison import RegressionLine, TriedBounds, fewer, more, tally
from pipeline.analysis.feedback.thresholds import Measure, rocs_of
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.reported import gather_answered
from pipeline.stages.gather.tried_settings import gather_comparison, setting_of
from pipeline.views.dashboard.site import Site, site_of

routes = web.RouteTableDef()

SPAN_S = 30 * DAY_S
MOST_LINES = 500
KEEPS = (1.0, 0.95, 0.9)
"""Smallest shares of right events that proposed thresholds keep: points on the ROC curve."""

_BOUNDS = ("threshold", "chance", "other_threshold", "other_chance")


@dataclass(frozen=True, slots=True)
class _Found:
    """Data of a workload: the list under two settings, and answers to its events."""

    lines: tuple[RegressionLine, ...] = ()
    rocs: tuple[Roc, ...] = ()
    precision: tuple[Precision, ...] = ()
    proposals: tuple[Proposal, ...] = ()


@routes.get("/settings", name="settings")
async def show_settings(request: web.Request) -> web.Response:
    """Show two settings of a workload, from the URL; their effect is loaded afterwards."""
    site, parameters = site_of(request), request.query
    scanning = sorted({item.workload for item in site.board.snapshot.items} & set(site.sources.workloads))
    name = parameters.get("workload", "") or next(iter(scanning), "")
    query = {**parameters, "workload": name}
    return site.render(
        request,
        "settings.html",
        workloads=scanning,
        workload=name,
        services=[service.name for service in site.board.snapshot.services],
        service=parameters.get("service", ""),
        tried=_tried(site.workload(name), parameters) if name else None,
        query=urlencode(query),
    )


@routes.get("/settings/compared")
async def show_compared(request: web.Request) -> web.Response:
    """Return the list under the two settings of the URL as a part of the page, differing lines first."""
    site, query = site_of(request), request.query
    workload = site.workload(query.get("workload", ""))
    tried = _tried(workload, query)
    data = await site.draw(_read, site, workload, query.get("service") or None, tried)
    shown = sorted(data.lines, key=lambda line: not line.differs)  # stable: the latest change stays first
    return site.render(
        request,
        "settings_compared.html",
        tried=tried,
        lines=shown[:MOST_LINES],
        total=len(shown),
        reported=sum(line.first.fate == "reported" for line in shown),
        fewer=tally(fewer(shown)),
        more=tally(more(shown)),
        curves=[(each.setting, each.area, _curve(each)) for each in data.rocs if each.points],
        precision=data.precision,
        proposals=data.proposals,
    )


def _read(
    site: Site, workload: Workload, service: str | None, tried: tuple[TriedBounds, TriedBounds]
) -> _Found:
    now = site.sources.clock()
    lines = gather_comparison(site.store, workload, service, (now - SPAN_S, now), tried)
    answered = gather_answered(site.store, service)
    judged = [
        judged_event
        for answer in answered
        if (judged_event := answer.judged) and judged_event.reported.workload == workload.name
    ]
    now_set = setting_of(workload)
    present = {workload.name: (now_set.measure, now_set.threshold)}
    return _Found(
        lines, rocs_of(judged, now_set.measure), precision_table(judged), _proposals(judged, present)
    )


def _proposals(
    judged: Sequence[AnsweredEvent], present: Mapping[str, tuple[Measure, float]]
) -> tuple[Proposal, ...]:
    """Return the proposals for each service, for each share of KEEPS that makes a difference."""
    every = [
        item for keep in KEEPS for item in propose_thresholds(judged, present, ThresholdConfig(keep=keep))
    ]
    by_service: dict[str, dict[float | None, Proposal]] = {}
    for item in every:
        by_service.setdefault(item.service, {}).setdefault(item.proposed, item)
    for proposals in by_service.values():
        if len(proposals) > 1:
            proposals.pop(None, None)
    return tuple(item for proposals in by_service.values() for item in proposals.values())


def _tried(workload: Workload, query: Mapping[str, str]) -> tuple[TriedBounds, TriedBounds]:
    """Return both tried settings: the left is the present one unless the URL has another."""
    bounds = {name: _bound(name, query.get(name, "")) for name in _BOUNDS}
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


def _curve(curve: Roc) -> str:
    """Return a curve as the points of an SVG polyline in a square of 100: wrong ones right, right ones up."""
    steps = [(0.0, 0.0), *((point.passed, point.kept) for point in curve.points)]
    return " ".join(f"{x * 100:.1f},{100 - y * 100:.1f}" for x, y in steps)
