"""What a proxy and middleware show the recorder, and that it harms nothing."""

from __future__ import annotations

import asyncio
import io
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agents.experiments.replay import (
    AsgiRecorder,
    Recorder,
    RecorderConfig,
    Redaction,
    SamplingConfig,
    WsgiRecorder,
)
from agents.experiments.replay.proxy import make_proxy
from pipeline.http.serving import listening
from tests.support.open_faults import open_fault
from tests.unit.agents.experiments.replay.services import Handler, raw_service, recorded, service

REDACTION = Redaction(b"key" * 8)


def config(**given: Any) -> RecorderConfig:
    return RecorderConfig(redaction=REDACTION, **given)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.jsonl.gz"


async def send_back(request: web.Request) -> web.StreamResponse:
    """Answer in chunks what was sent, with a header of its own."""
    response = web.StreamResponse(status=207, headers={"X-Own": "1", "Set-Cookie": "a=b"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    async for chunk in request.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def through_proxy(
    recorder: Recorder,
    handler: Handler,
    work: Callable[[aiohttp.ClientSession, str], Awaitable[Any]],
) -> Any:
    async def main() -> Any:
        async with (
            service(handler) as upstream,
            listening(make_proxy(upstream, recorder), "127.0.0.1", 0) as address,
            aiohttp.ClientSession(auto_decompress=False) as session,
        ):
            return await work(session, address)

    try:
        return asyncio.run(main())
    finally:
        recorder.close()


async def post(session: aiohttp.ClientSession, address: str) -> tuple[int, bytes, dict[str, str]]:
    async def chunks() -> Any:
        yield b"[1,"
        yield b"2]"

    headers = {"Authorization": "Bearer s3", "Cookie": "sid=7", "Content-Type": "application/json"}
    async with session.post(f"{address}/cart%2F1?q=a%20b&token=x", data=chunks(), headers=headers) as answer:
        return answer.status, await answer.read(), dict(answer.headers)


def test_a_proxy_passes_all_on_and_records_it_redacted(path: Path) -> None:
    status, body, headers = through_proxy(Recorder(path, config(session="cookie:sid")), send_back, post)
    assert (status, body) == (207, b"[1,2]")
    assert (headers["X-Own"], headers["Set-Cookie"]) == ("1", "a=b")
    (found,) = recorded(path)
    assert (found.method, found.status, found.body) == ("POST", 207, b"[1,2]")
    assert found.target == f"/cart%2F1?q=a%20b&token={REDACTION.digest('x')}"
    assert ("Authorization", REDACTION.digest("Bearer s3")) in found.headers
    assert found.session
    text = repr(found)
    assert not any(secret in text for secret in ("s3", "sid=7"))


def test_a_large_body_passes_and_is_not_recorded(path: Path) -> None:
    large = b"x" * 300_000

    async def work(session: aiohttp.ClientSession, address: str) -> tuple[bytes, bytes]:
        async with session.post(address, data=large) as answer:
            first = await answer.read()
        async with session.post(address, data=b"small") as answer:
            return first, await answer.read()

    recorder = Recorder(path, config(max_body_bytes=1000))
    assert through_proxy(recorder, send_back, work) == (large, b"small")
    assert [request.body for request in recorded(path)] == [b"small"]
    assert recorder.counts == {"seen": 2, "recorded": 1, "too_large": 1}


@pytest.mark.parametrize("status", [404, 500, 503])
def test_errors_of_the_service_are_passed_through(path: Path, status: int) -> None:
    async def failing(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="own words")

    async def work(session: aiohttp.ClientSession, address: str) -> tuple[int, str]:
        async with session.get(address) as answer:
            return answer.status, await answer.text()

    assert through_proxy(Recorder(path, config()), failing, work) == (status, "own words")
    assert [request.status for request in recorded(path)] == [status]


def test_a_service_that_is_away_is_a_502_and_an_answer_that_breaks_off_breaks_off(path: Path) -> None:
    recorder = Recorder(path, config())

    async def main() -> tuple[int, bool]:
        async with (
            raw_service(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", close=True) as broken,
            listening(make_proxy("http://127.0.0.1:9", recorder), "127.0.0.1", 0) as away,
            listening(make_proxy(broken, recorder), "127.0.0.1", 0) as breaking,
            aiohttp.ClientSession() as session,
        ):
            async with session.get(away) as answer:
                status = answer.status
            try:
                async with session.get(breaking) as answer:
                    await answer.read()
            except aiohttp.ClientError:
                return status, True
            return status, False

    assert asyncio.run(main()) == (502, True)
    recorder.close()
    assert [request.status for request in recorded(path)] == [0, 0]


def test_errors_of_the_recorder_are_counted_and_harm_nobody(path: Path) -> None:
    times = iter([1.0])  # the head of the file; after it the clock fails

    def clock() -> float:
        return next(times)

    recorder = Recorder(path, config(), clock=clock)

    async def work(session: aiohttp.ClientSession, address: str) -> int:
        async with session.get(address) as answer:
            return answer.status

    assert through_proxy(recorder, send_back, work) == 207
    assert recorder.counts == {"seen": 1, "errors": 1}


def test_a_full_disk_harms_nobody() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    recorder = Recorder(Path("/dev/full"), config())
    recorder.begin("GET", "/", []).answered(200)
    recorder.close()
    assert recorder.counts["errors"] > 0


def test_what_waits_for_the_file_is_bounded(path: Path) -> None:
    recorder = Recorder(path, config(session="header:x", max_waiting_bytes=50))
    ticket = recorder.begin("POST", "/", [("X", "1")])
    ticket.body(b"x" * 60)
    ticket.answered(200)
    recorder.begin("GET", "/", [("X", "2")]).answered(200)
    recorder.close()
    assert len(recorded(path)) == 1
    assert recorder.counts == {"seen": 2, "no_room": 1, "recorded": 1}


def test_a_session_of_which_a_request_is_lost_is_taken_back(path: Path) -> None:
    recorder = Recorder(path, config(session="header:x", max_body_bytes=5))
    for session, body in (("1", b"a"), ("2", b"b"), ("1", b"too large")):
        ticket = recorder.begin("POST", "/", [("X", session)])
        ticket.body(body)
        ticket.answered(200)
    recorder.close()
    assert [request.body for request in recorded(path)] == [b"b"]


def test_a_file_grows_up_to_its_bound(path: Path) -> None:
    recorder = Recorder(path, config(max_file_bytes=500))
    for _ in range(50):
        recorder.begin("GET", "/", []).answered(200)
    recorder.close()
    assert 0 < recorder.counts["recorded"] < 10
    assert recorder.counts["no_room"] == 50 - recorder.counts["recorded"]


def test_an_interval_is_written_when_the_recorder_is_closed(path: Path) -> None:
    recorder = Recorder(path, config(sampling=SamplingConfig(most=3)), clock=lambda: 60.0)
    for _ in range(9):
        recorder.begin("GET", "/", []).answered(200)
    recorder.close()
    recorder.close()
    assert [request.weight for request in recorded(path)] == [3.0, 3.0, 3.0]


async def test_asgi(path: Path) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        body = (await receive())["body"] + (await receive())["body"]
        if scope["path"] == "/fails":
            raise ValueError("own error")
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": body})

    recorder = Recorder(path, config())
    recording = AsgiRecorder(app, recorder)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask(target: str) -> None:
        bodies = iter([b"a", b"b"])

        async def receive() -> Any:
            return {"type": "http.request", "body": next(bodies), "more_body": True}

        headers = [(b"x-a", b"1")]
        scope = {"type": "http", "method": "PUT", "path": target, "query_string": b"q=1", "headers": headers}
        await recording(scope, receive, send)

    await recording({"type": "lifespan"}, None, send)
    await ask("/ä b")
    with pytest.raises(ValueError, match="own error"):
        await ask("/fails")
    recorder.close()
    assert [message.get("body") for message in sent] == [None, b"ab"]
    found = sorted(recorded(path), key=lambda request: request.target)
    assert [(request.target, request.status) for request in found] == [
        ("/%C3%A4%20b?q=1", 201),
        ("/fails?q=1", 0),
    ]
    assert (found[0].method, found[0].body, found[0].headers) == ("PUT", b"ab", (("x-a", "1"),))


def test_wsgi(path: Path) -> None:
    closed: list[bool] = []

    class Answer:
        def __iter__(self) -> Iterator[bytes]:
            yield b"a"
            yield b"b"

        def close(self) -> None:
            closed.append(True)

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"].read(2)
        if environ["PATH_INFO"] == "/fails":
            raise ValueError("own error")
        start_response("404 Not Found", [])
        return Answer()

    def ask(target: str) -> list[bytes]:
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": target, "QUERY_STRING": "", "HTTP_X_A": "1"}
        environ["CONTENT_TYPE"] = "text/plain"
        answer = recording({**environ, "wsgi.input": io.BytesIO(b"body")}, lambda *_: None)
        chunks = list(answer)
        answer.close()  # type: ignore[attr-defined]
        return chunks

    recorder = Recorder(path, config())
    recording = WsgiRecorder(app, recorder)
    assert ask("/x") == [b"a", b"b"]
    with pytest.raises(ValueError, match="own error"):
        ask("/fails")
    recorder.close()
    assert closed == [True]
    found = sorted(recorded(path), key=lambda request: request.target, reverse=True)
    assert [(request.target, request.status, request.body) for request in found] == [
        ("/x", 404, b"bo"),
        ("/fails", 0, b"bo"),
    ]
    assert found[0].headers == (("X-A", "1"), ("Content-Type", "text/plain"))


@open_fault("44.13", "a recording is readable by every user of the machine")
def test_a_recording_is_its_owners_alone(path: Path) -> None:
    mask = os.umask(0o022)
    Recorder(path).close()
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


SECRET = "hunter2"
KINDS = {
    "multipart": (
        "multipart/form-data; boundary=b",
        f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{SECRET}\r\n--b--\r\n',
    ),
    "xml": ("application/xml", f"<login><password>{SECRET}</password></login>"),
    "json said to be text": ("text/plain", f'{{"password":"{SECRET}"}}'),
    "client secret": ("application/json", f'{{"client_secret":"{SECRET}"}}'),
    "short name": ("application/json", f'{{"pwd":"{SECRET}"}}'),
}
LEAKS = {
    **{name: ({"Content-Type": kind}, body, "/login") for name, (kind, body) in KINDS.items()},
    **{
        name: ({name: SECRET}, "", "/login")
        for name in ("X-Auth-Token", "X-Amz-Security-Token", "X-Csrf-Token", "X-Forwarded-Access-Token")
    },
    **{name: ({}, "", f"/login?{name}={SECRET}") for name in ("code", "sig")},
}


@open_fault("44.13", "only a few names of headers, parameters and fields of JSON and forms are redacted")
@pytest.mark.parametrize(("headers", "body", "target"), LEAKS.values(), ids=LEAKS)
def test_a_recording_holds_no_secret(path: Path, headers: dict[str, str], body: str, target: str) -> None:
    recorder = Recorder(path)
    ticket = recorder.begin("POST", target, headers.items())
    ticket.body(body.encode())
    ticket.answered(200)
    recorder.close()
    assert SECRET not in repr(recorded(path))


@open_fault("44.16", "a target in absolute form is glued to the address of the service, and answered by 500")
def test_a_proxy_takes_a_target_in_absolute_form(path: Path) -> None:
    """As RFC 9112 (3.2.2) asks of every server: the service gets the path, or the client a 400."""

    async def main() -> int:
        recorder = Recorder(path, config())
        async with (
            service(send_back) as upstream,
            listening(make_proxy(upstream, recorder), "127.0.0.1", 0) as address,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
            writer.write(b"GET http://shop.example/x HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
            status = int((await reader.readline()).split()[1])
            writer.close()
        recorder.close()
        return status

    assert asyncio.run(main()) in (207, 400)
