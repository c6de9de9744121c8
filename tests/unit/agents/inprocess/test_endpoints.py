from __future__ import annotations

import asyncio
import io
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any
from wsgiref.util import FileWrapper

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agents.inprocess.marks import sampling
from smidgen.inprocess import (
    StarletteMiddleware,
    aiohttp_middleware,
    django_middleware,
    watch_flask,
    wrap_asgi,
    wrap_wsgi,
)
from tests.unit.agents.inprocess.sampled import annotations_now

pytestmark = pytest.mark.usefixtures("sampler_on")


def route(environ: Any) -> str | None:
    found: str | None = environ.get("route")
    return found


def answer_whole(environ: dict[str, Any], _start: Any) -> Iterable[bytes]:
    environ["route"] = "GET /cart/{id}"  # found while the request goes on
    return [repr(annotations_now()).encode()]


def answer_in_parts(environ: dict[str, Any], _start: Any) -> Iterable[bytes]:
    environ["route"] = "GET /cart/{id}"
    return (repr(annotations_now()).encode() for _ in range(2))


@pytest.mark.parametrize(("app", "parts"), [(answer_whole, 1), (answer_in_parts, 2)])
def test_a_wsgi_request_is_annotated_to_its_last_part(app: Any, parts: int) -> None:
    answer = wrap_wsgi(app, route)({}, None)
    assert list(answer) == [b"['endpoint=GET /cart/{id}']"] * parts
    assert annotations_now() == []


def test_an_answer_is_closed_and_a_list_or_file_left_as_it_is() -> None:
    class Answer:
        closed = False

        def __iter__(self) -> Iterator[bytes]:
            return iter([b"1"])

        def close(self) -> None:
            self.closed = True

    answer, file = Answer(), FileWrapper(io.BytesIO(b"1"))
    whole = [b"1"]
    wrapped: Any = wrap_wsgi(lambda *_: answer, route)({}, None)
    assert list(wrapped) == [b"1"]
    wrapped.close()
    assert answer.closed
    assert wrap_wsgi(lambda *_: whole, route)({}, None) is whole
    assert wrap_wsgi(lambda *_: file, route)({"wsgi.file_wrapper": FileWrapper}, None) is file


def test_without_a_sampler_an_application_answers_by_itself() -> None:
    sampling.on = False
    parts = answer_in_parts({}, None)
    assert wrap_wsgi(lambda *_: parts, route)({}, None) is parts


def test_an_error_of_the_endpoint_is_nobody_elses() -> None:
    def fail(_environ: Any) -> str:
        raise KeyError

    assert list(wrap_wsgi(answer_whole, fail)({}, None)) == [b"[]"]


def asked(app: Any, scope: dict[str, Any]) -> list[str]:
    found: list[str] = []

    async def send(annotations: list[str]) -> None:
        found.extend(annotations)

    asyncio.run(app({"type": "http", "method": "GET"} | scope, None, send))
    return found


async def answer_asgi(scope: Any, _receive: Any, send: Any) -> None:
    scope["route"] = "GET /cart/{id}"
    await asyncio.sleep(0)
    await send(annotations_now())


def test_an_asgi_request_is_annotated() -> None:
    assert asked(wrap_asgi(answer_asgi, route), {}) == ["endpoint=GET /cart/{id}"]
    assert asked(wrap_asgi(answer_asgi, route), {"type": "lifespan"}) == []


def test_routes_of_aiohttp() -> None:
    async def handler(_request: web.Request) -> web.Response:
        return web.json_response(annotations_now())

    async def main() -> list[Any]:
        app, part = web.Application(middlewares=[aiohttp_middleware]), web.Application()
        app.router.add_get("/cart/{id}", handler)
        part.router.add_get("/price/{id}", handler)
        app.add_subapp("/part", part)
        async with TestClient(TestServer(app)) as client:
            found = [await (await client.get(path)).json() for path in ("/cart/7", "/part/price/7")]
            return [*found, (await client.get("/nowhere")).status]

    assert asyncio.run(main()) == [["endpoint=GET /cart/{id}"], ["endpoint=GET /part/price/{id}"], 404]


# The shapes of Flask, Django and Starlette, which are no dependency, as far as they are used.


