"""The list of regressions, one regression, and people's verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from pipeline.messages.events import decode_event
from pipeline.messages.ledger import entry_from_json
from pipeline.model.errors import ConfigError
from pipeline.model.frames import element
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard.comparison import ComparedSide, read_comparison
from pipeline.views.dashboard.figures import SPANS, draw_series, figure_json, fitted, span_of
from pipeline.views.dashboard.flames import annotated, flames_of
from pipeline.views.dashboard.item import OPEN, STATES, Item, similar
from pipeline.views.dashboard.query import MOST_A_PAGE, Query, matching, page_of, read_query, read_time
from pipeline.views.dashboard.requests import read_requests
from pipeline.views.dashboard.selection import choices_of, read_senders
from pipeline.views.dashboard.session import own_path
from pipeline.views.dashboard.site import Site, site_of
from pipeline.views.dashboard.verdicts import verdicts_of
from pipeline.views.report.explain import explain
from pipeline.views.report.ids import NOT_REPORTED, full_id, id_prefix
from pipeline.views.report.page import described
from pipeline.views.report.parts import parts_of
from pipeline.views.report.windows import scan_windows

routes = web.RouteTableDef()

AGES = ("1d", "7d", "30d", "90d")

MOST_RELEASES = 50
"""Most releases that a list proposes as a filter."""


@routes.get("/regressions", name="regressions")
async def show_list(request: web.Request) -> web.Response:
    """Show the list that the URL selects."""
    site = site_of(request)
    query = read_query(request.query)
    snapshot = site.board.snapshot
    items = matching(snapshot.items, query, now=site.sources.clock())
    counts = dict.fromkeys(STATES, 0)
    everywhere = matching(snapshot.items, Query(state="all", service=query.service), now=site.sources.clock())
    for item in everywhere:
        counts[item.state] += 1
    return site.render(
        request,
        "regressions.html",
        query=query,
        page=page_of(items, query),
        waste=sum(item.waste_servers or 0.0 for item in items),
        counts=counts,
        filtered=query != Query(),
        narrowed=replace(query, state="open", sort="detected", page=1) != Query(),
        open_count=sum(counts[state] for state in OPEN),
        services=[choice.name for choice in snapshot.services],
        workloads=sorted({item.workload for item in snapshot.items}),
        owners=sorted({item.author for item in snapshot.items if item.author}),
        releases=list(dict.fromkeys(choice for item in items for choice in item.releases))[:MOST_RELEASES],
        ages=AGES,
    )


@routes.post("/regressions")
async def answer(request: web.Request) -> web.Response:
    """Publish a verdict on the chosen regressions, and return to the page of the form."""
    site = site_of(request)
    form = await request.post()
    chosen = [str(key) for key in form.getall("id", [])]
    await say(site, chosen, request["person"].name, {key: str(value) for key, value in form.items()})
    raise web.HTTPSeeOther(own_path(str(form.get("back", ""))))


async def say(site: Site, chosen: Sequence[str], author: str, said: Mapping[str, str]) -> list[Item]:
    """Publish one verdict on several regressions, and return these.

    Raises:
        ConfigError: no regression was chosen, one is unknown, or the verdict is wrong.
    """
    if len(chosen) > MOST_A_PAGE:
        raise ConfigError(f"choose at most {MOST_A_PAGE} regressions")
    items = [item_named(site, key) for key in dict.fromkeys(chosen)]
    verdicts = verdicts_of(
        [(item.id, item.service) for item in items], said, author=author, now=site.sources.clock()
    )
    if site.sources.say is None:
        raise web.HTTPForbidden(reason="this dashboard has no broker to say it to")
    for verdict in verdicts:
        await site.sources.say(verdict)
    site.board.say(verdicts)
    site.stream.publish()
    return items


def item_named(site: Site, key: str) -> Item:
    """Return a regression by its id, or by the beginning of it.

    Raises:
        HTTPNotFound: there is no such one, or there are several.
    """
    by_id = site.board.snapshot.by_id
    if key in by_id:
        return by_id[key]
    try:
        return by_id[full_id(id_prefix(key), by_id, NOT_REPORTED)]
    except ConfigError as error:
        raise web.HTTPNotFound(reason=str(error)) from None


async def item_found(site: Site, key: str) -> Item:
    """Return a regression by its id, also one that is newer than the snapshot; see item_named."""
    await site.find(key)
    return item_named(site, key)


@routes.get("/regressions/{id}", name="regression")
async def show_one(request: web.Request) -> web.Response:
    """Show one regression; its series and flame graphs are loaded afterwards."""
    site = site_of(request)
    item = await item_found(site, request.match_info["id"])
    if item.id != request.match_info["id"]:
        raise web.HTTPFound(f"/regressions/{item.id}")
    event, updates = await site.read(read_course, site, item)
    shown = described(event)
    snapshot = site.board.snapshot
    workload = site.sources.workloads.get(item.workload)
    return site.render(
        request,
        "regression.html",
        **shown,
        item=item,
        story=explain(entry_from_json(event), event=event, updates=updates)
        if "scan" in event["data"]
        else None,
        similar=similar(item, snapshot.items),
        spans=[*SPANS],
        windows=scan_windows(event, workload) if workload else None,
        states=STATES,
        query_of_flames=request.rel_url.raw_query_string,
    )


def read_event(site: Site, item: Item) -> dict[str, Any]:
    """Read the event of a regression.

    Raises:
        HTTPNotFound: the store has forgotten it since.
        InvalidMessage: what is stored cannot be read.
        StoreUnavailable: the store did not answer.
    """
    # With the time of the event only a small part of the table is read.
    span = (item.change_time - 1.0, item.change_time + 1.0)
    rows = site.store.rows(
        RowQuery("regressions", item.service, *span, columns=("event",), equal={"id": item.id})
    )
    if not rows:
        raise web.HTTPNotFound(reason="no such regression any more")
    return decode_event(rows[0]["event"].encode())


def read_course(site: Site, item: Item) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the event of a regression, and later events of it; see read_event."""
    updates = site.store.rows(
        RowQuery("updates", item.service, columns=("event",), equal={"regression": item.id})
    )
    return read_event(site, item), [decode_event(row["event"].encode()) for row in updates]


