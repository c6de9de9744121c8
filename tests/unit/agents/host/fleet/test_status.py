"""Statuses of agents: what is one, and what a gateway refuses."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agents.host.fleet import AgentStatus, FleetView, HeardStatus, decode_status, encode_status
from agents.host.fleet.status import MAX_STATUS_BYTES, MOST_KERNELS, MOST_SERVICES
from pipeline.model.errors import InvalidMessage
from tests.unit.agents.host.fleet.support import STATUS


def test_a_status_comes_back_and_the_largest_fits() -> None:
    rates = {f"{i:02}".ljust(200, "\U00010400"): 1 / 60 for i in range(MOST_SERVICES)}
    planned = {name: {"threshold": 1 / 30_000, "cpus": 1 / 3, "rate_hz": 1 / 60} for name in rates}
    kernels = {f"{i:02}".ljust(100, "k"): 1 for i in range(MOST_KERNELS)}
    more = {"host": "h" * 400, "rates_hz": rates, "planned": planned, "kernels": kernels}
    for status in (STATUS, AgentStatus.model_validate({**STATUS.model_dump(), **more})):
        assert decode_status(encode_status(status)) == status


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        pytest.param({"host": ""}, "host", id="no host"),
        pytest.param({"host": "h" * 401}, "host", id="long host"),
        pytest.param({"host": "a\x1b[31m"}, "host: should be printable", id="control characters"),
        pytest.param({"host": 7}, "host: should be text", id="a number as host"),
        pytest.param({"more": 1}, "more: unknown key", id="unknown key"),
        pytest.param({"dropped": -1}, "dropped", id="negative"),
        pytest.param({"dropped": "5"}, "dropped: should be a whole number", id="text as number"),
        pytest.param({"dropped": True}, "dropped: should be a whole number", id="bool as number"),
        pytest.param({"dropped": 2**60}, "dropped", id="beyond what JSON keeps"),
        pytest.param({"cost_share": 1e300}, "cost_share", id="vast share"),
        pytest.param({"processes": {"x": 1}}, "processes.x", id="no such state"),
        pytest.param({"processes": []}, "processes: should be a mapping", id="no mapping"),
        pytest.param({"rates_hz": {str(i): 1 for i in range(MOST_SERVICES + 1)}}, "rates_hz", id="many"),
        pytest.param({"rates_hz": {"a\nb": 1}}, "printable", id="name on two lines"),
        pytest.param({"kernels": {str(i): 1 for i in range(MOST_KERNELS + 1)}}, "kernels", id="many kernels"),
        pytest.param({"kernels": {"a\x1b": 1}}, "printable", id="no name of a kernel"),
        pytest.param(
            {"planned": {"a": {"threshold": 2, "cpus": 1, "rate_hz": 1}}}, "threshold", id="share 2"
        ),
        pytest.param({"planned": {"a": {"threshold": 0.1, "cpus": -1, "rate_hz": 1}}}, "cpus", id="no CPUs"),
    ],
)
def test_what_is_no_status_is_refused_in_one_line(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidMessage, match=complaint) as refused:
        decode_status(orjson.dumps({**STATUS.model_dump(), **changes}))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[" * 50_000, id="deep"),
        pytest.param(b'{"host": "\\ud800"}', id="half a character"),
        pytest.param(b"{}" + b" " * MAX_STATUS_BYTES, id="large"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidMessage):
        decode_status(body)


def test_silence_and_rules_are_by_the_gateways_word() -> None:
    heard = [HeardStatus(heard=820.0, status=STATUS), HeardStatus(heard=819.0, status=STATUS)]
    view = FleetView(now=1000.0, rules="v1", agents=tuple(heard))
    assert [view.is_silent(each) for each in heard] == [False, True]
    assert view.is_current(heard[0])
    assert not FleetView(now=1000.0, rules="v2", agents=()).is_current(heard[0])
