"""Results of Python's tools as JSON: pytest-benchmark, asv and pyperf."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agents.experiments.benchmarks.entries import BRANCH, Entries, distinct
from agents.experiments.benchmarks.members import labels_of, objects, part, text_of
from agents.experiments.benchmarks.results import (
    FileResults,
    LeftOut,
    Remark,
    ResultFile,
    ResultFormat,
    has_members,
    without_ids,
)

_NO_MACHINE = re.compile(r"cpu\.(hz_|flags|cpuinfo_version|python_version)")
"""Members of pytest-benchmark's ``machine_info`` that are measured anew, or say nothing of the machine."""

_PYPERF_LABELS = (
    *("hostname", "platform", "cpu_model_name", "cpu_count", "cpu_affinity", "cpu_config", "aslr", "timer"),
    *("python_implementation", "python_version", "python_compiler", "inner_loops", "tags", "command"),
)
"""Metadata of pyperf that say what was measured, and where; others are measured anew, or are paths."""

_PYPERF_UNITS = {"second": "s", "byte": "B"}


def _pytest_benchmark(content: ResultFile) -> FileResults:
    document = content.document
    commit = part(document, "commit_info")
    machine = labels_of(document["machine_info"])
    labels = {name: value for name, value in machine.items() if not _NO_MACHINE.match(name)}
    entries = Entries(labels | labels_of({name: commit.get(name) for name in ("project", BRANCH)}))
    if commit.get("dirty") is True:
        entries.remarks.add(Remark.DIRTY)
    for entry in distinct(objects(document["benchmarks"]), _pytest_identity, entries):
        stats, options = part(entry, "stats"), part(entry, "options")
        labels = labels_of({name: entry.get(name) for name in ("group", "params")})
        labels |= labels_of({name: options.get(name) for name in ("timer", "disable_gc", "warmup")})
        data = stats.get("data")
        is_whole = isinstance(data, list) and data and all(isinstance(value, int | float) for value in data)
        data = data if is_whole else stats.get("median", data)
        entries.add(entry.get("fullname") or entry.get("name"), "s", data, labels)
    return entries.results(
        commit.get("id"),
        commit_time=commit.get("time"),
        run_time=document.get("datetime"),
    )


def _pytest_identity(entry: Mapping[str, Any]) -> tuple[object, ...]:
    return entry.get("fullname") or entry.get("name"), entry.get("group"), entry.get("params")


def _asv(content: ResultFile) -> FileResults:
    document = content.document
    labels = labels_of({name: document.get(name) for name in ("env_name", "python", "env_vars")})
    if "env_name" not in document:  # version 1: the file is COMMIT-ENVIRONMENT.json
        labels["env_name"] = content.path.stem.partition("-")[2]
    entries = Entries(labels | labels_of(document.get("params")))
    columns = document.get("result_columns")
    versions = part(document, "benchmark_version")  # of files before result_columns
    for name, row in document["results"].items():
        cell = _asv_cell(row, columns)
        values, parameters = cell.get("result"), cell.get("params")
        if not isinstance(values, list):
            values = [values]
        combinations = _combinations(name, parameters if isinstance(parameters, list) else [])
        if values == [None]:
            values = [None] * len(combinations)
        version = labels_of({"version": cell.get("version", versions.get(name))})
        entries.leave_out(LeftOut.INVALID, abs(len(values) - len(combinations)))
        for combination, value in zip(combinations, values, strict=False):
            if value is None:
                entries.leave_out(LeftOut.FAILED)
            elif value != value:  # NaN
                entries.leave_out(LeftOut.SKIPPED)
            else:
                entries.add(combination, _asv_unit(name), value, version)
    return entries.results(document["commit_hash"], commit_time=document.get("date"))


def _asv_cell(row: object, columns: object) -> Mapping[str, Any]:
    """Return the columns of a benchmark by name; files of version 1 have an object, a list or a number."""
    if isinstance(columns, list):
        cells = row if isinstance(row, list) else [row]
        return {text_of(name): cell for name, cell in zip(columns, cells, strict=False)}
    return row if isinstance(row, dict) else {"result": row}


def _asv_unit(name: str) -> str:
    """Return the unit that asv gives to a kind of benchmark; the number of another kind may be anything."""
    kind = name.rpartition(".")[2].partition("_")[0]
    return {"time": "s", "timeraw": "s", "mem": "B", "peakmem": "B"}.get(kind, "")


def _combinations(name: str, parameters: Iterable[object]) -> list[str]:
    texts = [""]
    for values in parameters:
        texts = [
            f"{text},{value}" for text in texts for value in (values if isinstance(values, list) else [])
        ]
        if len(texts) > 100_000:
            return []
    return [f"{name}[{text[1:]}]" if text else name for text in texts]


def _pyperf(content: ResultFile) -> FileResults:
    """Read the values of all runs; runs that calibrate the number of loops have none.

    Metadata that benchmarks share are in those of the file, what runs differ in is in theirs.
    """
    document = content.document
    shared, dates = part(document, "metadata"), []
    entries = Entries(labels_of({"commit_branch": shared.get("commit_branch")}))
    for benchmark in objects(document["benchmarks"]):
        runs = list(objects(benchmark.get("runs")))
        metadata = {**part(runs[0] if runs else {}, "metadata"), **shared, **part(benchmark, "metadata")}
        dates += [part(run, "metadata").get("date") for run in runs]
        labels = labels_of({name: metadata.get(name) for name in _PYPERF_LABELS})
        if "python_version" in labels:  # of CPython's own builds it names their commit
            labels["python_version"] = without_ids(labels["python_version"])
        lists = [run.get("values") for run in runs]
        values = [value for numbers in lists if isinstance(numbers, list) for value in numbers]
        unit = _PYPERF_UNITS.get(text_of(metadata.get("unit", "second")), "")
        entries.add(metadata.get("name"), unit, values, labels)
    times = [date for date in dates if isinstance(date, str)]
    return entries.results(
        shared.get("commit_id"),
        commit_time=shared.get("commit_date"),
        run_time=min(times, default=None),
    )


def _is_pyperf(content: ResultFile) -> bool:
    benchmarks = content.document.get("benchmarks") if isinstance(content.document, dict) else None
    return any("runs" in entry for entry in objects(benchmarks))


FORMATS = (
    ResultFormat(
        "pytest-benchmark", has_members("machine_info", benchmarks=list), _pytest_benchmark, machine="node"
    ),
    ResultFormat("asv", has_members("commit_hash", results=dict), _asv, machine="machine"),
    ResultFormat("pyperf", _is_pyperf, _pyperf, machine="hostname"),
)
"""Formats in order: the first one that recognises a file reads it."""
