"""Downstream calls of both sides: passed on or answered from a file, and counted by request."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientSession, web
from pydantic import Field

from agents.experiments.replay.proxy import open_session, pass_on
from agents.experiments.replay.trace import Trace
from agents.logs.request_type import RequestTypes
from pipeline.files.validation import StrictModel, read_yaml, validate

HEADER = "traceparent"
"""The header that joins a call to its request; services propagate it for tracing."""

_MAX_DELAY_S = 60.0


class CannedAnswer(StrictModel):
    """A canned answer to the requests that match."""

    match: str
    """Glob over method and path, such as ``GET /stock/*``."""
    status: int = Field(default=200, ge=200, le=599)
    headers: dict[str, str] = {}
    body: str = ""
    delay_s: float = Field(default=0.0, ge=0, le=_MAX_DELAY_S)


class _Answers(StrictModel):
    answers: tuple[CannedAnswer, ...]


def read_answers(path: Path) -> tuple[CannedAnswer, ...]:
    """Return the canned answers of a YAML file, a list; the first that matches a call answers it.

    Raises:
        ConfigError: it cannot be read, or is not what it should be.
    """
    return validate(_Answers, {"answers": read_yaml(path)}, str(path)).answers


@dataclass(slots=True)
class CallCounts:
    """Downstream calls of one side."""

    trace: Trace | None = None
    """The replay whose calls are joined to requests."""
    by_request: Counter[int] = field(default_factory=Counter)
    alone: int = 0
    by_endpoint: Counter[str] = field(default_factory=Counter)
    unmatched: int = 0
    """Number of calls without a canned answer."""
    types: RequestTypes = field(default_factory=RequestTypes)

    def begin(self, trace: Trace) -> None:
        """Reset the counts, and count the calls of a replay."""
        self.trace = trace
        self.by_request, self.alone, self.by_endpoint, self.unmatched = Counter(), 0, Counter(), 0

    def count(self, request: web.Request) -> None:
        """Count a call."""
        index = self.trace.index_of(request.headers.get(HEADER, "")) if self.trace else None
        if index is None:
            self.alone += 1
        else:
            self.by_request[index] += 1
        self.by_endpoint[self.types.of(f"{request.method} {request.raw_path}")] += 1


def make_downstream(
    counts: CallCounts, *, upstream: str = "", answers: Sequence[CannedAnswer] = ()
) -> web.Application:
    """Return an application instead of a side's downstream service: canned answers first, then ``upstream``.

    A call that neither answers gets a 502, and is counted.
    """
    app = web.Application()
    patterns = [(re.compile(fnmatch.translate(answer.match)), answer) for answer in answers]

    async def session(_: web.Application) -> AsyncIterator[None]:
        app[_SESSION] = open_session()
        yield
        await app[_SESSION].close()

    async def handle(request: web.Request) -> web.StreamResponse:
        counts.count(request)
        call = f"{request.method} {request.path}"
        canned = next((answer for pattern, answer in patterns if pattern.match(call)), None)
        if canned:
            await request.read()
            await asyncio.sleep(canned.delay_s)
            return web.Response(status=canned.status, body=canned.body.encode(), headers=canned.headers)
        if not upstream:
            counts.unmatched += 1
            return web.Response(status=502, text="no canned answer\n")
        response, _ = await pass_on(app[_SESSION], request, upstream, headers=_host_of(upstream))
        return response

    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


_SESSION: web.AppKey[ClientSession] = web.AppKey("session", ClientSession)


def _host_of(upstream: str) -> dict[str, str]:
    return {"Host": upstream.split("://", 1)[-1].partition("/")[0]}
