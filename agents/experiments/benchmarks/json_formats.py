"""Results as JSON: Google Benchmark, JMH, BenchmarkDotNet, hyperfine, vitest, criterion and histories."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import PureWindowsPath
from typing import Any

from agents.experiments.benchmarks.results import (
    COMMIT_ID,
    PROCESSORS,
    Entries,
    FileResults,
    LeftOut,
    ResultFile,
    ResultFormat,
    commit_of,
    distinct,
    has_members,
    json_object,
    labels_of,
    objects,
    part,
    text_of,
    with_parameters,
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

_JOB = re.compile(r": (.*?)(?: \[[^\[]*\])?$")
"""Job in BenchmarkDotNet's ``DisplayInfo``, such as ``Cart.Total: Job-XYZABC(Runtime=.NET 9.0) [N=10]``."""

_JOB_NAME = re.compile(r"^Job-[A-Z]+")

_HISTORY = re.compile(r"\s*window\.BENCHMARK_DATA\s*=(.*?);?\s*", re.DOTALL)
"""JavaScript of github-action-benchmark's page."""

_HISTORY_LABELS = {PROCESSORS: re.compile(r"\b(\d+) procs\b"), "threads": re.compile(r"\bthreads: (\d+)")}

_MEASURES = {"latency": "ns", "throughput": "ops/s"}
"""Units of bencher.dev's measures; others are of a user."""

_CUSTOM = {"customBiggerIsBetter": Better.HIGHER, "customSmallerIsBetter": Better.LOWER}

_JMH_LABELS = (
    *("mode", "threads", "jmhVersion", "jdkVersion", "vmName", "vmVersion", "jvmArgs"),
    *("warmupIterations", "warmupTime", "warmupBatchSize", "measurementBatchSize"),
)


def _google_benchmark(content: ResultFile) -> FileResults:
    """Read repetitions; of benchmarks that have none, the median that was made of them, or else the mean."""
    context = labels_of(content.document["context"])
    if executable := context.get("executable"):  # builds may have folders of their own
        context["executable"] = COMMIT_ID.sub("", PureWindowsPath(executable).name).removesuffix(".exe")
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
                better=_jmh_direction(text_of(unit)) if metric else None,
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


def _jmh_direction(unit: str) -> Better | None:
    """Return the direction of a secondary metric, None if its unit says it.

    What a profiler measured in an iteration has none: a faster benchmark allocates more a second, too.
    """
    if unit == "#/op":  # events of the processor
        return Better.LOWER
    return None if unit.startswith("ops/") or unit.endswith("/op") else Better.UNKNOWN


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
            better = Better.HIGHER if descriptor.get("TheGreaterTheBetter") else Better.LOWER
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


def _custom(content: ResultFile) -> FileResults:
    """Read a list of objects with ``name``, ``unit`` and ``value``; no member says the direction."""
    entries = Entries()
    for entry in objects(content.document):
        _add_custom(entries, entry, None)
    entries.leave_out_mixed()
    return entries.results()


def _is_custom(content: ResultFile) -> bool:
    entries = content.document if isinstance(content.document, list) else []
    return bool(entries) and all({"name", "unit", "value"} <= entry.keys() for entry in objects(entries))


def _metric_format(content: ResultFile) -> FileResults:
    """Read bencher.dev's objects of benchmarks, each with measures such as latency, which is in ns."""
    entries = Entries()
    for name, measures in content.document.items():
        for measure in measures:
            unit = _MEASURES.get(measure, measure)
            entries.add(name, unit, part(measures, measure).get("value"), statistic="value")
    return entries.results()


def _is_metric_format(content: ResultFile) -> bool:
    benchmarks = list(content.document.values()) if isinstance(content.document, dict) else []
    return bool(benchmarks) and all(
        isinstance(measures, dict) and measures and all("value" in part(measures, name) for name in measures)
        for measures in benchmarks
    )


def _add_custom(entries: Entries, entry: Mapping[str, Any], better: Better | None) -> None:
    """Add an entry of github-action-benchmark; early versions wrote several metrics of Go into one unit."""
    extra = text_of(entry.get("extra"))
    labels = {name: match[1] for name, pattern in _HISTORY_LABELS.items() if (match := pattern.search(extra))}
    unit = text_of(entry.get("unit")).partition("\t")[0].strip()
    entries.add(entry.get("name"), unit, entry.get("value"), labels, statistic="value", better=better)


def _history_runs(content: ResultFile) -> list[ResultFile]:
    """Return the runs of github-action-benchmark's history, each with its suite."""
    suites = part(_history_document(content), "entries")
    return [
        replace(content, document={"suite": suite, **run})
        for suite, runs in suites.items()
        for run in objects(runs)
    ]


def _history_document(content: ResultFile) -> object:
    script = _HISTORY.fullmatch(content.text) if content.document is None else None
    return json_object(script[1]) if script else content.document


def _history(content: ResultFile) -> FileResults:
    run = content.document
    commit, tool = part(run, "commit"), text_of(run.get("tool"))
    entries = Entries(labels_of({"suite": run.get("suite"), "tool": tool}))
    for entry in objects(run.get("benches")):
        _add_custom(entries, entry, _CUSTOM.get(tool))
    entries.leave_out_mixed()
    return entries.results(commit.get("id"), commit_time=commit.get("timestamp"), run_time=run.get("date"))


def _is_history(content: ResultFile) -> bool:
    if not (content.text.startswith("window.BENCHMARK_DATA") or isinstance(content.document, dict)):
        return False
    suites = part(_history_document(content), "entries").values()
    return any("benches" in run for runs in suites for run in objects(runs))


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


def _is_jmh(content: ResultFile) -> bool:
    document = content.document
    return bool(
        isinstance(document, list)
        and document
        and any("primaryMetric" in entry for entry in objects(document))
    )


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
    ResultFormat("jmh", _is_jmh, _jmh),
    ResultFormat(
        "benchmarkdotnet",
        has_members("HostEnvironmentInfo", Benchmarks=list),
        _dotnet,
        machine="ProcessorName",
    ),
    ResultFormat("vitest", _is_vitest, _vitest),
    ResultFormat("github-action-benchmark", _is_history, _history, runs=_history_runs),
    ResultFormat("custom-benchmark", _is_custom, _custom),
    ResultFormat("bencher-metric", _is_metric_format, _metric_format),
    ResultFormat("hyperfine", _is_hyperfine, _hyperfine),
    ResultFormat("critcmp", _is_critcmp, _critcmp),
    ResultFormat("criterion", _is_criterion, _criterion),
    ResultFormat("cargo-criterion", lambda content: '"benchmark-complete"' in content.text, _cargo_criterion),
)
"""Formats in order: the first one that recognises a file reads it."""
