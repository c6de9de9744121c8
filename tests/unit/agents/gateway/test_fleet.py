"""The gateway as controller: rules with an ETag, statuses within bounds, tokens."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from agents.gateway.access import Client
from agents.gateway.fleet import FORGET_S, Fleet, Statuses
from agents.gateway.intake import Rules
from agents.gateway.service import Endpoint, serve
from agents.host.fleet import FleetClient, encode_status
from agents.host.fleet.status import MAX_STATUS_BYTES, decode_view
from pipeline.cli import run as run_command
from pipeline.model.errors import BrokerUnavailable, ConfigError
from tests.support.gateway_requests import NOW
from tests.unit.agents.host.fleet.support import ONE_RULE, OTHER_RULE, STATUS, FleetBench, fleet_of

TOKEN = "correct horse"


async def test_rules_are_sent_once_for_each_version(tmp_path: Path) -> None:
    bench = fleet_of(tmp_path)
    async with TestClient(TestServer(bench.app)) as client:

        async def ask(known: str | None) -> tuple[int, str, str]:
            headers = {"If-None-Match": known} if known else {}
            async with client.get("/agents/rules", headers=headers) as answer:
                return answer.status, await answer.text(), answer.headers["ETag"]

        status, text, tag = await ask(None)
        assert (status, text) == (200, ONE_RULE)
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            assert (await ask(known))[:2] == (304, "")
        bench.serve_rules(OTHER_RULE)
        assert (await ask(tag))[:2] == (200, OTHER_RULE)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("rules: [{servise: x}]", "did you mean service", id="key"),
        pytest.param("rules: [", "line 1", id="no YAML"),
        pytest.param("{spool: /var, rules: [{}]}", "spool: a fleet's rules name no folder", id="spool"),
        pytest.param("#" * (1024**2 + 1), "larger than 1 MiB", id="large"),
        pytest.param(None, "No such file", id="no file"),
    ],
)
def test_wrong_rules_are_one_line_and_leave_those_before(
    tmp_path: Path,
    text: str | None,
    complaint: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = fleet_of(tmp_path)
    bench.path.unlink()
    if text is not None:
        bench.path.write_text(text)
    bench.fleet.reload()
    assert bench.fleet.rules.content.decode() == ONE_RULE
    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert "stay as they were" in record.message
    assert complaint in record.message
    with pytest.raises(ConfigError, match=complaint):
        FleetBench(bench.path, Rules())
    assert run_command(["gateway", "--listen", "127.0.0.1:0", "--agents", str(bench.path)]) == 2
    assert complaint in capsys.readouterr().err


async def test_statuses_are_kept_by_host_with_the_time_by_the_gateways_clock(tmp_path: Path) -> None:
    bench = fleet_of(tmp_path)
    async with TestClient(TestServer(bench.app)) as client:
        for host, later_s in (("b", 0), ("a", 10), ("b", 20)):
            bench.now += later_s
            body = encode_status(STATUS.model_copy(update={"host": host}))
            async with client.post("/agents/status", data=body) as answer:
                assert answer.status == 204
        async with client.get("/agents") as answer:
            view = decode_view(await answer.read())
    assert [(each.status.host, each.heard - view.now) for each in view.agents] == [("a", -20), ("b", 0)]
    assert view.rules == bench.fleet.rules.version
    bench.now += FORGET_S + 1
    assert orjson.loads(bench.fleet.view())["agents"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b'{"host": "a"}', 400, id="half"),
        pytest.param(b"[" * 50_000, 400, id="deep"),
        pytest.param(b" " * (MAX_STATUS_BYTES + 1), 413, id="large"),
    ],
)
async def test_hostile_statuses_are_refused_in_one_line(tmp_path: Path, body: bytes, status: int) -> None:
    bench = fleet_of(tmp_path)

    async def pieces() -> Any:
        yield body  # in chunks: no length is said before

    async with TestClient(TestServer(bench.app)) as client:
        for data in (body, pieces()):
            async with client.post("/agents/status", data=data) as answer:
                assert (answer.status, (await answer.text()).count("\n")) == (status, 1)
    assert bench.fleet.statuses.heard(bench.now) == []


@pytest.mark.parametrize(
    ("hosts", "size", "kept"),
    [
        pytest.param(2, 1000, ["b", "c"], id="hosts"),
        pytest.param(10, 25, ["b", "c"], id="bytes"),
        pytest.param(10, 5, [], id="one too large"),
    ],
)
def test_who_was_heard_longest_ago_is_forgotten(hosts: int, size: int, kept: list[str]) -> None:
    statuses = Statuses(hosts=hosts, size=size)
    for now, host in enumerate("abacbc"):
        statuses.keep(host, host.encode() * 10, float(now))
    assert [status[:1].decode() for _, status in statuses.heard(9.0)] == kept


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/agents/rules"), ("POST", "/agents/status"), ("GET", "/agents")]
)
@pytest.mark.parametrize(
    ("authorization", "is_let_in"),
    [
        pytest.param(f"Bearer {TOKEN}", True, id="a client of few services"),
        pytest.param("Bearer wrong", False, id="wrong"),
        pytest.param("", False, id="none"),
    ],
)
async def test_a_token_is_asked_for(
    tmp_path: Path, method: str, path: str, authorization: str, is_let_in: bool
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(ONE_RULE)
    bench = FleetBench(file, Rules(clients=(Client("team", TOKEN, ("till*",)),)))
    headers = {"Authorization": authorization}
    async with TestClient(TestServer(bench.app)) as client:
        answer = await client.request(method, path, data=encode_status(STATUS), headers=headers)
        status = answer.status
    assert status in (200, 204) if is_let_in else status == 401
    assert bool(bench.fleet.statuses.heard(bench.now)) == (is_let_in and method == "POST")


def test_a_signal_has_the_rules_read_again(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(ONE_RULE)

    changes: list[asyncio.Task[None]] = []

    async def connect() -> Any:
        raise BrokerUnavailable("no broker here")

    def ready(addresses: list[str]) -> None:
        changes.append(asyncio.get_running_loop().create_task(change(addresses[0])))

    async def change(url: str) -> None:
        file.write_text(OTHER_RULE)
        os.kill(os.getpid(), signal.SIGHUP)
        while True:
            rules = await asyncio.to_thread(FleetClient(url).rules)
            if rules is not None and rules.content.decode() == OTHER_RULE:
                break
        os.kill(os.getpid(), signal.SIGTERM)

    fleet = Fleet(file, clock=lambda: NOW)
    endpoint = Endpoint(("127.0.0.1", 0), None, 1024**2, fleet=fleet)
    assert asyncio.run(serve(Rules(), connect, endpoint, clock=lambda: NOW, ready=ready))
