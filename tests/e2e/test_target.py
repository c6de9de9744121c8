"""The shop: all commits of its history run and give the same answers, and the slow one costs as intended."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from loadgen.demo.driver import send, wait_until_healthy
from loadgen.demo.traffic import TrafficRequest, make_rounds
from loadgen.target.history import SLOW_SUBROUTINE, Edit, read_history
from loadgen.target.repository import Revision, apply_edit, check_out, git, make_repository
from pipeline.model.errors import ConfigError

NOW = 1_700_000_000.0


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Revision]]:
    folder = tmp_path_factory.mktemp("target") / "shop"
    return folder, make_repository(folder, NOW)


def test_the_history_holds_one_slow_commit_and_one_refactoring() -> None:
    kinds = [commit.kind for commit in read_history()]
    deployed = kinds[kinds.count("initial") :]
    assert "initial" not in deployed
    assert deployed.count("slow") == deployed.count("refactor") == 1
    assert deployed.count("harmless") == 6
    assert deployed[0] == deployed[-1] == "harmless"


def test_commits_are_real(repository: tuple[Path, list[Revision]]) -> None:
    folder, revisions = repository
    log = git(folder, "log", "--reverse", "--format=%H|%s|%an|%at").splitlines()
    assert [line.split("|")[:3] for line in log] == [
        [revision.sha, revision.commit.title, revision.commit.author] for revision in revisions
    ]
    times = [int(line.split("|")[3]) for line in log]
    assert times == sorted(times)
    assert times[-1] < NOW
    assert len({commit.author for commit in read_history()}) >= 3
    assert git(folder, "status", "--porcelain") == ""


def test_the_same_time_gives_the_same_commits(
    repository: tuple[Path, list[Revision]], tmp_path: Path
) -> None:
    assert make_repository(tmp_path / "again", NOW) == repository[1]


def test_the_environment_of_a_surrounding_git_plays_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    revisions = make_repository(tmp_path / "shop", NOW)
    assert git(tmp_path / "shop", "rev-parse", "HEAD") == revisions[-1].sha


def test_a_failure_of_git_is_reported(repository: tuple[Path, list[Revision]]) -> None:
    with pytest.raises(ConfigError, match="git checkout: "):
        check_out(repository[0], "0" * 40)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        pytest.param(Edit(path="a.py", old="absent", new="x"), "0 places", id="absent"),
        pytest.param(Edit(path="a.py", old="x", new="y"), "2 places", id="ambiguous"),
        pytest.param(Edit(path="a.py", old="", new="y"), "exists already", id="exists"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(tmp_path: Path, edit: Edit, message: str) -> None:
    (tmp_path / "a.py").write_text("x = x\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        apply_edit(tmp_path, edit)


@pytest.mark.e2e
def test_every_commit_answers_every_endpoint_the_same(repository: tuple[Path, list[Revision]]) -> None:
    folder, revisions = repository
    rounds = make_rounds(1, seed=5)
    requests = [request for one in rounds for request in one]
    answers: dict[str, list[bytes]] = {}
    for revision in revisions:
        check_out(folder, revision.sha)
        with _service(folder) as base:
            answers[revision.sha] = asyncio.run(_answers(base, requests))
    expected = answers[revisions[0].sha]
    assert all(len(answer) > 100 for answer in expected)
    for revision in revisions:
        assert answers[revision.sha] == expected, revision.commit.title


@pytest.mark.e2e
def test_bad_requests_are_refused(repository: tuple[Path, list[Revision]]) -> None:
    folder, revisions = repository
    check_out(folder, revisions[-1].sha)
    bad = [
        TrafficRequest("POST", "/checkout", b"{"),
        TrafficRequest("POST", "/checkout", b'{"lines": [{"sku": "P0001", "quantity": 0}]}'),
        TrafficRequest("POST", "/checkout", b'{"lines": [{"sku": "nothing", "quantity": 1}]}'),
        TrafficRequest("GET", "/product/nothing"),
        TrafficRequest("GET", "/search?q="),
        TrafficRequest("GET", "/nowhere"),
    ]
    with _service(folder) as base:
        statuses = asyncio.run(_statuses(base, bad))
    assert statuses == [400, 400, 400, 404, 200, 404]


COUNT_CPU = """
import asyncio, gc, importlib, json, sys, time
from aiohttp.test_utils import make_mocked_request
from loadgen.demo.traffic import make_rounds

