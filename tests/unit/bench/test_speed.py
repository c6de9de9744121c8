"""The benchmarks of speed: what they measure does what it says; how fast it is they measure themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from loadgen.bench.detect import GEOMETRIES, KINDS, draw_counts, naive_cusum, screen
from loadgen.bench.profile_fleet import draw_profile_fleet
from loadgen.bench.scan import SERVICE_SERIES, scan_service, services_of
from loadgen.bench.stacks import STEPS
from pipeline.analysis.detect.expected import normalise
from pipeline.cli import run
from pipeline.model import SeriesMatrix

WINDOWS, RESOLUTION_S = GEOMETRIES[0]


def test_the_screen_finds_a_step_in_the_analysis_window_and_little_else() -> None:
    counts, totals = draw_counts(np.random.default_rng(2), 300, WINDOWS.end)
    counts[:5] += 200.0
    counts[:5, WINDOWS.analysis + 10 :] += 100.0
    matrix = SeriesMatrix(0.0, RESOLUTION_S, KINDS * 300, ("",) * 300, counts, totals)
    series = normalise(matrix, history=WINDOWS.analysis, longest=60, apart=220)
    splits, p_values = screen(series, WINDOWS)
    assert (np.abs(splits[:5] - WINDOWS.analysis - 10) <= 2).all()
    assert (p_values[:5] < 1e-6).all()
    assert (p_values[5:] < 0.01).mean() < 0.03


def test_the_naive_cusum_finds_a_step() -> None:
    values = np.random.default_rng(3).standard_normal((50, 400))
    values[7, 300:] += 3.0
    splits, p_values = naive_cusum(values)
    assert abs(splits[7] - 300) <= 2
    assert p_values.argmin() == 7


def test_a_fleet_of_a_profile_is_as_long_as_a_scan_and_has_its_names(tmp_path: Path) -> None:
    stacks = [f"main;serve;handler{i % 7};Shop.call{i};Db.query{i % 5}" for i in range(60)]
    profile = tmp_path / "stacks.txt"
    profile.write_text("".join(f"{stack} {10 + i}\n" for i, stack in enumerate(stacks)))
    fleet = draw_profile_fleet(profile, WINDOWS, RESOLUTION_S)
    assert fleet.samples.shape == (len(fleet.names), WINDOWS.end)
    assert {"serve", "Shop.call7"} <= set(fleet.names)


def test_a_service_is_drawn_and_scanned_the_same_each_time() -> None:
    one, again = scan_service(0, 150), scan_service(0, 150)
    assert (one.series, one.steps) == (150, 1)
    assert one.left <= one.candidates
    assert (one.candidates, one.left) == (again.candidates, again.left)
    assert one.peak_bytes > 10**6


@pytest.mark.parametrize(("series", "services"), [(1, 1), (SERVICE_SERIES, 1), (SERVICE_SERIES + 1, 2)])
def test_a_fleet_is_as_many_services_as_it_takes(series: int, services: int) -> None:
    assert services_of(series) == services


@pytest.mark.slow
def test_the_command_scans_a_fleet_in_processes_of_their_own(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "scan", "--series", "600", "--json"]) == 0
    found = orjson.loads(capfd.readouterr().out)
    assert found["setup"]["series"] == 600
    assert found["setup"]["steps"] == 2
    assert found["figures"]["series/s"] > 0


def test_the_command_measures_each_step_of_comparing_stacks(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "stacks", "--stacks", "300", "--json"]) == 0
    *steps, whole = [orjson.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [step["name"] for step in steps][:2] == ["stacks, index", "stacks, control and inserted frames"]
    assert len(steps) == STEPS - 1
    assert whole["setup"]["stacks"] == 300
    assert whole["figures"]["MB at most"] >= max(step["figures"]["MB at most"] for step in steps)
