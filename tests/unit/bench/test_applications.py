"""``smidgen bench applications`` without the applications themselves: load, a served process, verdicts."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from loadgen.applications import drive, serve
from loadgen.applications.catalogue import APPLICATIONS, KINDS, CatalogueApplication, ClientRequest, Position
from loadgen.applications.drive import BEGIN_S, PERIOD_S, Injection, NotServed, Recorded, RunningSide, record
from loadgen.applications.load import NEW_DRIVERS, Drivers
from loadgen.applications.table import judge

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sum(range(100000))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"""

COSTS = {"first": 0.004, "second": 0.002, "third": 0.001}
SMALL = CatalogueApplication(
    "small",
    {key: lambda _, key=key: ClientRequest("GET", f"/{key}") for key in COSTS},  # type: ignore[misc]
    (Position("second", "small:second", "second"),),
)


def test_every_application_has_four_positions_that_its_requests_reach() -> None:
    for application in APPLICATIONS.values():
        assert len({position.function for position in application.positions}) == 4
        assert {position.asked for position in application.positions} <= set(application.requests)
        assert set(serve.WORK[application.name]) == set(KINDS)
        assert application.name in serve.SERVE
        for make in application.requests.values():
            assert make(random.Random(1)).line.endswith(" HTTP/1.1")


def test_a_driver_that_the_old_release_does_not_have_changes_the_mix() -> None:
    drivers = Drivers(("seen", "unseen"), np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0]]), 20.0)
    rng = np.random.default_rng(1)
    assert {key for keys in drivers.periods(4, 30, rng) for key in keys} == {"seen"}
    new = drivers.periods(NEW_DRIVERS, 30, rng)
    assert len(new) == 30
    assert {key for keys in new for key in keys} == {"seen", "unseen"}


@pytest.mark.parametrize("kind", ["nested-loops", "excessive-io"])
def test_an_injected_function_works_more_and_returns_the_same(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Path] = []

    def make(folder: Path) -> object:
        return lambda: done.append(folder)

    monkeypatch.setitem(serve.WORK["radicale"], kind, make)
    monkeypatch.setattr(serve, "_cost_s", lambda _: 0.001)
    position = f"{__name__}:Target.double"
    monkeypatch.setattr(Target, "double", Target.double)  # put back afterwards
    serve.inject("radicale", kind, position, 3.0, tmp_path)
    assert Target().double(4) == 8
    assert done == [tmp_path] * 3


class Target:
    """What is made slower in the test."""

    def double(self, value: int) -> int:
        return 2 * value


def test_the_log_of_lines_never_grows_beyond_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "LOG_BYTES", 1000)
    work = serve.excessive_io(tmp_path)
    for _ in range(100):
        work()
    assert 0 < (tmp_path / "excessive.log").stat().st_size < 1200


def test_a_release_is_served_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "serve.py"
    script.write_text(SERVER, encoding="utf-8")
    monkeypatch.setattr(drive, "SERVE", script)
    periods = [["first"], ["first", "second"], ["third", "third"], ["second"]]
    done: list[None] = []
    sides = [RunningSide(tmp_path / name, periods) for name in ("old", "new")]
    recorded, other = record(SMALL, Path(sys.executable), sides, lambda: done.append(None))
    assert len(done) == 8
    assert len(other.lines) == len(recorded.lines)
    assert [line.split('"')[1] for line in recorded.lines[:3]] == [
        "GET /first HTTP/1.1",
        "GET /first HTTP/1.1",
        "GET /second HTTP/1.1",
    ]
    assert (recorded.cpu > 0).all()
    recorded.write(tmp_path, "small")
    assert (tmp_path / "small.log").read_text(encoding="utf-8").count("\n") == 6
    assert (tmp_path / "small-cpu.csv").read_text(encoding="utf-8").startswith("time,cpu\n1800000000,0.")


def test_requests_are_under_way_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request of a period is answered when the other is there, too."""
    script = tmp_path / "serve.py"
    meeting = SERVER.replace("sum(range(100000))", "self.path == '/meet' and BARRIER.wait(60)")
    threads = meeting.replace("http.server.HTTPServer", "http.server.ThreadingHTTPServer")
    script.write_text(f"import threading\nBARRIER = threading.Barrier(2)\n{threads}", encoding="utf-8")
    monkeypatch.setattr(drive, "SERVE", script)
    paths = iter(["/first"] * (drive.WARM_UP + 1) + ["/meet"] * 4)
    meet = CatalogueApplication(
        "small", {"meet": lambda _: ClientRequest("GET", next(paths))}, SMALL.positions
    )
    side = RunningSide(tmp_path / "new", [["meet", "meet"]] * 2, connections=2)
    (recorded,) = record(meet, Path(sys.executable), [side], lambda: None)
    assert [line.split(" ", 1)[1][:26] for line in recorded.lines] == ['"GET /meet HTTP/1.1" 200 0'] * 4


def test_an_application_that_ends_is_said_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "serve.py"
    script.write_text("raise SystemExit('no such database')", encoding="utf-8")
    monkeypatch.setattr(drive, "SERVE", script)
    with pytest.raises(NotServed, match="small does not start: no such database"):
        record(SMALL, Path(sys.executable), [RunningSide(tmp_path / "data", [["first"]])], lambda: None)


@pytest.mark.parametrize(("extra_s", "found"), [(0.0, False), (0.001, True)])
def test_verdicts_know_the_type_that_is_slower(extra_s: float, found: bool) -> None:
    injection = Injection("nested-loops", "small:second", 1e3 * extra_s)
    injected = (SMALL.positions[0], injection) if found else None
    row = judge(SMALL, _recorded(1, 0.0), _recorded(2, extra_s), injected, 0.01, forest=False)
    assert row.compared
    assert row.found is found
    assert row.rank == int(found)
    if found:
        assert row.added == pytest.approx(0.143, abs=0.02)
        assert row.baseline_right


def _recorded(seed: int, extra_s: float) -> Recorded:
    """Return what a release would record whose second type costs more."""
    rng = np.random.default_rng(seed)
    costs = {**COSTS, "second": COSTS["second"] + extra_s}
    lines, cpu = [], []
    durations: dict[str, list[float]] = {}
    for period in range(120):
        counts = rng.poisson(rng.gamma(4.0, 5.0, len(costs)))
        used = 0.0
        for (key, cost), count in zip(costs.items(), counts, strict=True):
            line = f"GET /{key} HTTP/1.1"
            for _ in range(count):
                took = cost * float(rng.normal(1.0, 0.05))
                used += took
                lines.append(f'[{BEGIN_S + period * PERIOD_S:.3f}] "{line}" 200 {took:.6f}')
                durations.setdefault(line, []).append(took)
        cpu.append(used)
    starts = BEGIN_S + PERIOD_S * np.arange(120.0)
    return Recorded(lines, starts, np.asarray(cpu), durations, {line: line[5:-9] for line in durations})
