"""Routes of applications that are imported."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.source.routes.import_program import described, routes_of
from agents.source.routes.imported import import_routes
from pipeline.model.errors import ConfigError

SHOP = """
from aiohttp import web
print("noise")
async def show(request): ...
class Cart(web.View):
    async def get(self): ...
    async def post(self): ...
app = web.Application()
app.router.add_get("/orders/{id}", show)
app.router.add_view("/cart", Cart)
wrong = 1
"""


def show() -> None: ...


class Cart:
    def get(self) -> None: ...


def test_an_application_is_imported(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    found = import_routes(tmp_path, "shop:app")
    names = {f"{route.name} {route.handler} {route.path}:{route.line}" for route in found}
    assert names == {
        "GET /orders/{id} shop.show shop.py:4",
        "GET /cart shop.Cart.get shop.py:6",
        "POST /cart shop.Cart.post shop.py:7",
    }


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("shop:nothing", "AttributeError", id="no such name"),
        pytest.param("nowhere:app", "No module named 'nowhere'", id="no such module"),
        pytest.param("shop:wrong", "no application of a framework", id="no application"),
        pytest.param("shop app", "should be MODULE:NAME", id="no name at all"),
    ],
)
def test_mistakes_have_one_reason(tmp_path: Path, target: str, message: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP if "wrong" not in target else "wrong = 1")
    with pytest.raises(ConfigError, match=message):
        import_routes(tmp_path, target)


class Rule(SimpleNamespace):
    def __str__(self) -> str:
        return str(self.rule)


def flask() -> Any:
    rules = [Rule(rule="/o/<id>", methods={"GET", "HEAD", "OPTIONS"}, endpoint="show")]
    return SimpleNamespace(url_map=SimpleNamespace(iter_rules=lambda: rules), view_functions={"show": show})


def starlette() -> Any:
    inner = [SimpleNamespace(path="/o/{id}", methods={"GET"}, endpoint=show)]
    return SimpleNamespace(routes=[SimpleNamespace(path="/api", app=SimpleNamespace(routes=inner))])


@pytest.mark.parametrize(
    ("application", "pattern"),
    [pytest.param(flask(), "/o/<id>", id="Flask"), pytest.param(starlette(), "/api/o/{id}", id="Starlette")],
)
def test_frameworks_are_known_by_what_they_hold(application: Any, pattern: str) -> None:
    (found,) = (each for route in routes_of(application) for each in described(route))
    assert (found["methods"], found["pattern"], found["name"]) == (["GET"], pattern, "show")


def test_views_have_a_route_for_each_method() -> None:
    view = SimpleNamespace(view_class=Cart)
    (found,) = described(([], "flask", "/cart", view))
    assert (found["methods"], found["name"]) == (["GET"], "Cart.get")
