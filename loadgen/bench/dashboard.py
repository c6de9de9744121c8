"""``smidgen bench dashboard``: until the first byte of each page, with many regressions and subroutines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from typing import Any

import numpy as np
import orjson
from aiohttp import ClientSession

from loadgen.harness import Advance, BenchExperiment, BenchResult, bench, terminal_table
from pipeline.commands.request import option
from pipeline.commands.tables import Column
from pipeline.embedded.stack import EmbeddedStore
from pipeline.messages.ledger import dropped_entries, ledger_columns
from pipeline.model import Candidate, Decision, Dropped, Scan
from pipeline.model.clock import system_clock, to_iso
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S
from pipeline.settings.workloads import known_workloads
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from pipeline.views.dashboard import Sources, create_app, serve

WORKLOAD = "frontfaas-small"
SERVICE = "bench-0"
SERVICES = 20
TIMES = 9
SCANS, DROPPED = 100, 100
"""Scans in the ledger, and candidates that each of them dropped."""

_SLICE = 1000


COLUMNS: tuple[Column[BenchResult], ...] = (
    Column("page", "name"),
    Column("first byte", lambda row: row.figures["first byte"], "{:.0f} ms".format),
    Column("slowest", lambda row: row.figures["slowest"], "{:.0f} ms".format),
    Column("kB", lambda row: row.figures["kB"], ".0f"),
)


@bench(json="one JSON object a result")
def dashboard(
    regressions: int = option(10_000, least=1),
    subroutines: int = option(100_000, least=1),
) -> BenchExperiment[BenchResult]:
    """Measure until the first byte of each page comes, from an embedded store.

    Each page is asked for nine times, after the server has read its first snapshot; first byte is the
    median, slowest the largest. Parts that a page fetches by itself, such as flame graphs, are measured too.
    """

    def rows(advance: Advance) -> Iterator[BenchResult]:
        with EmbeddedStore() as embedded, closing(open_store(embedded.url)) as store:
            store.migrate()
            fill(store, regressions, subroutines, now=system_clock())
            yield from asyncio.run(_measure(store, advance))

    return BenchExperiment(rows, len(PAGES), terminal_table(COLUMNS))


def fill(store: Store, regressions: int, subroutines: int, *, now: float) -> None:
    """Fill a store with reported regressions of many services and with counts of the first service."""
    rng = np.random.default_rng(1)
    end = now // HOUR_S * HOUR_S
    rows = list(_regressions(rng, regressions, subroutines, end))
    for first in range(0, len(rows), _SLICE):
        part = rows[first : first + _SLICE]
        store.insert("regressions", {name: [row[name] for row in part] for name in part[0]})
    services = [f"bench-{number}" for number in range(SERVICES)]
    noted: dict[str, Any] = {"service": services, "time": [end - DAY_S] * SERVICES}
    store.insert("naming", {**noted, "version": ["1"] * SERVICES, "before": [0] * SERVICES})
    scanned: dict[str, Any] = {
        "service": services,
        "workload": [WORKLOAD] * SERVICES,
        "time": [end] * SERVICES,
    }
    store.insert("scans", {**scanned, "series": [subroutines] * SERVICES, "candidates": [3] * SERVICES})
    _count(store, rng, subroutines, end)
    _drop(store, end)


def _regressions(
    rng: np.random.Generator, regressions: int, subroutines: int, end: float
) -> Iterator[dict[str, Any]]:
    for number in range(regressions):
        # The first regression lies in the counted hour, so that there is a series to draw.
        change = end - (float(rng.uniform(0.3, 300)) * DAY_S if number else HOUR_S / 2)
        before, delta = float(rng.uniform(0.001, 0.05)), float(rng.lognormal(-7, 1.5))
        own = {
            **{"service": f"bench-{number % SERVICES}", "workload": WORKLOAD, "metric_kind": "subroutine"},
            **{"metric": name_of(number % subroutines), "before": before, "after": before + delta},
            **{"delta": delta, "p_value": 1e-6},
        }
        windows = (change - 10 * DAY_S, change - 2 * HOUR_S, change + 2 * HOUR_S, change + 8 * HOUR_S)
        named = zip(("start", "analysis_start", "analysis_end", "end"), map(to_iso, windows), strict=True)
        suspect = {"id": f"{number:08x}", "service": own["service"], "time": change - 60, "title": "A change"}
        data = {
            **own,
            **{"kind": "short_term", "change_time": to_iso(change), "detected_time": to_iso(windows[3])},
            **{"relative": delta / before, "servers": 4000.0, "waste_servers": delta * 4000},
            **{"scan": dict(named), "group": [], "group_size": 0, "passed": []},
            "root_causes": [{"change": {**suspect, "author": "ada"}, "score": 0.8, "factors": {}}],
        }
        event = {
            **{"specversion": "1.0", "id": f"{number:032x}", "type": "smidgen.regression.detected"},
            **{"source": f"/smidgen/{own['service']}", "time": to_iso(windows[3]), "data": data},
        }
        row = {"id": event["id"], "time": change, "detected_time": windows[3], **own}
        yield {**row, "event": orjson.dumps(event).decode()}


def _drop(store: Store, end: float) -> None:
    """Write candidates that the last step with a bound dropped into the ledger, for scans of a month."""
    silent = Decision("significance", passed=False, statistic=0.5, bound=0.01)
    for number in range(SCANS):
        at = end - number * 29 * DAY_S / SCANS
        candidates = tuple(
            Dropped(
                Candidate(
                    "subroutine", name_of(subroutine), "short_term", at - HOUR_S, 0.01, 0.0105, 1e-3, 9.0
                ),
                silent,
            )
            for subroutine in range(number % 7, number % 7 + DROPPED)
        )
        scan = Scan(SERVICE, WORKLOAD, at - 10 * DAY_S, at - 4 * HOUR_S, at, at, 1000, dropped=candidates)
        store.insert("ledger", ledger_columns(dropped_entries(scan)))


def _count(store: Store, rng: np.random.Generator, subroutines: int, end: float) -> None:
    """Write counts and stacks of the first service for an hour."""
    log = {"stream": "bench", "topic": "profiles", "partition": 0, "last_offset": 0}
    for window in np.arange(end - HOUR_S, end, 10 * MINUTE_S):
        whole = {"service": SERVICE, "window": window, "samples": 1_000_000, **log}
        more = {"messages": 100, "stacks": 1000}
        store.insert("totals", {name: [value] for name, value in {**whole, **more}.items()})
        for first in range(0, subroutines, 50_000):
            names = [name_of(number) for number in range(first, min(first + 50_000, subroutines))]
            same = {"service": SERVICE, "kind": "subroutine", "window": window, **log}
            counted = {name: [value] * len(names) for name, value in same.items()}
            samples = rng.integers(1, 2000, len(names)).tolist()
            store.insert("gcpu", {**counted, "subroutine": names, "samples": samples})
    stacks = 2000
    frames = [
        ["main", f"endpoint=/{number % 20}", *(name_of(number // step) for step in (100, 10, 1))]
        for number in range(stacks)
    ]
    same = {"service": SERVICE, "window": end - HOUR_S, "width_s": HOUR_S, **log}
    own: dict[str, Any] = {
        "stack_id": list(range(stacks)),
        "frames": frames,
        "samples": rng.integers(1, 2000, stacks).tolist(),
    }
    store.insert("stacks", {**{name: [value] * stacks for name, value in same.items()}, **own})


def name_of(number: int) -> str:
    """Return the name of a subroutine."""
    return f"bench.package{number % 97}.module{number % 31}.Type{number % 13}.call_{number}"


async def _measure(store: Store, advance: Advance) -> list[BenchResult]:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    began = time.perf_counter()
    app = create_app(Sources(store, known_workloads(()), clock=system_clock))
    server = asyncio.create_task(serve(app, "127.0.0.1", 0, ready.set_result))
    try:
        waiting: set[asyncio.Future[Any]] = {server, ready}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if server.done():  # only an error ends it
            server.result()
        url = await ready
        loaded = (time.perf_counter() - began) * 1000
        async with ClientSession(url) as client:
            results = [BenchResult("first snapshot", {"first byte": loaded, "slowest": loaded, "kB": 0.0})]
            for name, path in PAGES.items():
                results.append(await _ask(client, name, path))
                advance()
            return results
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


PAGES = {
    "regressions": "/regressions",
    "regressions, filtered and sorted": "/regressions?search=module7&sort=waste&min_size=0.05",
    "regressions, last page": "/regressions?page=200",
    "regression": f"/regressions/{0:032x}",
    "its series": f"/regressions/{0:032x}/series.json?span=month",
    "services": "/services",
    "service": f"/services/{SERVICE}",
    "explorer": f"/explorer?service={SERVICE}",
    "its flame graph": f"/explorer/flames?service={SERVICE}&span=1h",
    "settings": f"/settings?workload={WORKLOAD}",
    "its comparison": f"/settings/compared?workload={WORKLOAD}&other_threshold=0.01",
    "operations": "/operations",
    "API, regressions": "/api/v1/regressions?per=500",
}


async def _ask(client: ClientSession, name: str, path: str) -> BenchResult:
    took, size = [], 0
    for _ in range(TIMES):
        began = time.perf_counter()
        async with client.get(path) as answer:
            took.append((time.perf_counter() - began) * 1000)
            size = len(await answer.read())
            answer.raise_for_status()
    return BenchResult(name, {"first byte": median(took), "slowest": max(took), "kB": size / 1000})
