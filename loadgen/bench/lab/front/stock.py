"""How much is left of a product and of those beside it: asked from another service."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aiohttp import ClientSession, web

ASKED = 4
"""Products that are asked for, the wanted one first."""


def add_stock(app: web.Application, address: str) -> None:
    """Add the route, and the session by which the other service is asked."""

    async def stock(request: web.Request) -> web.StreamResponse:
        number = int(request.match_info["number"])
        carried = {"traceparent": request.headers.get("traceparent", "")}
        left = {}
        for sku in range(number, number + ASKED):
            async with app[SESSION].get(f"{address}/left/{sku}", headers=carried) as answer:
                left[sku] = (await answer.json())["left"]
        return web.json_response(left)

    async def session(_: web.Application) -> AsyncIterator[None]:
        app[SESSION] = ClientSession()
        yield
        await app[SESSION].close()

    app.cleanup_ctx.append(session)
    app.router.add_get("/stock/{number}", stock)


SESSION: web.AppKey[ClientSession] = web.AppKey("session", ClientSession)
