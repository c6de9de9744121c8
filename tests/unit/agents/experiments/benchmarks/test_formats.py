"""Files of benchmark results: what each tool writes is read by its content."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from agents.experiments.benchmarks.results import FileResults, ResultFile, commit_of, find_format, moment_of

SHA = "0f3c2a9d1b4e5f60718293a4b5c6d7e8f9012345"

PYTEST = {
    "machine_info": {},
    "commit_info": {"id": SHA, "time": "2026-01-02T03:04:05+00:00"},
    "datetime": "2026-01-02T04:00:00+00:00",
    "benchmarks": [
        {"fullname": "t.py::sum", "name": "sum", "stats": {"median": 2.0, "data": [1.0, 2.0, 3.0]}}
    ],
}
GOOGLE = {
    "context": {"date": "2026-01-02T03:04:05+00:00"},
    "benchmarks": [
        {
            "name": "BM_a/8",
            "run_type": "iteration",
            "cpu_time": 5.0,
            "time_unit": "us",
            "items_per_second": 9.0,
        },
        {
            "name": "BM_a/8",
            "run_type": "iteration",
            "cpu_time": 6.0,
            "time_unit": "us",
            "items_per_second": 8.0,
        },
        {"name": "BM_a/8_mean", "run_type": "aggregate", "cpu_time": 5.5, "time_unit": "us"},
        {"name": "BM_b", "error_occurred": True},
    ],
}
JMH = [
    {
        "benchmark": "a.B.c",
        "mode": "thrpt",
        "params": {"n": "8"},
        "primaryMetric": {"score": 2.5, "scoreUnit": "ops/ms", "rawData": [[2.0, 3.0], [2.5]]},
    },
    {"benchmark": "a.B.d", "primaryMetric": {"score": 4.0, "scoreUnit": "us/op", "rawData": [[[[1.0, 2]]]]}},
]
HYPERFINE = {"results": [{"command": "ls", "mean": 2.0, "times": [1.0, 3.0]}, {"command": "cd", "mean": 5.0}]}
ASV = {
    "commit_hash": SHA,
    "date": 1_767_323_045_000,
    "result_columns": ["result", "params"],
    "results": {"suite.sum": [[1.5, None], [["1", "2"]]], "suite.one": [[7.0], []]},
}
ESTIMATES = {"mean": {"point_estimate": 9.0}, "median": {"point_estimate": 8.0}, "slope": None}
CARGO = [
    {"reason": "benchmark-complete", "id": "sort/10", "typical": {"estimate": 3.0, "unit": "ns"}},
    {"reason": "group-complete"},
]
CRITCMP = {
    "name": f"main-{SHA[:9]}",
    "benchmarks": {"sort": {"criterion_estimates_v1": {"median": {"point_estimate": 4.0}}}},
}
GO = """goos: linux
BenchmarkSum/n=8-8   \t 1000\t 1234.5 ns/op\t 16 B/op\t 2 allocs/op
BenchmarkSum/n=8-8   \t 1000\t 1236.5 ns/op\t 16 B/op\t 2 allocs/op
BenchmarkCopy-8      \t 1000\t 10 ns/op\t 800.0 MB/s
BenchmarkBroken-8
PASS
"""
BENCHER = "test sort ... bench:       1,234 ns/iter (+/- 56)\ntest other ... bench: many\n"


Measured = tuple[str, str, tuple[float, ...]]
RunFacts = tuple[str, float, float, dict[str, int]]
NO_COMMIT: RunFacts = ("", math.nan, math.nan, {})
FILES: Mapping[str, tuple[str, str, list[Measured], RunFacts]] = {
    "pytest-benchmark": (
        "a",
        json.dumps(PYTEST),
        [("t.py::sum", "s", (1.0, 2.0, 3.0))],
        (SHA, 1767323045.0, 1767326400.0, {}),
    ),
    "google-benchmark": (
        "a",
        json.dumps(GOOGLE),
        [("BM_a/8", "us", (5.0, 6.0)), ("BM_a/8", "items/s", (9.0, 8.0))],
        ("", math.nan, 1767323045.0, {"aggregate": 1, "failed": 1}),
    ),
    "jmh": (
        "a",
        json.dumps(JMH),
        [("a.B.c[n=8]", "ops/ms", (2.0, 3.0, 2.5)), ("a.B.d", "us/op", (4.0,))],
        NO_COMMIT,
    ),
    "hyperfine": ("a", json.dumps(HYPERFINE), [("ls", "s", (1.0, 3.0)), ("cd", "s", (5.0,))], NO_COMMIT),
    "asv": (
        "a",
        json.dumps(ASV),
        [("suite.sum[1]", "", (1.5,)), ("suite.one", "", (7.0,))],
        (SHA, 1767323045.0, math.nan, {"failed": 1}),
    ),
    "criterion": (
        "target/criterion/sort/ten/new/estimates.json",
        json.dumps(ESTIMATES),
        [("sort/ten", "ns", (8.0,))],
        NO_COMMIT,
    ),
    "cargo-criterion": ("a", "\n".join(map(json.dumps, CARGO)), [("sort/10", "ns", (3.0,))], NO_COMMIT),
    "critcmp": ("a", json.dumps(CRITCMP), [("sort", "ns", (4.0,))], (SHA[:9], math.nan, math.nan, {})),
    "go": (
        "a",
        GO,
        [
            ("BenchmarkSum/n=8", "ns", (1234.5, 1236.5)),
            ("BenchmarkSum/n=8", "B", (16.0, 16.0)),
            ("BenchmarkSum/n=8", "allocations", (2.0, 2.0)),
            ("BenchmarkCopy", "ns", (10.0,)),
            ("BenchmarkCopy", "MB/s", (800.0,)),
        ],
        ("", math.nan, math.nan, {"invalid": 1}),
    ),
    "bencher": ("a", BENCHER, [("sort", "ns", (1234.0,))], ("", math.nan, math.nan, {"invalid": 1})),
}


def read(text: str, name: str = "a") -> tuple[str, FileResults]:
    content = ResultFile.of(Path(name), text.encode())
    known = find_format(content)
    assert known
    return known.name, known.read(content)


@pytest.mark.parametrize("tool", FILES)
def test_what_a_tool_writes_is_read(tool: str) -> None:
    name, text, measurements, (commit, commit_time, run_time, left_out) = FILES[tool]
    format_, results = read(text, name)
    assert format_ == tool
    assert [(each.name, each.unit, each.values) for each in results.measurements] == measurements
    assert (results.commit, results.left_out) == (commit, left_out)
    assert (results.commit_time, results.run_time) == pytest.approx((commit_time, run_time), nan_ok=True)


NAN_OF_GOOGLE = {
    "context": {},
    "benchmarks": [{"name": name, "cpu_time": t} for name, t in (("a", math.nan), ("b", 2))],
}
NAN_OF_ASV = {
    "commit_hash": "a",
    "result_columns": ["result", "params"],
    "results": {"t": [[1.5, math.nan], [["1", "2"]]]},
}


@pytest.mark.parametrize(
    ("document", "measurements"),
    [
        (NAN_OF_ASV, [("t[1]", (1.5,))]),
        (NAN_OF_GOOGLE, [("b", (2.0,))]),
        ([{"benchmark": "a", "primaryMetric": {"rawData": 5, "scoreUnit": "s"}}], []),
        ({"commit_hash": "a", "results": {"t": [1]}, "result_columns": [["a"]]}, []),
        ({"context": {}, "benchmarks": [{"name": ["a"], "cpu_time": 1.0}]}, []),
        ({"context": {}, "benchmarks": [{"name": "a", "time_unit": {}, "cpu_time": "1"}]}, []),
    ],
)
def test_what_is_no_number_or_of_another_type_is_no_measurement(
    document: object, measurements: list[tuple[str, tuple[float, ...]]]
) -> None:
    _, results = read(json.dumps(document))
    assert [(each.name, each.values) for each in results.measurements] == measurements


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"fullname": 3, "stats": {"data": [1.0]}},
        {"fullname": "a", "stats": {"data": ["1"]}},
        {"fullname": "a", "stats": {"data": [-1.0]}},
        {"fullname": "a", "stats": {"data": [1.0, 1e101]}},
        {"fullname": "a", "stats": {"data": [1e-101]}},
        {"fullname": "a", "stats": {"data": [True]}},
        {"fullname": "a", "stats": {"data": {}}},
        {"fullname": "a", "stats": 3},
        {"fullname": "", "stats": {"median": 1.0}},
    ],
)
def test_an_entry_without_a_measurement_is_counted(entry: dict[str, Any]) -> None:
    _, results = read(json.dumps({**PYTEST, "benchmarks": [entry, 3]}))
    assert (results.measurements, results.left_out) == ([], {"invalid": 2})


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", '{"results": 3}', "hello", "[[[", "null", "[NaN", "[NaN]"]
)
def test_what_holds_no_results_has_no_format(text: str) -> None:
    assert find_format(ResultFile.of(Path("a"), text.encode())) is None


@pytest.mark.parametrize(
    ("text", "commit"),
    [
        ("0001_0f3c2a9_linux", "0f3c2a9"),
        ("0f3c2a9-linux.json", "0f3c2a9"),
        (f"run/{SHA}", SHA),
        ("20260102", ""),
        ("deadbee", "deadbee"),
        ("defaced2", "defaced2"),
        ("xdeadbee", ""),
        (None, ""),
    ],
)
def test_ids_of_commits_in_names(text: object, commit: str) -> None:
    assert commit_of(text) == commit


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (1_767_323_045, 1767323045.0),
        (1_767_323_045_000, 1767323045.0),
        ("2026-01-02T03:04:05Z", 1767323045.0),
        *((wrong, math.nan) for wrong in cast("tuple[object, ...]", (None, True, -3, "soon", [], math.nan))),
    ],
)
def test_moments(value: object, moment: float) -> None:
    assert moment_of(value) == pytest.approx(moment, nan_ok=True)
