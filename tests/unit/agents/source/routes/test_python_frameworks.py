"""Routes of Python's frameworks by source: each form of registration, as a table."""

from __future__ import annotations

import pytest

from agents.source.routes.application import read_application

FLASK = """
from flask import Flask, Blueprint
from flask.views import MethodView
app = Flask(__name__)
"""
FASTAPI = """
from fastapi import FastAPI, APIRouter
app = FastAPI()
"""
AIOHTTP = """
from aiohttp import web
app = web.Application()
routes = web.RouteTableDef()
async def show(request): ...
async def save(request): ...
"""
DJANGO = """
from django.urls import include, path, re_path
from shop import views
"""
VIEWS = """
from django.views.decorators.http import require_POST
def index(request): ...
def order(request, id): ...
@require_POST
def buy(request): ...
class Cart(View):
    def get(self, request): ...
    def post(self, request): ...
"""


def found(files: dict[str, str]) -> set[str]:
    application = read_application({path: text.encode() for path, text in files.items()})
    assert not application.unread
    return {f"{route.name} {route.handler}" for route in application.routes}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("@app.route('/')\ndef index(): ...", {"GET / shop.index"}, id="route"),
        pytest.param(
            "@app.route('/a/<int:id>', methods=['GET', 'POST'])\ndef a(id): ...",
            {"GET,POST /a/{id} shop.a"},
            id="methods and converter",
        ),
        pytest.param("@app.post('/a')\ndef a(): ...", {"POST /a shop.a"}, id="verb"),
        pytest.param(
            "@app.get('/a')\n@app.get('/b')\ndef a(): ...",
            {"GET /a shop.a", "GET /b shop.a"},
            id="two of one function",
        ),
        pytest.param("@app.route('/f/<path:p>')\ndef f(p): ...", {"GET /f/{p...} shop.f"}, id="path"),
        pytest.param(
            "BASE = '/v1'\n@app.route(BASE + '/a')\ndef a(): ...", {"GET /v1/a shop.a"}, id="constant"
        ),
        pytest.param(
            "BASE = '/v1'\n@app.route(f'{BASE}/a')\ndef a(): ...", {"GET /v1/a shop.a"}, id="f-string"
        ),
        pytest.param(
            "bp = Blueprint('x', __name__, url_prefix='/x')\n@bp.route('/a')\ndef a(): ...\n"
            "app.register_blueprint(bp)",
            {"GET /x/a shop.a"},
            id="prefix of a blueprint",
        ),
        pytest.param(
            "bp = Blueprint('x', __name__, url_prefix='/x')\n@bp.route('/a')\ndef a(): ...\n"
            "app.register_blueprint(bp, url_prefix='/y')",
            {"GET /y/a shop.a"},
            id="prefix of the registration instead",
        ),
        pytest.param(
            "out = Blueprint('o', __name__)\nbp = Blueprint('x', __name__)\n@bp.get('/a')\ndef a(): ...\n"
            "out.register_blueprint(bp, url_prefix='/in')\napp.register_blueprint(out, url_prefix='/out')",
            {"GET /out/in/a shop.a"},
            id="nested blueprints",
        ),
        pytest.param(
            "def create():\n    app = Flask('x')\n    @app.get('/a')\n    def a(): ...\n    return app",
            {"GET /a shop.create.a"},
            id="factory",
        ),
        pytest.param(
            "class A(MethodView):\n    def get(self): ...\n    def post(self): ...\n"
            "app.add_url_rule('/a', view_func=A.as_view('a'))",
            {"GET /a shop.A.get", "POST /a shop.A.post"},
            id="class-based view",
        ),
        pytest.param("def a(): ...\napp.add_url_rule('/a', 'a', a)", {"GET /a shop.a"}, id="add_url_rule"),
        pytest.param(
            "api = Api(app, prefix='/api')\nclass A(Resource):\n    def get(self): ...\n"
            "api.add_resource(A, '/a', '/b/<id>')",
            {"GET /api/a shop.A.get", "GET /api/b/{id} shop.A.get"},
            id="Flask-RESTful",
        ),
        pytest.param(
            "ns = Namespace('orders')\n@ns.route('/<id>')\nclass A(Resource):\n    def put(self, id): ...\n"
            "api = Api(app)\napi.add_namespace(ns)",
            {"PUT /orders/{id} shop.A.put"},
            id="Flask-RESTX",
        ),
    ],
)
def test_flask(code: str, expected: set[str]) -> None:
    assert found({"shop.py": FLASK + code}) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("@app.get('/a/{id}')\nasync def a(id: int): ...", {"GET /a/{id} shop.a"}, id="verb"),
        pytest.param(
            "r = APIRouter(prefix='/r')\n@r.post('')\ndef a(): ...\napp.include_router(r, prefix='/v1')",
            {"POST /v1/r shop.a"},
            id="both prefixes",
        ),
        pytest.param(
            "r = APIRouter()\n@r.get('/a')\ndef a(): ...\n"
            "app.include_router(r, prefix='/v1')\napp.include_router(r, prefix='/v2')",
            {"GET /v1/a shop.a", "GET /v2/a shop.a"},
            id="included twice",
        ),
        pytest.param(
            "class S:\n    BASE: str = '/api'\ns = S()\nr = APIRouter()\n@r.get('/a')\ndef a(): ...\n"
            "app.include_router(r, prefix=s.BASE)",
            {"GET /api/a shop.a"},
            id="prefix of settings",
        ),
        pytest.param(
            "@app.api_route('/a', methods=['PUT', 'POST'])\ndef a(): ...",
            {"PUT,POST /a shop.a"},
            id="api_route",
        ),
        pytest.param(
            "def a(): ...\napp.add_api_route('/a', a, methods=['PUT'])", {"PUT /a shop.a"}, id="added"
        ),
        pytest.param("@app.get('/f/{p:path}')\ndef f(p): ...", {"GET /f/{p...} shop.f"}, id="path"),
        pytest.param(
            "from starlette.routing import Mount, Route\ndef a(r): ...\ndef b(r): ...\n"
            "api = Starlette(routes=[Route('/a', a), "
            "Mount('/m', routes=[Route('/b', b, methods=['POST'])])])",
            {"GET /a shop.a", "POST /m/b shop.b"},
            id="Starlette's lists",
        ),
        pytest.param(
            "sub = FastAPI()\n@sub.get('/a')\ndef a(): ...\napp.mount('/sub', sub)",
            {"GET /sub/a shop.a"},
            id="mounted application",
        ),
    ],
)
def test_fastapi(code: str, expected: set[str]) -> None:
    assert found({"shop.py": FASTAPI + code}) == expected