@routes.get("/regressions/{id}/series.json")
async def show_series(request: web.Request) -> web.Response:
    """Return the series of a regression as a figure, over a named span, or between ``start`` and ``end``."""
    site = site_of(request)
    item = item_named(site, request.match_info["id"])
    query = request.query
    span = query.get("span", "scan")
    if span not in SPANS:
        raise web.HTTPNotFound(reason="no such span")
    zoom = (read_time(query, "start", 0.0), read_time(query, "end", 0.0))

    def draw() -> str | None:
        event = read_event(site, item)
        windows = scan_windows(event, site.workload(item.workload))
        if zoom[0] < zoom[1]:
            drawn = fitted(windows, *zoom)
        else:
            drawn = span_of(windows, item.change_time, span, site.sources.clock())
        figure = draw_series(site.store, parts_of(event["data"]).data, windows, drawn)
        return None if figure is None else figure_json(figure)

    text = await site.draw(draw)
    if text is None:
        raise web.HTTPNotFound(reason="the store no longer has this series")
    return web.Response(text=text, content_type="application/json")


@routes.get("/regressions/{id}/requests")
async def show_requests(request: web.Request) -> web.Response:
    """Return load, models and code of costlier requests of a new release, as a part of the page."""
    site = site_of(request)
    item = item_named(site, request.match_info["id"])

    def draw() -> web.Response:
        event = read_event(site, item)
        data = parts_of(event["data"]).data
        if not data["requests"]:
            raise web.HTTPNotFound(reason="no requests that cost more")
        named = data["requests"][0]
        return site.render(
            request,
            "requests.html",
            shown=read_requests(site.store, data, scan_windows(event, site.workload(item.workload)).end),
            metric=item.metric,
            old=named["former_release"],
            new=named["release"],
        )

    return await site.draw(draw)


@routes.get("/regressions/{id}/flames")
async def show_flames(request: web.Request) -> web.Response:
    """Return flame graphs and largest shifts around the change, of some senders, as a part of the page."""
    site = site_of(request)
    item = item_named(site, request.match_info["id"])
    senders, only = read_senders(request.query), request.query.get("within", "").strip()

    def draw() -> web.Response:
        event = read_event(site, item)
        workload = site.workload(item.workload)
        windows = scan_windows(event, workload)
        before = (windows.start, item.change_time - workload.resolution_s)
        after_end = max(windows.end, item.change_time + workload.analysis_s + workload.extended_s)
        after = (item.change_time + workload.resolution_s, after_end)
        sides = ComparedSide(before, senders), ComparedSide(after, senders)
        comparison = read_comparison(site.store, item.service, sides)
        return site.render(
            request,
            "flames.html",
            flames=flames_of(comparison, item.service, element(item.metric_kind, item.metric), only),
            found=comparison,
            metric=item.metric,
            senders=senders,
            only=only,
            choices=choices_of(comparison.strata.strata),
            endpoints=annotated(comparison.stacks),
            page=f"/regressions/{item.id}",
        )

    return await site.draw(draw)
