"""A badge of a service for its README or its page in Backstage: the number of open regressions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape

import orjson
from aiohttp import web

from pipeline.model.metric_kind import is_gcpu
from pipeline.views.dashboard.board import Snapshot
from pipeline.views.dashboard.item import OPEN
from pipeline.views.dashboard.site import site_of
from pipeline.views.dashboard.words import size

routes = web.RouteTableDef()

PATH = "/badges/"

FRESH_S = 300
"""Time for which a badge may be cached."""

_LABEL = "smidgen"
_WELL, _OPEN, _UNKNOWN = "#1b6b3a", "#b3261e", "#57606a"
_CHARACTER, _PADDING, _HEIGHT = 6.4, 7, 20  # pixels, at a text size of 11

_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"
 role="img" aria-label="{text}">
<title>{text}</title>
<clipPath id="round"><rect width="{width}" height="{height}" rx="4"/></clipPath>
<g clip-path="url(#round)"><rect width="{label_width}" height="{height}" fill="#33404e"/>
<rect x="{label_width}" width="{message_width}" height="{height}" fill="{colour}"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" aria-hidden="true">
<text x="{padding}" y="14" textLength="{label_length}">{label}</text>
<text x="{message_x}" y="14" textLength="{message_length}">{message}</text></g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Badge:
    """Content of a badge."""

    message: str
    colour: str


def badge_of(snapshot: Snapshot, service: str) -> Badge:
    """Return the badge of a service, also of an unknown one: a README may outlive its service."""
    if service not in {known_service.name for known_service in snapshot.services}:
        return Badge("unknown service", _UNKNOWN)
    open_items = [item for item in snapshot.items if item.service == service and item.state in OPEN]
    if not open_items:
        return Badge("none open", _WELL)
    shares = [item for item in open_items if is_gcpu(item.metric_kind)]
    largest = max(shares, key=lambda item: abs(item.delta), default=None)
    return Badge(f"{len(open_items)} open" + (f", largest {size(largest)}" if largest else ""), _OPEN)


def svg_of(badge: Badge) -> str:
    """Draw a badge; its text is its title and name, too."""
    lengths = [round(len(text) * _CHARACTER) for text in (_LABEL, badge.message)]
    label_width, message_width = (length + 2 * _PADDING for length in lengths)
    return _SVG.format(
        text=escape(f"{_LABEL}: {badge.message}"),
        label=_LABEL,
        message=escape(badge.message),
        colour=badge.colour,
        width=label_width + message_width,
        height=_HEIGHT,
        padding=_PADDING,
        label_width=label_width,
        message_width=message_width,
        label_length=lengths[0],
        message_length=lengths[1],
        message_x=label_width + _PADDING,
    )


@routes.get("/badges/{service}.svg")
async def show_badge(request: web.Request) -> web.Response:
    """Return the badge as a picture."""
    badge = badge_of(site_of(request).board.snapshot, request.match_info["service"])
    return _kept(request, svg_of(badge).encode(), "image/svg+xml")


@routes.get("/badges/{service}.json")
async def show_endpoint(request: web.Request) -> web.Response:
    """Return the badge as JSON for shields.io."""
    badge = badge_of(site_of(request).board.snapshot, request.match_info["service"])
    body = {"schemaVersion": 1, "label": _LABEL, "message": badge.message, "color": badge.colour}
    return _kept(request, orjson.dumps(body), "application/json")


def _kept(request: web.Request, body: bytes, kind: str) -> web.Response:
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    public = "public" if site_of(request).login.open_badges else "private"
    headers = {"ETag": tag, "Cache-Control": f"{public}, max-age={FRESH_S}"}
    headers["Cross-Origin-Resource-Policy"] = "cross-origin"  # pages of other sites embed it
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type=kind, headers=headers)
