"""What was written is read again as it was, whatever the stacks."""

from __future__ import annotations

import gzip
import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.profiles.formats import (
    AUTO,
    Measure,
    ProfileSource,
    Sample,
    count_samples,
    find_format,
    read_profile,
)
from agents.profiles.formats.frames import join_frame
from agents.profiles.formats.tally import merge_samples
from agents.profiles.formats.writers import WRITERS

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters=";"), min_size=1
)
FILES = st.sampled_from(["", "/srv/app.go", "cart.py", "C:\\a.cc", "<string>"])
FRAMES = st.builds(join_frame, NAMES, FILES, st.integers(0, 99_999))
STACKS = st.lists(FRAMES, min_size=1, max_size=8).map(tuple)
SAMPLES = st.lists(st.builds(Sample, STACKS, st.integers(1, 2**40)), min_size=1, max_size=12)


def asked(name: str) -> str:
    """Return the format to ask for: a few collapsed stacks of odd names are not sure by themselves."""
    return name if name == "collapsed" else AUTO


def read(data: bytes, name: str) -> Counter[tuple[str, ...]]:
    source = ProfileSource.of(data)
    parsed = count_samples(read_profile(find_format(asked(name), source.head), source), lines=True)
    assert parsed.invalid == 0, parsed.first_invalid
    return Counter(parsed.stacks)


def totals(samples: list[Sample]) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for stack, weight in samples:
        found[stack] += int(weight)
    return found


@pytest.mark.parametrize("name", WRITERS)
@given(samples=SAMPLES)
def test_written_is_read(name: str, samples: list[Sample]) -> None:
    samples = [Sample(("main", *stack), weight) for stack, weight in samples]  # a line of # is a comment
    out = io.BytesIO()
    WRITERS[name](samples, Measure(), out)
    assert read(out.getvalue(), name) == totals(samples)


@given(samples=SAMPLES, first=st.sampled_from(list(WRITERS)), second=st.sampled_from(list(WRITERS)))
def test_the_way_over_another_format_changes_nothing(samples: list[Sample], first: str, second: str) -> None:
    samples = [Sample(("main", *stack), weight) for stack, weight in samples]
    data = io.BytesIO()
    WRITERS[first](samples, Measure(), data)
    source = ProfileSource.of(data.getvalue() if first == "pprof" else gzip.compress(data.getvalue()))
    reading = read_profile(find_format(asked(first), source.head), source)
    again = io.BytesIO()
    WRITERS[second](
        (record for record in reading.records if isinstance(record, Sample)), reading.measure, again
    )
    assert read(again.getvalue(), second) == totals(samples)


@given(samples=SAMPLES, limit=st.integers(1, 100))
def test_merging_keeps_every_weight_in_little_memory(samples: list[Sample], limit: int) -> None:
    merged = list(merge_samples(samples, limit))
    assert totals(merged) == totals(samples)
    assert len(merged) <= len(samples)
