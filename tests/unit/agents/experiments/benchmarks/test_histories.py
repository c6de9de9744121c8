"""Histories of 24 commits in each tool's format: changes are seen within one identity, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from agents.experiments.benchmarks import (
    BenchmarkHistory,
    Better,
    Remark,
    RunsReading,
    arrange,
    find_changes,
    read_results,
)
from pipeline.model.errors import ConfigError

COMMITS = 24
AT = 12
"""Commit at which the histories change."""

Noise = Callable[[float], float]
Files = Mapping[str, object]  # text or JSON by name
Seen = set[tuple[str, int, float]]  # title, first commit of the new level, rounded relative change


def late(number: int, before: object, after: object) -> object:
    return before if number < AT else after


def sha(number: int) -> str:
    return f"{0xABC0000 + number:07x}"


def whole_sha(number: int) -> str:
    return sha(number) + "0" * 33


def go(*lines: str, **labels: str) -> str:
    head = "".join(f"{name}: {value}\n" for name, value in {"goos": "linux", **labels}.items())
    return head + "".join(f"Benchmark{line}\n" for line in lines) + "PASS\n"


def go_packages(number: int, noise: Noise) -> Files:
    slower = 1.1 if number >= AT else 1.0
    store = go(f"Encode-8 100 {noise(100 * slower)} ns/op", pkg="shop/store")
    return {f"{number}.txt": go(f"Encode-8 100 {noise(9e5)} ns/op", pkg="shop/archive") + store}


def go_machines(number: int, noise: Noise) -> Files:
    cpu, level = ("EPYC", 100) if number % 3 else ("Xeon", 150)
    return {f"{number}.txt": go(f"Sum-8 9 {noise(level)} ns/op", cpu=cpu)}


def go_processors(number: int, noise: Noise) -> Files:
    return {f"{number}.txt": go(f"Sum-{late(number, 8, 16)} 9 {noise(100 if number < AT else 60)} ns/op")}


def go_cpu_list(number: int, noise: Noise) -> Files:
    levels = {"Sum": 400.0, "Sum-2": 210.0, "Sum-4": 110.0 * (1.3 if number >= AT else 1.0)}
    return {f"{number}.txt": go(*(f"{name} 9 {noise(level)} ns/op" for name, level in levels.items()))}


def go_sizes(number: int, noise: Noise) -> Files:
    levels = {10: 60.0, 1000: 5200.0, 100_000: 4e5 * (1.4 if number >= AT else 1.0)}
    return {
        f"{number}.txt": go(*(f"Sort/size-{size} 9 {noise(level)} ns/op" for size, level in levels.items()))
    }


def go_size_added(number: int, noise: Noise) -> Files:
    lines = [
        f"Sort/size-100 9 {noise(100 if number < AT else 120)} ns/op",
        f"Find/size-100 9 {noise(7)} ns/op",
    ]
    return {f"{number}.txt": go(*lines, *([f"Sort/size-200 9 {noise(210)} ns/op"] if number >= AT else []))}


def go_dated(number: int, noise: Noise) -> Files:
    head = f"commit: {whole_sha(number)}\ncommit-time: 2026-01-{number + 1:02}T00:00:00Z\n"
    return {
        f"{7 * number % COMMITS:02}.txt": head + go(f"Sum-8 9 {noise(100 if number < AT else 120)} ns/op")
    }


def go_higher(number: int, noise: Noise) -> Files:
    line = f"Cache-8 9 {noise(50 if number < AT else 40)} hits"
    return {f"{number}.txt": "Unit hits better=higher\n" + go(line)}


def go_direction_once(number: int, noise: Noise) -> Files:
    line = f"Cache-8 9 {noise(50 if number < AT else 40)} hits"
    return {f"{number}.txt": ("Unit hits better=higher\n" if number == 3 else "") + go(line)}


def go_metrics_of_one_scale(number: int, noise: Noise) -> Files:
    slower = 1.2 if number >= AT else 1.0
    return {f"{number}.txt": go(f"Sum-8 9 {noise(5e6 * slower)} ns/op {noise(90)} ms {noise(7)} B {16} B/op")}


def bare_go(*lines: str) -> str:
    return "".join(f"Benchmark{line}\n" for line in lines)


def go_without_packages(number: int, noise: Noise) -> Files:
    slower = 1.2 if number >= AT else 1.0
    encode = [f"Encode-8 9 {noise(level)} ns/op" for level in (150, 100 * slower)]
    return {f"{number}.txt": bare_go(encode[0], f"Find-8 9 {noise(70 * slower)} ns/op", encode[1])}


def go_levels_without_packages(number: int, noise: Noise) -> Files:
    encode = [f"Encode-8 9 {noise(level)} ns/op" for level in (9e5, 9e5, 100, 100)]
    return {f"{number}.txt": bare_go(f"Find-8 9 {noise(70 if number < AT else 84)} ns/op", *encode)}


def go_packages_at_the_end(number: int, noise: Noise) -> Files:
    slower = 1.2 if number >= AT else 1.0
    levels = {"shop/archive": 9e5, "shop/store": 100 * slower}
    parts = (
        f"{bare_go(f'Encode-8 9 {noise(level)} ns/op')}PASS\nok  \t{package}\t1.2s\n"
        for package, level in levels.items()
    )
    return {f"{number}.txt": "".join(parts)}


def go_counted_without_packages(number: int, noise: Noise) -> Files:
    levels = {"Encode": 100.0, "Find": 70 if number < AT else 84.0}
    lines = [f"{name}-8 9 {noise(level)} ns/op" for name, level in levels.items() for _ in range(3)]
    return {f"{number}.txt": bare_go(*lines)}


def go_described(number: int, noise: Noise) -> Files:
    commit = whole_sha(number) if number % 2 else f"v1.2-{number}-g{sha(number)}-dirty"
    line = f"Sum-8 9 {noise(100 if number < AT else 120)} ns/op"
    again = {f"{number:02}-{whole_sha(number)[:9]}.txt": go(line)} if number % 3 else {}
    return {f"{number:02}.txt": f"commit: {commit}\n" + go(line)} | again


def go_alone(number: int, noise: Noise) -> Files:
    lines = (f"Sum-8 9 {noise(70 if number < AT else 84)} ns/op {rounded} B/op" for rounded in (0, 1, 0, 1))
    return {f"{number}.txt": bare_go(*lines)}


def go_blocks_without_packages(number: int, noise: Noise) -> Files:
    levels = (100.0, 110 if number < AT else 150.0)
    lines = [f"{name}-8 9 {noise(level)} ns/op" for level in levels for name in ("Encode", "Find")]
    return {f"{number}.txt": bare_go(*lines)}


def go_failing_without_packages(number: int, noise: Noise) -> Files:
    encode = [f"Encode-8 9 {noise(100 if number < AT else 120)} ns/op"] * 2
    return {f"{number}.txt": bare_go(*encode, "Find-8 9 5 ns/op") + "--- FAIL: BenchmarkFind-8\nFAIL\n"}


def go_unknown_metrics(number: int, noise: Noise) -> Files:
    level = 50 if number < AT else 40
    return {f"{number}.txt": go(f"Cache-8 9 {noise(5)} ns/op {noise(level)} hits {noise(level)} hits/s")}


def go_compilers(number: int, noise: Noise) -> Files:
    levels = {"gcc": 100 if number < AT else 120, "clang": 200}
    lines = {name: go(f"Sum-8 9 {noise(level)} ns/op", cpu="EPYC") for name, level in levels.items()}
    date = f"commit-time: 2026-01-{number + 1:02}T00:00:00Z\n"
    return {f"{name}/{sha(number)}.txt": date + text for name, text in lines.items()}


def jmh(
    benchmark: str, mode: str, unit: str, values: Sequence[float], **entries: object
) -> dict[str, object]:
    metric = {"score": float(np.mean(values)), "scoreUnit": unit, "rawData": [values]}
    return {"benchmark": benchmark, "mode": mode, "threads": 1, "primaryMetric": metric, **entries}


def jmh_modes(number: int, noise: Noise) -> Files:
    slower = 1.4 if number >= AT else 1.0
    modes = (("avgt", 0.01), ("sample", 0.0101), ("ss", 1.9 * slower))
    entries = [jmh("Cart.total", mode, "ms/op", [noise(level)] * 3) for mode, level in modes]
    return {f"{number}.json": [*entries, jmh("Cart.total", "thrpt", "ops/ms", [noise(100)] * 3)]}


def jmh_threads(number: int, noise: Noise) -> Files:
    threads = late(number, 1, 8)
    return {
        f"{number}.json": [
            jmh("Cart.total", "avgt", "us/op", [noise(4 if threads == 1 else 9)], threads=threads)
        ]
    }


def jmh_unit(number: int, noise: Noise) -> Files:
    unit, level = ("ms/op", 2.0) if number < 6 else ("us/op", 2000.0)
    return {
        f"{number}.json": [jmh("Cart.total", "avgt", unit, [noise(level * (1.2 if number >= AT else 1))])]
    }


def jmh_profilers(number: int, noise: Noise) -> Files:
    slower = 1.2 if number >= AT else 1.0
    secondary = {
        "·gc.alloc.rate": {"score": 1.0, "scoreUnit": "MB/sec", "rawData": [[noise(400 / slower)]]},
        "·gc.alloc.rate.norm": {"score": 1.0, "scoreUnit": "B/op", "rawData": [[noise(24 * slower)]]},
        "·gc.count": {"score": 7 * slower, "scoreUnit": "counts", "rawData": [[7 * slower]]},
        "branches:u": {"score": noise(70 * slower), "scoreUnit": "#/op"},
        "stored": {"score": noise(70 / slower), "scoreUnit": "ops/us"},
        "timeouts": {"score": noise(70 / slower), "scoreUnit": "ops/us"},
        "·stack": {"score": "NaN", "scoreUnit": "---"},
    }
    entry = jmh("Cart.total", "avgt", "us/op", [noise(4)], params={"n": "8"}, secondaryMetrics=secondary)
    return {f"{number}.json": [entry]}


def jmh_merged(number: int, noise: Noise) -> Files:
    entries = [
        jmh("Cart.total", "avgt", "us/op", [noise(level)]) for level in (5, 500 if number < AT else 600)
    ]
    return {f"{number}.json": [*entries, jmh("Cart.add", "avgt", "us/op", [noise(5 if number < AT else 6)])]}


def jmh_jdk(number: int, noise: Noise) -> Files:
    jdk, level = ("21.0.1", 4.0) if number < AT else ("25", 3.0)
    return {f"{number}.json": [jmh("Cart.total", "avgt", "us/op", [noise(level)], jdkVersion=jdk)]}


def asv(number: int, results: object, machine: str = "one", **entries: object) -> dict[str, object]:
    columns = ["result", "params", "version"]
    date = 1_700_000_000_000 + number * 86_400_000
    head = {
        "commit_hash": whole_sha(number),
        "date": date,
        "env_name": "py3.11",
        "params": {"machine": machine},
    }
    return {**head, "result_columns": columns, "results": results, **entries}


def asv_machines(number: int, noise: Noise) -> Files:
    name = f"{sha(number)}-py3.11.json"
    files = {f"one/{name}": asv(number, {"cart.time_total": [[noise(0.1)], [], "1"]})}
    other = asv(number, {"cart.time_total": [[noise(0.3)], [], "1"]}, "two")
    return {**files, f"two/{name}": other} if number >= AT else files


def asv_versions(number: int, noise: Noise) -> Files:
    version, level = ("1f0e", 0.02) if number < AT else ("77ab", 0.2)
    return {f"{sha(number)}-py3.11.json": asv(number, {"cart.time_total": [[noise(level)], [], version]})}


def asv_parameters(number: int, noise: Noise) -> Files:
    values = [noise(1.0), noise(2.0 * (1.5 if number >= AT else 1.0))]
    return {f"{sha(number)}-py3.11.json": asv(number, {"cart.time_total": [values, [["1", "2"]], "1"]})}


def asv_failed(number: int, noise: Noise) -> Files:
    value = noise(1.0) if number < AT else None
    return {f"{sha(number)}-py3.11.json": asv(number, {"cart.time_total": [[value], [], "1"]})}


def pytest_benchmark(number: int, values: Sequence[float], **machine: object) -> dict[str, object]:
    commit = {"id": whole_sha(number), "time": f"2026-01-{number + 1:02}T00:00:00+00:00"}
    benchmark = {"fullname": "t.py::total", "stats": {"data": values}}
    # All commits were measured on one day, the newest first.
    ran = f"2026-03-01T{23 - number:02}:00:00"
    return {"machine_info": machine, "commit_info": commit, "datetime": ran, "benchmarks": [benchmark]}


def pytest_backfilled(number: int, noise: Noise) -> Files:
    return {f"{sha(number)}.json": pytest_benchmark(number, [noise(1.0 if number < AT else 1.2)] * 3)}


def pytest_interpreters(number: int, noise: Noise) -> Files:
    python, level = ("3.11.4", 1.0) if number < AT else ("3.14.0", 0.8)
    return {f"{sha(number)}.json": pytest_benchmark(number, [noise(level)], node="ci", python_version=python)}


def pytest_frequencies(number: int, noise: Noise) -> Files:
    cpu = {"count": 8, "hz_actual_friendly": f"{3 + number / 100} GHz"}
    return {f"{sha(number)}.json": pytest_benchmark(number, [noise(1.0 if number < AT else 1.2)], cpu=cpu)}


def pytest_dirty(number: int, noise: Noise) -> Files:
    committed = pytest_benchmark(number, [noise(1.0 if number < AT else 1.2)])
    changed = pytest_benchmark(number, [noise(2.0)] * 9)
    time = f"2026-01-{number + 1:02}T00:00:00+00:00"
    changed["commit_info"] = {"id": whole_sha(number), "time": time, "dirty": True}
    return {f"{number}-run1.json": committed, **({f"{number}-run2.json": changed} if number > AT else {})}


def pytest_parameters_beside_names(number: int, noise: Noise) -> Files:
    levels = [("t.py::total", 1.0), ("t.py::total", 10.0 if number < AT else 20.0)]
    levels.append(("t.py::sum", 3.0 if number < AT else 3.6))
    benchmarks = [
        {"fullname": name, "param": at, "stats": {"median": noise(level)}}
        for at, (name, level) in enumerate(levels)
    ]
    return {f"{sha(number)}.json": {**pytest_benchmark(number, [1.0]), "benchmarks": benchmarks}}


def google(number: int, *benchmarks: object, **context: object) -> dict[str, object]:
    date = f"2026-01-{number + 1:02}T00:00:00+00:00"
    return {
        "context": {"date": date, "mhz_per_cpu": 2000 + number, **context},
        "benchmarks": list(benchmarks),
    }


def google_entry(name: str, cpu: float, real: float, **members: object) -> dict[str, object]:
    return {"name": name, "run_name": name, "cpu_time": cpu, "real_time": real, "time_unit": "us", **members}


def google_clocks(number: int, noise: Noise) -> Files:
    names = ("a/manual_time", "a/process_time/real_time/threads:4", "a/real_timer", "a")
    entries = [google_entry(name, noise(1.0), noise(5.0 if number < AT else 6.0)) for name in names]
    return {f"{sha(number)}.json": google(number, *entries)}


def google_counters(number: int, noise: Noise) -> Files:
    slower = 1.2 if number >= AT else 1.0
    counters = {
        "rows_per_second": noise(9 / slower),
        "bytes_per_second": noise(900 / slower),
        "allocs_per_iter": noise(7 * slower),
        "max_bytes_used": noise(70 * slower),
        "CACHE-MISSES": noise(3 * slower),
        "hits": noise(50 / slower),
        "processed_bytes": noise(50 * slower),
    }
    entry = google_entry("a", noise(5.0), 1.0, threads=4, iterations=number, **counters)
    return {f"{sha(number)}.json": google(number, entry)}


def google_aggregates(number: int, noise: Noise) -> Files:
    level = noise(200 if number < AT else 220)
    kinds = {"mean": noise(level), "median": level, "stddev": noise(2), "cv": 0.01}
    entries = [
        {**google_entry("a", value, value, run_type="aggregate", aggregate_name=kind), "name": f"a_{kind}"}
        for kind, value in kinds.items()
    ]
    return {f"{sha(number)}.json": google(number, *entries)}


def google_builds(number: int, noise: Noise) -> Files:
    build, level = ("debug", 900.0) if number < AT else ("release", 100.0)
    return {
        f"{sha(number)}.json": google(number, google_entry("a", noise(level), 1.0), library_build_type=build)
    }


def google_executables(number: int, noise: Noise) -> Files:
    levels = {"./encode": 900.0, f"C:\\build-{number}\\decode.exe": 100.0 if number < AT else 120.0}
    return {
        f"{sha(number)}-{index}.json": google(number, google_entry("a", noise(level), 1.0), executable=path)
        for index, (path, level) in enumerate(levels.items())
    }


def google_failing(number: int, noise: Noise) -> Files:
    failed = google_entry("a", 0.0, 0.0, error_occurred=True, run_type="iteration")
    entry = google_entry("a", noise(5.0), 1.0, run_type="iteration")
    mean = {**google_entry("a", 0.0, 0.0, run_type="aggregate", aggregate_name="mean"), "name": "a_mean"}
    return {f"{sha(number)}.json": google(number, *((entry,) if number < AT else (failed, mean)))}


def google_families(number: int, noise: Noise) -> Files:
    entries = [
        google_entry(name, noise(level if number < AT else 1.2 * level), 1.0, family_index=family)
        for family, (name, level) in enumerate((("a", 9.0), ("b", 5.0), ("b", 500.0)))
        for _ in range(2)
    ]
    return {f"{sha(number)}.json": google(number, *entries)}


def hyperfine(*entries: tuple[str, Sequence[float], Sequence[object], object]) -> dict[str, object]:
    names = ("command", "times", "exit_codes", "parameters")
    return {"results": [dict(zip(names, entry, strict=True)) for entry in entries]}


def hyperfine_failing(number: int, noise: Noise) -> Files:
    time, code = (0.8, 0) if number < AT else (0.01, late(number % 2 * AT, 1, None))
    return {f"{number}.json": hyperfine(("shop", [noise(time)] * 3, [code] * 3, None))}


def hyperfine_flaky(number: int, noise: Noise) -> Files:
    times = [noise(0.8 if number < AT else 0.9), 0.01, 0.01]
    return {f"{number}.json": hyperfine(("shop", times, [0, 1, 1], None))}


def hyperfine_parameters(number: int, noise: Noise) -> Files:
    small, large = (("shop", [noise(level)], [0], {"size": size}) for level, size in ((1.0, "1"), (9.0, "2")))
    return {f"{number}.json": hyperfine(small, large) if number < AT else hyperfine(large)}


def hyperfine_machines(number: int, noise: Noise) -> Files:
    machine, level = ("laptop", 1.0) if number < AT else ("server", 0.5)
    return {f"{number:02}-{machine}.json": hyperfine(("shop", [noise(level)], [0], None))}


def hyperfine_memory(number: int, noise: Noise) -> Files:
    memory = [noise(1e6 if number < AT else 1.2e6), 1.0]
    result = {
        "command": f"build-{sha(number)}/shop 1000000",
        "times": [noise(1.0), 0.1],
        "exit_codes": [0, 1],
    }
    return {f"{number}.json": {"results": [{**result, "memory_usage_byte": memory}]}}


def hyperfine_folders(number: int, noise: Noise) -> Files:
    levels = {"t1": 1.0 if number < AT else 1.2, "t8": 3.0}
    return {
        f"{name}/{number:02}-{sha(number)}.json": hyperfine(("shop", [noise(level)], [0], None))
        for name, level in levels.items()
    }


def dotnet(number: int, noise: Noise) -> Files:
    levels = {".NET 8.0": 50.0, ".NET 9.0": 5.0 if number < AT else 6.0}
    job = "Job-ABCDEF" if number < 6 else "Job-GHIJKL"
    hit_rate = {"Id": "HitRate", "Unit": "", "TheGreaterTheBetter": True}
    benchmarks = [
        {
            "DisplayInfo": f"Cart.Total: {job}(Runtime={runtime})",
            "FullName": "Cart.Total",
            "Statistics": {"OriginalValues": [noise(level)]},
            "Metrics": [{"Value": noise(5 / level), "Descriptor": hit_rate}],
        }
        for runtime, level in levels.items()
    ]
    title = f"Cart-202601{number + 1:02}-000000"
    return {f"{sha(number)}.json": {"Title": title, "HostEnvironmentInfo": {}, "Benchmarks": benchmarks}}


def hyperfine_twice(number: int, noise: Noise) -> Files:
    levels = {"1": 1.0, "2": 3.0}
    entries = [("shop", [noise(level)], [0], {"n": size}) for size, level in levels.items()]
    return {
        f"{number}.json": hyperfine(*entries, ("shop", [noise(7.0 if number < AT else 9.0)], [0], {"n": "1"}))
    }


def hyperfine_numbered(number: int, noise: Noise) -> Files:
    levels = {"threads-4": 1.0 if number < AT else 1.2, "threads-8": 3.0}
    return {
        f"{name}/{number:02}-{sha(number)}.json": hyperfine(("shop", [noise(level)], [0], None))
        for name, level in levels.items()
    }


def hyperfine_hosts(number: int, noise: Noise) -> Files:
    host, level = ("host-1", 1.0) if number < AT else ("host-2", 0.5)
    return {f"{host}/{sha(number)}.json": hyperfine(("shop", [noise(level)], [0], None))}


def estimates(value: float) -> dict[str, object]:
    names = ("mean", "median", "slope", "std_dev")
    return {name: {"point_estimate": value} for name in names}


def criterion_baselines(number: int, noise: Noise) -> Files:
    folder = f"{number:02}-{sha(number)}/target/criterion/sort/ten"
    level = noise(100.0 if number < AT else 110.0)
    ratios = {name: {"point_estimate": 0.1} for name in ("mean", "median")}
    return {
        f"{folder}/new/estimates.json": estimates(level),
        f"{folder}/base/estimates.json": estimates(noise(90.0 + number)),
        f"{folder}/main/estimates.json": estimates(70.0),
        f"{folder}/change/estimates.json": ratios,
    }


def criterion_statistics(number: int, noise: Noise) -> Files:
    folder = f"{number:02}-{sha(number)}/target/criterion/sort/ten/new"
    flat = {**estimates(noise(130.0)), "slope": None}
    return {f"{folder}/estimates.json": estimates(noise(100.0)) if number < AT else flat}


def bencher_binaries(number: int, noise: Noise) -> Files:
    level = noise(300 if number < AT else 330)
    head, rest = "running 2 tests\ntest", "ns/iter (+/- 1)\n"
    first = f"{head} a ... bench: {noise(100)} {rest}test x ... bench: 5 {rest}"
    second = f"{head} b ... bench: {level} {rest}test x ... bench: 900 {rest}"
    return {f"{number}.txt": first + second}


HISTORIES: Mapping[str, tuple[Callable[[int, Noise], Files], Seen, dict[str, int]]] = {
    "Go: two packages": (go_packages, {("BenchmarkEncode (pkg=shop/store)", AT, 0.1)}, {}),
    "Go: two machines by turns": (go_machines, set(), {}),
    "Go: more processors": (go_processors, set(), {}),
    "Go: -cpu 1,2,4": (go_cpu_list, {("BenchmarkSum-4", AT, 0.3)}, {}),
    "Go: numbers of sub-benchmarks": (go_sizes, {("BenchmarkSort/size-100000", AT, 0.4)}, {}),
    "Go: one size at first": (go_size_added, {("BenchmarkSort/size-100", AT, 0.2)}, {}),
    "Go: commit and its time as labels": (go_dated, {("BenchmarkSum", AT, 0.2)}, {}),
    "Go: more is better": (go_higher, {("BenchmarkCache", AT, -0.2)}, {}),
    "Go: a direction that one file states": (go_direction_once, {("BenchmarkCache", AT, -0.2)}, {}),
    "Go: metrics of one scale": (go_metrics_of_one_scale, {("BenchmarkSum", AT, 0.2)}, {}),
    "Go: no packages": (go_without_packages, {("BenchmarkFind", AT, 0.2)}, {"ambiguous": 2 * COMMITS}),
    "Go: no packages, and repeated": (
        go_levels_without_packages,
        {("BenchmarkFind", AT, 0.2)},
        {"ambiguous": 4 * COMMITS},
    ),
    "Go: packages at the end": (go_packages_at_the_end, {("BenchmarkEncode (pkg=shop/store)", AT, 0.2)}, {}),
    "Go: commits as git describes them": (go_described, {("BenchmarkSum", AT, 0.2)}, {}),
    "Go: -count without packages": (go_counted_without_packages, {("BenchmarkFind", AT, 0.2)}, {}),
    "Go: failing without packages": (
        go_failing_without_packages,
        {("BenchmarkEncode", AT, 0.2)},
        {"failed": COMMITS},
    ),
    "Go: metrics of unknown direction": (go_unknown_metrics, {("BenchmarkCache", AT, -0.2)}, {}),
    "Go: compilers as folders": (go_compilers, {("BenchmarkSum (file=gcc)", AT, 0.2)}, {}),
    "JMH: modes": (jmh_modes, {("Cart.total (mode=ss)", AT, 0.4)}, {}),
    "JMH: threads": (jmh_threads, set(), {}),
    "JMH: another unit": (jmh_unit, {("Cart.total", AT, 0.2)}, {}),
    "JMH: profilers": (
        jmh_profilers,
        {
            ("Cart.total:gc.alloc.rate.norm[n=8]", AT, 0.2),
            ("Cart.total:branches:u[n=8]", AT, 0.2),
            ("Cart.total:stored[n=8]", AT, -0.2),
        },
        {"invalid": COMMITS},
    ),
    "JMH: merged files": (jmh_merged, {("Cart.add", AT, 0.2)}, {"ambiguous": 2 * COMMITS}),
    "JMH: another JDK": (jmh_jdk, set(), {}),
    "asv: machines": (asv_machines, set(), {}),
    "asv: versions": (asv_versions, set(), {}),
    "asv: parameters": (asv_parameters, {("cart.time_total[2]", AT, 0.5)}, {}),
    "asv: failed": (asv_failed, set(), {"failed": COMMITS - AT}),
    "pytest-benchmark: measured newest first": (pytest_backfilled, {("t.py::total", AT, 0.2)}, {}),
    "pytest-benchmark: changes that were not committed": (pytest_dirty, {("t.py::total", AT, 0.2)}, {}),
    "pytest-benchmark: parameters beside names": (
        pytest_parameters_beside_names,
        {("t.py::sum", AT, 0.2)},
        {"ambiguous": 2 * COMMITS},
    ),
    "pytest-benchmark: interpreters": (pytest_interpreters, set(), {}),
    "pytest-benchmark: measured frequencies": (pytest_frequencies, {("t.py::total", AT, 0.2)}, {}),
    "Google Benchmark: clocks": (
        google_clocks,
        {("a/manual_time", AT, 0.2), ("a/process_time/real_time/threads:4", AT, 0.2)},
        {},
    ),
    "Google Benchmark: counters": (google_counters, {("a", AT, -0.2), ("a", AT, 0.2)}, {}),
    "Google Benchmark: aggregates": (google_aggregates, {("a", AT, 0.1)}, {"aggregate": 3 * COMMITS}),
    "Google Benchmark: builds": (google_builds, set(), {}),
    "Google Benchmark: executables": (google_executables, {("a (executable=decode)", AT, 0.2)}, {}),
    "Google Benchmark: failing": (google_failing, set(), {"failed": COMMITS - AT, "aggregate": COMMITS - AT}),
    "Google Benchmark: families of one name": (google_families, {("a", AT, 0.2)}, {"ambiguous": 4 * COMMITS}),
    "hyperfine: one command twice": (hyperfine_twice, set(), {"ambiguous": 2 * COMMITS}),
    "hyperfine: failing": (hyperfine_failing, set(), {"failed": 3 * (COMMITS - AT)}),
    "hyperfine: some runs failed": (hyperfine_flaky, {("shop", AT, 0.1)}, {"failed": 2 * COMMITS}),
    "hyperfine: memory": (hyperfine_memory, {("build-/shop 1000000:memory", AT, 0.2)}, {"failed": COMMITS}),
    "hyperfine: folders of threads": (hyperfine_folders, {("shop (file=t1)", AT, 0.2)}, {}),
    "BenchmarkDotNet: jobs": (
        dotnet,
        {
            ("Cart.Total (job=(Runtime=.NET 9.0))", AT, 0.2),
            ("Cart.Total:HitRate (job=(Runtime=.NET 9.0))", AT, -0.2),
        },
        {},
    ),
    "hyperfine: parameters": (hyperfine_parameters, set(), {}),
    "hyperfine: numbers of threads": (hyperfine_numbered, {("shop (file=threads-4)", AT, 0.2)}, {}),
    "criterion: baselines": (criterion_baselines, {("sort/ten", AT, 0.1)}, {"baseline": 3 * COMMITS}),
    "criterion: statistics": (criterion_statistics, set(), {}),
    "bencher: binaries": (bencher_binaries, {("b", AT, 0.1)}, {"ambiguous": 2 * COMMITS}),
}


def read_history(
    folder: Path, files: Callable[[int, Noise], Files], *, in_order: bool = False
) -> tuple[RunsReading, BenchmarkHistory]:
    rng = np.random.default_rng(7)

    def noise(level: float) -> float:
        return level * float(1 + rng.normal(0, 0.005))

    for number in range(COMMITS):
        for name, content in files(number, noise).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    reading = read_results([folder])
    return reading, arrange(reading.runs, in_order=in_order)


@pytest.mark.parametrize("name", HISTORIES)
def test_a_change_is_seen_within_one_identity(name: str, tmp_path: Path) -> None:
    files, seen, left_out = HISTORIES[name]
    reading, history = read_history(tmp_path, files)
    changes = find_changes(history.series)
    assert {(change.series.title, change.index, round(change.relative, 1)) for change in changes} == seen
    assert all(change.worse for change in changes)
    assert reading.left_out == left_out


@pytest.mark.parametrize(
    ("files", "metric", "units"),
    [
        (go_unknown_metrics, "hits", {"hits"}),
        (google_counters, "hits", {"hits", "processed_bytes"}),
        (jmh_profilers, "gc.count", {"MB/sec", "counts", "ops/us"}),
    ],
)
def test_a_metric_of_unknown_direction_is_judged_if_it_is_given(
    files: Callable[[int, Noise], Files], metric: str, units: set[str], tmp_path: Path
) -> None:
    reading, history = read_history(tmp_path, files)
    assert {item.unit for item in history.series if item.better is Better.UNKNOWN} == units
    before = {(change.series.name, change.series.unit) for change in find_changes(history.series)}
    for better in (Better.HIGHER, Better.LOWER):
        history = arrange(reading.runs, directions={metric: better})
        changes = {(item.series.name, item.series.unit): item for item in find_changes(history.series)}
        ((name, unit),) = changes.keys() - before
        change = changes[name, unit]
        assert metric in (unit, name.partition("[")[0].partition(":")[2])
        assert change.worse == ((change.after < change.before) == (better is Better.HIGHER))
    with pytest.raises(ConfigError, match="--better hit: no result has it, but"):
        arrange(reading.runs, directions={"hit": Better.HIGHER})


def test_repetitions_that_no_package_distinguishes_are_said(tmp_path: Path) -> None:
    certain = (go_counted_without_packages, go_packages_at_the_end, go_packages)
    for number, files in enumerate((go_alone, *certain)):
        folder = tmp_path / str(number)
        folder.mkdir()
        reading, history = read_history(folder, files)
        assert reading.remarks == ({} if files in certain else {Remark.REPETITIONS: COMMITS})
        assert find_changes(history.series)


def test_interleaved_results_without_packages_are_left_out_or_said_to_be_repetitions(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="96 ambiguous .* --across pkg takes interleaved ones for"):
        read_history(tmp_path, go_blocks_without_packages)
    reading = read_results([tmp_path], across=["pkg"])
    assert (reading.remarks, reading.left_out) == ({Remark.REPETITIONS: COMMITS}, {})
    assert find_changes(arrange(reading.runs, across=["pkg"]).series)
    with pytest.raises(ConfigError, match="--across pkg: no result has this label"):
        arrange(read_history(tmp_path / "other", go_compilers)[0].runs, across=["pkg"])


def pytest_branches(number: int, noise: Noise) -> Files:
    level = 1.0 if number < AT else 1.2
    branches = {"main": 1.0, "feature": level, "(detached head)": 1.0, "HEAD": 1.0}
    commit = {"id": whole_sha(number), "time": f"2026-01-{number + 1:02}T00:00:00+00:00"}
    documents = [
        {**pytest_benchmark(number, [noise(level)]), "commit_info": {**commit, "branch": name}}
        for name, level in branches.items()
    ]
    return {f"{number}-{at}.json": document for at, document in enumerate(documents)}


def pyperf_branches(number: int, noise: Noise) -> Files:
    metadata = {
        "name": "a",
        "commit_id": whole_sha(number),
        "commit_date": f"2026-01-{number + 1:02}T00:00:00Z",
    }
    branch = "feature" if number % 2 else "main"
    runs = [{"values": [noise(1.2 if number % 2 else 1.0)]}]
    return {
        f"{number}.json": {"metadata": {**metadata, "commit_branch": branch}, "benchmarks": [{"runs": runs}]}
    }


def google_branches(number: int, noise: Noise) -> Files:
    branch = "feature-x" if number % 2 else "main"
    entry = google_entry("a", noise(120 if number % 2 else 100), 1.0)
    return {f"{branch}/{sha(number)}.json": google(number, entry, host_name="ci")}


def data_js_pulls(number: int, noise: Noise) -> Files:
    pages = [f"pull/{at}/commits" if at % 2 else "commit" for at in range(COMMITS)]
    history = [
        {
            "commit": {
                "id": whole_sha(at),
                "timestamp": f"2026-01-{at + 1:02}T00:00:00Z",
                "url": f"https://example.org/shop/{pages[at]}/{whole_sha(at)}",
            },
            "tool": "go",
            "benches": [{"name": "a", "unit": "ns/op", "value": noise(1.2 if at >= AT and at % 2 else 1.0)}],
        }
        for at in range(COMMITS)
    ]
    return {"data.js": "window.BENCHMARK_DATA = " + json.dumps({"entries": {"Go": history}})}


@pytest.mark.parametrize(
    ("files", "seen", "branches"),
    [
        (pytest_branches, {("feature", AT)}, {"main", "feature", None}),
        (pyperf_branches, set(), {"main", "feature"}),
        (google_branches, set(), {"main", "feature-x"}),
        (data_js_pulls, set(), {None, *(f"pull/{at}" for at in range(1, COMMITS, 2))}),
    ],
)
def test_branches_are_series_of_their_own_unless_a_repository_gives_the_order(
    files: Callable[[int, Noise], Files], seen: set[object], branches: set[object], tmp_path: Path
) -> None:
    reading, history = read_history(tmp_path, files)
    assert {dict(item.labels).get("branch") for item in history.series} == branches
    changes = find_changes(history.series)
    assert {(dict(item.series.labels).get("branch"), item.index) for item in changes} == seen
    (series,) = arrange(reading.runs, [whole_sha(number) for number in range(COMMITS)]).series
    assert not {"branch"} & dict(series.labels).keys()
    assert len(arrange(reading.runs, across=["branch"]).series) == 1


NAMES = {
    "a revert": ({"25-revert-0abc003-0abc025": "0abc025", "3-0abc003": "0abc003"}, ""),
    "a revert before": ({"25-0abc025-reverts-0abc003": "0abc025", "3-0abc003": "0abc003"}, ""),
    "a UUID": ({"3f2504e0-4f89-41d3-9a0c-0305e82c3301-0abc003": "0abc003"}, ""),
    "a configuration": ({"0abc001-fffffff": "0abc001", "0abc002-fffffff": "0abc002"}, ""),
    "an abbreviation": ({"0abc001-0abc001fff": "0abc001fff"}, ""),
    "a folder and a file": ({"0abc001/0abc002": "0abc002"}, ""),
    "two": ({"0abc001-0abc002": ""}, "may mean the commit 0abc001 or 0abc002: leave one"),
    "two in each": (
        {"0abc001-0abc002": "", "0abc003-0abc004": ""},
        "0abc001-0abc002.txt: its name may mean the commit 0abc001 or 0abc002: leave one",
    ),
}


@pytest.mark.parametrize(("names", "message"), NAMES.values(), ids=NAMES.keys())
def test_the_commit_among_several_ids_in_a_name(names: dict[str, str], message: str, tmp_path: Path) -> None:
    for name in names:
        path = tmp_path / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(go("Sum-8 9 5 ns/op"))
    runs = read_results([tmp_path]).runs
    if message:
        with pytest.raises(ConfigError, match=message):
            arrange(runs, in_order=True)
        # A repository that has one of them decides.
        assert arrange(runs, ["0abc001" + "0" * 33]).commits == ("0abc001" + "0" * 33,)
        with pytest.raises(ConfigError, match="may mean the commit"):
            arrange(runs, ["0abc001" + "0" * 33, "0abc002" + "0" * 33])
    else:
        assert {
            run.path.relative_to(tmp_path).with_suffix("").as_posix(): run.commit for run in runs
        } == names


UNREADABLE = {"cut off": '{"machine_info": {}', "empty": "", "no benchmark": "FAIL shop [build failed]\n"}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_files_that_are_named_like_results_and_hold_none(content: str, tmp_path: Path) -> None:
    for number in range(COMMITS):
        (tmp_path / f"{number}-{sha(number)}.txt").write_text(go("Sum-8 9 5 ns/op"))
        (tmp_path / f"notes-{number}-{'x' * number}.md").write_text("hello")
    for number in range(COMMITS // 2):
        (tmp_path / f"{number}-{sha(number)}.txt").write_text(content)
    assert len(arrange(read_results([tmp_path]).runs).commits) == COMMITS // 2
    (tmp_path / f"{COMMITS - 1}-{sha(COMMITS - 1)}.txt").write_text(content)
    with pytest.raises(ConfigError, match="13 of 24 files that are named like results hold none"):
        read_results([tmp_path])


def test_a_file_of_many_commits_is_a_history(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)

    def run(number: int, tool: str) -> object:
        commit = {"id": whole_sha(number), "timestamp": f"2026-01-{number + 1:02}T00:00:00+01:00"}
        slower = rng.normal(1.0, 0.005) * (1.2 if number >= AT else 1.0)
        benches = [
            {"name": "Sum", "value": 100 * slower, "unit": "ns/op\t 16 B/op", "extra": "99 times\n8 procs"},
            {"name": "Twice", "value": 7 * slower, "unit": "ns/op"},
            {"name": "Twice", "value": 9 * slower, "unit": "ns/op"},
        ]
        score = {"name": "score", "value": 50 / slower, "unit": "points"}
        return {"commit": commit, "date": 1, "tool": tool, "benches": benches if tool == "go" else [score]}

    tools = {"Go": "go", "Scores": "customBiggerIsBetter"}
    suites = {suite: [run(number, tool) for number in range(COMMITS)] for suite, tool in tools.items()}
    (tmp_path / "data.js").write_text(f"window.BENCHMARK_DATA = {json.dumps({'entries': suites})}\n")
    reading = read_results([tmp_path / "data.js"])
    history = arrange(reading.runs)
    assert (history.order.basis, len(history.commits)) == ("commit_times", COMMITS)
    changes = find_changes(history.series)
    seen = {(change.series.name, change.index, round(change.relative, 1)) for change in changes}
    assert seen == {("Sum", AT, 0.2), ("score", AT, -0.2)}
    assert all(change.worse for change in changes)
    assert reading.left_out == {"ambiguous": 2 * COMMITS}
    assert {dict(item.labels).get("procs") for item in history.series} == {"8", None}


@pytest.mark.parametrize(
    ("files", "machines"),
    [(hyperfine_machines, ("laptop", "server")), (hyperfine_hosts, ("host-1", "host-2"))],
)
def test_machines_in_names_of_files_are_series_of_their_own_if_the_format_has_none(
    files: Callable[[int, Noise], Files], machines: Sequence[str], tmp_path: Path
) -> None:
    _, history = read_history(tmp_path, files, in_order=True)
    assert {item.title for item in history.series} == {f"shop (file={name})" for name in machines}
    assert find_changes(history.series) == []


@pytest.mark.parametrize(
    ("folders", "titles"),
    [
        (("one", "two"), {"BenchmarkSum (file=one/out)", "BenchmarkSum (file=two/out)"}),
        (("run1", "run2"), {"BenchmarkSum"}),
        (("week-1", "week-2"), {"BenchmarkSum"}),
        (("smp-1", "smp-8"), {"BenchmarkSum (file=smp-1/out)", "BenchmarkSum (file=smp-8/out)"}),
        (("smp1", "smp8"), {"BenchmarkSum (file=smp1/out)", "BenchmarkSum (file=smp8/out)"}),
        (("py3.11", "py3.12"), {"BenchmarkSum (file=py3.11/out)", "BenchmarkSum (file=py3.12/out)"}),
        (("0f3c2a9", "0f3c2aa"), {"BenchmarkSum"}),
    ],
)
def test_folders_that_differ_in_more_than_ids_and_numbers_are_labels(
    folders: Sequence[str], titles: set[str], tmp_path: Path
) -> None:
    for number, folder in enumerate(folders):
        for run in (1, 2):
            path = tmp_path / folder / f"{number}{run}-out.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(go("Sum-8 9 5 ns/op"))
    history = arrange(read_results([tmp_path]).runs, in_order=True)
    assert {item.title for item in history.series} == titles
    for path in tmp_path.rglob("*.txt"):
        path.write_text(go("Sum-8 9 5 ns/op", cpu="EPYC" if path.parent.name == folders[0] else "Xeon"))
    history = arrange(read_results([tmp_path]).runs, in_order=True)
    assert {item.title for item in history.series} == {
        f"BenchmarkSum (cpu={cpu})" for cpu in ("EPYC", "Xeon")
    }
    joined = arrange(read_results([tmp_path]).runs, in_order=True, across={"cpu"})
    assert [item.title for item in joined.series] == ["BenchmarkSum"]


def test_names_of_files_that_are_those_of_commits_are_no_labels(tmp_path: Path) -> None:
    for name in ("old", "middle", "new"):
        (tmp_path / f"{name}.txt").write_text(go("Sum-8 9 5 ns/op"))
    history = arrange(read_results([tmp_path]).runs, in_order=True)
    assert [item.title for item in history.series] == ["BenchmarkSum"]


def test_folders_are_labels_if_names_of_files_are_chosen_anew_in_each_run(tmp_path: Path) -> None:
    for number in range(COMMITS):
        for system in ("linux", "windows")[number >= AT :]:  # the faster one is measured no more
            word = f"x{'ghijkm'[number // 5]}{'nopqr'[number % 5]}"
            path = tmp_path / system / f"{whole_sha(number)}-{word}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(go(f"Sum-8 9 {100 if system == 'linux' else 300} ns/op"))
    history = arrange(read_results([tmp_path]).runs, in_order=True)
    assert {item.title for item in history.series} == {
        "BenchmarkSum (file=linux)",
        "BenchmarkSum (file=windows)",
    }
    assert find_changes(history.series) == []


def test_names_in_no_order_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="the order of 24 commits is not known: 24 of 24 files have no time"
    ):
        read_history(tmp_path, hyperfine_machines)


def test_a_folder_that_all_files_share_names_no_commit(tmp_path: Path) -> None:
    folder = tmp_path / "3fabc12d"
    folder.mkdir()
    _, history = read_history(folder, jmh_threads)
    assert len(history.commits) == COMMITS
