"""A slow commit of a Go program, found and named by the whole pipeline from what its pprof endpoint serves.

Real time would take minutes. So each answer is the next second of event time, drawn from a profile: one made
here as Go has them, and where Go is installed one that the built program's own net/http/pprof served.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agents.gateway.counts import Counts
from agents.gateway.intake import Intake, Rules
from agents.gateway.scrape import FETCHED, Scraper
from agents.gateway.service import BufferedOutbox
from agents.gateway.targets import Target
from agents.profiles.formats import Measure, ProfileSource, Sample, count_samples, find_format, read_profile
from agents.profiles.formats.base import Stack
from agents.profiles.formats.pprof import PPROF
from agents.profiles.formats.writers import write_pprof
from agents.publishing.broker import connect
from pipeline.cli import run
from pipeline.settings.config import Settings
from tests.e2e.worker_process import TOPICS, WorkerProcess, fresh_broker, read_all, wait_until
from tests.support.repositories import Work

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

GO = shutil.which("go", path="/usr/local/go/bin:/usr/bin:/usr/local/bin") or shutil.which("go")

FAST_S, SLOW_S = 60, 25
"""Seconds of event time before the slow commit, and from then on."""

SAMPLES = 400
"""In a second of event time: four busy processors at Go's 100 Hz."""

ENOUGH = 100
"""Samples of a real program, whose shares all that is served of it is drawn from."""

PERIOD = Measure("cpu", "nanoseconds", 1e7)

FILES = {
    "go.mod": "module example.org/shop\n\ngo 1.18\n",
    "main.go": """\
package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"

	"example.org/shop/cart"
	"example.org/shop/pricing"
)

var sink int

func serve() {
	list := pricing.List{Items: make([]int, 3000)}
	for {
		basket := cart.Basket{List: &list}
		sink += basket.Checkout()
	}
}

func main() {
	go serve()
	panic(http.ListenAndServe(os.Args[1], nil))
}
""",
    "cart/basket.go": """\
package cart

import "example.org/shop/pricing"

type Basket struct {
	List *pricing.List
}

//go:noinline
func (b *Basket) reserve(n int) int {
	held := 0
	for i := 0; i < n; i++ {
		held += i * i % 7
	}
	return held
}

//go:noinline
func (b Basket) Checkout() int {
	return b.reserve(30000) + b.List.Total()
}
""",
    "pricing/list.go": """\
package pricing

type List struct {
	Items []int
}

//go:noinline
func Sum[T int | float64](items []T, more T) T {
	sum := more
	for i := range items {
		sum += items[i] * items[i]
	}
	return sum
}

//go:noinline
func (l *List) Total() int {
	total := 0
	for i := 0; i < 4000; i++ {
		total += i * i % 7
	}
	return total + Sum(l.Items, 1)
}
""",
}

TIDY = ("cart/basket.go", "held := 0", "held := 1")
SLOW = ("pricing/list.go", "i < 4000", "i < 24000")
BESIDE = ("cart/basket.go", "i * i % 7", "i * i % 9")
SLOWED = "example.org/shop/pricing.(*List).Total"

_ROOT = (
    "main.serve (/src/shop/main.go:17)",
    "example.org/shop/cart.Basket.Checkout (/src/shop/cart/basket.go:20)",
)
_TOTAL = (*_ROOT, f"{SLOWED} (/src/shop/pricing/list.go:19)")
FAST_PROFILE: Mapping[Stack, int] = {
    (*_ROOT, "example.org/shop/cart.(*Basket).reserve (/src/shop/cart/basket.go:13)"): 74,
    _TOTAL: 12,
    (*_TOTAL, "example.org/shop/pricing.Sum[...] (/src/shop/pricing/list.go:10)"): 8,
    ("runtime.mcall (/go/src/runtime/asm_amd64.s:459)", "runtime.park_m (/go/src/runtime/proc.go:4149)"): 4,
    ("runtime.bgsweep (/go/src/runtime/mgcsweep.go:299)",): 2,
}
SLOW_PROFILE = {**FAST_PROFILE, _TOTAL: 50}


