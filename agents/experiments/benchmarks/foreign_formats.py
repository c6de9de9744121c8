"""Reports of benchmarks that are not read, and how to get what is read instead."""

from __future__ import annotations

import re
from typing import NamedTuple

from agents.experiments.benchmarks.results import ResultFile

_GO_LINES = "written as Go's lines, such as BenchmarkLogin 1 12.5 ms, they are read"


class ForeignFormat(NamedTuple):
    """Report that is recognised and not read: what it is, and what gives results that are read."""

    name: str
    pattern: re.Pattern[str]
    remedy: str


def _lines(name: str, pattern: str, remedy: str) -> ForeignFormat:
    return ForeignFormat(name, re.compile(pattern, re.MULTILINE), remedy)


FOREIGN_FORMATS = (
    _lines(
        "Google Benchmark's console or CSV",
        r"^Benchmark +Time +CPU +Iterations|^name,iterations,real_time,cpu_time,time_unit",
        "--benchmark_format=json writes results that are read",
    ),
    _lines(
        "JMH's text or CSV",
        r'^# JMH version: |^Benchmark +(?:\(\S+\) +)*Mode +(?:Cnt|Samples) +Score|^"?Benchmark"?,"?Mode"?,',
        "-rf json writes results that are read",
    ),
    _lines(
        "hyperfine's console, CSV or Markdown",
        r"^Benchmark (?:#?\d+): .*\n  Time \(|^command,mean,stddev,|^\| Command \| Mean \[",
        "--export-json FILE writes results that are read",
    ),
    _lines(
        "pytest-benchmark's table or CSV",
        r"^-+ benchmark.*: \d+ tests? -+$|^Name \(time in |^name,(?:[a-z]+,){0,9}min,max,mean,",
        "--benchmark-json=FILE writes results that are read",
    ),
    _lines(
        "criterion's console",
        r"\btime: +\[[0-9.]+ [^ ]{1,9} [0-9.]+ ",
        "target/criterion, or cargo criterion --message-format=json, has results that are read",
    ),
    _lines("pyperf's console", r"Mean \+- std dev: ", "-o FILE writes results that are read"),
    _lines(
        "BenchmarkDotNet's log, Markdown or CSV",
        r"^BenchmarkDotNet(?:=| )v[0-9]|^\"?Method\"?[,;]\"?Job\"?[,;]",
        "--exporters json writes results that are read",
    ),
    _lines(
        "vitest's console", r"^ +name +hz +min +max +mean", "--outputJson FILE writes results that are read"
    ),
    _lines(
        "nanobench's table",
        r"^\| +(?:relative \| +)?[a-z]+/op \|",
        "ankerl::nanobench::templates::pyperf() renders results that are read",
    ),
    _lines(
        "benchstat's table",
        r"│ +(?:sec|B|allocs)/op +│|^name +old time/op",
        "the files that it compared are read",
    ),
    _lines("bencher.dev's report", r'"testbed": *\{', "what `bencher run` was given is read"),
    _lines("BenchmarkTools' JSON", r'"BenchmarkTools": *"', _GO_LINES),
    _lines("Catch2's benchmarks", r"^benchmark name +samples +iterations|<BenchmarkResults ", _GO_LINES),
    _lines(
        "a load test (wrk, ab, k6 or hey)",
        r'^Running \S+ test @ |^This is ApacheBench|"http_req_duration": *\{|^Requests/sec:',
        _GO_LINES,
    ),
)


def foreign_format(content: ResultFile) -> ForeignFormat | None:
    """Return the report that a file holds, None if it is of none that is known."""
    return next((format_ for format_ in FOREIGN_FORMATS if format_.pattern.search(content.text)), None)
