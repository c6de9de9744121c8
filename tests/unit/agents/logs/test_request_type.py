from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.logs import RequestTypes


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("GET /cart/17?x=1 HTTP/1.1", "GET /cart/:id"),
        ("GET / HTTP/1.1", "GET /"),
        ("POST /api/v2/items HTTP/2", "POST /api/v2/items"),
        ("GET /u/3f2504e0-4f89-41d3-9a0c-0305e82c3301/edit HTTP/1.1", "GET /u/:uuid/edit"),
        ("GET /commit/9f94f95aa0 HTTP/1.1", "GET /commit/:hash"),
        ("GET /feedback HTTP/1.1", "GET /feedback"),
        ("GET /news/2023-10-10/a HTTP/1.1", "GET /news/:date/a"),
        ("GET /p/4711-red-shoes HTTP/1.1", "GET /p/:id"),
        ("GET /static/app.8f3a2b1c.js HTTP/1.1", "GET /static/app.:hash.js"),
        ("GET /mail/a@b.example HTTP/1.1", "GET /mail/:name"),
        ("GET /mail/a%40b.example HTTP/1.1", "GET /mail/:name"),
        ("GET /caf%C3%A9/menu HTTP/1.1", "GET /caf%C3%A9/menu"),
        ("GET http://shop.example/cart/1 HTTP/1.1", "GET /cart/:id"),
        ("GET /a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p HTTP/1.1", "GET /a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p"),
        ("GET /a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q HTTP/1.1", "GET /a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/…"),
        ("GET " + 4 * f"/{60 * 'a'}", "GET " + 3 * f"/{60 * 'a'}" + "/…"),
        ("GET /:made-up/x", "GET /:made-up/x"),
        ("- /x", "- /x"),
        ("-", "other"),
        ("\\x16\\x03", "other"),
        ("GET *", "other"),
        ("=anything", "other"),
        ("=any thing", "other"),
    ],
)
def test_types(request_line: str, expected: str) -> None:
    assert RequestTypes().of(request_line) == expected


@pytest.mark.parametrize(
    ("path", "folded"), [("/shop/{}/buy", "GET /shop/:name/buy"), ("/:{}", "GET /:name")]
)
def test_names_that_are_many_are_folded(path: str, folded: str) -> None:
    types = RequestTypes()
    words = [f"GET {path.format(a + b)}" for a in "abcdefghij" for b in "klmno"]
    types.learn(words)
    assert {types.of(word) for word in words} == {folded}


def test_types_are_bounded() -> None:
    types = RequestTypes(most=5)
    found = [types.of(f"GET /{'abcdefgh'[i]}") for i in range(8)]
    assert found[5:] == ["other"] * 3
    assert types.of("GET /a") == "GET /a"


def test_what_nothing_answers_makes_no_types() -> None:
    types = RequestTypes([("GET /shop/*", "shop")])
    assert types.of_unanswered("GET /cart/1") == "other"
    real = [types.of("GET /cart/1"), types.of("GET /a/b")]
    scan = [f"{method} /{a}{b}/x" for method in ("GET", "MADEUP") for a in "abcdefgh" for b in "klmnopq"]
    assert {types.of_unanswered(request) for request in scan} == {"other"}
    assert [types.of("GET /cart/2"), types.of("GET /a/b")] == real == ["GET /cart/:id", "GET /a/b"]
    assert types.of_unanswered("GET /cart/3") == "GET /cart/:id"  # there are carts, and this one is not
    assert types.of_unanswered("GET /shop/x") == "shop"
    for a in "abcdefgh":
        types.learn([f"GET /users/{a}{b}" for b in "klmnopq"])
    assert types.of("GET /users/ak") == types.of_unanswered("GET /users/new") == "GET /users/:name"


def test_rules_come_first() -> None:
    types = RequestTypes([("GET /shop/*", "shop")])
    assert types.of("GET /shop/17/x?y HTTP/1.1") == "shop"
    assert types.of("POST /shop/17 HTTP/1.1") == "POST /shop/:id"


@given(st.lists(st.text()))
def test_any_request_has_a_type(requests: list[str]) -> None:
    types = RequestTypes(most=10)
    assert len({types.of(request) for request in requests}) <= 11


def test_paths_beyond_those_that_are_remembered_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.logs.request_type.MOST_PARENTS", 3)
    types = RequestTypes()
    assert [types.of(f"GET /api/{name}/show") for name in "abc"] == [
        *("GET /api/a/show", "GET /api/b/…", "GET /api/c/…")
    ]
    assert types.of_unanswered("GET /api/b/edit") == "GET /api/b/…"
