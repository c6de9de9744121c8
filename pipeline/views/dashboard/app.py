"""The web application: routes, rights, failures as pages, and the refresh in the background."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache, partial
from pathlib import Path

from aiohttp import web
from plotly.offline import get_plotlyjs

from pipeline import __version__
from pipeline.http.serving import listening
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.processes.supervisor import CHECK
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard import api_flames, top_functions
from pipeline.views.dashboard.access import HEADERS, Login, Person
from pipeline.views.dashboard.api import routes as api_routes
from pipeline.views.dashboard.api_silences import routes as silence_routes
from pipeline.views.dashboard.json_body import json_response
from pipeline.views.dashboard.oidc import Oidc
from pipeline.views.dashboard.pages import (
    badge,
    explorer,
    operations,
    regressions,
    services,
    settings,
    trials,
)
from pipeline.views.dashboard.pages import login as logins
from pipeline.views.dashboard.site import SITE, Site, Sources, site_of
from pipeline.views.dashboard.warmup import warm_up
from pipeline.views.report import page as report_page

REFRESH_S = 5.0
"""Interval at which the snapshot is refreshed."""

READY_S = 1.0
"""Time for which an answer to /ready is reused."""

LARGEST_FORM = 256 * 1024

_STATIC = Path(__file__).with_name("static")
_REPORT_STYLE = Path(report_page.__file__).with_name("style.html")
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_YEAR = "public, max-age=31536000, immutable"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

routes = web.RouteTableDef()


class Readiness:
    """State of the store; one query for all requests within READY_S, since anybody may ask."""

    def __init__(self) -> None:
        self._asked_at = float("-inf")
        self._failure = ""
        self._asking = asyncio.Lock()

    async def failure(self, site: Site) -> str:
        """Return the reason why the store does not answer; empty if it does."""
        async with self._asking:
            if time.monotonic() - self._asked_at > READY_S:
                try:
                    await site.read(lambda: site.store.rows(RowQuery("naming", None, 0.0, 1.0)))
                    self._failure = ""
                except SmidgenError as error:
                    self._failure = str(error)
                self._asked_at = time.monotonic()
            return self._failure


READINESS = web.AppKey("readiness", Readiness)


def create_app(
    sources: Sources, login: Login | None = None, *, oidc: Oidc | None = None, refresh_s: float = REFRESH_S
) -> web.Application:
    """Return the application; it reads its first snapshot when it starts, and keeps it fresh.

    Args:
        sources: Sources of data, and the destination of answers.
        login: Authentication; by default everybody on this machine may answer.
        oidc: Logs people in; ``login`` then says ``sessions``.
        refresh_s: Interval of the refresh.
    """
    app = web.Application(middlewares=[_guard], client_max_size=LARGEST_FORM)
    app[SITE] = Site(sources, login or Login(), oidc.provider.secret if oidc else "")
    app[READINESS] = Readiness()
    app[top_functions.PAGE] = top_functions.TopFunctionsPage()
    app[operations.DIAGNOSIS] = operations.Diagnosis()
    if oidc is not None:
        app[logins.OIDC] = oidc
    pages = (regressions, trials, services, explorer, operations, settings, logins, badge)
    for part in (
        routes,
        *(page.routes for page in pages),
        api_routes,
        api_flames.routes,
        silence_routes,
        top_functions.routes,
    ):
        app.router.add_routes(part)

    async def refreshing(app: web.Application) -> AsyncIterator[None]:
        site = app[SITE]
        await site.read(site.board.refresh)
        site.tasks.repeat("refresh", refresh_s, partial(_refresh, site))
        yield
        await site.tasks.close()
        site.close()

    async def ending(app: web.Application) -> None:
        app[SITE].stream.close()

    app.cleanup_ctx.append(refreshing)
    app.on_shutdown.append(ending)
    return app


async def serve(app: web.Application, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until cancelled; ``ready`` is called with the URL once it listens.

    Raises:
        ConfigError: the address cannot be listened on.
        StoreUnavailable: the store did not answer at the start.
    """

    async def warming(app: web.Application) -> None:
        await asyncio.to_thread(warm_up, app[SITE])
        await asyncio.to_thread(_static, "plotly.js")

    app.on_startup.append(warming)
    async with listening(app, host, port, name="--port", finish_s=2.0) as url:
        ready(url)
        await asyncio.Event().wait()


@routes.get("/")
async def show_start(request: web.Request) -> web.Response:
    """Redirect to the regressions."""
    raise web.HTTPFound("/regressions")


