"""Results as JSON: pytest-benchmark, Google Benchmark, JMH, hyperfine, asv and criterion."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import PureWindowsPath
from typing import Any

from agents.experiments.benchmarks.results import (
    COMMIT_ID,
    Entries,
    FileResults,
    LeftOut,
    Remark,
    ResultFile,
    ResultFormat,
    commit_of,
    json_object,
    labels_of,
    objects,
    part,
    with_parameters,
)
from agents.experiments.benchmarks.units import Better

_NO_MACHINE = re.compile(r"cpu\.(hz_|flags|cpuinfo_version|python_version)")
"""Members of pytest-benchmark's ``machine_info`` that are measured anew, or say nothing of the machine."""

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

_JMH_LABELS = (
    *("mode", "threads", "jmhVersion", "jdkVersion", "vmName", "vmVersion", "jvmArgs"),
    *("warmupIterations", "warmupTime", "warmupBatchSize", "measurementBatchSize"),
)


def _pytest_benchmark(content: ResultFile) -> FileResults:
    document = content.document
    commit = part(document, "commit_info")
    machine = labels_of(document["machine_info"])
    labels = {name: value for name, value in machine.items() if not _NO_MACHINE.match(name)}
    entries = Entries(labels | labels_of({"project": commit.get("project")}))
    if commit.get("dirty") is True:
        entries.remarks.add(Remark.DIRTY)
    for entry in objects(document["benchmarks"]):
        stats, options = part(entry, "stats"), part(entry, "options")
        labels = labels_of({name: entry.get(name) for name in ("group", "params")})
        labels |= labels_of({name: options.get(name) for name in ("timer", "disable_gc", "warmup")})
        data = stats.get("data") or stats.get("median")
        entries.add(entry.get("fullname") or entry.get("name"), "s", data, labels)
    return entries.results(
        commit.get("id"),
        commit_time=commit.get("time"),
        run_time=document.get("datetime"),
    )


def _google_benchmark(content: ResultFile) -> FileResults:
    """Read repetitions; of benchmarks that have none, the median that was made of them, or else the mean."""
    context = labels_of(content.document["context"])
    if executable := context.get("executable"):  # builds may have folders of their own
        context["executable"] = COMMIT_ID.sub("", PureWindowsPath(executable).name).removesuffix(".exe")
    entries = Entries({name: value for name, value in context.items() if name not in _NO_CONTEXT})
    benchmarks = list(objects(content.document["benchmarks"]))
    names = {_text(entry.get("name")) for entry in benchmarks}
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
    name = _text(entry.get("name"))
    match = _AGGREGATE_NAME.match(name)
    if entry.get("run_type") == "aggregate":
        statistic = _text(entry.get("aggregate_name")) or (match[2] if match else "other")
        return _text(entry.get("run_name")) or (match[1] if match else name), statistic, entry
    if "run_type" in entry:
        return _text(entry.get("run_name")) or name, "", entry
    fitted = match and match[2] in ("BigO", "RMS")
    if match and (fitted or (f"{match[1]}_mean" in names and f"{match[1]}_stddev" in names)):
        return match[1], match[2], entry
    return name, "", entry


def _add_google(entries: Entries, name: str, row: Mapping[str, Any], statistic: str) -> None:
    time = "real_time" if _WALL_CLOCK & set(name.split("/")) else "cpu_time"
    labels = labels_of({"label": row.get("label")})
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
    for entry in objects(content.document):
        labels = labels_of({name: entry.get(name) for name in _JMH_LABELS})
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
                better=_jmh_direction(_text(unit)) if metric else None,
            )
    return entries.results()


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


def _hyperfine(content: ResultFile) -> FileResults:
    entries = Entries()
    names = Counter(map(_hyperfine_name, objects(content.document["results"])))
    for entry in objects(content.document["results"]):
        labels = labels_of(entry.get("parameters"))
        if names[_hyperfine_name(entry)] > 1:  # runs of one entry are its repetitions
            entries.leave_out(LeftOut.AMBIGUOUS)
            continue
        times, codes = entry.get("times"), entry.get("exit_codes")
        if isinstance(codes, list) and any(code != 0 for code in codes):
            times = times if isinstance(times, list) and len(times) == len(codes) else [None] * len(codes)
            passed = [time for time, code in zip(times, codes, strict=True) if code == 0]
            entries.leave_out(LeftOut.FAILED, len(codes) - len(passed))
            if not passed:
                continue
            times = passed
        statistic = "median" if times or entry.get("median") is not None else "mean"
        entries.add(entry.get("command"), "s", times or entry.get(statistic), labels, statistic=statistic)
    return entries.results()


def _hyperfine_name(entry: Mapping[str, Any]) -> str:
    return repr((entry.get("command"), labels_of(entry.get("parameters"))))


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
        return {_text(name): cell for name, cell in zip(columns, cells, strict=False)}
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
    return entries.results()


def _critcmp(content: ResultFile) -> FileResults:
    document, entries = content.document, Entries()
    for name, benchmark in document["benchmarks"].items():
        statistic, value = _criterion_estimate(part(benchmark, "criterion_estimates_v1"))
        entries.add(name, "ns", value, statistic=statistic)
    return entries.results(commit_of(document.get("name")))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


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
        "pytest-benchmark", _has("machine_info", benchmarks=list), _pytest_benchmark, machine="node"
    ),
    ResultFormat(
        "google-benchmark", _has("context", benchmarks=list), _google_benchmark, machine="host_name"
    ),
    ResultFormat("jmh", _is_jmh, _jmh),
    ResultFormat("asv", _has("commit_hash", results=dict), _asv, machine="machine"),
    ResultFormat("hyperfine", _is_hyperfine, _hyperfine),
    ResultFormat("critcmp", _is_critcmp, _critcmp),
    ResultFormat("criterion", _is_criterion, _criterion),
    ResultFormat("cargo-criterion", lambda content: '"benchmark-complete"' in content.text, _cargo_criterion),
)
"""Formats in order: the first one that recognises a file reads it."""
