"""Trials of both sides, with their downstream calls, and the file that a verdict reads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from agents.experiments.replay.connection import address_of_url
from agents.experiments.replay.cpu import cgroup_cpu, process_cpu
from agents.experiments.replay.downstream import CallCounts, CannedAnswer, make_downstream, read_answers
from agents.experiments.replay.experiment import Experiment, PaceConfig, Result, run_trials
from agents.experiments.replay.plan import name_endpoints
from agents.experiments.replay.recording import RecordedRequest
from agents.experiments.replay.trace import Trace
from pipeline.commands.trial.reading import read_trials
from pipeline.experiments.trials.verdict import Sides
from pipeline.http.serving import listening
from pipeline.model.errors import ConfigError
from tests.unit.agents.experiments.replay.services import Handler, service

REQUESTS = name_endpoints(
    [RecordedRequest(float(n), "GET", f"/{'cart' if n % 3 else 'search'}?n={n}") for n in range(9)]
)
CANNED = (CannedAnswer(match="GET /stock/*", body="7", headers={"X-A": "1"}),)


def caller(base: str, calls: dict[str, int], *, traced: bool = True) -> Handler:
    """Return a service that makes so many downstream calls for a request of each path."""

    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {"traceparent": request.headers["traceparent"]} if traced else {}
        async with aiohttp.ClientSession() as session:
            for number in range(calls[request.path]):
                async with session.get(f"{base}/stock/{number}", headers=headers) as found:
                    assert await found.text() == "7"
        return web.Response()

    return answer


def experiment(
    a: dict[str, int], b: dict[str, int], folder: Path, *, traced: bool = True
) -> tuple[Result, dict[str, Sides]]:
    """Return the result, and the trials that a verdict reads of its file."""
    counts = (CallCounts(), CallCounts())

    async def main() -> Result:
        async with (
            listening(make_downstream(counts[0], answers=CANNED), "127.0.0.1", 0) as called_a,
            listening(make_downstream(counts[1], answers=CANNED), "127.0.0.1", 0) as called_b,
            service(caller(called_a, a, traced=traced)) as side_a,
            service(caller(called_b, b, traced=traced)) as side_b,
        ):
            sides = (address_of_url(side_a), address_of_url(side_b))
            pace = PaceConfig(rate=200.0, requests=6, warm_up=3, trials=2)
            return await run_trials(REQUESTS, Experiment(sides, pace), counts=counts)

    result = asyncio.run(asyncio.wait_for(main(), 120))
    (folder / "trials.csv").write_bytes(result.rows.csv())
    return result, read_trials(folder / "trials.csv")


def test_downstream_calls_are_joined_to_requests(tmp_path: Path) -> None:
    result, trials = experiment({"/cart": 1, "/search": 2}, {"/cart": 1, "/search": 3}, tmp_path)
    assert trials["downstream GET /search"].a.tolist() == [[2.0, 2.0]] * 2
    assert trials["downstream GET /search"].b.tolist() == [[3.0, 3.0]] * 2
    assert trials["downstream GET /cart"].b.tolist() == [[1.0] * 4] * 2
    assert trials["latency_ms"].a.shape == (2, 6)
    requests = trials["latency_ms"].requests
    assert requests is not None
    assert (requests[0] == requests[1]).all()
    assert result.by_endpoint()["GET /search"].calls == [8, 12]
    assert result.called[1] == {"GET /stock/:id": 9 * 2 + 3 * 2 * 2}


def test_calls_that_side_a_does_not_make_are_said(tmp_path: Path) -> None:
    result, trials = experiment({"/cart": 0, "/search": 1}, {"/cart": 1, "/search": 1}, tmp_path)
    assert result.rows.zero_on_a() == ["downstream GET /cart"]
    assert "downstream GET /cart" not in trials


def test_calls_without_an_id_are_counted_by_side(tmp_path: Path) -> None:
    _, trials = experiment({"/cart": 1, "/search": 1}, {"/cart": 2, "/search": 2}, tmp_path, traced=False)
    total = trials["downstream_total"]
    assert (total.a.tolist(), total.b.tolist()) == ([[1.0]] * 2, [[2.0]] * 2)
    assert "downstream" not in trials


def test_a_call_is_passed_on_or_has_no_answer() -> None:
    counts = CallCounts(Trace("a" * 16))

    async def downstream(request: web.Request) -> web.StreamResponse:
        return web.Response(status=418, text=f"{request.host} {request.path}")

    async def main() -> list[tuple[int, str]]:
        found = []
        async with (
            service(downstream) as upstream,
            listening(make_downstream(counts, upstream=upstream, answers=CANNED), "127.0.0.1", 0) as passing,
            listening(make_downstream(counts), "127.0.0.1", 0) as alone,
            aiohttp.ClientSession() as session,
        ):
            for url in (f"{passing}/other", f"{passing}/stock/1", f"{alone}/other"):
                async with session.get(url) as answer:
                    found.append((answer.status, (await answer.text()).replace(upstream[7:], "upstream")))
        return found

    assert asyncio.run(main()) == [(418, "upstream /other"), (200, "7"), (502, "no canned answer\n")]
    assert (counts.alone, counts.unmatched) == (3, 1)


def test_canned_answers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text("- {match: GET /a, status: 404}\n- {match: '* /b*', body: x, delay_s: 0.5}\n")
    assert [(one.match, one.status, one.body) for one in read_answers(path)] == [
        ("GET /a", 404, ""),
        ("* /b*", 200, "x"),
    ]
    path.write_text("- {match: GET /a, status: 99}\n")
    with pytest.raises(ConfigError, match="status"):
        read_answers(path)


def test_cpu_of_a_process_and_of_a_cgroup(tmp_path: Path) -> None:
    for pid, thread, used in (("7", "7", 10**9), ("7", "8", 5 * 10**8), ("9", "9", 2 * 10**9)):
        folder = tmp_path / pid / "task" / thread
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(f"{used} 5 6\n")
        (folder / "children").write_text("9 " if thread == "7" else "")
    read = process_cpu(7, tmp_path)
    assert read() == 3.5
    (tmp_path / "7/task/8/schedstat").unlink()
    assert read() == 3.5  # what an ended thread has used stays used
    with pytest.raises(ConfigError, match="no process has the id 5"):
        process_cpu(5, tmp_path)
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert cgroup_cpu(tmp_path)() == 2.5
    with pytest.raises(ConfigError, match=r"no cpu\.stat"):
        cgroup_cpu(tmp_path / "none")
