"""Files of benchmark results: what each tool writes is read by its content."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from agents.experiments.benchmarks.foreign_formats import foreign_format
from agents.experiments.benchmarks.results import FileResults, ResultFile, commit_of, find_format, moment_of
from pipeline.model.errors import ConfigError

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
pkg: shop
BenchmarkSum/n=8-8   \t 1000\t 1234.5 ns/op\t 16 B/op\t 2 allocs/op
BenchmarkSum/n=8-8   \t 1000\t 1236.5 ns/op\t 16 B/op\t 2 allocs/op
BenchmarkCopy-8      \t 1000\t 10 ns/op\t 800.0 MB/s
BenchmarkBroken-8
PASS
"""
BENCHER = """WARNING: no plots
Gnuplot not found
test sort ... bench:       1,234 ns/iter (+/- 56) = 12 MB/s
test move ... bench:        1508 cycles/iter (+/- 17)
test other ... bench: many
"""
PYPERF = {
    "version": "1.0",
    "metadata": {"commit_id": SHA, "commit_date": "2026-01-02T03:04:05Z", "hostname": "ci", "unit": "second"},
    "benchmarks": [
        {
            "metadata": {"name": "telco"},
            "runs": [
                {"warmups": [[1, 0.5]], "metadata": {"date": "2026-01-02 05:00:00.123"}},
                {"values": [1.0, 3.0], "metadata": {"date": "2026-01-02 04:00:00"}},
                {"values": [2.0]},
            ],
        },
        {"metadata": {"name": "rss", "unit": "byte"}, "runs": [{"values": [7]}]},
        {"metadata": {"name": "none"}, "runs": [{"warmups": []}]},
    ],
}
ALLOCATED = {"Id": "Allocated Memory", "Unit": "B", "TheGreaterTheBetter": False}
DOTNET = {
    "Title": "Cart-20260102-040000",
    "HostEnvironmentInfo": {
        "ProcessorName": "EPYC",
        "RuntimeVersion": ".NET 9.0",
        "HardwareTimerKind": "Tsc",
    },
    "Benchmarks": [
        {
            "DisplayInfo": "Cart.Total: Job-ABCDEF(Runtime=.NET 8.0) [N=10]",
            "FullName": "Shop.Cart.Total(N: 10)",
            "Statistics": {"OriginalValues": [5.0, 6.0], "Mean": 5.5},
            "Metrics": [{"Value": 24, "Descriptor": ALLOCATED}],
        },
        {"FullName": "Shop.Cart.Empty", "DisplayInfo": "Cart.Empty: DefaultJob", "Statistics": {"Mean": 5.5}},
        {"FullName": "Shop.Cart.Fails", "Statistics": None},
    ],
}
VITEST = {
    "files": [
        {
            "filepath": "/home/ann/a.bench.ts",
            "groups": [
                {
                    "fullName": "a.bench.ts > sort",
                    "benchmarks": [
                        {"name": "quick", "hz": 500.0, "mean": 2.0, "median": 1.5, "samples": []},
                        {"name": "slow", "samples": [3.0, 4.0]},
                        {"name": "old", "mean": 5.0},
                        {"name": "fails", "rank": 3},
                    ],
                }
            ],
        }
    ]
}
CUSTOM = [{"name": "load", "unit": "Percent", "value": 50}, {"name": "query", "unit": "ms", "value": 7.0}]
ACTION = {"entries": {"Go": [{"commit": {"id": SHA}, "date": 1_767_323_045_000, "benches": CUSTOM}]}}
BENCHMARK_JS = """sort x 1,431,759 ops/sec ±0.74% (93 runs sampled)
a x b x 98.5 ops/sec ±10.05% (1 run sampled)
Fastest is sort
"""

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
    "pyperf": (
        "a",
        json.dumps(PYPERF),
        [("telco", "s", (1.0, 3.0, 2.0)), ("rss", "B", (7.0,))],
        (SHA, 1767323045.0, 1767326400.0, {"invalid": 1}),
    ),
    "benchmarkdotnet": (
        "a",
        json.dumps(DOTNET),
        [
            ("Shop.Cart.Total(N: 10)", "ns", (5.0, 6.0)),
            ("Shop.Cart.Total(N: 10):Allocated Memory", "B", (24.0,)),
            ("Shop.Cart.Empty", "ns", (5.5,)),
        ],
        ("", math.nan, 1767326400.0, {"failed": 1}),
    ),
    "vitest": (
        "a",
        json.dumps(VITEST),
        [
            ("a.bench.ts > sort > quick", "ms", (1.5,)),
            ("a.bench.ts > sort > slow", "ms", (3.0, 4.0)),
            ("a.bench.ts > sort > old", "ms", (5.0,)),
        ],
        ("", math.nan, math.nan, {"invalid": 1}),
    ),
    "github-action-benchmark": (
        "a",
        f"window.BENCHMARK_DATA = {json.dumps(ACTION)};\n",
        [("load", "Percent", (50.0,)), ("query", "ms", (7.0,))],
        (SHA, math.nan, 1767323045.0, {}),
    ),
    "bencher-metric": (
        "a",
        json.dumps({"sort": {"latency": {"value": 5.0, "upper_value": 6}, "file-size": {"value": 7}}}),
        [("sort", "ns", (5.0,)), ("sort", "file-size", (7.0,))],
        NO_COMMIT,
    ),
    "custom-benchmark": (
        "a",
        json.dumps(CUSTOM),
        [("load", "Percent", (50.0,)), ("query", "ms", (7.0,))],
        NO_COMMIT,
    ),
    "benchmark.js": (
        "a",
        BENCHMARK_JS,
        [("sort", "ops/sec", (1431759.0,)), ("a x b", "ops/sec", (98.5,))],
        NO_COMMIT,
    ),
    "bencher": (
        "a",
        BENCHER,
        [("sort", "ns", (1234.0,)), ("sort", "MB/s", (12.0,)), ("move", "cycles", (1508.0,))],
        ("", math.nan, math.nan, {"invalid": 1}),
    ),
}


