"""``smidgen replay``: options, what is printed, exit codes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from agents.experiments.replay.recording import RecordedRequest, encode_head, encode_request
from pipeline.cli import run, smidgen
from tests.unit.agents.experiments.replay.services import service


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "shop.jsonl"
    requests = [
        RecordedRequest(
            float(n), "POST" if n % 5 == 4 else "GET", f"/cart/{n}", status=200, session=f"s{n % 3}"
        )
        for n in range(20)
    ]
    path.write_bytes(encode_head("shop", "share 1", 0.0) + b"".join(map(encode_request, requests)) + b"7\n")
    return path


@contextmanager
def two_sides(failing: int = 0) -> Iterator[tuple[str, str]]:
    """Serve both sides in a thread; side B does not know cart 3, or both fail with a status."""
    addresses: list[str] = []
    ready, stop = threading.Event(), threading.Event()

    async def side_a(request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.path, status=failing or 200, headers={"Server-Timing": "cpu;dur=2"})

    async def side_b(request: web.Request) -> web.StreamResponse:
        status = failing or (404 if request.path == "/cart/3" else 200)
        return web.Response(text=request.path, status=status, headers={"Server-Timing": "cpu;dur=3"})

    async def main() -> None:
        async with service(side_a) as a, service(side_b) as b:
            addresses.extend((a, b))
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(60)
        yield addresses[0], addresses[1]
    finally:
        stop.set()
        thread.join()


@contextmanager
def side_that_gives_out(after: int) -> Iterator[str]:
    """Serve a side in a thread whose answers are 503 after ``after`` of 200."""
    addresses: list[str] = []
    ready, stop, left = threading.Event(), threading.Event(), [after]

    async def answer(request: web.Request) -> web.StreamResponse:
        left[0] -= 1
        return web.Response(text=request.path, status=200 if left[0] >= 0 else 503)

    async def main() -> None:
        async with service(answer) as address:
            addresses.append(address)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(60)
        yield addresses[0]
    finally:
        stop.set()
        thread.join()


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(smidgen, ["replay", *map(str, arguments)], standalone_mode=False)


def test_show(recording: Path) -> None:
    found = orjson.loads(invoke("show", recording, "--json").stdout)
    assert (found["requests"], found["sessions"], found["longest_session"]) == (20, 3, 7)
    assert [(one["endpoint"], one["recorded"], one["safe"]) for one in found["endpoints"]] == [
        ("GET /cart/:id", 16, True),
        ("POST /cart/:id", 4, False),
    ]
    result = invoke("show", recording)
    assert "if allowed" in result.output
    assert "1 lines are no requests; line 22: should be an object" in result.output


def test_endpoints_that_are_folded_into_one_are_said(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    names = [f"{chr(97 + n % 8)}x{chr(97 + n // 8)}" for n in range(40)]
    requests = [RecordedRequest(float(n), "GET", f"/api/{name}", status=200) for n, name in enumerate(names)]
    path.write_bytes(encode_head("shop", "share 1", 0.0) + b"".join(map(encode_request, requests)))
    said = "more than 30 names at /api are one endpoint, :name (--rule names endpoints)"
    assert said in invoke("show", path).output
    assert said not in invoke("show", path, "--rule", "GET /api/*=api").output


def test_endpoints_beyond_the_bound_are_said(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    names = [f"/{a}{n}x/{b}{m}x/c" for a in "gh" for n in range(8) for b in "gh" for m in range(8)]
    targets = [f"{name}{leaf}" for name in names for leaf in "pqrs"]
    requests = [RecordedRequest(float(n), "GET", target, status=200) for n, target in enumerate(targets)]
    path.write_bytes(encode_head("shop", "share 1", 0.0) + b"".join(map(encode_request, requests)))
    assert "24 requests beyond 1,000 endpoints" in invoke("show", path).output


def test_run_writes_trials_that_a_verdict_reads(recording: Path, tmp_path: Path) -> None:
    output = tmp_path / "trials.csv"
    pace = ("--rate", "500", "--requests", "12", "--warm-up", "3", "--trials", "2", "--timing", "cpu")
    with two_sides() as (a, b):
        result = invoke("run", recording, "--a", a, "--b", b, *pace, "--to", output, "--json")
        table = invoke(
            "run", recording, "--a", a, "--b", b, "--speed", "1000", "--allow", "POST *", "--warm-up", "2"
        )
    assert result.exception is None, result.output
    assert result.return_value == 1  # status differs
    document = orjson.loads(result.stdout)
    (endpoint,) = document["endpoints"].values()
    assert (endpoint["requests"], endpoint["failed"], endpoint["body_differs"]) == (24, [0, 0], 0)
    assert endpoint["status_differs"] >= 1
    assert endpoint["statuses"] == [[200, 404, endpoint["status_differs"]]]
    assert "statuses that differ, of sides A and B: 200 and 404" in table.output
    assert "4 requests may change something and are blocked: POST /cart/:id" in result.stderr
    assert table.exception is None, table.output
    assert [
        text for text in ("POST /cart/:id", "requests a second offered") if text not in table.output
    ] == []
    verdict = CliRunner().invoke(smidgen, ["trial", "verdict", str(output), "--json"], standalone_mode=False)
    assert verdict.exception is None, verdict.output
    rows = {row["metric"]: row for row in map(orjson.loads, verdict.stdout.splitlines())}
    assert set(rows) == {
        f"{name}{of}" for name in ("latency_ms", "cpu_timing_ms") for of in ("", " GET /cart/:id")
    }
    assert rows["cpu_timing_ms"]["difference"] == pytest.approx(0.5)
    assert rows["cpu_timing_ms"]["model"] == "paired-by-request"


def test_capacity(recording: Path, tmp_path: Path) -> None:
    output = tmp_path / "knees.csv"
    with two_sides() as (a, b):
        steps = ("--from", "100", "--up-to", "150", "--factor", "1.5", "--seconds", "0.1", "--p99", "60000")
        result = invoke(
            "capacity", recording, "--a", a, "--b", b, *steps, "--repeats", "2", "--to", output, "--json"
        )
    assert result.exception is None, result.output
    found = orjson.loads(result.stdout)
    assert [knee["rate"] for knee in found["a"] + found["b"]] == [pytest.approx(150.0)] * 4
    assert not any(knee["broke"] for knee in found["a"])
    assert output.read_text().count("capacity_rps") == 4


@pytest.mark.parametrize("status", [500, 503, 401, 404])
def test_a_replay_in_which_both_sides_fail_every_time_is_a_finding(recording: Path, status: int) -> None:
    sides = ("run", recording, "--rate", "500", "--requests", "6", "--warm-up", "0")
    with two_sides(status) as (a, b):
        result = invoke(*sides, "--a", a, "--b", b)
        capacity = run(["replay", "capacity", str(recording), "--a", a, "--b", b, "--seconds", "0.1"])
    assert result.exception is None, result.output
    assert result.return_value == 1
    assert "both sides failed every request, so nothing was compared: GET /cart/:id" in result.output
    assert capacity == 2


def test_the_capacity_of_a_side_that_fails_every_time_is_none(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ("--from", "100", "--up-to", "150", "--factor", "1.5", "--seconds", "0.1", "--p99", "60000")
    with two_sides() as (a, _), two_sides(503) as (_, b):
        assert run(["replay", "capacity", str(recording), "--a", a, "--b", b, *steps]) == 2
    assert "--from 100: side B fails every request at the first rate" in capsys.readouterr().err


def test_a_replay_in_which_side_a_never_answers_compares_nothing(recording: Path) -> None:
    """Side B answers, so it does not fail more often; but nothing shows that it is right."""
    sides = ("run", recording, "--rate", "500", "--requests", "6", "--warm-up", "0")
    with two_sides() as (_, b), socket.create_server(("127.0.0.1", 0)) as deaf:
        a = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        result = invoke(*sides, "--a", a, "--b", b, "--timeout", "0.5")
    assert result.exception is None, result.output
    assert result.return_value == 1
    assert "no request was served by both sides, so nothing was compared" in result.output
    assert "side A failed 6 requests: no answer in 0.5 s (6)" in result.output


@pytest.mark.parametrize(
    ("serves", "code", "about"),
    [
        pytest.param((12, 12), 0, "", id="both serve"),
        pytest.param(
            (4, 4), 1, "fewer than half of the requests were served by both sides", id="both give out"
        ),
        pytest.param((4, 12), 1, "fewer than half", id="side A gives out"),
        pytest.param((12, 4), 1, "statuses that differ", id="side B gives out"),
        pytest.param((0, 0), 1, "trials.csv: not written, no request was served", id="neither serves"),
    ],
)
def test_only_requests_that_both_sides_serve_are_trials(
    serves: tuple[int, int],
    code: int,
    about: str,
    recording: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "trials.csv"
    pace = ("--rate", "500", "--requests", "12", "--warm-up", "0", "--to", str(output))
    with side_that_gives_out(serves[0]) as a, side_that_gives_out(serves[1]) as b:
        assert run(["replay", "run", str(recording), "--a", a, "--b", b, *pace]) == code
    said = capsys.readouterr()
    assert about in said.out + said.err
    assert "GET /cart/:id" in said.out, "the table is printed whatever the exit code"
    rows = output.read_text().count("latency_ms,") if output.exists() else 0
    assert rows == 2 * min(serves)


RUN = ("run", "RECORDING", "--a", "http://127.0.0.1:9", "--b", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([*RUN, "--b", "elsewhere"], "should be http://HOST:PORT"),
        ([*RUN, "--rate", "5", "--speed", "2"], "--rate and --speed: give one"),
        ([*RUN, "--speed", "2", "--warm-up", "16"], "--warm-up 16: the recording has 16 requests"),
        ([*RUN, "--header", "X"], "should be NAME=VALUE"),
        ([*RUN, "--mix", "/cart=-1"], "should have a share above 0"),
        ([*RUN, "--endpoint", "/none"], "/none: matches no endpoint"),
        ([*RUN, "--a-pid", "1"], "give a process or a cgroup of both sides"),
        ([*RUN, "--downstream-a", "127.0.0.1:0"], "give both"),
        ([*RUN, "--downstream-a", "127.0.0.1:0", "--downstream-b", "127.0.0.1:0"], "say what the calls"),
        ([*RUN, "--a", "http://127.0.0.1:9"], "127.0.0.1:9: "),
        (["record", "--upstream", "http://a", "--to", "/nowhere/x"], ""),
        (["record", "--upstream", "http://a", "--to", "x", "--session", "sid"], ""),
        (["mock", "--answers", "/nowhere"], ""),
        (["show", "/nowhere"], ""),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], why: str, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [str(recording) if argument == "RECORDING" else argument for argument in arguments]
    assert run(["replay", *named]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert why in lines[-1]
    assert len(lines) == 1 or arguments[0] == "run"  # which says first what it leaves out
