"""An application's own access log: WSGI and ASGI, answers in parts, failures, and rotation."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults

import numpy as np
import pytest

from agents.inprocess.observer import AsgiApp, WsgiApp
from agents.logs import RequestTypes
from agents.logs.line_format import line_format
from agents.logs.request_tally import RequestTally, TallyOptions
from smidgen.inprocess import AccessLog


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def asked(app: WsgiApp, path: str = "/cart/7", method: str = "GET") -> bytes:
    """Serve one request as a server does: it closes the answer."""
    environ: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": method, "QUERY_STRING": "key=secret"}
    setup_testing_defaults(environ)
    answer = app(environ, lambda *_: None)
    try:
        return b"".join(answer)
    finally:
        getattr(answer, "close", lambda: None)()


def plain(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("201 Created", [])
    return [b"a", b"b"]


def streamed(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [])
    yield b"a"
    time.sleep(0.02)
    yield b"b"


def failing(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    raise LookupError("no such cart")


@pytest.mark.parametrize(("app", "status", "least_s"), [(plain, 201, 0.0), (streamed, 200, 0.02)])
def test_a_request_is_a_line(tmp_path: Path, app: WsgiApp, status: int, least_s: float) -> None:
    log = AccessLog(tmp_path / "log")
    assert asked(log.wsgi(app)) == b"ab"
    (line,) = lines(tmp_path / "log")
    assert (line["method"], line["path"], line["status"]) == ("GET", "/cart/7", status)
    assert line["duration_s"] >= least_s
    assert abs(line["time"] - time.time()) < 600.0


def test_a_request_that_fails_is_one_too(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "log")
    with pytest.raises(LookupError):
        asked(log.wsgi(failing))
    assert [line["status"] for line in lines(tmp_path / "log")] == [500]


def test_an_endpoint_stands_for_the_path_unless_it_fails(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "log")
    app = log.wsgi(plain, lambda environ: "GET /cart/{id}" if environ["PATH_INFO"] != "/" else None)
    for path in ("/cart/7", "/cart/8", "/"):
        asked(app, path)
    assert asked(log.wsgi(plain, lambda environ: str(environ["no such key"]))) == b"ab"
    assert [line["path"] for line in lines(tmp_path / "log")] == ["/cart/{id}", "/cart/{id}", "/", "/cart/7"]


def test_what_the_server_sends_in_its_own_way_stays_as_it_is(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "log")
    assert log.wsgi(plain)({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *_: None) == [b"a", b"b"]
    file = FileWrapper(io.BytesIO(b"ab"))
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.file_wrapper": FileWrapper}
    assert log.wsgi(lambda environ, start: file)(environ, lambda *_: None) is file
    assert len(lines(tmp_path / "log")) == 2


@pytest.mark.parametrize("path", ["none/log", ".", "/dev/full"])
def test_a_log_that_cannot_be_written_harms_no_request(
    tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = AccessLog(tmp_path / path).wsgi(plain)
    assert [asked(app), asked(app)] == [b"ab", b"ab"]
    assert len(caplog.records) == 1


def test_a_file_that_is_rotated_is_begun_anew(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "log")
    app = log.wsgi(plain)
    asked(app, "/first")
    (tmp_path / "log").rename(tmp_path / "log.1")
    asked(app, "/second")
    log.close()
    assert [lines(tmp_path / name)[0]["path"] for name in ("log.1", "log")] == ["/first", "/second"]


async def answering(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/boom":
        raise LookupError("no such cart")
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"a"})


@pytest.mark.parametrize(
    ("kind", "path", "statuses"),
    [("http", "/cart/7", [404]), ("http", "/boom", [500]), ("websocket", "/cart/7", [])],
)
def test_requests_of_asgi(tmp_path: Path, kind: str, path: str, statuses: list[int]) -> None:
    log = AccessLog(tmp_path / "log")
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def main(app: AsgiApp) -> None:
        await app({"type": kind, "method": "GET", "path": path}, None, send)

    if path == "/boom":
        with pytest.raises(LookupError):
            asyncio.run(main(log.asgi(answering)))
    else:
        asyncio.run(main(log.asgi(answering, lambda scope: "GET /cart/{id}")))
        assert sent == ["http.response.start", "http.response.body"]
    found = lines(tmp_path / "log") if statuses else []
    assert [line["status"] for line in found] == statuses
    assert (tmp_path / "log").exists() == bool(statuses)


def test_the_host_counts_what_it_writes(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "log")
    app = log.wsgi(streamed)
    for number in range(3):
        asked(app, f"/cart/{number}")
    tally = RequestTally(TallyOptions("shop", "h1"), line_format("json"), RequestTypes())
    tally.add((tmp_path / "log").read_text().splitlines())
    table = tally.table()
    assert (tally.requests, tally.omissions.invalid) == (3, 0)
    assert sum(table["GET /cart/:id"]) == 3
    assert 0.01 < np.nanmin(table["response_time{GET /cart/:id}"]) < 600.0