def read(text: str, name: str = "a") -> tuple[str, FileResults]:
    content = ResultFile.of(Path(name), text.encode())
    known = find_format(content)
    assert known
    (run,) = known.runs(content)
    return known.name, known.read(run)


@pytest.mark.parametrize("tool", FILES)
def test_what_a_tool_writes_is_read(tool: str) -> None:
    name, text, measurements, (commit, commit_time, run_time, left_out) = FILES[tool]
    format_, results = read(text, name)
    assert format_ == tool
    assert [(each.name, each.unit, each.values) for each in results.measurements] == measurements
    assert (results.commit, results.left_out) == (commit, left_out)
    assert (results.commit_time, results.run_time) == pytest.approx((commit_time, run_time), nan_ok=True)


ASV_1 = {
    "commit_hash": SHA,
    "params": {"machine": "one", "ram": "8G", "Cython": None},
    "results": {
        "suite.time_a": 1.5,
        "suite.peakmem_b": {"params": [["1", "2"]], "result": [3, math.nan]},
        "suite.time_c": None,
    },
    "benchmark_version": {"suite.time_a": "5a"},
    "version": 1,
}
GO_LABELS = """go: downloading example.org/shop v1.2.0
toolchain: go1.25
commit: 0f3c2a9d
commit-time: 2026-01-02T03:04:05Z
goos: linux
pkg: shop/store
warning: machine is busy
BenchmarkSum
BenchmarkSum-8 	 10	 5 ns/op	 1e-05 loss	 +Inf x/op
BenchmarkSort/size-100
BenchmarkSort/size-100-8 	 10	 7 ns/op
progress: 3 of 4
BenchmarkLog-8 	 said something
BenchmarkGone
--- FAIL: BenchmarkGone
--- SKIP: BenchmarkLater
pkg: shop/archive
toolchain:
BenchmarkSum-8 	 10	 9 ns/op
FAIL	shop/broken [build failed]
"""
GO_HERE = {"goos": "linux", "pkg": "shop/store", "procs": "8", "toolchain": "go1.25"}

