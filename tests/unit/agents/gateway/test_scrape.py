"""Profiles that are fetched, the file that names them, and a Go program."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agents.gateway.scrape import Scraper, wait_s
from agents.gateway.targets import ScrapeTarget, load_targets
from pipeline.messages.measurements import decode_profile
from pipeline.model.errors import ConfigError
from pipeline.processes import TaskSupervisor
from tests.support.gateway_requests import pprof
from tests.unit.agents.gateway.support import NOW, Bench, stacks_of

GO = shutil.which("go", path="/usr/local/go/bin:/usr/bin:/usr/local/bin") or shutil.which("go")

PROGRAM = """
package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"
)

var sink int

//go:noinline
func slowPrice(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i % 7
	}
	return sum
}

func main() {
	go func() {
		for {
			sink += slowPrice(1000000)
		}
	}()
	panic(http.ListenAndServe(os.Args[1], nil))
}
"""


def target(url: str, interval_s: float = 1.0, seconds: int = 1) -> ScrapeTarget:
    return ScrapeTarget(
        "shop", url, (("service", "shop"), ("host", "a"), ("region", "eu")), seconds, interval_s
    )


async def fetched(bench: Bench, wanted: ScrapeTarget, now: float = NOW) -> None:
    scraper = Scraper(bench.intake, clock=lambda: bench.now)
    bench.now = now + wait_s(wanted, now) - 0.01  # just before its moment
    scraper.follow([wanted])
    try:
        async with asyncio.timeout(60):
            while not any(name == "gateway_scrapes_total" for name, _, _ in bench.counts.metrics()):
                await asyncio.sleep(0.01)
    finally:
        await scraper.close()


def fetched_of(bench: Bench, status: int, body: bytes) -> None:
    async def serve(request: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Location": "http://127.0.0.1:1/"})

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/debug/pprof/profile", serve)
        async with TestServer(app) as server:
            await fetched(bench, target(str(server.make_url("/debug/pprof/profile"))))

    asyncio.run(main())


async def test_an_unforeseen_error_does_not_end_the_fetching(monkeypatch: pytest.MonkeyPatch) -> None:
    fetches: list[ScrapeTarget] = []

    async def fetch(_scraper: Scraper, wanted: ScrapeTarget) -> None:
        fetches.append(wanted)
        if len(fetches) == 1:
            raise ValueError("a bug")
        await asyncio.sleep(0.01)

    monkeypatch.setattr(Scraper, "_fetch", fetch)
    bench, tasks, wanted = Bench(), TaskSupervisor(first_pause_s=0.01), target("http://127.0.0.1:1/", 0.01)
    scraper = Scraper(bench.intake, clock=lambda: bench.now, tasks=tasks)
    scraper.follow([wanted])
    async with asyncio.timeout(60):
        while len(fetches) < 3:
            await asyncio.sleep(0.01)
    assert tasks.problem() == "scrape shop: ValueError: a bug"
    await scraper.close()


def test_a_profile_is_fetched() -> None:
    bench = Bench()
    fetched_of(bench, 200, pprof())
    profile = bench.outbox.profiles()[0]
    assert (profile.service, profile.host, profile.labels) == ("shop", "a", {"region": "eu"})
    assert stacks_of(profile) == {"main;price": 3, "main;pay": 1}


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        pytest.param(500, b"", "status", id="error"),
        pytest.param(302, b"", "status", id="elsewhere"),
        pytest.param(200, b"\x00", "malformed", id="garbage"),
    ],
)
def test_what_cannot_be_used_is_counted_by_reason(status: int, body: bytes, outcome: str) -> None:
    bench = Bench()
    fetched_of(bench, status, body)
    assert ("gateway_scrapes_total", {"outcome": outcome}, 1) in bench.counts.metrics()
    assert bench.outbox.messages == []


def test_moments_are_spread_over_the_interval() -> None:
    targets = [ScrapeTarget(f"shop {n}", "http://a/", (), 10, 60.0) for n in range(200)]
    waits = sorted(wait_s(one, NOW) for one in targets)
    assert waits[0] < 2
    assert waits[-1] > 58
    assert max(b - a for a, b in pairwise(waits)) < 5
    assert all(wait_s(one, NOW + wait_s(one, NOW) + 0.1) > 59 for one in targets)


def test_the_file_of_targets(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(
        "targets:\n"
        "  - {service: shop, address: 'shop-1:6060', interval: 30s, labels: {region: eu}}\n"
        "  - {service: till, address: 'https://till', host: till-7, path: /cpu, seconds: 5}\n"
        "  - {service: a, address: 'http://user:hunter2@shop-1:6060/'}\n",
        encoding="utf-8",
    )
    first, second, third = load_targets(file)
    assert first.url == "http://shop-1:6060/debug/pprof/profile?seconds=10"
    assert first.interval_s == 30.0
    assert dict(first.labels) == {"region": "eu", "service": "shop", "host": "shop-1:6060"}
    assert second.url == "https://till/cpu?seconds=5"
    assert dict(second.labels)["host"] == "till-7"
    assert dict(third.labels)["host"] == "shop-1:6060", "a password is no part of the host"
    assert "user:hunter2@" in third.url


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param("{service: shop}", "address", id="no address"),
        pytest.param("{service: shop, address: a, secnds: 3}", "secnds", id="misspelt"),
        pytest.param("{service: shop, address: a, seconds: 20, interval: 10s}", "interval", id="interval"),
        pytest.param("{service: shop, address: 'file:///etc/passwd'}", "address", id="no HTTP"),
        pytest.param("{service: 'a b', address: a}", "should be of", id="service"),
        pytest.param("{service: a, address: 'b:99999'}", "address: Port out of range", id="port"),
        pytest.param("{service: a, address: b}\n  - {service: a, address: b}", "stands twice", id="twice"),
    ],
)
def test_a_wrong_file_of_targets_is_refused(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(f"targets:\n  - {text}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=what):
        load_targets(file)


@pytest.mark.slow
@pytest.mark.skipif(GO is None, reason="needs go")
def test_the_hot_function_of_a_go_program_has_its_name(tmp_path: Path) -> None:
    source, program = tmp_path / "main.go", tmp_path / "program"
    source.write_text(PROGRAM, encoding="utf-8")
    subprocess.run([str(GO), "build", "-o", str(program), str(source)], check=True, cwd=tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    bench = Bench()
    process = subprocess.Popen([str(program), address])
    try:
        asyncio.run(_fetch_served(bench, address))
    finally:
        process.kill()
        process.wait()
    profile = decode_profile(bench.outbox.messages[0].value)
    assert profile.rate_hz == 100
    hot = profile.frames.index("main.slowPrice")
    owns = [hot in profile.stack_frames[a:b] for a, b in pairwise(profile.stack_starts)]
    assert profile.counts[owns].sum() > 0.5 * profile.counts.sum()


async def _fetch_served(bench: Bench, address: str) -> None:
    await _until_served(address)
    await fetched(bench, target(f"http://{address}/debug/pprof/profile?seconds=1"), now=time.time())


async def _until_served(address: str) -> None:
    host, port = address.split(":")
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, int(port))
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
