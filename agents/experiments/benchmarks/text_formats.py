"""Results as text: ``go test -bench`` and what Rust's libtest and criterion's bencher format print."""

from __future__ import annotations

import re

from agents.experiments.benchmarks.results import Entries, FileResults, ResultFile, ResultFormat

_GO = re.compile(r"^(Benchmark\S*)\s+\d+\s+(.+)$", re.MULTILINE)
_GO_BEGINS = re.compile(r"^Benchmark", re.MULTILINE)
_GO_PROCESSORS = re.compile(r"-\d+$")
_GO_VALUE = re.compile(r"^[0-9.eE+]+$")
_BENCHER = re.compile(r"^test (\S.*?)\s+\.\.\. bench:\s+([0-9,.]+) (ns|us|ms|s)/iter", re.MULTILINE)
_BENCHER_BEGINS = re.compile(r"^test .* \.\.\. bench:", re.MULTILINE)


def _go(content: ResultFile) -> FileResults:
    """Read lines such as ``BenchmarkSum-8  1000  1234 ns/op  16 B/op``: pairs of value and unit."""
    repeated: dict[tuple[str, str], list[float]] = {}
    entries = Entries()
    lines = _GO.findall(content.text)
    entries.invalid = max(len(_GO_BEGINS.findall(content.text)) - len(lines), 0)
    for name, rest in lines:
        words = rest.split()
        for value, unit in zip(words[::2], words[1::2], strict=False):
            if _GO_VALUE.match(value):
                key = _GO_PROCESSORS.sub("", name), unit.removesuffix("/op")
                repeated.setdefault(key, []).append(_number(value))
    for (name, unit), values in repeated.items():
        entries.add(name, "allocations" if unit == "allocs" else unit, values)
    return entries.results()


def _bencher(content: ResultFile) -> FileResults:
    entries = Entries()
    lines = _BENCHER.findall(content.text)
    entries.invalid = len(_BENCHER_BEGINS.findall(content.text)) - len(lines)
    for name, value, unit in lines:
        entries.add(name, unit, _number(value.replace(",", "")))
    return entries.results()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


FORMATS = (
    ResultFormat("go", lambda content: bool(_GO.search(content.text)), _go),
    ResultFormat("bencher", lambda content: bool(_BENCHER.search(content.text)), _bencher),
)
