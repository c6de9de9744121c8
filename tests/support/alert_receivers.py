"""Receivers of alerts on loopback: HTTP with chosen answers, and SMTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Self

from aiohttp import web

Reply = tuple[int, Any]


@dataclass(frozen=True)
class Request:
    """One received request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as values."""
        return json.loads(self.body)


class _InThread:
    """A server on an event loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _start(self) -> None:
        raise NotImplementedError

    async def _stop(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


class HttpReceiver(_InThread):
    """Server that records every request; ``reply`` makes the status and the JSON of the answer."""

    def __init__(self, reply: Callable[[Request], Reply] = lambda _: (200, {})) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.reply = reply

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def sent(self, method: str, path: str) -> list[Any]:
        """Return the bodies of requests of one method and path, in order."""
        return [request.json for request in self.requests if (request.method, request.path) == (method, path)]

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._take)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        taken = Request(
            request.method,
            request.rel_url.raw_path,
            dict(request.query),
            dict(request.headers),
            await request.read(),
        )
        self.requests.append(taken)
        status, answer = self.reply(taken)
        return web.json_response(answer, status=status)


class SmtpReceiver(_InThread):
    """Mail server that takes all mail, except for recipients at ``nobody``."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[EmailMessage] = []

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: str) -> None:
            writer.write(line.encode() + b"\r\n")

        say("220 mail ready")
        while line := (await reader.readline()).decode().strip():
            verb = line.split(":")[0].split()[0].upper()
            if verb == "RCPT" and "nobody@" in line:
                say("550 no such reader")
            elif verb == "DATA":
                say("354 go on")
                content = b""
                while (part := await reader.readline()) != b".\r\n":
                    content += part.removeprefix(b".") if part.startswith(b"..") else part
                self.messages.append(message_from_bytes(content, _class=EmailMessage, policy=policy.default))
                say("250 taken")
            elif verb == "QUIT":
                say("221 bye")
                break
            else:
                say("250 ok")
        writer.close()