@routes.get("/live")
async def show_live(request: web.Request) -> web.Response:
    """Answer that the process need not be restarted."""
    return web.json_response({"status": "ok"})


@routes.get("/ready")
async def show_ready(request: web.Request) -> web.Response:
    """Answer whether the store answers and all background tasks run."""
    site = site_of(request)
    failures = {"store": await request.app[READINESS].failure(site), CHECK: site.tasks.problem()}
    checks = {name: failure or "ok" for name, failure in failures.items()}
    if any(failures.values()):
        return web.json_response({"status": "failing", "checks": checks}, status=503)
    return web.json_response({"status": "ok", "checks": checks})


@routes.get("/stream")
async def show_stream(request: web.Request) -> web.StreamResponse:
    """Report changes of the snapshot for as long as the page is open."""
    return await site_of(request).stream.follow(request)


@routes.get("/static/{name}")
async def show_static(request: web.Request) -> web.Response:
    """Return a style, a script, or plotly out of its package."""
    name = request.match_info["name"]
    body, kind = await asyncio.to_thread(_static, name)
    headers = {"Cache-Control": _YEAR if request.query.get("v") == __version__ else "no-cache"}
    headers["Vary"] = "Accept-Encoding"
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=body, content_type=kind, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=gzip.decompress(body), content_type=kind, headers=headers)


@cache
def _static(name: str) -> tuple[bytes, str]:
    if name == "plotly.js":
        return gzip.compress(get_plotlyjs().encode()), _TYPES[".js"]
    path = _STATIC / name
    if path.suffix not in _TYPES or path.parent != _STATIC or not path.is_file():
        raise web.HTTPNotFound(reason="no such file")
    shared = (
        _REPORT_STYLE.read_bytes() if path.suffix == ".css" else b""
    )  # tables and bars look as in reports
    return gzip.compress(shared + path.read_bytes()), _TYPES[path.suffix]


async def _refresh(site: Site) -> None:
    await site.read(site.board.refresh)
    site.stream.publish()


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Admit known people, reject forms of other sites, turn failures into pages, and set the headers."""
    try:
        response = await _admitted(request, handler)
    except web.HTTPException as error:
        if error.status < 400:  # a redirection
            error.headers.update(HEADERS)
            raise
        response = _failure(request, error.status, error.reason)
    except ConfigError as error:
        response = _failure(request, 400, str(error))
    except SmidgenError as error:
        response = _failure(request, 503, str(error))
    if not response.prepared:
        for name, value in (*HEADERS.items(), ("Cache-Control", "no-store")):
            response.headers.setdefault(name, value)
    return response


async def _admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
    site = site_of(request)
    if not site.login.knows_host(request.host):
        raise web.HTTPMisdirectedRequest(reason="called by another name than this machine's")
    if request.path in ("/live", "/ready") or request.path.startswith("/static/"):
        return await handler(request)
    if request.path in logins.OPEN or (site.login.open_badges and request.path.startswith(badge.PATH)):
        return await handler(request)
    person = site.login.person(request.remote, request.headers)
    if person is None and site.login.sessions and "Authorization" not in request.headers:
        person = logins.session_person(request) or logins.lead_to_login(request)
    if person is None:
        raise web.HTTPUnauthorized(reason="nobody who is known here: log in, or send a bearer token")
    request["person"] = person
    if not person.may_read and request.path != "/logout":
        raise web.HTTPForbidden(reason=f"{person.name} is of no group that may read here")
    if request.method not in ("GET", "HEAD"):
        await _check_change(request, site, person)
    return await handler(request)


async def _check_change(request: web.Request, site: Site, person: Person) -> None:
    if not person.may_answer and request.path != "/logout":
        raise web.HTTPForbidden(reason=f"{person.name} may read, and not answer")
    if person.by_token:
        return
    token = request.headers.get("X-Form-Token") or str((await request.post()).get("form_token", ""))
    if not site.forms.accepts(person, token):
        raise web.HTTPForbidden(reason="the page is too old, or of another site: load it anew")


def _failure(request: web.Request, status: int, reason: str) -> web.Response:
    if request.path.startswith("/api/") or "application/json" in request.headers.get("Accept", ""):
        return json_response({"error": reason}, status)
    if "text/html" not in request.headers.get("Accept", "") and "person" not in request:
        return web.Response(text=f"{status}: {reason}\n", status=status)
    response = site_of(request).render(request, "error.html", status=status, reason=reason)
    response.set_status(status)
    return response
