"""No page and no command prints a figure without sense about a service with hardly any data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pipeline.backtest.flow import Flow
from pipeline.cli import run
from pipeline.messages.measurements import encode_profile
from pipeline.model.clock import to_iso
from pipeline.settings.config import Settings
from pipeline.settings.workloads import known_workloads
from pipeline.stages.factory import SCAN_STAGES
from pipeline.storage.arrays import ArrayStore
from pipeline.views.dashboard import Sources, create_app
from tests.support.builders import build_profile

START = 1_760_000_400.0
SERVICE = "thin"
WORKLOADS = known_workloads(())
Stacks = Mapping[str, int]

ONE = {"main;parse": 7, "main": 3}
THIN: Mapping[str, list[tuple[float, str, str, Stacks]]] = {
    # seconds since the start, host, release, stacks
    "one window": [(0, "a", "v1", ONE)],
    "one sample": [(0, "a", "v1", {"main": 1})],
    "one host, one release after the other": [
        *((second, "a", "v1", ONE) for second in range(5)),
        *((second, "a", "v2", {"main;parse": 9, "main": 1}) for second in range(5, 10)),
    ],
    "one window of each release": [(0, "a", "v1", ONE), (1, "a", "v2", {"main;sum": 10})],
    "both at once": [
        (second, host, release, {"main;parse": 5, "main;new": count, "main": 1})
        for second in range(3)
        for host, release, count in (("a", "v1", 1), ("b", "v2", 9))
    ],
    "a pause": [(second, "a", "v1", ONE) for second in (*range(20), *range(55, 65))],
    "a minute": [(second, "a", "v1" if second < 40 else "v2", ONE) for second in range(80)],
}

PAGES = (
    "/regressions?state=all",
    "/services",
    f"/services/{SERVICE}",
    f"/services/{SERVICE}/detectable?workload=live",
    f"/services/{SERVICE}/detectable?workload=frontfaas-small",
    f"/explorer?service={SERVICE}",
    f"/explorer/flames?service={SERVICE}&span=1h",
    f"/explorer/flames?service={SERVICE}&span=1h&compared=before",
    "/operations",
    "/settings?workload=live",
    "/settings/compared?workload=live&other_threshold=0.01",
    "/trials",
    "/metrics",
)
COMMANDS = (
    ("detectable", "--service", SERVICE),
    ("detectable", "--service", SERVICE, "--requests"),
    ("release", "compare", "v1", "v2", "--service", SERVICE),
    ("release", "compare", "v1", "v2", "--service", SERVICE, "--sequential"),
    ("release", "compare", "v1", "v2", "--service", SERVICE, "--threshold", "0.00001"),
    ("why", "--service", SERVICE),
)

SENSELESS = re.compile(
    r"(?i)(?<![\w.-])(nan|infinity|inf|[-+±]?inf|none %)(?![\w-])"  # no number
    r"|\d(\.\d+)?e\+\d+"  # a number that nobody reads
    r"|[-+±]\d(\.\d+)?e-\d+"  # a difference that is the noise of sums
    r"|(?<![\w,.:/-])\d{8,}(?![\w:/-])"  # so many of anything
)


@pytest.fixture(params=[*THIN.values()], ids=[*THIN], scope="module")
def thin(request: pytest.FixtureRequest) -> tuple[ArrayStore, float]:
    """A store after the stages, and the present time."""
    store, now = ArrayStore(), START
    settings = Settings.model_validate({"window": 1, "stack_window": 1})
    flow = Flow(store, WORKLOADS.values(), settings=settings, clock=lambda: now, stages=SCAN_STAGES)
    for second, host, release, stacks in request.param:
        now = START + second + 1
        profile = build_profile(dict(stacks), service=SERVICE, host=host, start=START + second, end=now)
        flow.send("profiles", [encode_profile(replace(profile, release=release))])
    return store, now + 60


def senseless(text: str) -> list[str]:
    return [match[0] for match in SENSELESS.finditer(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("±5256702144677", ["5256702144677"]),
        ("2.26e+31 %", ["2.26e+31"]),
        ("1417690538939400 more samples", ["1417690538939400"]),
        ("+2.2e-14 pt", ["+2.2e-14"]),
        ("nan to inf", ["nan", "inf"]),
        ("p 1e-11, 1,234,567 samples of 12:30, since 2026-01-31, id 0123456789abcdef", []),
    ],
)
def test_what_counts_as_senseless(text: str, expected: list[str]) -> None:
    assert senseless(text) == expected


async def test_pages_print_figures_with_sense(thin: tuple[ArrayStore, float]) -> None:
    store, now = thin
    sources = Sources(store, WORKLOADS, clock=lambda: now)
    async with TestClient(TestServer(create_app(sources))) as client:
        for path in PAGES:
            answer = await client.get(path)
            text = unescape(re.sub(r"(?s)<script.*?</script>|<[^>]*>", " ", await answer.text()))
            assert answer.status == 200, (path, text)
            assert senseless(text) == [], path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_print_figures_with_sense(
    thin: tuple[ArrayStore, float],
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store, now = thin

    def opened(*_: Any, **__: Any) -> ArrayStore:
        return store

    for module in ("detectable", "request_outlook", "waiting", "release.command"):
        monkeypatch.setattr(f"pipeline.commands.{module}.open_store", opened)
    monkeypatch.setattr("pipeline.storage.connect.open_store", opened)
    monkeypatch.setattr("pipeline.commands.waiting.scanned", lambda *_: {})
    monkeypatch.setattr("pipeline.commands.detectable.scanned", lambda *_: {})
    monkeypatch.setattr(ArrayStore, "close", lambda _: None, raising=False)
    monkeypatch.setenv("SMIDGEN_STACK_WINDOW", "1")
    until = () if command[0] == "why" else ("--until", to_iso(now))
    code = run([*command, *until, "--store", "none:"])
    printed = capsys.readouterr()
    assert code in (0, 1, 2, 3), printed.err
    assert "Traceback" not in printed.err
    assert senseless(printed.out + printed.err) == []