TYPICAL: list[dict[str, object]] = [
    {
        "reason": "benchmark-complete",
        "id": "a",
        "typical": {"estimate": 3, "unit": "ns"},
        "slope": {"unit": "ns"},
    },
    {"reason": "benchmark-complete", "id": "b", "typical": {"estimate": 3, "unit": "ns"}, "slope": None},
]

Labelled = tuple[str, str, str, Mapping[str, str]]
GOOGLE_HERE = {"host_name": "ci", "num_cpus": "8", "executable": "bench"}

LABELS: Mapping[str, tuple[str, list[Labelled], RunFacts]] = {
    "pytest-benchmark": (
        json.dumps(
            {
                "machine_info": {
                    "node": "ci",
                    "python_version": "3.14.0",
                    "python_build": ["main", "Oct 7"],
                    "processor": "",
                    "cpu": {"brand_raw": "EPYC", "count": 8, "hz_actual": [1, 0], "flags": ["sse"]},
                },
                "commit_info": {"id": SHA, "project": "shop", "branch": "main"},
                "benchmarks": [
                    {
                        "fullname": "a",
                        "group": "g",
                        "params": {"x": "<X at 0x7f10>", "n": 1},
                        "extra_info": {"rss": 3},
                        "options": {"timer": "perf_counter", "disable_gc": False, "min_rounds": 5},
                        "stats": {"median": 2.0},
                    }
                ],
            }
        ),
        [
            (
                "a",
                "s",
                "median",
                {
                    "node": "ci",
                    "project": "shop",
                    "branch": "main",
                    "python_version": "3.14.0",
                    "python_build": "main Oct 7",
                    "cpu.brand_raw": "EPYC",
                    "cpu.count": "8",
                    "group": "g",
                    "params.x": "<X at 0x>",
                    "params.n": "1",
                    "timer": "perf_counter",
                    "disable_gc": "False",
                },
            )
        ],
        (SHA, math.nan, math.nan, {}),
    ),
    "google-benchmark": (
        json.dumps(
            {
                "context": {
                    "date": "2026-01-02T03:04:05+00:00",
                    "host_name": "ci",
                    "executable": "./build-17/bench",
                    "num_cpus": 8,
                    "mhz_per_cpu": 3001,
                    "caches": [{"type": "Data", "size": 32000}],
                    "load_avg": [0.5],
                    "git_commit": SHA,
                },
                "benchmarks": [
                    {"name": "a_mean", "run_name": "a", "run_type": "aggregate", "cpu_time": 3.0},
                    {"name": "b", "skipped": True, "skip_message": "no GPU", "cpu_time": 0.0},
                    {"name": "c", "cpu_time": 1.0, "label": "lz4"},
                    {"name": "d_BigO", "run_type": "aggregate", "aggregate_name": "BigO"},
                    {"name": "e", "cpu_time": 1.0},
                    {"name": "e_mean", "cpu_time": 1.0},
                    {"name": "e_stddev", "cpu_time": 0.1},
                    {"name": "e_max", "cpu_time": 2.0},
                    {"name": "f_RMS", "rms": 0.1},
                    {"name": "c_max", "cpu_time": 3.0},
                    {"name": "top_mean", "cpu_time": 2.0},
                ],
            }
        ),
        [
            ("c", "ns", "median", {**GOOGLE_HERE, "label": "lz4"}),
            ("e", "ns", "median", {**GOOGLE_HERE}),
            ("c_max", "ns", "median", {**GOOGLE_HERE}),
            ("top_mean", "ns", "median", {**GOOGLE_HERE}),
            ("a", "ns", "mean", {**GOOGLE_HERE}),
        ],
        (SHA, math.nan, 1767323045.0, {"skipped": 1, "aggregate": 5}),
    ),
    "jmh": (
        json.dumps(
            [
                {
                    "benchmark": "a.B.c",
                    "mode": "sample",
                    "threads": 4,
                    "forks": 3,
                    "jvm": "/opt/jdk-21/bin/java",
                    "jvmArgs": ["-Xmx1g", "-XX:+UseZGC"],
                    "warmupTime": "1 s",
                    "params": {"n": "8"},
                    "primaryMetric": {"score": 2.5, "scoreUnit": "us/op", "rawDataHistogram": []},
                }
            ]
        ),
        [
            (
                "a.B.c[n=8]",
                "us/op",
                "mean",
                {"mode": "sample", "threads": "4", "jvmArgs": "-Xmx1g -XX:+UseZGC", "warmupTime": "1 s"},
            )
        ],
        NO_COMMIT,
    ),
    "asv": (
        json.dumps(ASV_1),
        [
            (
                "suite.time_a",
                "s",
                "median",
                {"machine": "one", "ram": "8G", "env_name": "env", "version": "5a"},
            ),
            ("suite.peakmem_b[1]", "B", "median", {"machine": "one", "ram": "8G", "env_name": "env"}),
        ],
        (SHA, math.nan, math.nan, {"skipped": 1, "failed": 1}),
    ),
    "pyperf": (
        json.dumps(
            {
                "version": "1.0",
                "metadata": {
                    "name": "telco",
                    "hostname": "ci",
                    "python_version": f"3.14.0a1 (64-bit) revision {SHA}",
                    "load_avg_1min": 0.5,
                },
                "benchmarks": [{"runs": [{"values": [1.0], "metadata": {"cpu_count": 8, "uptime": 9}}]}],
            }
        ),
        [
            (
                "telco",
                "s",
                "median",
                {"hostname": "ci", "python_version": "3.14.0a1 (64-bit) revision ", "cpu_count": "8"},
            )
        ],
        NO_COMMIT,
    ),
    "benchmarkdotnet": (
        json.dumps({**DOTNET, "Title": "Cart"}),
        [
            (name, unit, statistic, {"ProcessorName": "EPYC", "RuntimeVersion": ".NET 9.0", "job": job})
            for name, unit, statistic, job in (
                ("Shop.Cart.Total(N: 10)", "ns", "median", "(Runtime=.NET 8.0)"),
                ("Shop.Cart.Total(N: 10):Allocated Memory", "B", "median", "(Runtime=.NET 8.0)"),
                ("Shop.Cart.Empty", "ns", "mean", "DefaultJob"),
            )
        ],
        ("", math.nan, math.nan, {"failed": 1}),
    ),
    "hyperfine": (
        json.dumps(
            {
                "results": [
                    {"command": "a", "mean": 2.0, "parameters": {"threads": "4"}},
                    {"command": "a", "mean": 3.0, "median": None, "parameters": {"threads": "5"}},
                    {"command": "a", "median": 1.0, "parameters": {"commit": "main"}},
                    {"command": "b", "times": [1.0, 2.0], "exit_codes": [0, None]},
                    {"command": "c", "times": [1.0], "exit_codes": [1]},
                ]
            }
        ),
        [
            ("a", "s", "mean", {"threads": "4"}),
            ("a", "s", "mean", {"threads": "5"}),
            ("a", "s", "median", {"commit": "main"}),
            ("b", "s", "median", {}),
        ],
        ("", math.nan, math.nan, {"failed": 2}),
    ),
    "cargo-criterion": (
        "\n".join(map(json.dumps, TYPICAL)),
        [("a", "ns", "slope", {}), ("b", "ns", "mean", {})],
        NO_COMMIT,
    ),
    "go": (
        GO_LABELS,
        [
            ("BenchmarkSum", "ns", "median", GO_HERE),
            ("BenchmarkSum", "loss", "median", GO_HERE),
            ("BenchmarkSort/size-100", "ns", "median", GO_HERE),
            ("BenchmarkSum", "ns", "median", {"goos": "linux", "pkg": "shop/archive", "procs": "8"}),
        ],
        ("0f3c2a9d", 1767323045.0, math.nan, {"invalid": 2, "failed": 2, "skipped": 1}),
    ),
    "bencher": (
        "running 2 tests\ntest a ... bench: 10 ns/iter (+/- 1)\ntest b ... FAILED\n" * 2,
        [("a", "ns", "median", {})],
        ("", math.nan, math.nan, {"failed": 2}),
    ),
}


