"""Addresses of gateways, and answers of what is none."""

from __future__ import annotations

import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents.host.fleet import FleetClient, GatewayUnavailable
from agents.host.fleet.client import check_url
from tests.unit.agents.host.fleet.support import ONE_RULE, STATUS, fleet_of, served

TOKEN = "correct horse"


def test_rules_one_way_and_statuses_the_other(tmp_path: Path) -> None:
    bench = fleet_of(tmp_path, token=TOKEN)
    with served(bench.app) as url:
        client = FleetClient(url, TOKEN)
        rules = client.rules()
        assert rules is not None
        assert rules.content.decode() == ONE_RULE
        assert client.rules(rules.version) is None
        client.report(STATUS)
        assert [each.status for each in client.view().agents] == [STATUS]
        for ask in (FleetClient(url).rules, FleetClient(url, "wrong").view):
            with pytest.raises(GatewayUnavailable, match="wrong or missing token"):
                ask()


def test_a_closed_port_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = FleetClient(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(GatewayUnavailable, match="Connection refused"):
            client.rules()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        pytest.param(web.Response(status=404), "--agents FILE", id="no rules"),
        pytest.param(web.Response(status=502), "answers 502", id="a proxy"),
        pytest.param(web.Response(status=302, headers={"Location": "/x"}), "answers 302", id="elsewhere"),
        pytest.param(web.Response(body=b"<html>"), "not JSON", id="a page"),
        pytest.param(web.Response(body=b'{"now": 1e999}'), "no list", id="no time"),
        pytest.param(web.Response(body=b'{"now": 1, "rules": "a", "agents": [1]}'), "no list", id="no agent"),
    ],
)
def test_what_is_no_gateway_is_one_line(answer: web.Response, complaint: str) -> None:
    app = web.Application()

    async def reply(_: Any) -> web.Response:
        return answer

    app.router.add_get("/agents", reply)
    with served(app) as url, pytest.raises(GatewayUnavailable, match=complaint) as refused:
        FleetClient(url, TOKEN).view()
    assert "\n" not in str(refused.value)
    assert TOKEN not in str(refused.value)


WRONG_URLS = (
    *("gateway:4040", "ftp://gateway", "http://", "http://:80", "http://g:99999", "http://user:pass@g"),
    *("http://g/?a=1", "http://g/#a", "http://g /", "http://g\n", "http://[::1"),
)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://g:4040/", "http://g:4040"),
        ("https://g/smidgen", "https://g/smidgen"),
        *((text, "") for text in WRONG_URLS),
    ],
)
def test_addresses(text: str, url: str) -> None:
    with nullcontext() if url else pytest.raises(ValueError, match="should be"):
        assert check_url(text) == url
