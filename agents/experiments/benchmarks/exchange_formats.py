"""Results that services exchange as JSON: github-action-benchmark's lists and histories, bencher.dev's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.experiments.benchmarks.entries import BRANCH, PROCESSORS, Entries
from agents.experiments.benchmarks.members import (
    json_object,
    labels_of,
    objects,
    part,
    text_of,
)
from agents.experiments.benchmarks.results import (
    FileResults,
    ResultFile,
    ResultFormat,
)
from agents.experiments.benchmarks.units import Better

_HISTORY = re.compile(r"\s*window\.BENCHMARK_DATA\s*=(.*?);?\s*", re.DOTALL)
"""JavaScript of github-action-benchmark's page."""

_HISTORY_LABELS = {PROCESSORS: re.compile(r"\b(\d+) procs\b"), "threads": re.compile(r"\bthreads: (\d+)")}

_PULL = re.compile(r"/(pull/\d+)/")
"""Part of a commit's address if a pull request was measured, which is on no branch of the history."""

_MEASURES = {"latency": "ns", "throughput": "ops/s"}
"""Units of bencher.dev's measures; others are of a user."""

_CUSTOM = {"customBiggerIsBetter": Better.HIGHER, "customSmallerIsBetter": Better.LOWER}


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


def _is_measure(measure: Mapping[str, Any]) -> bool:
    return "value" in measure and measure.keys() <= {"value", "lower_value", "upper_value"}


def _is_metric_format(content: ResultFile) -> bool:
    benchmarks = list(content.document.values()) if isinstance(content.document, dict) else []
    return bool(benchmarks) and all(
        isinstance(measures, dict)
        and measures
        and all(_is_measure(part(measures, name)) for name in measures)
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
    pull = _PULL.search(text_of(commit.get("url")))
    entries = Entries(labels_of({"suite": run.get("suite"), "tool": tool, BRANCH: pull and pull[1]}))
    for entry in objects(run.get("benches")):
        _add_custom(entries, entry, _CUSTOM.get(tool))
    entries.leave_out_mixed()
    return entries.results(commit.get("id"), commit_time=commit.get("timestamp"), run_time=run.get("date"))


def _is_history(content: ResultFile) -> bool:
    if not (content.text.startswith("window.BENCHMARK_DATA") or isinstance(content.document, dict)):
        return False
    suites = part(_history_document(content), "entries").values()
    return any("benches" in run for runs in suites for run in objects(runs))


FORMATS = (
    ResultFormat("github-action-benchmark", _is_history, _history, runs=_history_runs),
    ResultFormat("custom-benchmark", _is_custom, _custom),
    ResultFormat("bencher-metric", _is_metric_format, _metric_format),
)
"""Formats in order: the first one that recognises a file reads it."""
