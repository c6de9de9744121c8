"""Types of requests found in logs, and the routes that answer them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents.source.routes import Route
from pipeline.counting.routes import match_type
from pipeline.counting.routes.patterns import of_braces, of_colons, of_flask, of_regex


def route(text: str) -> Route:
    methods, _, pattern = text.partition(" ")
    return Route(() if methods == "*" else tuple(methods.split(",")), pattern, text, "a.py", 1, "flask")


@pytest.mark.parametrize(
    ("request_type", "routes", "expected"),
    [
        pytest.param("GET /", ["GET /"], "GET /", id="root"),
        pytest.param("GET /cart", ["GET /cart", "POST /cart"], "GET /cart", id="method"),
        pytest.param("DELETE /cart", ["GET /cart"], None, id="another method"),
        pytest.param("DELETE /cart", ["* /cart"], "* /cart", id="any method"),
        pytest.param("HEAD /cart", ["GET /cart"], "GET /cart", id="HEAD"),
        pytest.param("GET /cart", ["GET /cart/"], "GET /cart/", id="trailing slash"),
        pytest.param("GET /o/:id", ["GET /o/{order}"], "GET /o/{order}", id="folded"),
        pytest.param("GET /o/:id", ["GET /o", "GET /o/{id}/items"], None, id="other lengths"),
        pytest.param("GET /o/:id", ["GET /o/new"], None, id="an id is no name"),
        pytest.param("GET /shop/shoes", ["GET /shop/{category}"], "GET /shop/{category}", id="few values"),
        pytest.param("GET /o/new", ["GET /o/{id}", "GET /o/new"], "GET /o/new", id="its own text first"),
        pytest.param(
            "GET /a/:name", ["GET /a/{x}", "GET /a/b"], "GET /a/{x}", id="a parameter before a name"
        ),
        pytest.param("GET /a/:name", ["GET /a/b"], "GET /a/b", id="a name that was folded"),
        pytest.param("GET /f/a/b.js", ["GET /f/{path...}"], "GET /f/{path...}", id="several segments"),
        pytest.param("GET /f/a/b/raw", ["GET /f/{p...}/raw"], "GET /f/{p...}/raw", id="and what follows"),
        pytest.param("GET /f", ["GET /f/{path...}"], None, id="one segment at least"),
        pytest.param("GET /f/x", ["GET /f/{p...}", "GET /f/{n}"], "GET /f/{n}", id="one before several"),
        pytest.param("GET /r/app.json", ["GET /r/{name}.json"], "GET /r/{name}.json", id="part of a segment"),
        pytest.param("GET /r/app.xml", ["GET /r/{name}.json"], None, id="another part"),
        pytest.param("GET /a/b/…", ["GET /a/b/{rest...}"], "GET /a/b/{rest...}", id="too deep"),
        pytest.param("shop", ["GET /shop"], None, id="named by a rule"),
        pytest.param("other", ["GET /other"], None, id="the rest"),
    ],
)
def test_types_belong_to_routes(request_type: str, routes: list[str], expected: str | None) -> None:
    found = match_type(request_type, [route(each) for each in routes])
    assert (found.handler if found else None) == expected


@pytest.mark.parametrize(
    ("spelt", "given", "expected"),
    [
        pytest.param(of_flask, "/a/<id>/<string(length=2):b>", "/a/{id}/{b}", id="Flask"),
        pytest.param(of_braces, "/a/{id:[0-9]{2}}/{*rest}", "/a/{id}/{rest...}", id="braces"),
        pytest.param(of_colons, "/a/:id(\\d+)/:b?", "/a/{id}/{b}", id="colons"),
        pytest.param(
            of_regex, r"^a/(\d+)/(?:b|c)/(?P<rest>.*)$", "a/{1}/b/{rest...}", id="regular expression"
        ),
        pytest.param(of_regex, r"a/^b/(\d+)$", "a/b/{1}", id="mounted"),
        pytest.param(of_flask, r"^a/(?P<n>\d+)$", r"^a/(?P<n>\d+)$", id="a group is no parameter of Flask"),
        pytest.param(of_regex, r"^a\.json$", "a.json", id="escaped"),
        pytest.param(of_regex, r"^a.json$", "a.json", id="a dot alone"),
        pytest.param(of_regex, r"^a/(?:page-(?P<n>\d+)/)?$", "a/", id="optional group"),
        pytest.param(of_regex, r"a/[a-z]{2,3}/\w+", "a/{part}/{part}", id="without groups"),
    ],
)
def test_patterns_have_one_form(spelt: Callable[[str], str], given: str, expected: str) -> None:
    assert spelt(given) == expected