Shapes = tuple[Mapping[Stack, int], Mapping[Stack, int]]
"""Stacks of a profile before the slow commit, and from then on."""


@dataclass(frozen=True)
class History:
    """The program's repository: what was deployed before the slow commit, and with it."""

    work: Work
    first: str
    tidy: str
    slow: str
    beside: str


@dataclass
class Served:
    """A service whose endpoint serves a second of event time each time that it is asked."""

    name: str
    profiles: Shapes
    start: float
    draws: np.random.Generator
    asked: int = 0

    @property
    def is_over(self) -> bool:
        """Whether all was served."""
        return self.asked >= FAST_S + SLOW_S

    async def answer(self, _: web.Request) -> web.Response:
        """Serve the next second."""
        if self.is_over:
            return web.Response(status=503)
        shape = self.profiles[self.asked >= FAST_S]
        weights = np.array(list(shape.values()), dtype=float)
        counts = self.draws.multinomial(SAMPLES, weights / weights.sum())
        data = as_go_serves(dict(zip(shape, counts.tolist(), strict=True)), self.start + self.asked)
        self.asked += 1
        return web.Response(body=data, content_type="application/octet-stream")


def as_go_serves(stacks: Mapping[Stack, int], start: float) -> bytes:
    """Return a second of stacks as net/http/pprof serves them: compressed, with its time and length."""
    out = io.BytesIO()
    write_pprof(
        (Sample(stack, count * PERIOD.period) for stack, count in stacks.items() if count), PERIOD, out
    )
    profile = PPROF["Profile"].FromString(gzip.decompress(out.getvalue()))
    profile.time_nanos, profile.duration_nanos = round(start * 1e9), 10**9
    return gzip.compress(profile.SerializeToString(), mtime=0)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A repository of the program, with a slow commit between others."""
    work = Work(tmp_path_factory.mktemp("shop"))

    def change(message: str, edit: tuple[str, str, str]) -> str:
        path, before, after = edit
        text = (work.path / path).read_text(encoding="utf-8")
        assert text.count(before) == 1
        return work.commit(message, {path: text.replace(before, after)})

    first = work.commit("Shop", FILES)
    return History(work, first, change("Tidy", TIDY), change("Price more", SLOW), change("Beside", BESIDE))


@contextmanager
def running(history: History, revision: str, folder: Path) -> Iterator[str]:
    """Build the program as of a commit and run it; give its address."""
    history.work.git("checkout", "--quiet", revision)
    program = folder / revision
    build = [str(GO), "build", "-buildvcs=false", "-o", str(program), "."]
    subprocess.run(build, check=True, cwd=history.work.path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen([str(program), address])
    try:
        yield address
    finally:
        process.kill()
        process.wait()
        history.work.git("checkout", "--quiet", "main")


def profile_of(history: History, revision: str, folder: Path) -> Mapping[Stack, int]:
    """Return stacks that the program's own endpoint serves, of enough samples for shares."""
    stacks: dict[Stack, int] = {}
    deadline = time.monotonic() + 120
    with running(history, revision, folder) as address:
        while sum(stacks.values()) < ENOUGH:
            assert time.monotonic() < deadline
            try:
                with urlopen(f"http://{address}/debug/pprof/profile?seconds=1", timeout=60) as answer:
                    source = ProfileSource.of(answer.read())
            except OSError:  # it does not listen yet
                time.sleep(0.05)
                continue
            found = count_samples(read_profile(find_format("auto", source.head), source))
            for stack, count in found.stacks.items():
                stacks[stack] = stacks.get(stack, 0) + count
    return stacks


