"""The page of numbers: who may read it, and what it is."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from agents.host.page import MetricsPage
from pipeline.model.errors import ConfigError


def read(address: str, token: str = "") -> str:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def test_numbers_are_served_until_the_end() -> None:
    page = MetricsPage(lambda: [("agent_cost_ratio", {}, 0.25)])
    address = page.start("127.0.0.1", 0)
    assert "smidgen_agent_cost_ratio 0.25" in read(address)
    page.close()
    with pytest.raises(urllib.error.URLError):
        read(address)


def test_a_token_is_asked_for() -> None:
    page = MetricsPage(list, "secret")
    address = page.start("127.0.0.1", 0)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        read(address)
    assert read(address, "secret") == "\n"
    page.close()


def test_addresses_that_are_refused() -> None:
    with pytest.raises(ConfigError, match="--metrics: 0.0.0.0 can be reached from other machines"):
        MetricsPage(list).start("0.0.0.0", 0)
    page = MetricsPage(list)
    address = page.start("127.0.0.1", 0)
    port = int(address.split(":")[2].split("/")[0])
    other = MetricsPage(list)
    with pytest.raises(ConfigError, match=f"--metrics: 127.0.0.1:{port}: "):
        other.start("127.0.0.1", port)
    other.close()
    page.close()
