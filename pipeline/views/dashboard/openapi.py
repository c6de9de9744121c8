"""The description of the HTTP API, as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from pipeline import __version__
from pipeline.model import METRIC_KINDS, SilenceKind
from pipeline.views.dashboard.api_flames import FORMATS
from pipeline.views.dashboard.item import STATES, Item
from pipeline.views.dashboard.query import SORTS, Query
from pipeline.views.dashboard.selection import AGAINST, SPANS
from pipeline.views.dashboard.verdicts import BUTTONS

_TEXT, _NUMBER, _WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
_TIME = {"type": "string", "format": "date-time"}
_TYPES: Mapping[str, Any] = {
    "str": _TEXT,
    "MetricKind": {"enum": list(METRIC_KINDS)},
    "float": _NUMBER,
    "int": _WHOLE,
    "float | None": {"type": ["number", "null"]},
    "tuple[str, ...]": {"type": "array", "items": _TEXT},
}


def _item() -> dict[str, Any]:
    schemas: dict[str, Any] = {
        "change_time": _TIME,
        "detected_time": _TIME,
        "resolved_time": {"type": ["string", "null"], "format": "date-time"},
        "verdict": {"type": ["object", "null"], "description": "the latest, as on the topic feedback"},
        "state": {"enum": list(STATES)},
    }
    own = {field.name: schemas.get(field.name) or _TYPES[str(field.type)] for field in fields(Item)}
    return {"type": "object", "properties": own | {"state": schemas["state"]}}


def _query(name: str, schema: Mapping[str, Any], about: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": about, "required": required}


def _get(
    about: str, answer: Mapping[str, Any], *given: Mapping[str, Any], text: bool = False
) -> dict[str, Any]:
    content = {"application/json": {"schema": answer}}
    if text:
        content["text/plain"] = {"schema": _TEXT}
    return {
        "summary": about,
        "parameters": list(given),
        "responses": {"200": {"description": about, "content": content}, "default": _FAILURE},
    }


_FAILURE = {
    "description": "what is wrong, in one line",
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"error": _TEXT}, "required": ["error"]}
        }
    },
}
_ITEM = {"$ref": "#/components/schemas/Regression"}
_ID = {"name": "id", "in": "path", "required": True, "schema": _TEXT}
_FILTERS = [
    _query("state", {"enum": ["open", "all", *STATES]}, "where it stands"),
    _query("service", _TEXT, "of this service"),
    _query("search", _TEXT, "words in names of series and suspects"),
    _query("workload", _TEXT, "found by this workload"),
    _query("owner", _TEXT, "author of the likeliest suspect"),
    _query("release", _TEXT, "of this release or change"),
    _query("min_size", _NUMBER, "points of the service's CPU at least"),
    _query("min_servers", _NUMBER, "servers that it takes at least"),
    _query("age", _TEXT, "detected within this time, such as 7d"),
    _query(
        "sort", {"enum": [text for name in SORTS for text in (name, f"-{name}")]}, "a minus turns it round"
    ),
    _query("page", {**_WHOLE, "minimum": 1}, "from 1"),
    _query("per", {**_WHOLE, "minimum": 1, "default": Query().per}, "items of a page"),
]


def _array(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_SERVICE = _object(
    name=_TEXT,
    samples_per_s=_NUMBER,
    series=_WHOLE,
    open=_WHOLE,
    detectable={"type": ["number", "null"]},
    last_scan={"type": ["string", "null"], "format": "date-time"},
    gaps=_array(_TEXT),
    workloads=_array({"type": "object"}),
)
_SENDERS = [
    _query("release", _TEXT, "of this release; after a ! all but this one, * any"),
    _query("host", _TEXT, "of this host, likewise"),
    _query("label", _TEXT, "with this label, such as region=east; several with commas between them"),
]
_SIDE = _object(start=_TIME, end=_TIME, release=_TEXT, host=_TEXT, label=_TEXT, samples=_NUMBER)
_FLAMES = _object(
    service=_TEXT,
    selection=_SIDE,
    against={"anyOf": [_SIDE, {"type": "null"}]},
    within=_TEXT,
    dispersion={"type": ["number", "null"], "description": "how much more than by chance counts vary"},
    lacking={"type": "string", "description": "a sentence where there are no samples, or too few"},
    frames=_array(_TEXT),
    stacks={**_array(_array(_WHOLE)), "description": "indexes of frames, root first"},
    samples=_array(_NUMBER),
    samples_against={"type": ["array", "null"], "items": _NUMBER},
    shifts=_array(
        _object(
            subroutine=_TEXT,
            before=_NUMBER,
            after=_NUMBER,
            noise={"type": "number", "description": "differences up to this may be chance"},
            within_noise={"type": "boolean"},
        )
    ),
)
_VERDICT = _object(
    verdict={"enum": [*BUTTONS, "cause"]},
    comment=_TEXT,
    subject={"type": "string", "description": "of a duplicate the other event, of a cause the change"},
    author=_TEXT,
)

_SILENCE = _object(
    kind={"enum": list(get_args(SilenceKind))},
    service=_TEXT,
    subroutine={"type": "string", "description": "or a pattern such as shop.pricing.*; a mute needs none"},
    cost={"type": "number", "description": "of an expectation: how much, by its measure"},
    measure={
        **{"type": "string", "enum": ["cpu", "metric", "relative"], "default": "cpu"},
        "description": "share of the service's CPU; of a metric: in its unit, or a share of its level",
    },
    change={"type": "string", "description": "of an expectation: whose cost it is"},
    start={"type": "string", "description": "a time, or a duration from now; now by default"},
    end={"type": "string", "description": "the same; a mute needs one"},
    owner=_TEXT,
    reason=_TEXT,
)
_SILENCE_GIVEN = {**_SILENCE, "required": ["kind", "service"]}
_SAID = {"type": "object", "description": "as on the topic feedback", "required": ["id", "kind", "service"]}

DOCUMENT: Mapping[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Smidgen", "version": __version__, "description": "Regressions, for programs."},
    "security": [{"bearer": []}],
    "paths": {
        "/api/v1/events": {
            "get": _get(
                "The latest events, as on the topic regressions",
                _object(events=_array({"type": "object"})),
                _query("service", _TEXT, "of this service"),
                _query("since", _TIME, "detected then or later"),
                _query("until", _TIME, "detected before"),
                _query("limit", {**_WHOLE, "minimum": 1, "maximum": 500, "default": 100}, "most events"),
            )
        },
        "/api/v1/regressions": {
            "get": _get(
                "A page of regressions",
                _object(regressions=_array(_ITEM), total=_WHOLE, page=_WHOLE, pages=_WHOLE),
                *_FILTERS,
            )
        },
        "/api/v1/regressions/{id}": {
            "get": _get(
                "A regression with its event, and those that followed",
                {"allOf": [_ITEM, _object(event={"type": "object"}, updates=_array({"type": "object"}))]},
                _ID,
            )
        },
        "/api/v1/regressions/{id}/verdict": {
            "post": {
                **_get("The regression as it stands now", _ITEM, _ID),
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {**_VERDICT, "required": ["verdict"]}}},
                },
            }
        },
        "/api/v1/silences": {
            "get": _get(
                "Mutes and expectations that hold or will, the latest first",
                _object(silences=_array(_SAID)),
                _query("service", _TEXT, "of this service"),
                _query("all", {"enum": ["1"]}, "ended and removed ones, too"),
            ),
            "post": {
                **_get("The mute or expectation, with its id", _SAID),
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": _SILENCE_GIVEN}},
                },
            },
        },
        "/api/v1/silences/{id}": {"delete": _get("Taken back: what it silenced is reported", _SAID, _ID)},
        "/api/v1/services": {"get": _get("All services", _object(services=_array(_SERVICE)))},
        "/api/v1/series": {
            "get": _get(
                "One series; null where there are no data",
                _object(times=_array(_NUMBER), values=_array({"type": ["number", "null"]})),
                _query("service", _TEXT, "whose", required=True),
                _query("name", _TEXT, "a subroutine, endpoint, metadata value or metric", required=True),
                _query("kind", {"enum": list(METRIC_KINDS), "default": "subroutine"}, "what the name is"),
                _query("start", _TIME, "a day before the end by default"),
                _query("end", _TIME, "now by default"),
                _query("resolution", {**_TEXT, "default": "10m"}, "width of a window"),
            )
        },
        "/api/v1/flames": {
            "get": _get(
                "Stacks of some samples, and of what they are held against",
                _FLAMES,
                _query("service", _TEXT, "the busiest by default"),
                _query("span", {"enum": list(SPANS), "default": "1d"}, "how much time"),
                _query("start", _TIME, "instead of a span"),
                _query("end", _TIME, "the last scan by default"),
                *_SENDERS,
                _query("within", _TEXT, "only stacks with this element, such as endpoint=/checkout"),
                _query("against", {"enum": list(AGAINST)}, "what it is held against; nothing by default"),
                *({**one, "name": f"other_{one['name']}"} for one in _SENDERS),
                _query("format", {"enum": list(FORMATS), "default": "json"}, "collapsed: a stack a line"),
                text=True,
            )
        },
    },
    "components": {
        "schemas": {"Regression": _item()},
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
    },
}
"""Served at /api/v1/openapi.json; filters, states and fields are those of the code."""
