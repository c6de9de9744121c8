"""The light health check, as a process of its own, against a worker's endpoint."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.commands.doctor import ask_worker
from pipeline.model.errors import StoreUnavailable
from pipeline.worker.health import Check, Health, HealthServer
from tests.support.paths import ROOT

TOKEN = "tökén / 100 %✓"


class Endpoint:
    """A health endpoint in a thread; its store fails on demand."""

    def __init__(self) -> None:
        self.url = ""
        self.is_store_away = False
        self._loop = asyncio.new_event_loop()
        checks: dict[str, Check] = {"store": self._store}
        clock = iter(range(0, 10**9, 100))  # no outcome is given twice
        self._health = Health([], checks, token=TOKEN, monotonic=lambda: float(next(clock)))
        self._server = HealthServer(self._health, "127.0.0.1", 0)
        self._thread = threading.Thread(target=self._loop.run_forever)

    async def _store(self) -> None:
        if self.is_store_away:
            raise StoreUnavailable("the store at http://db:8123 does not answer")

    def start(self) -> None:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(60)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    one = Endpoint()
    one.start()
    yield one
    one.stop()


def probe(*arguments: str, **environ: str) -> tuple[int, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SMIDGEN_")}
    command = [sys.executable, "-m", "pipeline.http.probe", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**inherited, **environ}, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""], ids=["loopback", "everywhere", "port alone"])
def test_a_ready_worker_is_healthy(endpoint: Endpoint, host: str) -> None:
    endpoint.is_store_away = False
    where = f"{host}:{endpoint.port}" if host else endpoint.port
    code, output = probe(SMIDGEN_HEALTH=where, SMIDGEN_HTTP_TOKEN=TOKEN)
    assert (code, '"store":"ok"' in output) == (0, True)


def test_a_worker_without_its_store_lives_and_is_not_ready(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.is_store_away = True
    (tmp_path / "token").write_text(TOKEN + "\n", encoding="utf-8")
    environ = {
        "SMIDGEN_HEALTH": f"127.0.0.1:{endpoint.port}",
        "SMIDGEN_HTTP_TOKEN_FILE": str(tmp_path / "token"),
    }
    code, output = probe("ready", **environ)
    assert (code, "the store at http://db:8123 does not answer" in output) == (1, True)
    assert probe("live", **environ)[0] == 0


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        pytest.param({}, "bearer token", id="no token"),
        pytest.param({"SMIDGEN_HTTP_TOKEN": "another"}, "bearer token", id="wrong token"),
        pytest.param({"SMIDGEN_HTTP_TOKEN_FILE": "/nowhere/token"}, "/nowhere/token", id="no file"),
        pytest.param({"SMIDGEN_HTTP_TOKEN": "a\nHost: b"}, "one line", id="two lines"),
    ],
)
def test_who_may_not_ask_is_not_healthy(endpoint: Endpoint, environ: dict[str, str], says: str) -> None:
    code, output = probe(SMIDGEN_HEALTH=f"127.0.0.1:{endpoint.port}", **environ)
    assert (code, says in output) == (1, True)


def test_nobody_there_and_somebody_else_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert probe(SMIDGEN_HEALTH=f"127.0.0.1:{port}")[0] == 1
        thread.join(60)
    assert probe(SMIDGEN_HEALTH=f"127.0.0.1:{port}")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "health"),
    [(("metrics",), "127.0.0.1:1"), (("live", "ready"), "127.0.0.1:1"), ((), ""), ((), "here")],
)
def test_a_wrong_call_is_one_line(arguments: tuple[str, ...], health: str) -> None:
    code, output = probe(*arguments, SMIDGEN_HEALTH=health)
    assert code == 2
    assert output.count("\n") == 1


def test_it_imports_nothing_of_smidgen_and_little_else() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "pipeline.http.probe"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60).stderr
    modules = {
        line.rpartition("|")[2].strip() for line in shown.splitlines() if line.startswith("import time")
    }
    assert "socket" in modules
    assert {name for name in modules if name.split(".")[0] in {"pydantic", "click", "rich", "numpy"}} == set()
    assert {name for name in modules if name.startswith("pipeline.")} == {
        "pipeline.http"
    }  # its room: a docstring


def test_doctor_sends_the_same_token(endpoint: Endpoint) -> None:
    endpoint.is_store_away = False
    assert ask_worker(endpoint.url, TOKEN).status == "ok"
