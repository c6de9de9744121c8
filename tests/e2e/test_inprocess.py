"""The sampler inside an application: its samples in the store, and its names beside those of py-spy."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

import smidgen.inprocess as smidgen_sampler
from agents.profiles.formats.collapsed import parse_collapsed
from agents.profiles.naming import name_stack
from agents.sampling.kernels.pyspy import find_py_spy
from pipeline.model import SeriesKey
from pipeline.storage.interface import SeriesQuery, Store
from tests.e2e.dead_letters import wait_all_read
from tests.e2e.worker_process import WorkerProcess, is_idempotent
from tests.support.paths import ROOT

pytestmark = pytest.mark.e2e


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def price() -> None:
    await asyncio.sleep(0)
    burn(0.02)


async def cart(_request: web.Request) -> web.Response:
    await asyncio.gather(price(), price())
    return web.Response()


async def report(_request: web.Request) -> web.Response:
    await asyncio.to_thread(burn, 0.06)
    return web.Response()


async def serve_requests(cpu_s: float) -> None:
    app = web.Application(middlewares=[smidgen_sampler.aiohttp_middleware])
    app.router.add_get("/cart/{id}", cart)
    app.router.add_get("/report", report)
    end = time.process_time() + cpu_s
    async with TestClient(TestServer(app)) as client:
        while time.process_time() < end:
            for path in ("/cart/7", "/report"):
                assert (await client.get(path)).status == 200


def test_endpoints_of_an_application_are_series_of_the_store(
    own_broker: str,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SMIDGEN_IDEMPOTENT_PRODUCER", str(is_idempotent(own_broker)))
    began = time.time()
    assert smidgen_sampler.start(
        service_name, send_to=f"kafka://{own_broker}", rate_hz=200, interval="500ms", budget=1.0, host="h"
    )
    try:
        asyncio.run(serve_requests(3.0))
    finally:
        smidgen_sampler.stop(60.0)
    start, end = began // 60 * 60, time.time() // 60 * 60 + 60

    def counted() -> Counter[SeriesKey]:
        matrix = shared_store.series(SeriesQuery("gcpu", service_name, start, end, 60.0))
        counts = zip(matrix.series, matrix.samples.sum(axis=1).tolist(), strict=True)
        return Counter({key: int(count) for key, count in counts})

    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    found = counted()
    carts, reports = (found[SeriesKey("endpoint", f"GET {path}")] for path in ("/cart/{id}", "/report"))
    assert 0.4 < carts / (2 * reports / 3) < 2.5, "40 ms of CPU each, and 60"
    module = __name__
    assert found[SeriesKey("subroutine", f"{module}.price")] >= 0.8 * carts, (
        "tasks count for those who await them"
    )
    assert (
        found[SeriesKey("subroutine", f"{module}.cart")] >= found[SeriesKey("subroutine", f"{module}.price")]
    )
    assert found[SeriesKey("subroutine", f"{module}.report")] >= 0.8 * reports, "so do threads"


PROGRAM = """
import sys, threading, time
from agents.profiles.annotate import annotate
from shop.pricing import PriceList

end = float(sys.argv[1])

def outer():
    def inner(n):
        return sum(i * i for i in range(n)) + max([i * 2 for i in range(n)])
    return inner

class Basket:
    class Line:
        @staticmethod
        def cost(n):
            return (lambda m: sum(map(abs, range(m))))(n)

    @property
    def total(self):
        return self.Line.cost(3000) + PriceList().total(3000)

scope = {}
exec("def generated(n):\\n    return sum(i for i in range(n))", scope)

def recurse(depth):
    return recurse(depth - 1) if depth else outer()(3000)

def work():
    while time.process_time() < end:
        annotate(recurse, endpoint="/buy")(3)
        Basket().total
        scope["generated"](3000)

thread = threading.Thread(target=work)
thread.start()
work()
thread.join()
"""

PRICING = """
class PriceList:
    def total(self, n):
        return sum(self.each(i) for i in range(n))

    def each(self, i):
        return i * i % 7
"""


def test_names_are_those_of_py_spy(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "pricing.py").write_text(PRICING)
    script, raw, own = tmp_path / "program.py", tmp_path / "raw.txt", tmp_path / "own.jsonl"
    script.write_text(textwrap.dedent(PROGRAM))
    sampled = [sys.executable, "-m", "smidgen.inprocess", "--service", "s", "--send-to", f"file:{own}"]
    options = ["--rate-hz", "300", "--budget", "1", "--wall", "--", str(script), "2.5"]
    spy = [find_py_spy(), "record", "--format", "raw", "--nolineno", "--rate", "300", "--output", str(raw)]
    done = subprocess.run(
        [*spy, "--duration", "300", "--", *sampled, *options],
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # py-spy also sees the sampler's own start, in which dataclasses make code named <string>.
    theirs: Counter[str] = Counter()
    for stack, count in parse_collapsed(raw.read_bytes()).stacks.items():
        names = {frame.name for frame in name_stack(stack)}
        if any(name.startswith("program.") for name in names):
            for name in names:
                theirs[name] += count
    ours: Counter[str] = Counter()
    for line in own.read_bytes().splitlines():
        message = json.loads(line)
        for stack, count in zip(message["stacks"], message["counts"], strict=True):
            for index in set(stack):
                ours[message["frames"][index]] += count
    of_program = ("program.", "shop.", "endpoint=", "<string>.", "threading.Thread.")
    expected = {
        *("program.outer.inner", "program.Basket.Line.cost", "program.Basket.total", "program.recurse"),
        *("program.work", "program.<module>", "shop.pricing.PriceList.total", "shop.pricing.PriceList.each"),
        *("endpoint=/buy", "<string>.generated", "threading.Thread.run"),
    }
    assert expected <= theirs.keys()
    assert expected <= ours.keys()
    for one, other in ((theirs, ours), (ours, theirs)):
        ratio = min(1.0, other["program.work"] / one["program.work"])  # a busy machine makes them differ
        often = {name for name, n in one.items() if ratio * n > 20 and name.startswith(of_program)}
        assert often <= other.keys()