names = sys.argv[1:]
shops = [importlib.import_module(name + ".app").Shop() for name in names]
requests = [request for one in make_rounds(2, seed=5) for request in one]
least = [[float("inf")] * len(requests) for _ in shops]

async def seconds_of(shop, endpoint, request):
    _, sku, *_ = request.path.split("?")[0][1:].split("/") + [""]
    mocked = make_mocked_request(request.method, request.path, match_info={"sku": sku})
    mocked._read_bytes = request.body
    started = time.process_time()
    await getattr(shop, endpoint)(mocked)
    return time.process_time() - started

async def main():
    endpoints = [request.path.split("?")[0][1:].split("/")[0] for request in requests]
    for turn in range(12):
        for place, request in enumerate(requests):
            for which in range(len(shops)):
                which = (which + turn) % len(shops)
                spent = await seconds_of(shops[which], endpoints[place], request)
                least[which][place] = min(spent, least[which][place])
    cost = {name: {} for name in names}
    for name, of_requests in zip(names, least):
        for endpoint, seconds in zip(endpoints, of_requests):
            cost[name][endpoint] = cost[name].get(endpoint, 0.0) + seconds
    print(json.dumps(cost))

gc.disable()
asyncio.run(main())
"""
"""CPU seconds of each endpoint in several packages.

They take turns request by request, and each request counts by its least: what else runs on the machine only
adds, slows all of them, and leaves some turn of milliseconds alone.
"""


@pytest.mark.e2e
def test_the_slow_commit_adds_five_to_ten_per_cent(
    repository: tuple[Path, list[Revision]], tmp_path: Path
) -> None:
    folder, revisions = repository
    slow = next(position for position, one in enumerate(revisions) if one.commit.kind == "slow")
    refactor = next(position for position, one in enumerate(revisions) if one.commit.kind == "refactor")
    cost = _cpu_by_endpoint(
        folder, {position: revisions[position] for position in (slow - 1, slow, refactor)}, tmp_path
    )
    before = sum(cost[slow - 1].values())
    added = cost[slow]["search"] - cost[slow - 1]["search"]
    # Bounds are wider than the claim: handlers only are measured here, on a machine that others use too.
    assert 0.045 < added / before < 0.13
    moved = cost[refactor]["product"] / cost[slow]["product"]
    assert 0.85 < moved < 1.15
    shares = [seconds / before for seconds in cost[slow - 1].values()]
    assert min(shares) > 0.04
    assert max(shares) < 0.30


def test_the_slow_commit_changes_the_subroutine_that_is_named() -> None:
    slow = next(commit for commit in read_history() if commit.kind == "slow")
    assert [edit.path for edit in slow.edits] == ["shop/search.py"]
    assert SLOW_SUBROUTINE == "shop.search.Index.rank"


def _cpu_by_endpoint(
    folder: Path, revisions: dict[int, Revision], side_by_side: Path
) -> dict[int, dict[str, float]]:
    names = {position: f"shop_{position}" for position in revisions}
    for position, revision in revisions.items():
        check_out(folder, revision.sha)
        shutil.copytree(folder / "shop", side_by_side / names[position])
    done = subprocess.run(
        [sys.executable, "-B", "-c", COUNT_CPU, *names.values()],
        cwd=side_by_side,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    cost: dict[str, dict[str, float]] = json.loads(done.stdout)
    return {position: cost[name] for position, name in names.items()}


@contextmanager
def _service(folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-B", "-m", "shop", "--port", str(port)], cwd=folder)
    base = f"http://127.0.0.1:{port}"
    try:
        asyncio.run(asyncio.wait_for(_healthy(base, process), 240))
        yield base
    finally:
        process.terminate()
        assert process.wait(60) == 0


async def _healthy(base: str, process: subprocess.Popen[bytes]) -> None:
    waiting = asyncio.create_task(wait_until_healthy(base))
    while not waiting.done():
        assert process.poll() is None, "the service ended"
        await asyncio.wait({waiting}, timeout=0.2)
    await waiting


async def _answers(base: str, requests: list[TrafficRequest]) -> list[bytes]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        return [await send(session, base, request) for request in requests]


async def _statuses(base: str, requests: list[TrafficRequest]) -> list[int]:
    statuses = []
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        for request in requests:
            url = f"{base}{request.path}"
            async with session.request(request.method, url, data=request.body or None) as response:
                statuses.append(response.status)
    return statuses
