"""The server of webhooks on a real socket, and how it reaches the broker."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict

from agents.webhooks import server
from agents.webhooks.receiver import Receiver
from agents.webhooks.sending import ConfirmedSender
from agents.webhooks.server import make_app
from pipeline.http.access import is_loopback
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable
from tests.unit.agents.webhooks.test_payloads import hub_push, lab_push
from tests.unit.agents.webhooks.test_receiver import (
    KEY,
    NOW,
    PUSH,
    SECRET,
    SERVICES,
    TOKEN,
    Broker,
    hub_headers,
    receive,
)


def serve(requests: Callable[[ClientSession, str], Awaitable[None]], broker: Broker) -> None:
    """Run requests against the application on a real socket."""

    async def main() -> None:
        app = make_app(Receiver(SERVICES, broker.send, clock=lambda: NOW))
        async with TestServer(app) as running, ClientSession() as session:
            await requests(session, str(running.make_url("")).rstrip("/"))

    asyncio.run(main())


LAB = json.dumps(lab_push()).encode()
PUBLISHED = "published 2 changes for branch 'main' of acme/shop\n"
SIGNED = {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": TOKEN}


def test_over_http(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()

    async def requests(session: ClientSession, url: str) -> None:
        for method, path, data, headers, status, text in (
            ("GET", "healthz", None, {}, 200, "ok\n"),
            ("POST", "github", PUSH, hub_headers(PUSH), 200, PUBLISHED),
            ("POST", "github", PUSH, {}, 401, "wrong or missing signature\n"),
            ("POST", "github", b"x", hub_headers(b"x", "star"), 204, ""),
            ("GET", "github", None, {}, 405, None),
            ("POST", "elsewhere", None, {}, 404, None),
            ("POST", "gitlab", LAB, SIGNED, 200, None),
        ):  # fmt: skip
            async with session.request(method, f"{url}/{path}", data=data, headers=headers) as answer:
                assert (answer.status, path) == (status, path)
                assert text in (None, await answer.text())

    serve(requests, broker)
    assert len(broker.changes) == 4
    assert "refused a request from 127.0.0.1: wrong or missing signature" in caplog.text


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large(chunked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_BODY_BYTES", 1000)
    body = b"x" * 1001
    broker = Broker()

    async def parts() -> Any:
        yield body

    async def requests(session: ClientSession, url: str) -> None:
        data = parts() if chunked else body
        async with session.post(f"{url}/github", data=data, headers=hub_headers(body)) as answer:
            assert (answer.status, await answer.text()) == (413, "larger than 1000 bytes\n")

    serve(requests, broker)


def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_S", 0.1)

    async def parts() -> Any:
        yield b"{"
        await asyncio.sleep(5.0)

    async def requests(session: ClientSession, url: str) -> None:
        async with session.post(f"{url}/github", data=parts(), headers=hub_headers(b"{")) as answer:
            assert answer.status == 408

    serve(requests, Broker())


class Line:
    """A transport that fails, or hangs, as ordered."""

    def __init__(self, sent: list[Outgoing], fault: str = "") -> None:
        self.sent = sent
        self.fault = fault
        self.closed = False

    async def send(self, message: Outgoing) -> None:
        if self.fault == "hang":
            await asyncio.sleep(60.0)
        if self.fault == "fail":
            raise BrokerUnavailable("gone")
        self.sent.append(message)

    async def close(self) -> None:
        self.closed = True


async def test_a_connection_is_kept_and_made_anew_after_a_failure() -> None:
    sent: list[Outgoing] = []
    lines = [Line(sent), Line(sent, "fail"), Line(sent, "hang"), Line(sent)]
    opened: list[Line] = []
    message = Outgoing("changes", "s", b"1")

    async def connect() -> Line:
        opened.append(lines[len(opened)])
        return opened[-1]

    sender = ConfirmedSender(connect, timeout_s=0.2)
    await sender.send([message, message])
    await sender.send([message])
    assert len(opened) == 1
    lines[0].fault = "fail"
    for reason in ("gone", "gone", "not confirmed within"):
        with pytest.raises(BrokerUnavailable, match=reason):
            await sender.send([message])
    await sender.send([message])
    await sender.close()
    assert len(sent) == 4
    assert all(line.closed for line in opened)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.0.0.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("example.org", False)],
)  # fmt: skip
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_secrets_stay_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        receive(hub_push())
        receive(hub_push(), headers=hub_headers(b"", secret="guess guess"))
        receive(lab_push(), forge="gitlab", headers=CIMultiDict({"X-Gitlab-Token": "guess guess"}))
    assert not any(secret in caplog.text for secret in (SECRET, TOKEN, KEY.decode(), "guess"))
