"""Results as JSON: pytest-benchmark, Google Benchmark, JMH, hyperfine, asv and criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

import orjson

from agents.experiments.benchmarks.results import (
    Entries,
    FileResults,
    ResultFile,
    ResultFormat,
    commit_of,
    objects,
    part,
    with_parameters,
)

_AGGREGATES = "aggregate"
_CRITERION_BASES = {"new", "base"}
"""Folders of one benchmark under ``target/criterion`` in which its last estimates lie."""


def _pytest_benchmark(content: ResultFile) -> FileResults:
    document, entries = content.document, Entries()
    for entry in objects(document["benchmarks"]):
        stats = part(entry, "stats")
        entries.add(entry.get("fullname") or entry.get("name"), "s", stats.get("data") or stats.get("median"))
    commit = part(document, "commit_info")
    return entries.results(commit.get("id"), document.get("datetime") or commit.get("time"))


def _google_benchmark(content: ResultFile) -> FileResults:
    document = content.document
    repeated: dict[tuple[str, str], list[object]] = {}
    for entry in objects(document["benchmarks"]):
        if entry.get("run_type") == _AGGREGATES or entry.get("error_occurred"):
            continue
        name = _text(entry.get("run_name") or entry.get("name"))
        repeated.setdefault((name, _text(entry.get("time_unit", "ns"))), []).append(entry.get("cpu_time"))
        for counter, unit in (("items_per_second", "items/s"), ("bytes_per_second", "B/s")):
            if counter in entry:
                repeated.setdefault((name, unit), []).append(entry[counter])
    return _repeated(repeated).results(time=part(document, "context").get("date"))


def _jmh(content: ResultFile) -> FileResults:
    entries = Entries()
    for entry in objects(content.document):
        metric = part(entry, "primaryMetric")
        forks = metric.get("rawData")
        lists = [fork for fork in forks if isinstance(fork, list)] if isinstance(forks, list) else []
        values: list[object] | None = [value for fork in lists for value in fork]
        if values and not all(isinstance(value, int | float) for value in values):
            values = None  # histograms of the mode sample
        name = with_parameters(entry.get("benchmark"), entry.get("params"))
        entries.add(name, metric.get("scoreUnit"), values or metric.get("score"))
    return entries.results()


def _hyperfine(content: ResultFile) -> FileResults:
    entries = Entries()
    for entry in objects(content.document["results"]):
        entries.add(entry.get("command"), "s", entry.get("times") or entry.get("median") or entry.get("mean"))
    return entries.results()


def _asv(content: ResultFile) -> FileResults:
    document, entries = content.document, Entries()
    columns = document.get("result_columns")
    names = columns if isinstance(columns, list) else ["result"]
    at = {_text(name): number for number, name in enumerate(names)}
    for name, row in document["results"].items():
        cells = row if isinstance(row, list) else [[row]]
        cell = {key: cells[number] for key, number in at.items() if number < len(cells)}
        values, parameters = cell.get("result"), cell.get("params")
        if not isinstance(values, list):
            values = [values]
        combinations = _combinations(name, parameters if isinstance(parameters, list) else [])
        for combination, value in zip(combinations, values, strict=False):
            if value is not None and value == value:  # None: the benchmark failed; NaN: it was left out
                entries.add(combination, "", value)
    return entries.results(document["commit_hash"], document.get("date"))


def _combinations(name: str, parameters: Iterable[object]) -> list[str]:
    texts = [""]
    for values in parameters:
        texts = [
            f"{text},{value}" for text in texts for value in (values if isinstance(values, list) else [])
        ]
        if len(texts) > 100_000:
            return []
    return [f"{name}[{text[1:]}]" if text else name for text in texts]


def _criterion(content: ResultFile) -> FileResults:
    """Read ``estimates.json``, whose benchmark is the folder that it lies in."""
    folders = [folder for folder in PurePath(content.path).parent.parts if folder not in _CRITERION_BASES]
    if "criterion" in folders:
        folders = folders[folders.index("criterion") + 1 :]
    entries = Entries()
    document = content.document
    estimate = part(document, "slope") or part(document, "median") or part(document, "mean")
    entries.add("/".join(folders[-3:]), "ns", estimate.get("point_estimate"))
    return entries.results()


def _cargo_criterion(content: ResultFile) -> FileResults:
    entries = Entries()
    for line in content.text.splitlines():
        message = _object(line)
        if message.get("reason") == "benchmark-complete":
            typical = part(message, "typical") or part(message, "median")
            entries.add(message.get("id"), typical.get("unit"), typical.get("estimate"))
    return entries.results()


def _critcmp(content: ResultFile) -> FileResults:
    document, entries = content.document, Entries()
    for name, benchmark in document["benchmarks"].items():
        estimates = part(benchmark, "criterion_estimates_v1")
        estimate = part(estimates, "slope") or part(estimates, "median") or part(estimates, "mean")
        entries.add(name, "ns", estimate.get("point_estimate"))
    return entries.results(commit_of(document.get("name")))


def _repeated(repeated: Mapping[tuple[str, str], list[object]]) -> Entries:
    entries = Entries()
    for (name, unit), values in repeated.items():
        entries.add(name, unit, values)
    return entries


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(line: str) -> Mapping[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _has(*names: str, **kinds: type) -> Callable[[ResultFile], bool]:
    """Return a function that recognises an object with these members, of these types."""

    def recognises(content: ResultFile) -> bool:
        document = content.document
        return (
            isinstance(document, dict)
            and all(name in document for name in names)
            and all(isinstance(document.get(name), kind) for name, kind in kinds.items())
        )

    return recognises


def _is_jmh(content: ResultFile) -> bool:
    document = content.document
    return bool(
        isinstance(document, list)
        and document
        and any("primaryMetric" in entry for entry in objects(document))
    )


def _is_criterion(content: ResultFile) -> bool:
    return "point_estimate" in part(content.document, "mean")


FORMATS = (
    ResultFormat("pytest-benchmark", _has("machine_info", benchmarks=list), _pytest_benchmark),
    ResultFormat("google-benchmark", _has("context", benchmarks=list), _google_benchmark),
    ResultFormat("jmh", _is_jmh, _jmh),
    ResultFormat("asv", _has("commit_hash", results=dict), _asv),
    ResultFormat("hyperfine", _has(results=list), _hyperfine),
    ResultFormat("critcmp", _has(benchmarks=dict), _critcmp),
    ResultFormat("criterion", _is_criterion, _criterion),
    ResultFormat("cargo-criterion", lambda content: '"benchmark-complete"' in content.text, _cargo_criterion),
)
"""Formats in order: the first one that recognises a file reads it."""
