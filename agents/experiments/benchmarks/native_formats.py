"""Results of native programs as JSON: Google Benchmark, criterion and hyperfine."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import PureWindowsPath
from typing import Any

from agents.experiments.benchmarks.entries import Entries, distinct
from agents.experiments.benchmarks.members import (
    json_object,
    labels_of,
    objects,
    part,
    text_of,
)
from agents.experiments.benchmarks.results import (
    COMMIT_ID,
    FileResults,
    LeftOut,
    ResultFile,
    ResultFormat,
    commit_of,
    has_members,
    without_ids,
)
from agents.experiments.benchmarks.units import Better

_NO_CONTEXT = {"mhz_per_cpu", "load_avg", "json_schema_version"}
"""Members of Google Benchmark's ``context`` that are measured anew, or say nothing of the benchmarks."""

_WALL_CLOCK = {"manual_time", "real_time"}
"""Parts of a name by which Google Benchmark says that ``real_time`` is what the benchmark measures."""

_GOOGLE_MEMBERS = {
    *("name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions"),
    *("repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label", "rms"),
    *("aggregate_name", "aggregate_unit", "error_occurred", "error_message", "skipped", "skip_message"),
}
"""Members of each result of Google Benchmark; further numbers are counters."""

_MEMORY_COUNTERS = {"allocs_per_iter", "max_bytes_used", "total_allocated_bytes", "net_heap_growth"}
"""Counters of Google Benchmark's memory manager, and not of a user."""

_INSTANCE = ("family_index", "per_family_instance_index")
"""Members of a result of Google Benchmark that repetitions share, and benchmarks of one name do not."""

_AGGREGATE_NAME = re.compile(r"^(.+)_(mean|median|stddev|cv|min|max|BigO|RMS)$")


def _google_benchmark(content: ResultFile) -> FileResults:
    """Read repetitions; of benchmarks that have none, the median that was made of them, or else the mean."""
    context = labels_of(content.document["context"])
    if executable := context.get("executable"):  # builds may have folders of their own
        context["executable"] = without_ids(PureWindowsPath(executable).name).removesuffix(".exe")
    entries = Entries({name: value for name, value in context.items() if name not in _NO_CONTEXT})
    benchmarks = list(objects(content.document["benchmarks"]))
    names = {text_of(entry.get("name")) for entry in benchmarks}
    rows = [_google_row(entry, names) for entry in benchmarks]
    repeated = {name for name, statistic, _ in rows if not statistic}
    instances: dict[str, set[tuple[object, ...]]] = {}  # of version 1.5.6 and later; others say none
    for name, _, row in rows:
        instances.setdefault(name, set()).add(tuple(repr(row.get(index)) for index in _INSTANCE))
    summaries: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, statistic, row in rows:
        if row.get("error_occurred"):
            entries.leave_out(LeftOut.FAILED)
        elif len(instances[name]) > 1:
            entries.leave_out(LeftOut.AMBIGUOUS)
        elif row.get("skipped") or "skip_message" in row:
            entries.leave_out(LeftOut.SKIPPED)
        elif not statistic:
            _add_google(entries, name, row, "median")
        elif name in repeated:
            entries.leave_out(LeftOut.AGGREGATE)
        else:
            summaries.setdefault(name, {})[statistic] = row
    for name, summary in summaries.items():
        statistic = next((statistic for statistic in ("median", "mean") if statistic in summary), "")
        if statistic:
            _add_google(entries, name, summary[statistic], statistic)
        entries.leave_out(LeftOut.AGGREGATE, len(summary) - bool(statistic))
    return entries.results()


def _google_row(entry: Mapping[str, Any], names: Container[str]) -> tuple[str, str, Mapping[str, Any]]:
    """Return a benchmark's name, the statistic that an entry has of it (none if a repetition), and the entry.

    Files of versions before 1.5 have no ``run_type``: a mean and a stddev of one name show aggregates.
    """
    name = text_of(entry.get("name"))
    match = _AGGREGATE_NAME.match(name)
    if entry.get("run_type") == "aggregate":
        statistic = text_of(entry.get("aggregate_name")) or (match[2] if match else "other")
        return text_of(entry.get("run_name")) or (match[1] if match else name), statistic, entry
    if "run_type" in entry:
        return text_of(entry.get("run_name")) or name, "", entry
    fitted = match and match[2] in ("BigO", "RMS")
    if match and (fitted or (f"{match[1]}_mean" in names and f"{match[1]}_stddev" in names)):
        return match[1], match[2], entry
    return name, "", entry


def _add_google(entries: Entries, name: str, row: Mapping[str, Any], statistic: str) -> None:
    time = "real_time" if _WALL_CLOCK & set(name.split("/")) else "cpu_time"
    labels = labels_of({"label": row.get("label"), "threads": row.get("threads")})
    entries.add(name, row.get("time_unit", "ns"), row.get(time), labels, statistic=statistic)
    for counter, value in row.items():
        if counter not in _GOOGLE_MEMBERS and isinstance(value, int | float):
            better = Better.LOWER if counter in _MEMORY_COUNTERS else None
            unit = _counter_unit(counter)
            entries.add(name, unit, value, labels, statistic=statistic, better=better)


