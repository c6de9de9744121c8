"""How near commits come to the routes of an application."""

from __future__ import annotations

import pytest

from agents.source.changes import Described
from agents.source.routes import Reaches, reaches, read_application
from pipeline.model import Change, RouteCall

SOURCE = b"""
from flask import Flask
app = Flask(__name__)

@app.get("/cart/<int:id>")
def cart(id):
    return price(id)

@app.route("/search")
def search():
    return price(1)

def price(id):
    return tax(id)

def tax(id):
    return id
"""


def describe(*subroutines: str, files: tuple[str, ...] = ("shop.py",)) -> Described:
    change = Change("c", "shop", 0.0, "Change", files=files, subroutines=subroutines)
    (found,) = Reaches(read_application({"shop.py": SOURCE})).describe([Described(change)])
    return found


def test_a_commit_names_every_route_and_the_way_to_what_it_modifies() -> None:
    found = {each.route: each for each in describe("shop.tax").change.routes}
    assert sorted(found) == ["GET /cart/{id}", "GET /search"]
    cart = found["GET /cart/{id}"]
    assert cart.nearness == pytest.approx(1 / 3 / 2)  # two calls away, of two handlers
    assert cart.calls == (
        RouteCall("shop.cart", "shop.py", 6),
        RouteCall("shop.price", "shop.py", 13),
        RouteCall("shop.tax", "shop.py", 16),
    )
    assert 0 < cart.share < 1
    assert 0 < cart.chance < 1


def test_routes_that_a_commit_does_not_reach_are_bare() -> None:
    by_route = {each.route: each for each in describe("shop.search").change.routes}
    assert by_route["GET /cart/{id}"].calls == ()
    assert by_route["GET /cart/{id}"].nearness == 0.0
    assert by_route["GET /search"].nearness == 1.0


def test_a_commit_of_unknown_subroutines_names_no_route() -> None:
    assert describe().change.routes == ()
    assert len(describe(files=("README.md",)).change.routes) == 2  # nothing of it runs


def test_routes_fit_into_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaches, "MOST_ROUTES", 1)
    found = describe("shop.search")
    assert [each.route for each in found.change.routes] == ["GET /search"]  # the nearest first
    assert found.left_out == ("1 of 2 routes",)