def test_routers_of_other_modules() -> None:
    files = {
        "backend/app/main.py": "from fastapi import FastAPI\nfrom app.api import api\n"
        "from app.core import settings\n"
        "app = FastAPI()\napp.include_router(api, prefix=settings.V1)\n",
        "backend/app/core.py": "class Settings:\n    V1: str = '/api/v1'\nsettings = Settings()\n",
        "backend/app/api.py": "from fastapi import APIRouter\nfrom .routes import orders\n"
        "import app.routes.users as u\napi = APIRouter()\n"
        "api.include_router(orders.router, prefix='/orders')\napi.include_router(u.router)\n",
        "backend/app/__init__.py": "",
        "backend/app/routes/__init__.py": "",
        "backend/app/routes/orders.py": "from fastapi import APIRouter\nrouter = APIRouter()\n"
        "@router.get('/{id}')\ndef order(id): ...\n",
        "backend/app/routes/users.py": "from fastapi import APIRouter\nrouter = APIRouter(prefix='/users')\n"
        "@router.delete('/me')\ndef leave(): ...\n",
    }
    assert found(files) == {
        "GET /api/v1/orders/{id} app.routes.orders.order",
        "DELETE /api/v1/users/me app.routes.users.leave",
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("app.router.add_get('/a/{id}', show)", {"GET /a/{id} shop.show"}, id="add_get"),
        pytest.param(
            "class Handlers:\n    async def look(self, request): ...\n"
            "def setup(router, h):\n    router.add_get('/a', h.look)",
            {"GET /a shop.Handlers.look"},
            id="objects handed in",
        ),
        pytest.param("app.router.add_route('PUT', '/a', save)", {"PUT /a shop.save"}, id="add_route"),
        pytest.param("app.router.add_route('*', '/a', save)", {"* /a shop.save"}, id="any method"),
        pytest.param(
            "app.add_routes([web.get('/a', show), web.post('/a', save)])",
            {"GET /a shop.show", "POST /a shop.save"},
            id="list",
        ),
        pytest.param(
            "@routes.get(r'/a/{id:\\d+}')\nasync def a(request): ...\napp.add_routes(routes)",
            {"GET /a/{id} shop.a"},
            id="table of routes",
        ),
        pytest.param(
            "@routes.view('/a')\nclass A(web.View):\n    async def get(self): ...\n"
            "    async def post(self): ...",
            {"GET /a shop.A.get", "POST /a shop.A.post"},
            id="view of a table",
        ),
        pytest.param(
            "class A(web.View):\n    async def get(self): ...\napp.router.add_view('/a', A)",
            {"GET /a shop.A.get"},
            id="add_view",
        ),
        pytest.param(
            "sub = web.Application()\nsub.add_routes([web.get('/a', show)])\napp.add_subapp('/s', sub)",
            {"GET /s/a shop.show"},
            id="nested application",
        ),
    ],
)
def test_aiohttp(code: str, expected: set[str]) -> None:
    assert found({"shop.py": AIOHTTP + code}) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("urlpatterns = [path('', views.index)]", {"* / shop.views.index"}, id="path"),
        pytest.param(
            "urlpatterns = [path('o/<int:id>/', views.order)]", {"* /o/{id} shop.views.order"}, id="converter"
        ),
        pytest.param(
            r"urlpatterns = [re_path(r'^o/(?P<id>\d+)/$', views.order)]",
            {"* /o/{id} shop.views.order"},
            id="re_path",
        ),
        pytest.param("urlpatterns = [path('b', views.buy)]", {"POST /b shop.views.buy"}, id="require_POST"),
        pytest.param(
            "urlpatterns = [path('cart', login_required(views.Cart.as_view()))]",
            {"GET /cart shop.views.Cart.get", "POST /cart shop.views.Cart.post"},
            id="class-based view in a decorator",
        ),
        pytest.param(
            "urlpatterns = [path('in/', include([path('x', views.index)]))]",
            {"* /in/x shop.views.index"},
            id="list in include",
        ),
        pytest.param(
            "more = [path('x', views.index)]\nurlpatterns = [path('in/', include((more, 'shop')))]",
            {"* /in/x shop.views.index"},
            id="named list in include",
        ),
        pytest.param(
            "urlpatterns = [path('a', views.index)]\nurlpatterns += [path('b', views.index)]",
            {"* /a shop.views.index", "* /b shop.views.index"},
            id="added list",
        ),
        pytest.param(
            "urlpatterns = i18n_patterns(path('a', views.index)) + [path('b', views.order)]",
            {"* /a shop.views.index", "* /b shop.views.order"},
            id="sum of lists",
        ),
        pytest.param(
            "from rest_framework import viewsets\nfrom rest_framework.decorators import action\n"
            "class Orders(viewsets.ReadOnlyModelViewSet):\n    def list(self, r): ...\n"
            "    @action(detail=True, methods=['post'])\n    def pay(self, r, pk): ...\n"
            "router = DefaultRouter()\nrouter.register(r'orders', Orders)\n"
            "urlpatterns = [path('api/', include(router.urls))]",
            {
                "GET /api/orders shop.urls.Orders.list",
                "GET /api/orders/{id} shop.urls.Orders",
                "POST /api/orders/{id}/pay shop.urls.Orders.pay",
            },
            id="REST framework",
        ),
    ],
)
def test_django(code: str, expected: set[str]) -> None:
    files = {"shop/__init__.py": "", "shop/urls.py": DJANGO + code, "shop/views.py": VIEWS}
    assert found(files) == expected


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("if a: ...\n" + "elif a: ...\n" * 1500, id="many branches"),
        pytest.param("x = " + "a | " * 3000 + "a", id="long sum"),
        pytest.param("def f(x: " + "a | " * 3000 + "a): ...", id="long annotation"),
        pytest.param("x = a" + ".b()" * 3000, id="long chain"),
        pytest.param("from shop import *\nfrom shop import x\nx = x\nclass A(A): ...\nA.b.c()", id="circles"),
        pytest.param(
            "re_path('" + "(?:" * 400 + ")" * 400 + "', x)\nurlpatterns = [re_path('(', x)]", id="groups"
        ),
        pytest.param("\0", id="no text"),
    ],
)
def test_hostile_source_is_read_or_left_out(code: str) -> None:
    application = read_application({"shop.py": (FLASK + code).encode(), "good.py": FLASK.encode()})
    assert application.unread.keys() <= {"shop.py"}


def test_includes_of_other_modules() -> None:
    root = "from django.urls import include, path\nurlpatterns = [path('shop/', include('shop.urls'))]"
    shop = DJANGO + "urlpatterns = [path('o/<slug>', views.order)]"
    files = {"shop/__init__.py": "", "shop/urls.py": shop, "shop/views.py": VIEWS, "site/urls.py": root}
    assert found(files) == {"* /shop/o/{slug} shop.views.order"}