@pytest.mark.parametrize("tool", LABELS)
def test_labels_and_statistics_of_a_tool_are_read(tool: str) -> None:
    text, measurements, facts = LABELS[tool]
    format_, results = read(text, "0f3c2a9d-env.json")
    assert format_ == tool
    labelled = [(item.name, item.unit, item.statistic, dict(item.labels)) for item in results.measurements]
    assert labelled == measurements
    times = (results.commit_time, results.run_time)
    assert (results.commit, results.left_out) == (facts[0], facts[3])
    assert times == pytest.approx(facts[1:3], nan_ok=True)


@pytest.mark.parametrize(
    ("path", "name", "labels"),
    [
        ("target/criterion/sort/ten/new/estimates.json", "sort/ten", {}),
        ("target/criterion/sort/ten/base/estimates.json", "sort/ten", {}),
        ("target/criterion/sort/ten/main/estimates.json", "sort/ten", {"baseline": "main"}),
        ("target/criterion/sort/ten/0f3c2a9d/estimates.json", "sort/ten", {}),
        ("criterion/target/criterion/sort/new/estimates.json", "sort", {}),
        ("results/0f3c2a9d/sort/new/estimates.json", "sort", {}),
        ("0f3c2a9d/criterion/sort/by/100/new/estimates.json", "sort/by/100", {}),
    ],
)
def test_folders_of_criterion_are_the_benchmark_and_its_baseline(
    path: str, name: str, labels: dict[str, str]
) -> None:
    _, results = read(json.dumps(ESTIMATES), path)
    (item,) = results.measurements
    assert (item.name, item.statistic, dict(item.labels)) == (name, "median", labels)


