"""The HTTP API for programs: events, regressions, series, services, and verdicts, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import orjson
from aiohttp import web

from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.verdicts import encode_verdict
from pipeline.model import METRIC_KINDS, SeriesKey
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, parse_duration_s
from pipeline.views.dashboard.access import Person
from pipeline.views.dashboard.figures import draw_plain
from pipeline.views.dashboard.item import Item
from pipeline.views.dashboard.json_body import json_response, read_json
from pipeline.views.dashboard.openapi import DOCUMENT
from pipeline.views.dashboard.pages.regressions import item_found, read_course, read_event, say
from pipeline.views.dashboard.query import matching, page_of, read_query, read_time
from pipeline.views.dashboard.site import site_of

routes = web.RouteTableDef()

MOST_EVENTS = 500
MOST_WINDOWS = 20_000


@routes.get("/api/v1/openapi.json")
async def show_document(request: web.Request) -> web.Response:
    """Return the description of the API."""
    return json_response(DOCUMENT)


@routes.get("/api/v1/events")
async def list_events(request: web.Request) -> web.Response:
    """Return the latest events as they were published, the latest change first."""
    site = site_of(request)
    query = request.query
    most = _whole(query, "limit", 100, MOST_EVENTS)
    since, until = (
        read_time(query, name, fallback) for name, fallback in (("since", EARLIEST_S), ("until", LATEST_S))
    )
    service = query.get("service") or None

    def read() -> list[Any]:
        wanted = [
            item
            for item in site.board.snapshot.items
            if service in (None, item.service) and since <= item.detected_time < until
        ]
        return [read_event(site, item) for item in wanted[:most]]

    return json_response({"events": await site.draw(read)})


@routes.get("/api/v1/regressions")
async def list_regressions(request: web.Request) -> web.Response:
    """Return a page of regressions, filtered and sorted like the list of the dashboard."""
    site = site_of(request)
    query = read_query(request.query)
    page = page_of(matching(site.board.snapshot.items, query, now=site.sources.clock()), query)
    return json_response(
        {
            "regressions": [item_json(item) for item in page.items],
            "total": page.total,
            "page": min(query.page, page.pages),
            "pages": page.pages,
        }
    )


@routes.get("/api/v1/regressions/{id}")
async def show_regression(request: web.Request) -> web.Response:
    """Return a regression with its event and those that followed."""
    site = site_of(request)
    item = await item_found(site, request.match_info["id"])
    event, updates = await site.read(read_course, site, item)
    return json_response({**item_json(item), "event": event, "updates": updates})


@routes.post("/api/v1/regressions/{id}/verdict")
async def post_verdict(request: web.Request) -> web.Response:
    """Publish a verdict on a regression."""
    site = site_of(request)
    body = await read_json(request)
    if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
        raise ConfigError(
            "body: should be an object of texts: verdict, and comment, subject, author if wanted"
        )
    person: Person = request["person"]
    author = body.pop("author", "") or person.name
    if author != person.name and not person.by_token:
        raise web.HTTPForbidden(reason="author: only a program with the token speaks for others")
    (item,) = await say(site, [request.match_info["id"]], author, body)
    return json_response(item_json(site.board.snapshot.by_id[item.id]))


@routes.get("/api/v1/services")
async def list_services(request: web.Request) -> web.Response:
    """Return all services with their states."""
    snapshot = site_of(request).board.snapshot
    counts = snapshot.open_items()
    return json_response(
        {
            "services": [
                {
                    "name": service.name,
                    "samples_per_s": service.samples_per_s,
                    "series": service.series,
                    "detectable": service.detectable,
                    "open": counts[service.name],
                    "last_scan": None if service.last_scan is None else to_iso(service.last_scan),
                    "gaps": service.gaps,
                    "workloads": [
                        {**asdict(workload), "last_scan": to_iso(workload.last_scan)}
                        for workload in service.workloads
                    ],
                }
                for service in snapshot.services
            ]
        }
    )


@routes.get("/api/v1/series")
async def show_series(request: web.Request) -> web.Response:
    """Return one series: gCPU from 0 to 1, or a metric in its own unit; null where there are no data."""
    site = site_of(request)
    query = request.query
    said, service, name = query.get("kind", "subroutine"), _text(query, "service"), _text(query, "name")
    kind = next((kind for kind in METRIC_KINDS if kind == said), None)
    if kind is None:
        raise ConfigError(f"kind: should be one of {', '.join(METRIC_KINDS)}, not {said[:40]!r}")
    end = read_time(query, "end", site.sources.clock())
    start = read_time(query, "start", end - DAY_S)
    try:
        resolution = parse_duration_s(query.get("resolution", "10m"))
    except ValueError as error:
        raise ConfigError(f"resolution: {error}") from None
    if resolution < 1:
        raise ConfigError("resolution: should be at least 1s")
    if not 0 < (end - start) / resolution <= MOST_WINDOWS:
        raise ConfigError(f"start, end, resolution: should give 1 to {MOST_WINDOWS} windows")
    key = SeriesKey(kind, name)
    times, values = await site.read(draw_plain, site.store, key, service, (start, end), resolution)
    return json_response({"service": service, "kind": kind, "name": name, "times": times, "values": values})


def item_json(item: Item) -> dict[str, Any]:
    """Return a regression as the API lists it."""
    raw: dict[str, Any] = {field.name: getattr(item, field.name) for field in fields(Item)}
    for name in ("change_time", "detected_time", "resolved_time"):
        raw[name] = None if raw[name] is None else to_iso(raw[name])
    raw["state"] = item.state
    raw["verdict"] = None if item.verdict is None else orjson.loads(encode_verdict(item.verdict))
    return raw


def _text(query: Mapping[str, str], name: str) -> str:
    if not query.get(name):
        raise ConfigError(f"{name}: missing")
    return query[name]


def _whole(query: Mapping[str, str], name: str, fallback: int, most: int) -> int:
    text = query.get(name, "") or str(fallback)
    # A number with more digits than the largest is larger, and int() refuses some of them.
    plain = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not plain or not 1 <= int(text) <= most:
        raise ConfigError(f"{name}: should be a number from 1 to {most}, not {text[:40]!r}")
    return int(text)
