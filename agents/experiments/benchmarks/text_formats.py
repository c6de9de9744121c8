"""Results as text: ``go test -bench`` and what Rust's libtest and criterion's bencher format print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agents.experiments.benchmarks.results import (
    PROCESSORS,
    Entries,
    FileResults,
    LeftOut,
    ResultFile,
    ResultFormat,
    is_of_run,
    json_object,
)

_GO = re.compile(r"^(Benchmark(?![a-z])\S*)[ \t]+\d+[ \t]+(\S.*)$", re.MULTILINE)
_GO_BEGINS = re.compile(r"^(Benchmark(?![a-z])\S*)(.*)$")
_GO_LABEL = re.compile(r"^([a-z][^\sA-Z:]*):(?:[ \t]+(.*))?$")
_GO_UNIT = re.compile(r"^Unit\s+(\S+)\s.*\bbetter=(higher|lower)\b")
_GO_FAILED = re.compile(r"^\s*--- FAIL: (Benchmark\S*)|^FAIL\s+\S+ \[(?:build|setup) failed\]|^panic: ")
_GO_SKIPPED = re.compile(r"^\s*--- SKIP: (Benchmark\S*)")
_GO_PROCESSORS = re.compile(r"^(.*)-(\d+)$")
_GO_TOOL = {"goos", "goarch", "pkg", "cpu"}
_GO_MESSAGES = {"go", "panic", "warning", "error", "fatal"}
"""What messages begin with that look like a label: ``go: downloading example.org/shop v1.2.0``."""

_BENCHER = re.compile(r"^test (\S.*?)\s+\.\.\. bench:\s+([0-9,.]+) (ns|us|µs|μs|ms|s)/iter", re.MULTILINE)
_BENCHER_LINE = re.compile(r"^test (.*?)\s+\.\.\. (bench:|FAILED)")
_BENCHER_BEGINS = re.compile(r"^running \d+ tests?$")


def _go(content: ResultFile) -> FileResults:
    """Read lines such as ``BenchmarkSum-8  1000  1234 ns/op  16 B/op``: pairs of value and unit.

    Lines before them such as ``pkg: example.org/shop`` are labels of those that follow, until another line
    says otherwise (golang.org/design/14313-benchmark-format).
    """
    text = _go_text(content)
    processors = _processors([match[1] for match in _GO.finditer(text)])
    directions = {match[1]: match[2] == "higher" for match in map(_GO_UNIT.match, text.splitlines()) if match}
    entries, announced, measured = Entries(), set[str](), set[str]()
    head = True  # only labels so far, or since a label of the tool
    for line in text.splitlines():
        label, match = _GO_LABEL.match(line), _GO.match(line)
        if label and label[1] not in _GO_MESSAGES and (head or label[1] in _GO_TOOL or is_of_run(label[1])):
            entries.label(label[1], (label[2] or "").strip())
            head = True
        elif match:
            measured.add(match[1])
            _add_go(entries, match[1], match[2].split(), processors, directions)
        elif begins := _GO_BEGINS.match(line):
            if begins[2].strip():
                entries.leave_out(LeftOut.INVALID)
            else:
                announced.add(begins[1])  # by -v, before its result
        elif failed := _GO_FAILED.match(line):
            announced.discard(failed[1] or "")
            entries.leave_out(LeftOut.FAILED)
        elif skipped := _GO_SKIPPED.match(line):
            announced.discard(skipped[1])
            entries.leave_out(LeftOut.SKIPPED)
        head = head and bool(label or not line.strip())
    results = {_GO_PROCESSORS.sub(r"\1", name) for name in measured} | measured
    parents = {name[:at] for name in results for at in _slashes(name)}
    entries.leave_out(LeftOut.INVALID, len(announced - results - parents))
    return entries.results()


def _go_text(content: ResultFile) -> str:
    """Return what Go printed, package by package if ``go test -json`` split it into events."""
    if not (content.text.startswith("{") and '"Output"' in content.text):
        return content.text
    outputs: dict[object, list[str]] = {}
    for line in content.text.splitlines():
        event = json_object(line)
        if isinstance(output := event.get("Output"), str):
            outputs.setdefault(event.get("Package"), []).append(output)
    return "\n".join("".join(lines) for lines in outputs.values())


def _slashes(name: str) -> Iterator[int]:
    return (at for at, character in enumerate(name) if character == "/")


def _processors(names: Sequence[str]) -> str:
    """Return GOMAXPROCS, which Go appends to every name unless it is 1; empty where that is not certain.

    A sub-benchmark may end in a number of its own, the name of a function cannot hold a hyphen.
    """
    matches = [_GO_PROCESSORS.match(name) for name in names]
    numbers = {match[2] if match else "" for match in matches}
    certain = len(set(names)) > 1 or not any("/" in name for name in names)
    return numbers.pop() if len(numbers) == 1 and certain else ""


def _add_go(
    entries: Entries, name: str, words: Sequence[str], processors: str, directions: dict[str, bool]
) -> None:
    labels = {PROCESSORS: processors} if processors else {}
    if len(words) % 2:
        entries.leave_out(LeftOut.INVALID)
    for value, unit in zip(words[::2], words[1::2], strict=False):
        text = unit.removesuffix("/op")
        entries.add(
            name.removesuffix(f"-{processors}") if processors else name,
            "allocations" if text == "allocs" else text,
            _number(value),
            labels,
            more_is_better=directions.get(unit),
        )


def _bencher(content: ResultFile) -> FileResults:
    """Read lines such as ``test sort ... bench: 1,234 ns/iter (+/- 56)``.

    Each binary of tests begins with ``running 3 tests``. No line that is printed with them says which binary
    it is: a name that binaries with other tests have too is ambiguous.
    """
    blocks: list[dict[str, tuple[float, str]]] = [{}]
    entries = Entries()
    for line in content.text.splitlines():
        if _BENCHER_BEGINS.match(line):
            blocks.append({})
        elif match := _BENCHER.match(line):
            if match[1] in blocks[-1]:
                blocks.append({})  # another run of the same binary, where none says where it begins
            blocks[-1][match[1]] = _number(match[2].replace(",", "")), match[3]
        elif begins := _BENCHER_LINE.match(line):
            entries.leave_out(LeftOut.FAILED if begins[2] == "FAILED" else LeftOut.INVALID)
    tests: dict[str, set[frozenset[str]]] = {}
    for block in blocks:
        for name in block:
            tests.setdefault(name, set()).add(frozenset(block))
    for block in blocks:
        for name, (value, unit) in block.items():
            if len(tests[name]) > 1:
                entries.leave_out(LeftOut.AMBIGUOUS)
            else:
                entries.add(name, unit, value)
    return entries.results()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


FORMATS = (
    ResultFormat("go", lambda content: bool(_GO.search(_go_text(content))), _go, machine="cpu"),
    ResultFormat("bencher", lambda content: bool(_BENCHER.search(content.text)), _bencher),
)