def test_the_name_of_a_benchmark_of_criterion_is_in_the_file_beside(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "benchmark.json").write_text(json.dumps({"full_id": "sort/by size/10"}))
    _, results = read(json.dumps(ESTIMATES), str(tmp_path / "new" / "estimates.json"))
    assert [item.name for item in results.measurements] == ["sort/by size/10"]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["Sum-8", "Sort/n-10-8"], ["Sum", "Sort/n-10"]),
        (["Sum-8", "Sort/n-10"], ["Sum-8", "Sort/n-10"]),
        (["Sum", "Sum-2", "Sum-4"], ["Sum", "Sum-2", "Sum-4"]),
        (["Sort/n-10-8", "Sort/n-20-8"], ["Sort/n-10", "Sort/n-20"]),
        (["Sort/n-10"], ["Sort/n-10"]),
        (["Sum-8"], ["Sum"]),
        (["Sort/n-10", "Sort/n-10"], ["Sort/n-10"]),
    ],
)
def test_a_number_at_the_end_of_all_names_is_gomaxprocs(lines: list[str], names: list[str]) -> None:
    _, results = read("".join(f"Benchmark{line} 10 5 ns/op\n" for line in lines))
    assert [item.name for item in results.measurements] == [f"Benchmark{name}" for name in names]


def test_objects_that_are_nested_deeply_are_no_labels() -> None:
    deep: dict[str, object] = {"name": 1}
    for _ in range(900):
        deep = {"inner": deep}
    _, results = read(json.dumps({**PYTEST, "machine_info": {"node": "ci", "deep": deep}}))
    assert dict(results.measurements[0].labels) == {"node": "ci"}


def test_a_file_of_several_commits_is_refused() -> None:
    runs = "".join(f"commit: {sha}\nBenchmarkSum 10 5 ns/op\n" for sha in ("0f3c2a9", "0f3c2aa"))
    with pytest.raises(ConfigError, match="results of several commits"):
        read(runs)


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
        (
            {**PYTEST, "benchmarks": [{"fullname": "t", "stats": {"median": 2, "data": [1, "more"]}}]},
            [("t", (2.0,))],
        ),
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


