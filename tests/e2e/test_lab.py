"""The shop in a lab: it reports the cost of requests, and its commit has one more call downstream."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from agents.experiments.replay.downstream import CallCounts, make_downstream
from agents.experiments.replay.timing import server_timings
from loadgen.bench.lab.commits import read_commits, write_code
from loadgen.bench.lab.sides import STOCK, Sides
from pipeline.http.serving import listening
from pipeline.processes import Group

pytestmark = pytest.mark.e2e


def test_a_commit_runs_and_says_what_it_costs(tmp_path: Path) -> None:
    (commit,) = [one for one in read_commits() if one.name == "more calls"]
    folder = write_code(tmp_path / "changed", commit)
    counts = CallCounts()

    async def main() -> tuple[list[str], dict[str, int]]:
        processes = Group(tmp_path)
        try:
            async with (
                listening(make_downstream(counts, answers=STOCK), "127.0.0.1", 0) as stock,
                Sides(processes).running([folder], [stock]) as (address,),
                aiohttp.ClientSession() as session,
            ):
                async with session.get(f"{address}/login?name=a") as answer:
                    said = answer.headers.getall("Server-Timing")
                async with session.get(f"{address}/stock/7") as answer:
                    return said, await answer.json()
        finally:
            await processes.stop_all()

    said, left = asyncio.run(main())
    (cpu_ms,) = server_timings(said, ["cpu"])
    assert cpu_ms
    assert left == {str(sku): 3 for sku in range(7, 12)}
    assert counts.by_endpoint.total() == 5
