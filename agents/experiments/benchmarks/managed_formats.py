"""Results of managed languages as JSON: JMH, BenchmarkDotNet and vitest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agents.experiments.benchmarks.entries import Entries, distinct
from agents.experiments.benchmarks.members import (
    labels_of,
    objects,
    part,
    text_of,
    with_parameters,
)
from agents.experiments.benchmarks.results import (
    FileResults,
    LeftOut,
    ResultFile,
    ResultFormat,
    has_members,
)
from agents.experiments.benchmarks.units import Better, unit_of

_JMH_LABELS = (
    *("mode", "threads", "jmhVersion", "jdkVersion", "vmName", "vmVersion", "jvmArgs"),
    *("warmupIterations", "warmupTime", "warmupBatchSize", "measurementBatchSize"),
)

_DOTNET_LABELS = (
    *(
        "ProcessorName",
        "PhysicalCoreCount",
        "LogicalCoreCount",
        "OsVersion",
        "Architecture",
        "RuntimeVersion",
    ),
    *("Configuration", "HasAttachedDebugger", "BenchmarkDotNetVersion"),
)

_GREATER = {"True": Better.HIGHER, "False": Better.LOWER}

_JOB = re.compile(r": (.*?)(?: \[[^\[]*\])?$")
"""Job in BenchmarkDotNet's ``DisplayInfo``, such as ``Cart.Total: Job-XYZABC(Runtime=.NET 9.0) [N=10]``."""

_JOB_NAME = re.compile(r"^Job-[A-Z]+")


def _jmh(content: ResultFile) -> FileResults:
    entries = Entries()
    for entry in distinct(objects(content.document), _jmh_identity, entries):
        labels = _jmh_labels(entry)
        secondary = part(entry, "secondaryMetrics")
        for metric in ("", *secondary):
            name = f"{entry.get('benchmark')}:{metric.lstrip('·')}" if metric else entry.get("benchmark")
            measured = part(secondary, metric) if metric else part(entry, "primaryMetric")
            unit = measured.get("scoreUnit")
            values = _jmh_values(measured)
            entries.add(
                with_parameters(name, entry.get("params")),
                unit,
                values or measured.get("score"),
                labels,
                statistic="median" if values else "mean",
                better=_jmh_direction(metric, text_of(unit)) if metric else None,
            )
    return entries.results()


def _jmh_labels(entry: Mapping[str, Any]) -> dict[str, str]:
    return labels_of({name: entry.get(name) for name in _JMH_LABELS})


def _jmh_identity(entry: Mapping[str, Any]) -> tuple[object, ...]:
    return entry.get("benchmark"), entry.get("params"), _jmh_labels(entry)


def _jmh_values(metric: Mapping[str, Any]) -> list[object]:
    """Return the iterations of all forks; nothing for the histograms of the mode ``sample``."""
    forks = metric.get("rawData")
    lists = [fork for fork in forks if isinstance(fork, list)] if isinstance(forks, list) else []
    values: list[object] = [value for fork in lists for value in fork]
    return values if all(isinstance(value, int | float) for value in values) else []


def _jmh_direction(metric: str, unit: str) -> Better | None:
    """Return the direction of a secondary metric, None if its unit says it.

    What a profiler measured in an iteration has none: a faster benchmark allocates more a second, too.
    """
    if unit == "#/op":  # events of the processor
        return Better.LOWER
    counts_failures = unit.startswith("ops/") and unit_of(metric).better is Better.LOWER
    return None if unit.startswith("ops/") != counts_failures or unit.endswith("/op") else Better.UNKNOWN


def _dotnet(content: ResultFile) -> FileResults:
    host = part(content.document, "HostEnvironmentInfo")
    entries = Entries(labels_of({name: host.get(name) for name in _DOTNET_LABELS}))
    for entry in distinct(
        objects(content.document["Benchmarks"]), lambda entry: (entry.get("FullName"), _job(entry)), entries
    ):
        statistics, name = part(entry, "Statistics"), text_of(entry.get("FullName"))
        if not statistics:
            entries.leave_out(LeftOut.FAILED)
            continue
        labels = labels_of({"job": _job(entry)})
        values = statistics.get("OriginalValues") or statistics.get("Median")
        statistic = "median" if values else "mean"
        entries.add(name, "ns", values or statistics.get("Mean"), labels, statistic=statistic)
        allocated = part(entry, "Memory").get("BytesAllocatedPerOperation")
        if allocated is not None and not entry.get("Metrics"):  # before version 0.12
            entries.add(f"{name}:Allocated Memory", "B", allocated, labels)
        for metric in objects(entry.get("Metrics")):
            descriptor = part(metric, "Descriptor")
            better = _GREATER.get(repr(descriptor.get("TheGreaterTheBetter")))
            title = f"{name}:{descriptor.get('Id')}"
            entries.add(title, descriptor.get("Unit"), metric.get("Value"), labels, better=better)
    return entries.results(run_time=_dotnet_time(text_of(content.document.get("Title"))))


def _job(entry: Mapping[str, Any]) -> str:
    """Return the job of a result of BenchmarkDotNet, without the name that it was given by chance."""
    job = _JOB.search(text_of(entry.get("DisplayInfo")))
    return _JOB_NAME.sub("", job[1]) if job else ""


def _dotnet_time(title: str) -> str | None:
    """Return the time that ends a title such as ``Cart-20260131-235959``, None if there is none."""
    match = re.search(r"-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$", title)
    return "{}-{}-{}T{}:{}:{}".format(*match.groups()) if match else None


def _vitest(content: ResultFile) -> FileResults:
    entries = Entries()
    for file in objects(content.document["files"]):
        for group in objects(file.get("groups")):
            for entry in distinct(
                objects(group.get("benchmarks")), lambda entry: (entry.get("name"),), entries
            ):
                name = " > ".join(filter(None, (text_of(group.get("fullName")), text_of(entry.get("name")))))
                values = entry.get("samples") or entry.get("median")
                statistic = "median" if values else "mean"
                entries.add(name, "ms", values or entry.get("mean"), statistic=statistic)
    return entries.results()


def _is_vitest(content: ResultFile) -> bool:
    files = content.document.get("files") if isinstance(content.document, dict) else None
    return any("groups" in file for file in objects(files))


def _is_jmh(content: ResultFile) -> bool:
    document = content.document
    return bool(
        isinstance(document, list)
        and document
        and any("primaryMetric" in entry for entry in objects(document))
    )


FORMATS = (
    ResultFormat("jmh", _is_jmh, _jmh),
    ResultFormat(
        "benchmarkdotnet",
        has_members("HostEnvironmentInfo", Benchmarks=list),
        _dotnet,
        machine="ProcessorName",
    ),
    ResultFormat("vitest", _is_vitest, _vitest),
)
"""Formats in order: the first one that recognises a file reads it."""