STRANGE: tuple[object, ...] = (
    None,
    3,
    -1.5,
    "x",
    "",
    True,
    [],
    {},
    [[1]],
    [{"a": {}}],
    {"a": [None]},
    math.nan,
)


def mutated(document: object, rng: np.random.Generator) -> object:
    """Return a document with one member in ten replaced by something of another type."""
    if rng.random() < 0.1:
        return STRANGE[int(rng.integers(len(STRANGE)))]
    if isinstance(document, dict):
        return {name: mutated(member, rng) for name, member in document.items()}
    return [mutated(member, rng) for member in document] if isinstance(document, list) else document


@pytest.mark.parametrize("tool", [tool for tool, (_, text, *_) in FILES.items() if text[0] in "[{"])
def test_members_of_other_types_are_no_error(tool: str) -> None:
    name, text, *_ = FILES[tool]
    rng = np.random.default_rng(4)
    documents = list(map(json.loads, text.splitlines() if tool == "cargo-criterion" else [text]))
    for _ in range(300):
        changed = "\n".join(json.dumps(mutated(document, rng)) for document in documents)
        content = ResultFile.of(Path(name), changed.encode())
        if format_ := find_format(content):
            for item in (item for run in format_.runs(content) for item in format_.read(run).measurements):
                assert item.name
                assert all(value == 0 or 1e-100 <= value <= 1e100 for value in item.values)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", '{"results": 3}', "hello", "[[[", "null", "[NaN", "[NaN]"]
)
def test_what_holds_no_results_has_no_format(text: str) -> None:
    assert find_format(ResultFile.of(Path("a"), text.encode())) is None


BENCHED = "BenchmarkSum-8   1000   5 ns/op"


@pytest.mark.parametrize(
    ("name", "text", "is_results"),
    [
        ("README.md", BENCHED, False),
        ("out.diff", BENCHED, False),
        ("README", f"# Shop\n\n```\ngoos: linux\n{BENCHED}\nPASS\n```\n", False),
        ("README.txt", f"Shop is fast:\n\n{BENCHED}\n\nas it should be.\n", False),
        ("README.txt", "Sorting is fast:\ntest sort ... bench: 1,234 ns/iter (+/- 5)\nor not?\n", False),
        ("bench.sh", f"#!/bin/sh\ncat <<END\n{BENCHED}\nEND\n", False),
        ("front", f"---\ntitle: Shop\nauthor: Ann\n---\nHow fast?\n{BENCHED}\nSo fast.\n", False),
        ("out", BENCHED, True),
        ("out.txt", f"goos: linux\nstarting\nconnected\nlistening\n{BENCHED}\n", True),
        ("out.txt", f"loading\n{BENCHED}\n{BENCHED}\nPASS\n", True),
        ("out.txt", f"=== RUN   BenchmarkSum\nloading\nready\n{BENCHED}\n", True),
        ("out.txt", f"    shop_test.go:9: loading\n{BENCHED}\nPASS\nok  \tshop\t1.2s\n", True),
        ("out", "   Compiling shop\nrunning 1 test\ntest a ... bench: 5 ns/iter (+/- 1)\n", True),
    ],
)
def test_a_document_that_quotes_results_holds_none(name: str, text: str, is_results: bool) -> None:  # noqa: FBT001
    assert (find_format(ResultFile.of(Path(name), text.encode())) is not None) == is_results


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("Benchmark          Time             CPU   Iterations\n----\nBM_a  5 ns  5 ns  100\n", "Google"),
        ("name,iterations,real_time,cpu_time,time_unit,bytes_per_second\n", "Google"),
        (
            "Benchmark     (n)  Mode  Cnt  Score   Error  Units\nCart.total      8  avgt    5  4.1\n",
            "JMH",
        ),
        ('"Benchmark","Mode","Threads","Samples","Score"\n', "JMH"),
        ("Benchmark 1: ls\n  Time (mean ± σ):   1.2 ms ± 0.1 ms\n", "hyperfine"),
        ("command,mean,stddev,median,user,system,min,max\n", "hyperfine"),
        ("| Command | Mean [ms] | Min [ms] |\n", "hyperfine"),
        ("----- benchmark: 2 tests -----\nName (time in us)  Min\n", "pytest-benchmark"),
        ("sort/10   time:   [1.20 us 1.30 us 1.40 us]\n", "criterion"),
        ("sort/a longer name\n                time:   [1.20 us 1.30 us 1.40 us]\n", "criterion"),
        ("bench: Mean +- std dev: 22.5 ms +- 0.2 ms\n", "pyperf"),
        ("```\nBenchmarkDotNet v0.13.12, Windows 11\n```\n", "BenchmarkDotNet"),
        ("Method;Job;Runtime;Mean\n", "BenchmarkDotNet"),
        ('{"branch": {"slug": "main"}, "testbed": {"slug": "ci"}, "results": []}', "bencher.dev's report"),
        ("benchmark name                       samples       iterations    est run time\n", "Catch2"),
        ("Running 30s test @ http://localhost\n  2 threads\nRequests/sec: 700\n", "wrk"),
        ('{"metrics": {"http_req_duration": {"avg": 5}}, "root_group": {}}', "k6"),
        ('[{\n  "Julia": "1.11",\n  "BenchmarkTools": "1.0.0"}, []]', "BenchmarkTools"),
        ("hello", None),
        ('{"metrics": {"x": 5}}', None),
    ],
)
def test_a_report_that_is_not_read_is_named_with_what_is(text: str, tool: str | None) -> None:
    content = ResultFile.of(Path("a"), text.encode())
    assert find_format(content) is None
    foreign = foreign_format(content)
    assert (tool in foreign.name if foreign and tool else foreign) == (True if tool else None)


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
        ("v1.2-3-g0f3c2a9-dirty", "0f3c2a9"),
        ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", ""),
        ("3f2504e0-4f89-41d3-9a0c-0305e82c3301-0f3c2a9", "0f3c2a9"),
        ("3f2504e04f8941d39a0c0305e82c3301_0f3c2a9", "0f3c2a9"),
        ("12345678-1234-1234-9A0C-0305E82C3301-0f3c2a9", "0f3c2a9"),
        ("0f3c2a9-4f89-41d3", "0f3c2a9"),
        ("0f3c2a9" * 7, ""),  # 49 digits
        ("0f3c2a9b" * 8, "0f3c2a9b" * 8),
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_in_the_encodings_that_shells_write(encoding: str) -> None:
    content = ResultFile.of(Path("a"), GO.replace("\n", "\r\n").encode(encoding))
    format_ = find_format(content)
    assert format_
    assert [item.unit for item in format_.read(content).measurements] == [
        "ns",
        "B",
        "allocations",
        "ns",
        "MB/s",
    ]


def test_events_of_go_are_read_package_by_package() -> None:
    parts = (
        ("shop/store", "pkg: shop/store\n"),
        ("shop/archive", "pkg: shop/archive\n"),
        ("shop/store", "BenchmarkSum\n"),
        ("shop/store", "BenchmarkSum-8  \t"),
        ("shop/archive", "BenchmarkSum-8  \t"),
        ("shop/archive", " 10\t 9 ns/op\n"),
        ("shop/store", " 10\t 5 ns/op\n"),
    )
    events = [{"Action": "output", "Package": package, "Output": text} for package, text in parts]
    lines = [json.dumps(event) for event in ({"Action": "start"}, *events, {"Action": "pass"})]
    format_, results = read("\n".join(lines))
    assert (format_, results.left_out) == ("go", {})
    measured = [(item.name, dict(item.labels)["pkg"], item.values) for item in results.measurements]
    assert measured == [("BenchmarkSum", "shop/store", (5.0,)), ("BenchmarkSum", "shop/archive", (9.0,))]
