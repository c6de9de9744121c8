"""The embedded store: an HTTP front over chDB that speaks ClickHouse's HTTP interface.

chDB opens a folder from one process only; behind this front several processes share it under the same
``http://`` DSN as in production. It knows what clickhouse-connect and ``curl`` use: statement, settings,
parameters and database in the URL or a form, rows in the body, perhaps compressed, and ClickHouse's
response headers. Responses are never compressed: the network is loopback.

Run as ``python -m pipeline.embedded.store --data DIR --scratch DIR``: it prints its URL and serves until
SIGTERM or until its standard input ends, and removes the scratch folder. ``--password-file`` (and ``--user``)
makes it ask for a login, ``--certificate`` (and ``--key``) speak HTTPS. It never listens beyond loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from aiohttp import web

from pipeline.embedded.door import DoorUser, from_a_web_page, server_context
from pipeline.embedded.engine import Engine, EngineError
from pipeline.embedded.protocol import AUTHENTICATION_FAILED, UNKNOWN_EXCEPTION, content_type, status_of
from pipeline.embedded.statement import BadRequest, Statement, decompress, read_statement
from pipeline.http.serving import listening
from pipeline.model.errors import ConfigError
from pipeline.processes import stop_event

_MAX_BODY_BYTES = 2 * 1024**3
_THREADS = 4  # statements that run at the same time; the engine itself uses every core for each
_CODE = re.compile(r"Code: (\d+)")
_WRONG_LOGIN = (
    f"Code: {AUTHENTICATION_FAILED}. DB::Exception: Authentication failed: password is incorrect, "
    "or there is no user with such name. (AUTHENTICATION_FAILED)"
)
_PRINTS = re.compile(rb"\s*(SELECT|WITH|SHOW|DESC|EXISTS|EXPLAIN|\()", re.IGNORECASE)


class StoreFront:
    """Answers HTTP requests with an engine; statements run in threads, off the event loop."""

    def __init__(self, engine: Engine, login: DoorUser | None = None) -> None:
        self._engine = engine
        self._login = login
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="statement")

    def application(self) -> web.Application:
        """Return the web application."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_get("/ping", self._ping)
        for method in ("GET", "HEAD", "POST"):
            app.router.add_route(method, "/", self._answer)
        return app

    def close(self) -> None:
        """Wait for running statements, then close the engine."""
        self._threads.shutdown()
        self._engine.close()

    async def _ping(self, _request: web.Request) -> web.Response:
        return web.Response(text="Ok.\n")

    async def _answer(self, request: web.Request) -> web.Response:
        if from_a_web_page(request.headers):
            return _failure(403, UNKNOWN_EXCEPTION, "Requests from web pages are not allowed")
        if self._login and not self._login.admits(request.headers, request.query):
            return _failure(403, AUTHENTICATION_FAILED, _WRONG_LOGIN)
        if request.method != "POST" and "query" not in request.query:
            return web.Response(text="Ok.\n")
        try:
            statement = await self._read(request)
            loop = asyncio.get_running_loop()
            output = await loop.run_in_executor(self._threads, self._engine.execute, statement)
        except BadRequest as error:
            return _failure(400, error.code, f"Code: {error.code}. DB::Exception: {error}")
        except EngineError as error:
            found = _CODE.search(str(error))
            code = int(found[1]) if found else UNKNOWN_EXCEPTION
            return _failure(status_of(code), code, str(error))
        return web.Response(body=output, headers=_headers(statement, request, output))

    async def _read(self, request: web.Request) -> Statement:
        arguments = {"database": request.headers.get("X-ClickHouse-Database", ""), **request.query}
        if form := request.headers.get("X-ClickHouse-Format"):
            arguments.setdefault("default_format", form)
        if request.content_type == "multipart/form-data":
            fields = await request.post()
            arguments.update({name: value for name, value in fields.items() if isinstance(value, str)})
            return read_statement(arguments, b"")
        body = await request.read()
        encoding = request.headers.get("Content-Encoding", "").lower()
        statement = await asyncio.to_thread(_understand, arguments, body, encoding)
        if request.method != "POST":  # as in ClickHouse: whoever follows a link changes nothing
            return replace(statement, settings={**statement.settings, "readonly": "2"})
        return statement


def _understand(arguments: dict[str, str], body: bytes, encoding: str) -> Statement:
    return read_statement(arguments, decompress(body, encoding))


def _headers(statement: Statement, request: web.Request, output: bytes) -> dict[str, str]:
    headers = {
        "Content-Type": content_type(statement.format),
        "X-ClickHouse-Query-Id": request.query.get("query_id") or str(uuid4()),
        "X-ClickHouse-Timezone": "UTC",
        "X-ClickHouse-Server-Display-Name": "smidgen-embedded",
        "X-ClickHouse-Summary": json.dumps({"result_bytes": str(len(output))}),
    }
    if output or _PRINTS.match(statement.sql):  # by which clickhouse-connect knows a result
        headers["X-ClickHouse-Format"] = statement.format
    return headers


def _failure(status: int, code: int, text: str) -> web.Response:
    headers = {"X-ClickHouse-Exception-Code": str(code), "Content-Type": "text/plain; charset=UTF-8"}
    return web.Response(status=status, body=f"{text}\n".encode(), headers=headers)


async def serve(
    data: Path, scratch: Path, *, login: DoorUser | None = None, context: ssl.SSLContext | None = None
) -> None:
    """Serve a folder on a free loopback port until SIGTERM, SIGINT or the end of standard input.

    Prints the URL as the first line on standard output once it answers, and removes ``scratch`` at the end.
    With a ``context`` it is an HTTPS server.

    Raises:
        ConfigError: chDB is not installed.
        EngineError: the folder cannot be opened.
    """
    stop = _stop_event()
    try:
        await _serve(StoreFront(Engine(data, scratch), login), stop, context)
    finally:
        # While the loop runs, a second signal cannot cut this short.
        shutil.rmtree(scratch, ignore_errors=True)


async def _serve(front: StoreFront, stop: asyncio.Event, context: ssl.SSLContext | None) -> None:
    # Bodies are unpacked by the front, since aiohttp does not know every encoding that ClickHouse does.
    try:
        server = listening(front.application(), "127.0.0.1", 0, finish_s=60.0, context=context)
        async with server as url:
            print(url, flush=True)
            await stop.wait()
    finally:
        front.close()


def _stop_event() -> asyncio.Event:
    stop, loop = stop_event(), asyncio.get_running_loop()

    def ended() -> None:  # readable means ended: nothing is ever written there
        loop.remove_reader(sys.stdin.fileno())
        stop.set()

    loop.add_reader(sys.stdin.fileno(), ended)
    return stop


def main(arguments: list[str]) -> int:
    """Serve a folder; exit code 2 with one line on stderr if it cannot be opened."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.embedded.store")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--user", default="", help="who is let in (default: default)")
    parser.add_argument("--password-file", type=Path, help="without it, every program here is let in")
    parser.add_argument("--certificate", type=Path, help="PEM file, for HTTPS")
    parser.add_argument("--key", type=Path, help="its key, if the file does not hold it too")
    options = parser.parse_args(arguments)
    try:
        login = DoorUser.read(options.user, options.password_file) if options.password_file else None
        context = server_context(options.certificate, options.key)
        asyncio.run(serve(options.data, options.scratch, login=login, context=context))
    except (ConfigError, EngineError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