def _counter_unit(counter: str) -> str:
    """Return ``items/s`` for ``items_per_second``; no member says that another counter is a rate."""
    what, is_rate, _ = counter.partition("_per_second")
    return f"{'B' if what == 'bytes' else what}/s" if is_rate else counter


def _hyperfine(content: ResultFile) -> FileResults:
    entries = Entries()
    for entry in distinct(objects(content.document["results"]), _hyperfine_identity, entries):
        command, labels = _hyperfine_identity(entry)
        times, memory, codes = (entry.get(name) for name in ("times", "memory_usage_byte", "exit_codes"))
        if isinstance(codes, list) and any(code != 0 for code in codes):
            times, memory = _passed(times, codes), memory and _passed(memory, codes)
            entries.leave_out(LeftOut.FAILED, sum(code != 0 for code in codes))
            if not times:
                continue
        if memory:
            entries.add(f"{command}:memory", "B", memory, labels)
        statistic = "median" if times or entry.get("median") is not None else "mean"
        entries.add(command, "s", times or entry.get(statistic), labels, statistic=statistic)
    return entries.results()


def _passed(values: object, codes: Sequence[object]) -> list[object]:
    """Return the values of runs that ended with exit code 0, None where they are not one a run."""
    whole = values if isinstance(values, list) and len(values) == len(codes) else [None] * len(codes)
    return [value for value, code in zip(whole, codes, strict=True) if code == 0]


def _hyperfine_identity(entry: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the command without commits, as of ``build-0f3c2a9/shop``, and its parameters."""
    command = COMMIT_ID.sub(
        lambda match: match[0] if match[0].isdigit() else "", text_of(entry.get("command"))
    )
    return command, labels_of(entry.get("parameters"))


def _criterion(content: ResultFile) -> FileResults:
    """Read ``estimates.json`` of the last run, or of a baseline that is alone or named after a commit.

    Beside ``new``, the last run, criterion keeps ``base`` and named baselines, which are earlier runs, and
    ``change``, whose estimates are ratios.
    """
    folder = content.path.parent
    entries = Entries()
    stored = folder.name != "new" and (folder.parent / "new" / content.path.name).exists()
    ratios = folder.name == "change" and "std_dev" not in content.document
    if ratios or (stored and not commit_of(folder.name)):
        entries.leave_out(LeftOut.BASELINE)
        return entries.results()
    named = folder.name not in ("", "new", "base") and not commit_of(folder.name)
    statistic, value = _criterion_estimate(content.document)
    labels = {"baseline": folder.name} if named else {}
    entries.add(_criterion_name(content), "ns", value, labels, statistic=statistic)
    return entries.results()


def _criterion_name(content: ResultFile) -> object:
    """Return what ``benchmark.json`` beside the file says, or the folders of the benchmark."""
    if name := content.beside("benchmark.json").get("full_id"):
        return name
    folders = content.path.parent.parent.parts
    roots = [
        number
        for number, pair in enumerate(zip(("", *folders), folders, strict=False))
        if pair == ("target", "criterion") or commit_of(pair[1])
    ]
    root = max(roots) if roots else folders.index("criterion") if "criterion" in folders else -1
    name = folders[root + 1 :]
    return "/".join((name[1:] if name[:1] == ("criterion",) else name)[-3:])


def _criterion_estimate(estimates: object) -> tuple[str, object]:
    """Return the statistic that criterion prints, and its value: the slope, unless samples are flat."""
    statistic = next((name for name in ("slope", "median") if part(estimates, name)), "mean")
    return statistic, part(estimates, statistic).get("point_estimate")


def _cargo_criterion(content: ResultFile) -> FileResults:
    entries = Entries()
    for line in content.text.splitlines():
        message = json_object(line)
        if message.get("reason") == "benchmark-complete":
            typical = part(message, "typical") or part(message, "median")
            statistic = "slope" if part(message, "slope") else "mean" if "typical" in message else "median"
            entries.add(message.get("id"), typical.get("unit"), typical.get("estimate"), statistic=statistic)
    entries.leave_out_mixed()
    return entries.results()


def _critcmp(content: ResultFile) -> FileResults:
    document, entries = content.document, Entries()
    for name, benchmark in document["benchmarks"].items():
        statistic, value = _criterion_estimate(part(benchmark, "criterion_estimates_v1"))
        entries.add(name, "ns", value, statistic=statistic)
    return entries.results(commit_of(document.get("name")))


def _is_hyperfine(content: ResultFile) -> bool:
    results = content.document.get("results") if isinstance(content.document, dict) else None
    return any("command" in entry for entry in objects(results))


def _is_critcmp(content: ResultFile) -> bool:
    benchmarks = part(content.document, "benchmarks").values()
    return any("criterion_estimates_v1" in entry for entry in objects([*benchmarks]))


def _is_criterion(content: ResultFile) -> bool:
    return "point_estimate" in part(content.document, "mean")


FORMATS = (
    ResultFormat(
        "google-benchmark", has_members("context", benchmarks=list), _google_benchmark, machine="host_name"
    ),
    ResultFormat("hyperfine", _is_hyperfine, _hyperfine),
    ResultFormat("critcmp", _is_critcmp, _critcmp),
    ResultFormat("criterion", _is_criterion, _criterion),
    ResultFormat("cargo-criterion", lambda content: '"benchmark-complete"' in content.text, _cargo_criterion),
)
"""Formats in order: the first one that recognises a file reads it."""
