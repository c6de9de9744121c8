"""Routes of Spring and Express by source: each form of registration, as a table."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agents.source.routes import application
from agents.source.routes.parsing import Parsed, parse_one, parse_others

SPRING = "package com.acme;\nimport org.springframework.web.bind.annotation.*;\n"
EXPRESS = "const express = require('express');\nconst app = express();\n"
SHOW = "function show(req, res) {}\nfunction save(req, res) {}\n"


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(sources: Mapping[str, bytes]) -> tuple[list[Parsed], dict[str, str]]:
        return [parse_one(path, source) for path, source in sources.items()], {}

    monkeypatch.setattr(application, "parse_others", parse)


def found(files: dict[str, str]) -> set[str]:
    read = application.read_application({path: text.encode() for path, text in files.items()})
    assert not read.unread
    return {f"{route.name} {route.handler}" for route in read.routes}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(
            '@RestController class A { @GetMapping("/a/{id}") public X get() { return null; } }',
            {"GET /a/{id} com.acme.A.get"},
            id="method",
        ),
        pytest.param(
            '@RestController @RequestMapping("/api") class A { @PostMapping X add() {} '
            '@GetMapping("/a") X a() {} }',
            {"POST /api com.acme.A.add", "GET /api/a com.acme.A.a"},
            id="class and method",
        ),
        pytest.param(
            '@Controller class A { @RequestMapping(value = "/a", method = RequestMethod.PUT) void put() {} }',
            {"PUT /a com.acme.A.put"},
            id="RequestMapping with a method",
        ),
        pytest.param(
            '@Controller class A { @RequestMapping(path = {"/a", "/b"}, method = {RequestMethod.GET, HEAD}) '
            "void a() {} }",
            {"GET,HEAD /a com.acme.A.a", "GET,HEAD /b com.acme.A.a"},
            id="several paths and methods",
        ),
        pytest.param(
            '@RestController class A { static final String P = "/p"; @GetMapping(P + "/x") void a() {} }',
            {"GET /p/x com.acme.A.a"},
            id="constant",
        ),
        pytest.param(
            '@RestController class A { @GetMapping("/f/{name:.+}") void f() {} '
            '@GetMapping("/g/**") void g() {} }',
            {"GET /f/{name...} com.acme.A.f", "GET /g/{rest...} com.acme.A.g"},
            id="several segments",
        ),
        pytest.param(
            '@FeignClient("x") interface A { @GetMapping("/a") X get(); }',
            set(),
            id="a client is no controller",
        ),
    ],
)
def test_spring(code: str, expected: set[str]) -> None:
    assert found({"src/main/java/com/acme/A.java": SPRING + code}) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("app.get('/a/:id', show);", {"GET /a/{id} show"}, id="verb"),
        pytest.param("app.all('/a', show);", {"* /a show"}, id="all"),
        pytest.param("app.post('/a', auth, check(1), save);", {"POST /a save"}, id="middleware first"),
        pytest.param("app.get('/a', wrap(show));", {"GET /a show"}, id="wrapped"),
        pytest.param("app.get('/a', (req, res) => res.end());", {"GET /a shop.js:5"}, id="anonymous"),
        pytest.param("app.route('/a').get(show).put(save);", {"GET /a show", "PUT /a save"}, id="route"),
        pytest.param(
            "const r = express.Router();\nr.get('/a', show);\napp.use('/api', r);",
            {"GET /api/a show"},
            id="use",
        ),
        pytest.param(
            "const { Router } = require('express');\nconst r = Router(), s = Router();\ns.get('/a', show);\n"
            "r.use('/in', s);\napp.use('/out', auth, r);",
            {"GET /out/in/a show"},
            id="nested routers",
        ),
        pytest.param("axios.get('/a', show);", set(), id="a client is no router"),
    ],
)
def test_express(code: str, expected: set[str]) -> None:
    assert found({"shop.js": EXPRESS + SHOW + code}) == expected


@pytest.mark.parametrize(
    ("routes", "orders", "main"),
    [
        pytest.param(
            "const router = require('express').Router();\nconst orders = require('../orders');\n"
            "router.get('/:id', orders.show);\nmodule.exports = router;",
            "exports.show = async (req, res) => {};",
            "const r = require('./routes/orders');\napp.use('/orders', r);",
            id="CommonJS",
        ),
        pytest.param(
            "import { Router } from 'express';\nimport { show } from '../orders.js';\n"
            "export const router = Router();\nrouter.get('/:id', show);",
            "export const show = async (req, res) => {};",
            "import { router } from './routes/orders.js';\napp.use('/orders', router);",
            id="modules",
        ),
        pytest.param(
            "const router = require('express').Router();\nconst { show } = require('../orders');\n"
            "router.get('/:id', show);\nmodule.exports = { router };",
            "const show = (req, res) => {};\nmodule.exports = { show };",
            "app.use('/orders', require('./routes/orders').router);",
            id="objects",
        ),
        pytest.param(
            "const router = require('express').Router();\nconst orders = require('../orders');\n"
            "router.route('/:id').get(orders.show);\nexport default router;",
            "module.exports = { show(req, res) {} };",
            "app.use('/orders', require('./routes/orders'));",
            id="required in its place",
        ),
        pytest.param(
            "import { Router } from 'express';\nimport { show } from '../orders.js';\nconst r = Router();\n"
            "r.get('/:id', show);\nexport default Router().use('/orders', r);",
            "export const show = async (req, res) => {};",
            "import r from './routes/orders.js';\nconst all = express.Router().use(r);\napp.use(all);",
            id="chains",
        ),
    ],
)
def test_express_over_files(routes: str, orders: str, main: str) -> None:
    files = {"routes/orders.js": routes, "orders.js": orders, "app.js": EXPRESS + main}
    assert found(files) == {"GET /orders/{id} show"}


def test_calls_of_java_lead_through_interfaces_and_fields() -> None:
    files = {
        "A.java": SPRING
        + "@RestController class A { private final Store store; A(Store s) { this.store = s; }\n"
        '@GetMapping("/a") X a() { return store.load(1); } }',
        "Store.java": "package com.acme; interface Store { X load(int id); }",
        "Disk.java": "package com.acme; class Disk implements Store {\n"
        "public X load(int id) { return read(id); }\n"
        "private X read(int id) { Parser p = new Parser(); return p.parse(); } }",
        "Parser.java": "package com.acme; class Parser { X parse() { return null; } void other() {} }",
    }
    read = application.read_application({path: text.encode() for path, text in files.items()})
    reach = read.graph.reach("com.acme.A.a")
    assert reach.way("com.acme.Parser.parse") == (
        "com.acme.A.a",
        "com.acme.Disk.load",
        "com.acme.Disk.read",
        "com.acme.Parser.parse",
    )
    assert "com.acme.Parser.other" not in reach.depths


def test_calls_of_javascript_lead_over_files() -> None:
    files = {
        "app.js": EXPRESS
        + "const { total } = require('./cart');\napp.get('/a', (req, res) => { res.end(total()); });",
        "cart.js": "const Prices = require('./prices');\nconst prices = new Prices();\n"
        "function total() { return prices.of(1); }\nmodule.exports = { total };",
        "prices.js": "class Prices { of(id) { return this.look(id); } look(id) { return id; } other() {} }\n"
        "module.exports = Prices;",
    }
    read = application.read_application({path: text.encode() for path, text in files.items()})
    reach = read.graph.reach("app.js:4")
    assert reach.way("Prices.look") == ("app.js:4", "total", "Prices.of", "Prices.look")
    assert "Prices.other" not in reach.depths


@pytest.mark.slow
def test_a_source_that_ends_its_parser_costs_only_itself() -> None:
    sources = {
        "a.js": b"function a() {}",
        "b.ts": b"class B { b(): void {} }",
        "C.java": b"class C { void c() {} }",
    }
    parsed, unread = parse_others(sources)
    assert unread == {}
    assert [parse_one(path, source) for path, source in sources.items()] == parsed