async def scrape(services: list[Served], broker: str) -> None:
    """Fetch all that the services serve, as a gateway does, and publish it."""
    settings = Settings(broker=broker, idempotent_producer=False)
    outbox = BufferedOutbox(lambda: connect(settings, TOPICS), 64 * 1024**2)
    outbox.start()
    intake = Intake(Rules(), outbox, Counts(time.time, [FETCHED.name]), clock=time.time)
    app = web.Application()
    for served in services:
        app.router.add_get(f"/{served.name}/debug/pprof/profile", served.answer)
    async with TestServer(app) as server, asyncio.timeout(240):
        targets = []
        for served in services:
            url = f"{server.make_url('/')}{served.name}/debug/pprof/profile?seconds=1"
            labels = (("service", served.name), ("host", "web-1"))
            targets.append(Target(served.name, url, labels, seconds=1, interval_s=0.05))
        scraper = Scraper(intake, clock=time.time)
        scraper.follow(targets)
        try:
            while not all(served.is_over for served in services):
                await asyncio.sleep(0.05)
        finally:
            await scraper.close()
            intake.close()
            delivery = await asyncio.to_thread(outbox.close)
    assert (delivery.dropped.messages, delivery.unsent.messages) == (0, 0)


def publish_changes(history: History, service: str, broker: str, start: float) -> None:
    """Publish what was deployed: one commit amid the first phase, two at its end."""
    deployed = (
        (f"{history.first}..{history.tidy}", FAST_S / 2),
        (f"{history.tidy}..{history.beside}", FAST_S),
    )
    for revisions, later_s in deployed:
        at = ["--range", revisions, "--time", str(start + later_s)]
        to = ["--service", service, "--broker", broker, "--no-idempotent-producer"]
        assert run(["changes", "--repo", str(history.work.path), *at, *to]) == 0


@pytest.fixture(scope="module")
def events(
    history: History, tmp_path_factory: pytest.TempPathFactory, store_dsn: str
) -> Mapping[str, list[dict[str, Any]]]:
    """What is reported of a service of generated profiles, and with Go of one of real ones, by service."""
    start = time.time() // 60 * 60 - 3600.0  # what is fetched may be old, but not of the future
    shapes: dict[str, tuple[Mapping[Stack, int], Mapping[Stack, int]]] = {
        "generated": (FAST_PROFILE, SLOW_PROFILE)
    }
    if GO:
        folder = tmp_path_factory.mktemp("programs")
        shapes["go"] = (profile_of(history, history.tidy, folder), profile_of(history, history.slow, folder))
    services = [
        Served(f"{name}-{time.time_ns()}", shape, start, np.random.default_rng(1))
        for name, shape in shapes.items()
    ]
    with fresh_broker() as broker, pytest.MonkeyPatch.context() as patch:
        for name, value in {"WORKLOADS": "live", "WINDOW": "1s", "STACK_WINDOW": "1s"}.items():
            patch.setenv(f"SMIDGEN_{name}", value)
        for served in services:
            publish_changes(history, served.name, broker, start)
        with WorkerProcess(broker, store_dsn, "all") as worker:
            worker.wait_ready()
            asyncio.run(scrape(services, broker))

            def reported() -> dict[str, list[dict[str, Any]]]:
                found: dict[str, list[dict[str, Any]]] = {name: [] for name in shapes}
                for entry in read_all(broker, "regressions"):
                    event = orjson.loads(entry.value or b"")
                    found[event["data"]["service"].partition("-")[0]].append(event)
                return found

            wait_until(lambda: all(reported().values()), "an event of each service", worker)
            assert worker.stop() == 0
            return reported()


def assert_named(events: list[dict[str, Any]], history: History) -> None:
    """Check that the slowed function is reported, with its commit first."""
    found = [event["data"] for event in events]
    (data,) = (one for one in found if SLOWED in (one["metric"], *one["group"]))
    assert data["root_causes"][0]["change"]["id"] == history.slow


def test_a_slow_commit_is_found_in_what_go_would_serve(
    events: Mapping[str, list[dict[str, Any]]], history: History
) -> None:
    (event,) = events["generated"]
    assert_named([event], history)
    assert event["data"]["metric"] == SLOWED


@pytest.mark.skipif(GO is None, reason="needs go, to build a program and sample it")
def test_a_slow_commit_of_a_go_program_is_found(
    events: Mapping[str, list[dict[str, Any]]], history: History
) -> None:
    assert_named(events["go"], history)


def test_changes_and_profiles_spell_a_function_as_one(history: History) -> None:
    assert history.work.change(history.slow).subroutines == (SLOWED,)
