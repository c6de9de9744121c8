"""Details of requests that cost more in a new release: load, models, and the code that they run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from pipeline.analysis.rootcause import first_announcements, route_reached
from pipeline.analysis.statistics.blocks import block_means
from pipeline.messages.inputs import change_from_row
from pipeline.model import Change, FloatArray, RouteReach
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S
from pipeline.releases.requests import ModelCourse, RequestRollout, model_course
from pipeline.stages.gather.rollouts import gather_release
from pipeline.storage.interface import RowQuery, Store
from pipeline.views.dashboard.figures import MOST_POINTS, figure_block
from pipeline.views.report.figures import Trace, lines_figure

MOST_TYPES = 20
MOST_CHANGES = 8
MOST_LINES = 80
"""Most shown lines of a difference."""

_BEFORE_S = DAY_S
_AFTER_S = HOUR_S
"""Span before and after a release in which its changes are announced."""


@dataclass(frozen=True, slots=True)
class TypeLoad:
    """One type's requests a minute, in the periods of the old release and in those of the new one."""

    type: str
    before: float
    after: float
    costlier: bool


@dataclass(frozen=True, slots=True)
class ReachedChange:
    """A change of code that a type of request runs, nearest first."""

    change: Change
    type: str
    route: RouteReach
    difference: tuple[str, ...]  # lines of the modified file


@dataclass(frozen=True, slots=True)
class RequestsShown:
    """Data of a page on such a regression besides its event. Figures are blocks of JSON."""

    modelled: Markup
    errors: Markup
    load: Markup
    types: tuple[TypeLoad, ...]
    more: int  # types that are not listed
    side_by_side: float  # share of the requests that the new release got in its periods
    changes: tuple[ReachedChange, ...]


def read_requests(store: Store, data: Mapping[str, Any], end: float) -> RequestsShown | None:
    """Read the details of an event of costlier requests; None if the store has forgotten them.

    Args:
        store: Has requests, metrics and changes.
        data: Of the event, times as epoch seconds, with its requests.
        end: Of the look that found it.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    costlier = [row["type"] for row in data["requests"]]
    release = data["requests"][0]["release"]
    release_data = gather_release(store, data["service"], release, data["metric"], end)
    if release_data is None:
        return None
    rollout, metric = release_data
    course = model_course(rollout, metric)
    types = _loads(rollout, costlier)
    return RequestsShown(
        modelled=_modelled(rollout, metric, course, data["metric"]),
        errors=_errors(rollout, metric, course, data["metric"]),
        load=_load(rollout),
        types=types[:MOST_TYPES],
        more=max(0, len(types) - MOST_TYPES),
        side_by_side=float(rollout.own.sum() / max(rollout.counts[rollout.has_new].sum(), 1.0)),
        changes=_reached(store, data, costlier),
    )


def _modelled(rollout: RequestRollout, metric: FloatArray, course: ModelCourse, name: str) -> Markup:
    traces = (
        Trace("measured", metric, "--ink"),
        Trace(f"by the costs of {rollout.old}", course.by_old, "--seen", "dot"),
        Trace(f"by the costs of {rollout.new}", course.by_new, "--accent"),
    )
    return _figure(rollout, traces, name)


def _errors(rollout: RequestRollout, metric: FloatArray, course: ModelCourse, name: str) -> Markup:
    traces = (
        Trace(f"measured less the model of {rollout.old}", metric - course.by_old, "--seen", "dot"),
        Trace(f"measured less the model of {rollout.new}", metric - course.by_new, "--accent"),
    )
    return _figure(rollout, traces, f"error, {name}")


def _load(rollout: RequestRollout) -> Markup:
    a_minute = MINUTE_S / rollout.width_s
    own = rollout.own.sum(axis=1) * a_minute
    other_requests = rollout.counts.sum(axis=1) * a_minute - own
    traces = (
        Trace(rollout.old, np.where(other_requests > 0, other_requests, np.nan), "--seen", "dot"),
        Trace(rollout.new, np.where(own > 0, own, np.nan), "--accent"),
    )
    return _figure(rollout, traces, "requests a minute")


def _figure(rollout: RequestRollout, traces: Sequence[Trace], unit: str) -> Markup:
    """Draw lines over a rollout, averaging several periods if there are more than a screen shows."""
    block = math.ceil(len(rollout.starts) / MOST_POINTS)
    middles = rollout.starts + rollout.width_s / 2
    shown = [Trace(trace.name, _means(trace.values, block), trace.colour, trace.dash) for trace in traces]
    figure = lines_figure(_means(middles, block), shown, change_time=rollout.begun, unit=unit)
    return figure_block(figure)


def _means(values: FloatArray, block: int) -> FloatArray:
    """Return the means of `block` consecutive values, the last of fewer; NaN without any."""
    weights = np.isfinite(values).astype(np.float64)
    means, counts = block_means(values[None], weights[None], block, partial=True)
    return np.where(counts[0] > 0, means[0], np.nan)


def _loads(rollout: RequestRollout, costlier: Sequence[str]) -> tuple[TypeLoad, ...]:
    """Return every type's load, costlier types first, then by frequency."""
    new = rollout.has_new
    a_minute = MINUTE_S / rollout.width_s
    before = rollout.counts[~new].mean(axis=0) * a_minute
    after = rollout.counts[new].mean(axis=0) * a_minute
    loads = [
        TypeLoad(type_, float(old), float(fresh), type_ in costlier)
        for type_, old, fresh in zip(rollout.types, before, after, strict=True)
    ]
    return tuple(sorted(loads, key=lambda load: (not load.costlier, -load.before - load.after, load.type)))


def _reached(store: Store, data: Mapping[str, Any], costlier: Sequence[str]) -> tuple[ReachedChange, ...]:
    """Return the changes of a release that its costlier requests run, by the changes' routes."""
    begun = data["change_time"]
    rows = store.rows(RowQuery("changes", data["service"], begun - _BEFORE_S, begun + _AFTER_S))
    reached = []
    for change in first_announcements(map(change_from_row, rows)):
        routes = [(type_, route) for type_ in costlier if (route := route_reached(change, type_))]
        near = [(type_, route) for type_, route in routes if route.nearness and route.calls]
        if near:
            type_, route = max(near, key=lambda pair: pair[1].nearness)
            lines = difference_of(change.content, route.calls[-1].path)
            reached.append(ReachedChange(change, type_, route, lines))
    reached.sort(
        key=lambda reached_change: (
            -reached_change.route.nearness,
            -reached_change.change.time,
            reached_change.change.id,
        )
    )
    return tuple(reached[:MOST_CHANGES])


def difference_of(content: str, path: str) -> tuple[str, ...]:
    """Return the lines of one file in the text of a diff, each with its sign; see ``content_of``."""
    lines = content.splitlines()
    if path not in lines:
        return ()
    first = lines.index(path) + 1
    last = next((n for n in range(first, len(lines)) if lines[n][:1] not in ("+", "-")), len(lines))
    return tuple(lines[first:last][:MOST_LINES])
