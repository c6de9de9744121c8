"""The page of numbers: who may read it, and what it is."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from agents.publishing.page import metrics_page
from pipeline.model.errors import ConfigError

LOCAL = ("127.0.0.1", 0)


def read(address: str, token: str = "") -> str:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def test_numbers_are_served_until_the_end_to_who_has_the_token() -> None:
    with metrics_page(lambda: [("agent_cost_ratio", {}, 0.25)], LOCAL) as address:
        assert "smidgen_agent_cost_ratio 0.25" in read(address)
    with pytest.raises(urllib.error.URLError):
        read(address)
    with metrics_page(list, LOCAL, "secret") as address:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            read(address)
        assert read(address, "secret") == ""


def test_addresses_that_are_refused() -> None:
    refusal = "--metrics: 0.0.0.0 can be reached from other machines"
    with pytest.raises(ConfigError, match=refusal), metrics_page(list, ("0.0.0.0", 0)):
        pass
    with metrics_page(list, LOCAL) as address:
        port = int(address.split(":")[2].split("/")[0])
        taken = f"--metrics: 127.0.0.1:{port}: "
        with pytest.raises(ConfigError, match=taken), metrics_page(list, ("127.0.0.1", port)):
            pass


def test_health_is_the_problem_that_the_agent_has() -> None:
    problems = [""]
    with metrics_page(list, LOCAL, "secret", problem=lambda: problems[0]) as address:
        health = address.replace("/metrics", "/healthz")
        assert read(health) == "ok\n"
        problems[0] = "the buffer is full"
        with pytest.raises(urllib.error.HTTPError, match="503") as failure:
            read(health)
        assert failure.value.read() == b"the buffer is full\n"


def test_without_an_address_nothing_is_served() -> None:
    with metrics_page(list, None) as address:
        assert address == ""
