"""Totals and largest frames of public sample files beside the outputs of their reference tools, as a table.

``python -m tests.support.public_profiles FOLDER``: FOLDER holds checkouts of the repositories as OWNER+NAME.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agents.profiles.formats import AUTO, ProfileSource, Reading, find_format, read_profile
from agents.profiles.formats.frames import without_line
from agents.profiles.formats.tally import LeftOutSamples
from pipeline.counting.names import Naming

LARGEST = 10
TOLERANCE = 0.001
_NAMING = Naming()
_NS_PER_SAMPLE = 10_000_000  # as jfr-parser counts a sample
_REFERENCES = (  # files of a repository, and the reference of each by its name without its ending
    ("jonhoo+inferno/tests/data/collapse-perf/*.txt", "results/{}-collapsed.txt"),
    ("jonhoo+inferno/tests/data/collapse-dtrace/*.txt", "results/{}.txt"),
    ("brendangregg+FlameGraph/test/perf-*.txt", "results/{}-collapsed-all.txt"),
    ("google+pprof/profile/testdata/*.cpu", "{}.cpu.string"),
    (
        "grafana+jfr-parser/parser/testdata/*.jfr.gz",
        "{}_[0-9]*process_cpu_cpu__nanoseconds_expected_collapsed.txt.gz",
    ),
)
_JFR_LINE = re.compile(r":\d+$")
Stacks = Mapping[tuple[str, ...], float]


def pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file with the output of its reference tool."""
    for files, reference in _REFERENCES:
        for path in sorted(folder.glob(files)):
            stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
            yield from ((path, match) for match in sorted(path.parent.glob(reference.format(stem)))[:1])


def collapsed(text: str) -> Stacks:
    """Return the stacks of folded lines, whose weight may stand in brackets."""
    stacks: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        stacks[tuple(_JFR_LINE.sub("", frame).lstrip(".") for frame in stack.split(";"))] += float(
            weight.strip("[]")
        )
    return stacks


def weights(reading: Reading, *, lines: bool) -> Stacks:
    """Return the stacks of a file with their weights as they are, not rounded to samples."""
    stacks: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for stack, weight in LeftOutSamples().samples(reading.records):
        stacks[stack if lines else tuple(map(without_line, stack))] += weight
    return stacks


def pprof_raw(text: str) -> Stacks:
    """Return the stacks of pprof's own text of a profile, by locations."""
    stacks: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for line in text.partition("Samples:\n")[2].partition("Locations\n")[0].splitlines()[1:]:
        values, _, locations = line.partition(":")
        stacks[tuple(locations.split())] += float(values.split()[0])
    return stacks


def shares(stacks: Stacks, name: Callable[[str], str]) -> dict[str, float]:
    """Return the share of samples that each frame is in, largest first."""
    counts: defaultdict[str, float] = defaultdict(float)
    for stack, weight in stacks.items():
        for frame in {name(frame) for frame in stack if frame}:
            counts[frame] += weight
    total = sum(stacks.values()) or 1
    return {
        frame: weight / total
        for frame, weight in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    }


def spelt(frame: str) -> str:
    """Return a frame's symbol with what only the tools spell otherwise made equal."""
    return (
        _NAMING.symbol(frame.replace("$$Lambda_", "$$Lambda"))
        .replace("/", ".")
        .replace(":.", ".")
        .replace("[[", "[")
        .replace("]]", "]")
    )


def compare(path: Path, reference: Path) -> Sequence[str]:
    """Return a row: file, format, totals of the reference and of ours, largest frames of equal share."""
    with reference.open("rb") as file:
        text = b"".join(ProfileSource(file).chunks()).decode("utf-8", "replace")
    raw, cpu = reference.name.endswith(".string"), "nanoseconds" in reference.name
    expected = pprof_raw(text) if raw else collapsed(text)
    with path.open("rb") as file:
        source = ProfileSource(file)
        format_ = find_format(AUTO, source.head)
        stacks = weights(read_profile(format_, source, "cpu" if cpu else ""), lines=raw)
    ours_total = sum(stacks.values())
    total = sum(expected.values()) / (_NS_PER_SAMPLE if cpu else 1)
    if raw:  # its frames are numbers of locations
        theirs, ours = shares(expected, str), shares(stacks, str)
        pairs_of_shares = list(zip(theirs.values(), ours.values(), strict=False))[:LARGEST]
    else:
        theirs, ours = shares(expected, spelt), shares(stacks, spelt)
        pairs_of_shares = [(share, ours.get(frame, -1.0)) for frame, share in theirs.items()][:LARGEST]
    missing = abs(total - ours_total)  # stackcollapse-perf.pl leaves out the last event of some files
    allowed = TOLERANCE + (missing / max(ours_total, 1) if missing == 1 else 0)
    same = sum(abs(theirs_of - ours_of) < allowed for theirs_of, ours_of in pairs_of_shares)
    return (
        path.name,
        format_.name,
        f"{total:,.0f}",
        f"{ours_total:,.0f}",
        f"{same} of {len(pairs_of_shares)}",
    )


def main() -> None:
    """Print the table."""
    print("| file | format | reference | ours | largest frames equal |")
    print("| --- | --- | ---: | ---: | ---: |")
    for path, reference in pairs(Path(sys.argv[1])):
        print("|", " | ".join(compare(path, reference)), "|")


if __name__ == "__main__":
    main()
