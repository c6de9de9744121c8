"""Files of benchmark results: what each tool writes is read by its content."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from agents.experiments.benchmarks.results import Content, commit_of, find_format, moment_of

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


def lines(documents: list[Any]) -> str:
    return "\n".join(map(json.dumps, documents))


@pytest.mark.parametrize(
    ("name", "text", "format_", "found", "commit", "time", "invalid"),
    [
        (
            "a",
            json.dumps(PYTEST),
            "pytest-benchmark",
            [("t.py::sum", "s", (1.0, 2.0, 3.0))],
            SHA,
            1767326400.0,
            0,
        ),
        (
            "a",
            json.dumps(GOOGLE),
            "google-benchmark",
            [("BM_a/8", "us", (5.0, 6.0)), ("BM_a/8", "items/s", (9.0, 8.0))],
            "",
            1767323045.0,
            0,
        ),
        (
            "a",
            json.dumps(JMH),
            "jmh",
            [("a.B.c[n=8]", "ops/ms", (2.0, 3.0, 2.5)), ("a.B.d", "us/op", (4.0,))],
            "",
            math.nan,
            0,
        ),
        (
            "a",
            json.dumps(HYPERFINE),
            "hyperfine",
            [("ls", "s", (1.0, 3.0)), ("cd", "s", (5.0,))],
            "",
            math.nan,
            0,
        ),
        (
            "a",
            json.dumps(ASV),
            "asv",
            [("suite.sum[1]", "", (1.5,)), ("suite.one", "", (7.0,))],
            SHA,
            1767323045.0,
            0,
        ),
        (
            "target/criterion/sort/ten/new/estimates.json",
            json.dumps(ESTIMATES),
            "criterion",
            [("sort/ten", "ns", (8.0,))],
            "",
            math.nan,
            0,
        ),
        ("a", lines(CARGO), "cargo-criterion", [("sort/10", "ns", (3.0,))], "", math.nan, 0),
        ("a", json.dumps(CRITCMP), "critcmp", [("sort", "ns", (4.0,))], SHA[:9], math.nan, 0),
        (
            "a",
            GO,
            "go",
            [
                ("BenchmarkSum/n=8", "ns", (1234.5, 1236.5)),
                ("BenchmarkSum/n=8", "B", (16.0, 16.0)),
                ("BenchmarkSum/n=8", "allocations", (2.0, 2.0)),
                ("BenchmarkCopy", "ns", (10.0,)),
                ("BenchmarkCopy", "MB/s", (800.0,)),
            ],
            "",
            math.nan,
            1,
        ),
        ("a", BENCHER, "bencher", [("sort", "ns", (1234.0,))], "", math.nan, 1),
    ],
)
def test_what_a_tool_writes_is_read(
    name: str,
    text: str,
    format_: str,
    found: list[tuple[str, str, tuple[float, ...]]],
    commit: str,
    time: float,
    invalid: int,
) -> None:
    content = Content.of(Path(name), text.encode())
    known = find_format(content)
    assert known
    assert known.name == format_
    results = known.read(content)
    assert [(one.name, one.unit, one.values) for one in results.measurements] == found
    assert (results.commit, results.invalid) == (commit, invalid)
    assert results.time == time or math.isnan(results.time) and math.isnan(time)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"commit_hash": "a", "result_columns": ["result", "params"],'
            ' "results": {"t": [[1.5, NaN], [["1", "2"]]]}}',
            [("t[1]", (1.5,))],
        ),
        (
            '{"context": {}, "benchmarks": [{"name": "a", "cpu_time": NaN}, {"name": "b", "cpu_time": 2}]}',
            [("b", (2.0,))],
        ),
    ],
)
def test_numbers_that_json_has_not_cost_no_file(
    text: str, found: list[tuple[str, tuple[float, ...]]]
) -> None:
    content = Content.of(Path("a"), text.encode())
    known = find_format(content)
    assert known
    assert [(one.name, one.values) for one in known.read(content).measurements] == found


@pytest.mark.parametrize(
    "document",
    [
        [{"benchmark": "a", "primaryMetric": {"rawData": 5, "scoreUnit": "s"}}],
        {"commit_hash": "a", "results": {"t": [1]}, "result_columns": [["a"]]},
        {"context": {}, "benchmarks": [{"name": ["a"], "cpu_time": 1.0}]},
        {"context": {}, "benchmarks": [{"name": "a", "time_unit": {}, "cpu_time": "1"}]},
    ],
)
def test_what_is_of_another_type_is_no_measurement(document: object) -> None:
    content = Content.of(Path("a"), json.dumps(document).encode())
    known = find_format(content)
    assert known
    assert not known.read(content).measurements


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", '{"results": 3}', "hello", "[[[", "null", "[NaN", "[NaN]"]
)
def test_what_holds_no_results_has_no_format(text: str) -> None:
    assert find_format(Content.of(Path("a"), text.encode())) is None


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
        {"fullname": "a", "stats": 3},
        {"fullname": "a", "stats": {"data": {}}},
        {"fullname": "", "stats": {"median": 1.0}},
    ],
)
def test_an_entry_without_a_measurement_is_counted(entry: dict[str, Any]) -> None:
    text = json.dumps({**PYTEST, "benchmarks": [entry, 3]})
    content = Content.of(Path("a"), text.encode())
    known = find_format(content)
    assert known
    assert (known.read(content).measurements, known.read(content).invalid) == ([], 2)


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
    ],
)
def test_moments(value: object, moment: float) -> None:
    assert moment_of(value) == moment


@pytest.mark.parametrize("value", [None, True, -3, "soon", [], math.nan])
def test_what_is_no_moment(value: object) -> None:
    assert math.isnan(moment_of(value))
