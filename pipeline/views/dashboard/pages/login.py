"""Logging in and out by OpenID Connect."""

from __future__ import annotations

from typing import Literal, NoReturn, TypedDict
from urllib.parse import urlencode

from aiohttp import web

from pipeline.views.dashboard.access import Person
from pipeline.views.dashboard.oidc import Oidc
from pipeline.views.dashboard.session import LOGIN_S, SESSION_S, own_path
from pipeline.views.dashboard.site import site_of

routes = web.RouteTableDef()

OIDC = web.AppKey("oidc", Oidc)

OPEN = ("/login", "/login/callback", "/logged-out")
"""Paths open to people who are not logged in."""


def session_person(request: web.Request) -> Person | None:
    """Return the person of a session."""
    oidc = request.app[OIDC]
    return oidc.sessions.person(request.cookies.get(_cookie(oidc, "session"), ""))


def lead_to_login(request: web.Request) -> NoReturn:
    """Redirect a browser that requests a page to the login; answer 401 to anything else."""
    if request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
        raise web.HTTPFound("/login?" + urlencode({"next": request.path_qs}))
    raise web.HTTPUnauthorized(reason="log in, or send a bearer token")


@routes.get("/login")
async def begin(request: web.Request) -> web.StreamResponse:
    """Redirect to the provider."""
    oidc = _oidc(request)
    where, cookie = await oidc.begin(own_path(request.query.get("next", "")))
    response = web.HTTPFound(where)
    response.set_cookie(_cookie(oidc, "login"), cookie, max_age=int(LOGIN_S), **_kept(oidc))
    raise response


@routes.get("/login/callback")
async def finish(request: web.Request) -> web.StreamResponse:
    """Begin the session of an admitted person, and continue to the requested page."""
    oidc = _oidc(request)
    session, back = await oidc.finish(request.query, request.cookies.get(_cookie(oidc, "login"), ""))
    response = web.HTTPSeeOther(own_path(back))
    response.set_cookie(_cookie(oidc, "session"), session, max_age=int(SESSION_S), **_kept(oidc))
    response.del_cookie(_cookie(oidc, "login"), **_kept(oidc))
    raise response


@routes.post("/logout")
async def end(request: web.Request) -> web.StreamResponse:
    """End the session here; the provider's own session continues."""
    oidc = _oidc(request)
    claims = oidc.sessions.read("session", request.cookies.get(_cookie(oidc, "session"), ""))
    if claims is not None:
        oidc.sessions.end(claims)
    response = web.HTTPSeeOther("/logged-out")
    response.del_cookie(_cookie(oidc, "session"), **_kept(oidc))
    raise response


@routes.get("/logged-out")
async def show_end(request: web.Request) -> web.Response:
    """Show that the session has ended."""
    _oidc(request)
    return site_of(request).render(request, "logged_out.html")


def _oidc(request: web.Request) -> Oidc:
    oidc = request.app.get(OIDC)
    if oidc is None:
        raise web.HTTPNotFound(reason="nobody logs in here")
    return oidc


class _Kept(TypedDict):
    path: str
    httponly: bool
    secure: bool
    samesite: Literal["Lax"]


def _kept(oidc: Oidc) -> _Kept:
    # Lax, because the provider sends the browser back from its own site.
    return {"path": "/", "httponly": True, "secure": _encrypted(oidc), "samesite": "Lax"}


def _cookie(oidc: Oidc, purpose: str) -> str:
    # With this prefix no other host of the domain can set the cookie.
    return f"{'__Host-' if _encrypted(oidc) else ''}smidgen-{purpose}"


def _encrypted(oidc: Oidc) -> bool:
    return oidc.provider.public_url.startswith("https://")
