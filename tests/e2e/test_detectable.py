"""``smidgen detectable`` over an embedded store: a table a workload, JSON, and every mistake in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest

from pipeline.cli import run
from pipeline.model import RESPONSE_CLASSES
from pipeline.model.clock import to_iso
from pipeline.storage.connect import open_store

T0 = 1_760_000_400.0
DAYS = 11
STEP_S = 600.0
SERVICE = "detectable-shop"

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def store(store_dsn: str) -> str:
    """Eleven days of a service of three subroutines, 20,000 samples a window."""
    windows = [T0 + STEP_S * i for i in range(round(DAYS * 86400 / STEP_S))]
    rng = np.random.default_rng(2)
    shares = {"main": 1.0, "render": 0.2, "parse": 0.01}
    where = {"stream": "s", "topic": "profiles", "partition": 0}
    with closing(open_store(store_dsn)) as opened:
        opened.migrate()
        columns: dict[str, Sequence[object]] = {name: [value] * len(windows) for name, value in where.items()}
        columns |= {
            "last_offset": list(range(len(windows))),
            "service": [SERVICE] * len(windows),
            "window": windows,
        }
        counts = {"samples": 20_000, "messages": 1, "stacks": 3, "refused_messages": 0, "refused_samples": 0}
        opened.insert("totals", columns | {name: [count] * len(windows) for name, count in counts.items()})
        for name, share in shares.items():
            drawn = rng.binomial(20_000, share, len(windows)).tolist()
            more = {
                "kind": ["subroutine"] * len(windows),
                "subroutine": [name] * len(windows),
                "samples": drawn,
            }
            opened.insert("gcpu", columns | more)
    return store_dsn


UNTIL = to_iso(T0 + DAYS * 86400)


def test_it_says_sizes_and_times_for_each_workload(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["detectable", "--service", SERVICE, "--store", store, "--until", UNTIL]
    assert run([*arguments, "--json"]) == 0
    large, small = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (large["workload"], small["workload"]) == ("frontfaas-large", "frontfaas-small")
    assert small["samples_per_window"] == pytest.approx(20_000)
    assert small["threshold"] == {"absolute": 0.00005, "relative": None}
    assert (small["series"], small["power"]) == (3, 0.9)
    typical = small["subroutines"][1]
    assert (typical["subroutine"], typical["gcpu"]) == ("typical", pytest.approx(0.2, rel=0.02))
    # 5.8 standard errors of a mean of ten hours against that of nearly two days.
    assert 0.001 < typical["after_extended"] < typical["after_analysis"] < 0.01
    assert typical["after_s"]["5e-05"] is None
    assert typical["after_s"]["0.05"] == 6 * 3600
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert "frontfaas-small" in shown
    assert "20,000 samples" in shown
    assert "never" in shown


PERIODS = 480
REQUESTS_UNTIL = to_iso(T0 + 30.0 * PERIODS)


@pytest.fixture(scope="module")
def requests(store: str) -> str:
    """Four hours of requests of two types, and the CPU time that they take."""
    rng = np.random.default_rng(3)
    counts = rng.poisson(rng.lognormal(4.0, 0.4, (PERIODS, 2)))
    cpu = (counts @ [0.004, 0.001] + 0.05) * (1.0 + 0.01 * rng.standard_normal(PERIODS))
    starts = [T0 + 30.0 * period for period in range(PERIODS)]
    size = 2 * PERIODS
    rows: dict[str, Sequence[object]] = {
        **{"stream": ["s"] * size, "topic": ["requests"] * size, "partition": [0] * size},
        **{"last_offset": list(range(size)), "service": [SERVICE] * size, "release": ["v7"] * size},
        **{"type": ["GET /a", "GET /b"] * PERIODS, "window": np.repeat(starts, 2).tolist()},
        **{"width_s": [30.0] * size, "requests": counts.ravel().tolist(), "times": [{}] * size},
        **{f"responses_{each}": [0] * size for each in RESPONSE_CLASSES},
    }
    with closing(open_store(store)) as opened:
        opened.insert("requests", rows)
        points = rows | {
            "metric": ["cpu"] * size,
            "time": rows["window"],
            "value": np.repeat(cpu, 2).tolist(),
        }
        points |= {"setup": [0] * size}
        columns = (
            "service",
            "metric",
            "setup",
            "time",
            "value",
            "stream",
            "topic",
            "partition",
            "last_offset",
        )
        opened.insert("metrics", {name: points[name] for name in columns})
    return store


def test_it_says_when_a_request_that_costs_more_is_seen(
    requests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["detectable", "--service", SERVICE, "--store", requests, "--until", REQUESTS_UNTIL]
    arguments += ["--requests", "--rise", "0.05"]
    assert run([*arguments, "--json"]) == 0
    (found,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (found["release"], found["metric"], found["periods"], found["period_s"]) == (
        "v7",
        "cpu",
        480,
        30.0,
    )
    heavy, light = found["requests"]
    assert (heavy["type"], heavy["cost"]) == ("GET /a", pytest.approx(0.004, rel=0.05))
    assert 20 <= heavy["periods"] <= heavy["look"] <= 480
    assert not heavy["small"]
    assert (light["type"], light["periods"] is None or light["periods"] > heavy["periods"]) == (
        "GET /b",
        True,
    )
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert "GET /a" in shown
    assert "480 periods of 30s" in shown
    assert run([*arguments, "--beside", "0.01"]) == 0
    assert "too small" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--service", "other", "--until", UNTIL], "--service other: no samples in the store between"),
        (
            ["--service", SERVICE, "--until", "2020-01-01"],
            f"--service {SERVICE}: no samples in the store between",
        ),
        (["--service", SERVICE, "--until", "soon"], "--until: "),
        (["--service", SERVICE, "--workloads", "ct-demand"], "--workloads: none of them looks at gCPU"),
        (["--until", UNTIL], "Missing option '--service'"),
        (["--service", "other", "--requests"], "--service other: no requests in the day before"),
        (["--service", SERVICE, "--requests", "--rise", "0"], "--rise"),
    ],
)
def test_mistakes_take_one_line(
    store: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["detectable", "--store", store, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
