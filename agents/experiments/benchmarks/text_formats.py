"""Results as text: ``go test -bench``, Rust's libtest or criterion's bencher format, and benchmark.js."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from agents.experiments.benchmarks.entries import PACKAGE, PROCESSORS, Entries, is_of_run
from agents.experiments.benchmarks.members import json_object
from agents.experiments.benchmarks.results import FileResults, LeftOut, ResultFile, ResultFormat
from agents.experiments.benchmarks.units import Better

_GO = re.compile(r"^(Benchmark(?![a-z])\S*)[ \t]+\d+[ \t]+(\S.*)$", re.MULTILINE)
_GO_RESULT = re.compile(
    r"^Benchmark(?![a-z])\S*[ \t]+\d+[ \t]+(?:[-+]?[0-9.]\S*|[-+]?Inf|NaN)[ \t]+\S", re.MULTILINE
)
_GO_ANSWER = re.compile(
    rf"{_GO_RESULT.pattern}|^--- FAIL: Benchmark|^FAIL\s+\S+ \[build failed\]", re.MULTILINE
)
_GO_BEGINS = re.compile(r"^(Benchmark(?![a-z])\S*)(.*)$")
_GO_LABEL = re.compile(r"^([a-z][^\sA-Z:]*):(?:[ \t]+(.*))?$")
_GO_UNIT = re.compile(r"^Unit\s+(\S+)\s.*\bbetter=(higher|lower)\b")
_GO_FAILED = re.compile(r"^\s*--- FAIL: (Benchmark\S*)|^FAIL\s+\S+ \[(?:build|setup) failed\]|^panic: ")
_GO_SKIPPED = re.compile(r"^\s*--- SKIP: (Benchmark\S*)")
_GO_PROCESSORS = re.compile(r"^(.*)-(\d+)$")
_GO_ENDS = re.compile(r"^(?:ok|FAIL)\s+(\S+)\s+(?:[0-9.]+s|\(cached\)|\[)")
"""Last line of a package, which names it."""

_GO_TOOL = {"goos", "goarch", "pkg", "cpu"}
_GO_MESSAGES = {"go", "panic", "warning", "error", "fatal"}
"""What messages begin with that look like a label: ``go: downloading example.org/shop v1.2.0``."""

_GO_RUN = re.compile(
    r"Benchmark(?![a-z])\S*(?:\s|$)|[a-z][^\sA-Z:]*:(?:\s|$)|Unit |PASS$|FAIL(?:\s|$)|ok\s|\?\s|exit status"
    r"|--- (?:FAIL|PASS|SKIP|BENCH)|=== (?:RUN|PAUSE|CONT|NAME)"
)
"""Lines that ``go test -bench`` prints."""

_BENCHER = re.compile(
    r"^test (\S.*?) {1,500}\.\.\. bench: +([0-9,.]+) ([^\s()]+) \(\+/- [^)]*\)(?: = ([0-9,.]+) (\S+))?",
    re.MULTILINE,
)
_BENCHER_LINE = re.compile(r"^test (.*?) {1,500}\.\.\. (bench:|FAILED)")
_BENCHER_RUN = re.compile(r"running \d|test |test result: |(?i:warning)|error|failures:")

_CYCLE = re.compile(r"^[ \t]*(\S.*?) x ([0-9,.]+) ops/sec ±\s*[0-9.]+% \(\d+ runs? sampled\)", re.MULTILINE)
_CYCLE_RUN = re.compile(r".* x [0-9,.]+ ops/sec ±|Fastest is ")


def _go(content: ResultFile) -> FileResults:
    """Read lines such as ``BenchmarkSum-8  1000  1234 ns/op  16 B/op``: pairs of value and unit.

    Lines before them such as ``pkg: example.org/shop`` are labels of those that follow, until another line
    says otherwise (golang.org/design/14313-benchmark-format).
    """
    text = _go_text(content)
    processors = _processors([match[1] for match in _GO.finditer(text)])
    directions = {match[1]: Better(match[2]) for match in map(_GO_UNIT.match, text.splitlines()) if match}
    lines = text.splitlines()
    entries, announced, measured, incomplete = Entries(), set[str](), set[str](), set[str]()
    head = True  # only labels so far, or since a label of the tool
    packages = _packages(lines)
    for line, package, before in zip(lines, packages, ["", *packages], strict=False):
        if package != before:
            entries.label(PACKAGE, package)
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
            incomplete.add(failed[1] or "")
            entries.leave_out(LeftOut.FAILED)
        elif skipped := _GO_SKIPPED.match(line):
            announced.discard(skipped[1])
            entries.leave_out(LeftOut.SKIPPED)
        head = head and bool(label or not line.strip())
    results = {_GO_PROCESSORS.sub(r"\1", name) for name in measured} | measured
    parents = {name[:at] for name in results for at in _slashes(name)}
    entries.leave_out(LeftOut.INVALID, len(announced - results - parents))
    incomplete |= {_GO_PROCESSORS.sub(r"\1", name) for name in incomplete}
    entries.leave_out_mixed(PACKAGE, incomplete, in_turn=True)
    return entries.results()


def _packages(lines: Sequence[str]) -> list[str]:
    """Return the package of each line: that of the last ``pkg:``, or of the line that ends its results."""
    packages: list[str] = []
    package, begin = "", 0
    for line in lines:
        if line.startswith("pkg:"):
            package = line.removeprefix("pkg:").strip()
        packages.append(package)
        if ends := _GO_ENDS.match(line):
            packages[begin:] = [name or ends[1] for name in packages[begin:]]
            begin, package = len(packages), ""
    return packages


def _go_text(content: ResultFile) -> str:
    """Return what Go printed, package by package if ``go test -json`` split it into events."""
    if not (content.text.startswith("{") and '"Output"' in content.text):
        return content.text
    outputs: dict[str, list[str]] = {}
    for line in content.text.splitlines():
        event = json_object(line)
        if isinstance(output := event.get("Output"), str):
            outputs.setdefault(str(event.get("Package", "")), []).append(output)
    return "\n".join(f"pkg: {package}\n{''.join(lines)}" for package, lines in outputs.items())


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
    entries: Entries, name: str, words: Sequence[str], processors: str, directions: dict[str, Better]
) -> None:
    labels = {PROCESSORS: processors} if processors else {}
    if len(words) % 2:
        entries.leave_out(LeftOut.INVALID)
    for value, unit in zip(words[::2], words[1::2], strict=False):
        text = unit.removesuffix("/op")
        text = unit if text != unit and text in words[1::2] else text  # 7 B and 16 B/op are two metrics
        entries.add(
            name.removesuffix(f"-{processors}") if processors else name,
            "allocations" if text == "allocs" else text,
            _number(value),
            labels,
            better=directions.get(unit),
        )


def _bencher(content: ResultFile) -> FileResults:
    """Read lines such as ``test sort ... bench: 1,234 ns/iter (+/- 56)``.

    No line that is printed with them says which binary of tests it is.
    """
    entries, failed = Entries(), set[str]()
    for line in content.text.splitlines():
        if match := _BENCHER.match(line):
            entries.add(match[1], match[3].removesuffix("/iter"), _number(match[2]))
            if match[4]:
                entries.add(match[1], match[5], _number(match[4]))
        elif begins := _BENCHER_LINE.match(line):
            failed.add(begins[1])
            entries.leave_out(LeftOut.FAILED if begins[2] == "FAILED" else LeftOut.INVALID)
    entries.leave_out_mixed(PACKAGE, failed)
    return entries.results()


def _benchmark_js(content: ResultFile) -> FileResults:
    """Read lines such as ``sort x 1,234 ops/sec ±0.74% (93 runs sampled)``."""
    entries = Entries()
    for match in _CYCLE.finditer(content.text):
        entries.add(match[1], "ops/sec", _number(match[2]), statistic="mean")
    entries.leave_out_mixed()
    return entries.results()


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return float("nan")


def _recognises(
    result: re.Pattern[str],
    run: re.Pattern[str],
    printed: Callable[[ResultFile], str] = attrgetter("text"),
) -> Callable[[ResultFile], bool]:
    """Return a function that recognises what a tool printed, and not a text that quotes some of it.

    A line of a result alone is no evidence: the first line, or more than half, must be what the tool prints.
    Indented lines are anything that was logged, and count for neither.
    """

    def recognises(content: ResultFile) -> bool:
        text = printed(content)
        if not result.search(text):
            return False
        lines = (line for line in text.splitlines() if line.strip() and not line[0].isspace())
        is_of_tool = [bool(run.match(line)) for line in lines]
        return not is_of_tool or is_of_tool[0] or 2 * sum(is_of_tool) > len(is_of_tool)

    return recognises


FORMATS = (
    ResultFormat("go", _recognises(_GO_ANSWER, _GO_RUN, _go_text), _go, machine="cpu"),
    ResultFormat("benchmark.js", _recognises(_CYCLE, _CYCLE_RUN), _benchmark_js),
    ResultFormat("bencher", _recognises(_BENCHER, _BENCHER_RUN), _bencher),
)
