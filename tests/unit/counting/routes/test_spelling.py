"""Endpoints of profiles, types of requests in logs and routes of source: three spellings of one request."""

from __future__ import annotations

import pytest
from aiohttp import web

from agents.logs.request_type import RequestTypes
from agents.source.routes import read_application
from pipeline.counting.routes import NamedRoute, match_type, read_route, route_named


@pytest.mark.parametrize(
    ("endpoint", "methods", "pattern"),
    [
        pytest.param("GET /o/<int:id>", ("GET",), "/o/{id}", id="Flask"),
        pytest.param("GET /o/<path:rest>", ("GET",), "/o/{rest...}", id="Flask, several segments"),
        pytest.param("GET /o/<int:pk>/", ("GET",), "/o/{pk}/", id="Django's path"),
        pytest.param(r"GET /^o/(?P<pk>\d+)/$", ("GET",), "/o/{pk}/", id="Django's re_path"),
        pytest.param(r"GET /api/^o/(?P<pk>[^/.]+)/$", ("GET",), "/api/o/{pk}/", id="Django's routers"),
        pytest.param(r"GET /s/<int:s>/o/(?P<pk>\d+)$", ("GET",), "/s/{s}/o/{pk}", id="Django, both"),
        pytest.param("GET /o/{id}", ("GET",), "/o/{id}", id="aiohttp and FastAPI"),
        pytest.param("GET /o/{id:int}", ("GET",), "/o/{id}", id="Starlette"),
        pytest.param("GET /o/{rest:path}", ("GET",), "/o/{rest...}", id="Starlette, several segments"),
        pytest.param("GET /o/:id", ("GET",), "/o/{id}", id="Express"),
        pytest.param("GET /o/*", ("GET",), "/o/{rest...}", id="a star"),
        pytest.param("/o/{id}", (), "/o/{id}", id="no method"),
        pytest.param("* /o/{id}", (), "/o/{id}", id="any method"),
        pytest.param("GET,HEAD /o", ("GET", "HEAD"), "/o", id="two methods"),
        pytest.param("GET /v1/o:batch", ("GET",), "/v1/o:batch", id="a colon that is no parameter"),
    ],
)
def test_endpoints_are_read_in_the_form_of_any_framework(
    endpoint: str, methods: tuple[str, ...], pattern: str
) -> None:
    assert read_route(endpoint) == NamedRoute(endpoint, methods, pattern)


@pytest.mark.parametrize("endpoint", ["checkout", "shop.Cart/Add", "GET", ""])
def test_what_is_no_path_is_no_route(endpoint: str) -> None:
    assert read_route(endpoint) is None


@pytest.mark.parametrize("name", ["GET /o/{id}", "* /o/{rest...}", "GET,POST /a:b", "GET /"])
def test_names_of_routes_keep_their_pattern(name: str) -> None:
    methods, _, pattern = name.partition(" ")
    assert route_named(name).pattern == pattern
    assert route_named(name).methods == (() if methods == "*" else tuple(methods.split(",")))


@pytest.mark.parametrize(
    ("line", "endpoints", "expected"),
    [
        pytest.param("GET /o/123", ["GET /o/<int:id>", "GET /o"], "GET /o/<int:id>", id="Flask"),
        pytest.param(
            "GET /o/123/?x=1", [r"GET /^o/(?P<pk>\d+)/$", "GET /^o/$"], r"GET /^o/(?P<pk>\d+)/$", id="Django"
        ),
        pytest.param(
            "POST /o/123/pay", ["POST /o/{id}/pay", "POST /o/{id}"], "POST /o/{id}/pay", id="braces"
        ),
        pytest.param("HEAD /o/7", ["GET /o/:id"], "GET /o/:id", id="HEAD"),
        pytest.param(
            "GET /f/a/b.js", ["GET /f/<path:name>", "GET /<name>"], "GET /f/<path:name>", id="files"
        ),
        pytest.param("GET /o/7", ["/o/{id}"], "/o/{id}", id="an endpoint without method"),
        pytest.param("GET /other/7", ["GET /o/{id}"], None, id="no endpoint"),
    ],
)
def test_a_request_in_a_log_has_the_endpoint_of_its_profile(
    line: str, endpoints: list[str], expected: str | None
) -> None:
    type_ = RequestTypes().of(f"{line} HTTP/1.1")
    routes = [route for each in endpoints if (route := read_route(each))]
    assert len(routes) == len(endpoints)
    found = match_type(type_, routes)
    assert (found and found.name) == expected


def test_source_and_sampler_name_one_route_of_aiohttp() -> None:
    source = b"""
from aiohttp import web
app = web.Application()
async def order(request): return web.Response()
app.router.add_get("/orders/{id:[0-9]+}", order)
"""
    (route,) = read_application({"shop.py": source}).routes
    app = web.Application()
    resource = app.router.add_resource(r"/orders/{id:[0-9]+}")
    endpoint = read_route(f"GET {resource.canonical}")
    assert endpoint is not None
    assert endpoint.pattern == route.pattern
    found = match_type(RequestTypes().of("GET /orders/123 HTTP/1.1"), [endpoint])
    assert found == endpoint
