"""Flame graphs for programs: JSON, or collapsed stacks as other tools read them."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from pipeline.model import StackMatrix
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError
from pipeline.views.dashboard.comparison import StackComparison, read_view_stacks
from pipeline.views.dashboard.flames import within
from pipeline.views.dashboard.json_body import json_response
from pipeline.views.dashboard.pages.explorer import view_of
from pipeline.views.dashboard.selection import SenderChoice, Span, View
from pipeline.views.dashboard.site import site_of
from pipeline.views.report.flame import largest_shifts

routes = web.RouteTableDef()

FORMATS = ("json", "collapsed")

MOST_SHIFTS = 100

_ESCAPED = str.maketrans({";": ":", "\n": " ", "\r": " "})


@routes.get("/api/v1/flames")
async def show_flames(request: web.Request) -> web.Response:
    """Return the stacks of a selection, and of the selection it is compared with."""
    site = site_of(request)
    form = request.query.get("format") or "json"
    if form not in FORMATS:
        raise ConfigError(f"format: should be one of {', '.join(FORMATS)}, not {form[:40]!r}")
    view = view_of(site, request.query)

    def draw() -> web.Response:
        comparison = read_view_stacks(site.store, view)
        stacks = within(comparison.stacks, view.within) if view.within else comparison.stacks
        if form == "collapsed":
            return web.Response(
                text=collapsed(stacks, compared=comparison.compared), content_type="text/plain"
            )
        return json_response(flames_json(view, comparison, stacks))

    return await site.draw(draw)


def collapsed(stacks: StackMatrix, *, compared: bool) -> str:
    """Return a line ``root;caller;leaf count`` of each stack; of two sides, the counts before and after."""
    lines = []
    for stack, before, after in zip(
        stacks.stacks, stacks.before.tolist(), stacks.after.tolist(), strict=True
    ):
        names = ";".join(name.translate(_ESCAPED) for name in stack)
        if compared:
            lines.append(f"{names} {before:.0f} {after:.0f}\n")
        elif after:
            lines.append(f"{names} {after:.0f}\n")
    return "".join(lines)


def flames_json(view: View, found: StackComparison, stacks: StackMatrix) -> dict[str, Any]:
    """Return the stacks of both sides; each lists its frames by their index, root first."""
    index: dict[str, int] = {}
    rows = [[index.setdefault(name, len(index)) for name in stack] for stack in stacks.stacks]
    compared = found.compared and min(stacks.total_before, stacks.total_after) > 0
    dispersion = found.dispersion if compared else None
    shifts = largest_shifts(stacks, MOST_SHIFTS, dispersion) if compared else []
    return {
        "service": view.service,
        "selection": _side(found.spans[1], view.senders, stacks.total_after),
        "against": _side(found.spans[0], view.other_senders, stacks.total_before) if found.compared else None,
        "within": view.within,
        "dispersion": dispersion,
        "lacking": found.lacking,
        "frames": list(index),
        "stacks": rows,
        "samples": stacks.after.tolist(),
        "samples_against": stacks.before.tolist() if found.compared else None,
        "shifts": [
            {
                **{"subroutine": shift.subroutine, "before": shift.before, "after": shift.after},
                **{"noise": shift.noise, "within_noise": shift.is_noise},
            }
            for shift in shifts
        ],
    }


def _side(span: Span, senders: SenderChoice | None, samples: float) -> dict[str, Any]:
    whose = (
        {"release": senders.release, "host": senders.host, "label": senders.label}
        if senders is not None
        else {"others": True}
    )
    return {"start": to_iso(span[0]), "end": to_iso(span[1]), **whose, "samples": samples}
