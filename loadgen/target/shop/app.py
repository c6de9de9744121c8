"""The web application: routes and handlers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from agents.profiles.annotate import annotate

from .accounts import hash_password, sign_token
from .cart import BadCart, fingerprint, parse_cart
from .catalog import Catalog
from .data import load_products, load_sales
from .feed import build_feed
from .pages import Pages
from .pricing import PriceList
from .recommend import similar
from .reviews import summarise
from .sales import report
from .search import Index

log = logging.getLogger("shop")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Shop:
    """The service: what it holds in memory and how it answers."""

    def __init__(self) -> None:
        products = load_products()
        self.catalog = Catalog(products)
        self.index = Index(products)
        self.prices = PriceList(products)
        self.sales = load_sales(products)
        self.pages = Pages()
        self.names = {product.sku: product.name for product in products}
        log.info("%d products on sale", len(products))

    async def health(self, request: web.Request) -> web.StreamResponse:
        """Answer that the service is up."""
        return web.Response(text="ok")

    async def browse(self, request: web.Request) -> web.StreamResponse:
        """Answer one page of a category."""
        query = request.query
        found = self.catalog.browse(query.get("category", "all"), query.get("order", "best"), 0)
        return web.json_response(found)

    async def search(self, request: web.Request) -> web.StreamResponse:
        """Answer a search."""
        return web.json_response(self.index.search(request.query.get("q", ""), limit=20))

    async def product(self, request: web.Request) -> web.StreamResponse:
        """Answer the page of a product."""
        product = self.catalog.by_sku.get(request.match_info["sku"])
        if product is None:
            raise web.HTTPNotFound(text="no such product")
        others = [self.catalog.by_sku[sku] for sku in similar(product, self.catalog.products)]
        page = self.pages.product(product, summarise(product.reviews), others)
        return web.Response(text=page, content_type="text/html")

    async def checkout(self, request: web.Request) -> web.StreamResponse:
        """Answer the receipt of a cart."""
        try:
            lines, tier = parse_cart(await request.read(), self.catalog.by_sku)
        except BadCart as error:
            raise web.HTTPBadRequest(text=f"bad cart: {error}") from None
        price = annotate(self.prices.quote, metadata=f"tier={tier or 'none'}")
        page = self.pages.receipt(lines, price(lines, tier), self.names)
        return web.Response(text=page, content_type="text/html", headers={"X-Cart": fingerprint(lines, tier)})

    async def feed(self, request: web.Request) -> web.StreamResponse:
        """Answer a category for partners."""
        body, tag = build_feed(self.catalog.products, request.query.get("category", "garden"))
        headers = {"Content-Encoding": "gzip", "ETag": f'"{tag}"'}
        return web.Response(body=body, content_type="application/json", headers=headers)

    async def login(self, request: web.Request) -> web.StreamResponse:
        """Answer a session token."""
        name = request.query.get("name", "guest")
        stored = hash_password(name, request.query.get("password", ""))
        token = sign_token(name, [f"shop:{number}" for number in range(40)])
        return web.json_response({"name": name, "stored": stored[:16], "token": token})

    async def monthly(self, request: web.Request) -> web.StreamResponse:
        """Answer the sales report."""
        return web.Response(text=report(self.sales), content_type="text/csv")


def create_app() -> web.Application:
    """Return the application, each endpoint annotated so that its CPU can be attributed."""
    shop = Shop()
    app = web.Application()
    app.router.add_get("/health", shop.health)
    routes: list[tuple[str, str, str, Handler]] = [
        ("GET", "/browse", "/browse", shop.browse),
        ("GET", "/search", "/search", shop.search),
        ("GET", "/product", "/product/{sku}", shop.product),
        ("POST", "/checkout", "/checkout", shop.checkout),
        ("GET", "/feed", "/feed", shop.feed),
        ("GET", "/login", "/login", shop.login),
        ("GET", "/monthly", "/monthly", shop.monthly),
    ]
    for method, endpoint, path, handler in routes:
        app.router.add_route(method, path, annotate(handler, endpoint=endpoint))
    return app