def test_routes_of_flask(monkeypatch: pytest.MonkeyPatch) -> None:
    request = types.SimpleNamespace(environ={}, url_rule=types.SimpleNamespace(rule="/cart/<int:id>"))

    class App:
        hooks: list[Callable[[], None]] = []

        def before_request(self, hook: Callable[[], None]) -> None:
            self.hooks.append(hook)

        def wsgi_app(self, environ: dict[str, Any], _start: Any) -> Iterable[bytes]:
            request.environ = environ
            for hook in self.hooks:
                hook()
            return [repr(annotations_now()).encode()]

    monkeypatch.setitem(sys.modules, "flask", types.SimpleNamespace(request=request))
    app = App()
    watch_flask(app)
    assert list(app.wsgi_app({"REQUEST_METHOD": "GET"}, None)) == [b"['endpoint=GET /cart/<int:id>']"]


@pytest.mark.parametrize("waiting", [False, True])
def test_routes_of_django(waiting: bool) -> None:
    request = types.SimpleNamespace(method="GET", resolver_match=None)

    def view(request: Any) -> list[str]:
        request.resolver_match = types.SimpleNamespace(route="cart/<int:id>/")
        return annotations_now()

    async def waiting_view(request: Any) -> list[str]:
        return view(request)

    if waiting:
        answer = asyncio.run(django_middleware(waiting_view)(request))
    else:
        answer = django_middleware(view)(request)
    assert answer == ["endpoint=GET /cart/<int:id>/"]


class Match(Enum):
    NONE = 0
    FULL = 2


class Route:
    """A route as Starlette has it; a group of FastAPI has no path."""

    def __init__(self, prefix: str, path: str | None, routes: list[Route] | None = None) -> None:
        self.prefix = prefix
        self.routes = routes
        if path is not None:
            self.path = path

    def matches(self, scope: dict[str, Any]) -> tuple[Match, dict[str, Any]]:
        at = scope.get("root_path", "")
        if scope["path"][len(at) :].startswith(self.prefix):
            return Match.FULL, {"root_path": at + self.prefix}
        return Match.NONE, {}


ROUTES = [
    Route("/cart/", "/cart/{id}"),
    Route("/eu", "/{region}", [Route("/price/", "/price/{id}")]),
    Route("/group", None),
]


@pytest.mark.parametrize(
    ("path", "known", "expected"),
    [
        ("/cart/7", {}, ["endpoint=GET /cart/{id}"]),
        ("/eu/price/7", {}, ["endpoint=GET /{region}/price/{id}"]),
        ("/group/7", {"route": Route("", "/group/{id}")}, ["endpoint=GET /group/{id}"]),
        (
            "/group/7",
            {"route": Route("", "/{id}"), "fastapi": {"effective_route_context": Route("", "/group/{id}")}},
            ["endpoint=GET /group/{id}"],
        ),
        ("/nowhere", {}, []),
    ],
)
def test_routes_of_starlette(path: str, known: dict[str, Any], expected: list[str]) -> None:
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        scope.update({"root_path": "/changed", **known})
        await send(annotations_now())

    scope = {"path": path, "app": types.SimpleNamespace(routes=ROUTES)}
    assert asked(StarletteMiddleware(app), scope) == expected


def test_a_request_counts_in_a_thread_whose_result_it_awaits() -> None:
    def work() -> list[str]:
        end = time.monotonic() + 60
        while not (found := annotations_now()) and time.monotonic() < end:
            time.sleep(0.005)  # until its result is awaited
        return found

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(await asyncio.to_thread(work))
        with ThreadPoolExecutor(1) as pool:
            await send(await asyncio.get_running_loop().run_in_executor(pool, work))

    found = asked(wrap_asgi(app, lambda _scope: "GET /"), {})
    assert found == ["endpoint=GET /", "endpoint=GET /"]


def test_a_request_counts_in_a_thread_of_anyio() -> None:
    class WorkerThread:
        """As anyio has it: the future of the task that waits is a variable of the function that works."""

        def run(self, future: Any, done: Future[list[str]]) -> None:
            done.set_result(annotations_now())
            future.get_loop().call_soon_threadsafe(future.set_result, None)

    WorkerThread.run.__code__ = WorkerThread.run.__code__.replace(co_qualname="WorkerThread.run")

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        loop, done = asyncio.get_running_loop(), Future[list[str]]()
        future = loop.create_future()
        loop.call_later(0.01, loop.run_in_executor, None, WorkerThread().run, future, done)
        await future
        await send(done.result())

    assert asked(wrap_asgi(app, lambda _scope: "GET /"), {}) == ["endpoint=GET /"]
