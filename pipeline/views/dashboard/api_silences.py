"""Mutes and expectations over the HTTP API, as by ``smidgen mute`` and ``smidgen expect``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import orjson
from aiohttp import web

from pipeline.messages.inputs import decode_feedback, encode_silence, silence_of_row, with_id
from pipeline.model import Silence, SilenceKind
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.units import parse_duration_s
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard.json_body import json_response, read_json
from pipeline.views.dashboard.site import Site, site_of

routes = web.RouteTableDef()

TEXTS = ("kind", "service", "subroutine", "change", "owner", "reason", "start", "end", "measure")
"""Fields of a silence without its ``cost``."""


@routes.get("/api/v1/silences")
async def list_silences(request: web.Request) -> web.Response:
    """Return present and future mutes and expectations, the latest first; with ``all=1`` past ones too."""
    site = site_of(request)
    now, service = site.sources.clock(), request.query.get("service") or None
    silences = await site.read(_stored, site, service)
    if not request.query.get("all"):
        silences = [
            silence
            for silence in silences
            if silence.removed is None and (silence.end is None or silence.end > now)
        ]
    return json_response({"silences": [_plain(silence) for silence in silences]})


@routes.post("/api/v1/silences")
async def post_silence(request: web.Request) -> web.Response:
    """Mute regressions for a while, or announce a cost."""
    site = site_of(request)
    body = await read_json(request)
    silence = silence_of(body, owner=request["person"].name, now=site.sources.clock())
    return await _say(site, silence)


@routes.delete("/api/v1/silences/{id}")
async def remove_silence(request: web.Request) -> web.Response:
    """Take a silence back: its regressions are reported."""
    site = site_of(request)
    by_id = {stored.id: stored for stored in await site.read(_stored, site, None)}
    silence = by_id.get(request.match_info["id"])
    if silence is None:
        raise web.HTTPNotFound(reason="no such silence")
    return await _say(site, replace(silence, removed=silence.removed or site.sources.clock()))


def silence_of(given: Any, *, owner: str, now: float) -> Silence:
    """Read a silence from a program; times are ISO 8601, or a duration from now such as 2h.

    Raises:
        ConfigError: the field that is missing or wrong.
    """
    if not isinstance(given, Mapping) or not all(isinstance(given.get(name, ""), str) for name in TEXTS):
        raise ConfigError(f"body: should be an object of the texts {', '.join(TEXTS)}, and the number cost")
    if unknown := sorted(set(given) - {*TEXTS, "cost"}):
        raise ConfigError(f"{unknown[0]}: no such field")
    if given.get("kind") not in get_args(SilenceKind):
        raise ConfigError(f"kind: should be one of {', '.join(get_args(SilenceKind))}")
    cost = given.get("cost", 0.0)
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        raise ConfigError("cost: should be a share of the service's CPU, such as 0.001")
    texts = {
        name: given[name]
        for name in ("service", "subroutine", "change", "reason", "measure")
        if given.get(name)
    }
    start, end = (_moment(given.get(name, ""), name, now) for name in ("start", "end"))
    if end is not None and end <= now:
        raise ConfigError("end: lies in the past")
    silence = Silence(
        **{"id": "", "service": "", **texts, "kind": given["kind"], "time": now, "start": start or now},
        end=end,
        owner=given.get("owner") or owner,
        cost=float(cost),
    )
    silence = with_id(silence)
    try:
        decode_feedback(encode_silence(silence), now=now)
    except InvalidMessage as error:
        raise ConfigError(str(error)) from None
    return silence


async def _say(site: Site, silence: Silence) -> web.Response:
    if site.sources.say is None:
        raise web.HTTPForbidden(reason="this dashboard has no broker to say it to")
    await site.sources.say(silence)
    return json_response(_plain(silence))


def _stored(site: Site, service: str | None) -> list[Silence]:
    rows = site.store.rows(RowQuery("silences", service))
    return sorted(map(silence_of_row, rows), key=lambda silence: (-silence.time, silence.id))


def _moment(text: str, name: str, now: float) -> float | None:
    if not text:
        return None
    try:
        return now + parse_duration_s(text)
    except ValueError:
        pass
    try:
        return from_iso(text)
    except InvalidMessage as error:
        raise ConfigError(f"{name}: {error}; or a duration from now such as 2h") from None


def _plain(silence: Silence) -> Any:
    return orjson.loads(encode_silence(silence))
