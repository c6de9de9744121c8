"""Applications of the experiment: requests of their clients, and functions where regressions are injected."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

KINDS = ("nested-loops", "redundant-calls", "excessive-io", "inefficient-query")

EVENTS = 40
"""Names of events in the calendar; what is put and deleted draws from them, so that their number settles."""

_USER = {"Authorization": f"Basic {base64.b64encode(b'ada:any').decode()}"}


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request of a client."""

    method: str
    path: str
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The request's line in an access log."""
        return f"{self.method} {self.path} HTTP/1.1"


@dataclass(frozen=True, slots=True)
class Position:
    """A function that every request of one kind calls once.

    Args:
        name: A short name.
        function: As ``module:qualified.name`` in the application.
        asked: Key of the requests that call the function, in ``Application.requests``.
    """

    name: str
    function: str
    asked: str


@dataclass(frozen=True, slots=True)
class CatalogueApplication:
    """A web application of the package registry.

    Args:
        name: Name of the package, and of the function in serve.py that serves it.
        requests: Key → function that draws a request of this kind.
        positions: Four functions.
        begin: Requests that are sent first and left out of the counts.
    """

    name: str
    requests: Mapping[str, Callable[[random.Random], ClientRequest]]
    positions: tuple[Position, ...]
    begin: tuple[ClientRequest, ...] = ()


def _get(path: str) -> Callable[[random.Random], ClientRequest]:
    return lambda draw: ClientRequest("GET", path.format(id=draw.randrange(1, 400)))


def _event(name: int, draw: random.Random) -> str:
    lines = (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//bench//EN",
        "BEGIN:VEVENT",
        f"UID:event-{name}",
        "DTSTAMP:20260101T000000Z",
        f"DTSTART:202601{draw.randrange(1, 28):02d}T100000Z",
        f"DURATION:PT{draw.randrange(1, 9)}H",
        f"SUMMARY:{draw.choice(('Review', 'Lunch', 'Call', 'Travel'))} {name}",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    )
    return "\r\n".join(lines)


def _dav(method: str, path: str, body: str = "", **headers: str) -> Callable[[random.Random], ClientRequest]:
    sent = {**_USER, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return lambda draw: ClientRequest(method, path.format(id=draw.randrange(EVENTS)), body, sent)


def _put(draw: random.Random) -> ClientRequest:
    return _put_event(draw.randrange(EVENTS), draw)


def _put_event(name: int, draw: random.Random) -> ClientRequest:
    headers = {**_USER, "Content-Type": "text/calendar"}
    return ClientRequest("PUT", f"/ada/work/{name}.ics", _event(name, draw), headers)


_SPACES = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"'
_QUERY = (
    f"<C:calendar-query {_SPACES}><prop><getetag/></prop><C:filter>"
    '<C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"/></C:comp-filter>'
    "</C:filter></C:calendar-query>"
)
_NAMED = f"<propertyupdate {_SPACES}><set><prop><displayname>Work</displayname></prop></set></propertyupdate>"

DATASETTE = CatalogueApplication(
    "datasette",
    {
        "index": _get("/"),
        "database": _get("/shop"),
        "table": _get("/shop/products"),
        "row": _get("/shop/customers/{id}"),
        "query": _get("/shop/cities"),
        "versions": _get("/-/versions.json"),
        "plugins": _get("/-/plugins.json"),
        "style": _get("/-/static/app.css"),
        "settings": _get("/-/settings.json"),
    },
    (
        Position("database", "datasette.views.database:DatabaseView.data", "database"),
        Position("table", "datasette.views.table:TableView.sortable_columns_for_table", "table"),
        Position("row", "datasette.views.row:RowView.data", "row"),
        Position("query", "datasette.views.database:QueryView.data", "query"),
    ),
)

RADICALE = CatalogueApplication(
    "radicale",
    {
        "home": _dav("PROPFIND", "/ada/", Depth="1"),
        "list": _dav("PROPFIND", "/ada/work/", Depth="1"),
        "query": _dav("REPORT", "/ada/work/", _QUERY, Depth="1"),
        "calendar": _dav("GET", "/ada/work/"),
        "event": _dav("GET", "/ada/work/{id}.ics"),
        "put": _put,
        "delete": _dav("DELETE", "/ada/work/{id}.ics"),
        "rename": _dav("PROPPATCH", "/ada/work/", _NAMED),
        "options": _dav("OPTIONS", "/ada/work/"),
    },
    (
        Position("put", "radicale.app.put:prepare", "put"),
        Position("report", "radicale.app.report:xml_report", "query"),
        Position("download", "radicale.app.get:propose_filename", "calendar"),
        Position("rename", "radicale.app.proppatch:xml_proppatch", "rename"),
    ),
    (
        ClientRequest("MKCALENDAR", "/ada/work/", headers=_USER),
        *(_put_event(name, random.Random(name)) for name in range(0, EVENTS, 2)),
    ),
)

APPLICATIONS = {application.name: application for application in (DATASETTE, RADICALE)}
