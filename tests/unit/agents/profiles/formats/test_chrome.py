"""V8's profiles as stacks."""

from __future__ import annotations

import orjson
import pytest

from agents.profiles.formats import ProfileSource, parse, read_profile
from agents.profiles.formats.chrome import ChromeFormat
from tests.support.profile_files import chrome_trace, cpuprofile

CHROME = ChromeFormat()


def test_a_sample_lasts_until_the_next_one_and_idle_time_has_no_frames() -> None:
    records = list(
        read_profile(CHROME, ProfileSource.of(cpuprofile(timeDeltas=[5, 10, 20, 30, 40, 50]))).records
    )
    work, main = ("main (/srv/app.js:4)", "work (/srv/app.js:6)"), ("main (/srv/app.js:4)",)
    assert records == [(work, 10), (work, 20), (main, 30), ((), 40), (work, 50), (work, 30)]


LEAF = {"functionName": "work", "url": "/a.js", "lineNumber": 6, "id": 2, "hitCount": 1}
REVERSED = [
    {**event, "ts": number} for number, event in enumerate(orjson.loads(chrome_trace())["traceEvents"])
][::-1]
OLD_HEAD = {"functionName": "(root)", "id": 1, "children": [LEAF]}


@pytest.mark.parametrize(
    ("data", "stacks", "frameless"),
    [
        pytest.param(chrome_trace(), {("main",): 2, ("main", "work"): 2}, 0, id="chunks of a trace"),
        pytest.param(
            orjson.dumps({"head": OLD_HEAD, "samples": [2, 2, 2], "timestamps": [10, 20, 40]}),
            {("work",): 3},
            0,
            id="nodes of old versions hang in one another",
        ),
        pytest.param(
            cpuprofile(samples=[], timeDeltas=[]),
            {("main",): 1, ("main", "work"): 1},
            2,
            id="without samples hits count",
        ),
        pytest.param(
            cpuprofile(timeDeltas=[5, -10, 1000, 1000, 1000, 1000]),
            {("main",): 1, ("main", "work"): 4},
            1,
            id="a sample that is written late",
        ),
        pytest.param(
            cpuprofile(samples=[3, 2, 3, 3], timeDeltas=[100, 1000, -200, 1200]),
            {("main",): 2, ("main", "work"): 2},
            0,
            id="samples in another order than their times",
        ),
        pytest.param(
            cpuprofile(timeDeltas=[]), {("main",): 1, ("main", "work"): 4}, 1, id="samples without times"
        ),
        pytest.param(
            orjson.dumps(REVERSED),
            {("main",): 2, ("main", "work"): 2},
            0,
            id="chunks in another order than their times",
        ),
    ],
)
def test_stacks(data: bytes, stacks: dict[tuple[str, ...], int], frameless: int) -> None:
    parsed = parse(CHROME, data)
    assert (dict(parsed.stacks), parsed.frameless, parsed.invalid) == (stacks, frameless, 0)


@pytest.mark.parametrize(
    ("fields", "invalid", "stacks"),
    [
        pytest.param({"samples": [9, 3], "timeDeltas": [0, 5]}, 1, {("main", "work"): 1}, id="no such node"),
        pytest.param({"samples": [[], 3], "timeDeltas": [0, 5]}, 1, {("main", "work"): 1}, id="no number"),
        pytest.param(
            {"nodes": [{"id": 1, "callFrame": {}, "children": [1]}], "samples": [1]}, 1, {}, id="a circle"
        ),
        pytest.param(
            {"nodes": [{"id": 1, "parent": 7, "functionName": "f"}], "samples": [1]},
            0,
            {("f",): 1},
            id="a parent that is not there ends the stack",
        ),
        pytest.param({"nodes": [3, {"id": {}}]}, 1, {}, id="no nodes"),
    ],
)
def test_hostile_nodes(fields: dict[str, object], invalid: int, stacks: dict[tuple[str, ...], int]) -> None:
    parsed = parse(CHROME, cpuprofile(**fields))
    assert parsed.stacks == stacks
    assert parsed.invalid >= invalid


@pytest.mark.parametrize("data", [b"{}", b"[]", b"[1]", b'{"traceEvents": [{}]}', b"null"])
def test_a_file_without_a_profile(data: bytes) -> None:
    assert "has no CPU profile" in parse(CHROME, data).first_invalid
