"""ClickHouse without Smidgen: JSON rows of stacks, and a materialised view that counts subroutines.

The obvious design on ClickHouse alone: one row per stack and interval, and a view that adds up, by
subroutine and minute, the samples of the stacks that hold the subroutine. The rows are encoded before the
clock starts, and no broker is read: both favour ClickHouse alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import orjson

from loadgen.bench.statements import ask
from loadgen.bench.usage import processor_s
from pipeline.model import Profile
from pipeline.model.errors import SmidgenError

MESSAGES_IN_INSERT = 100

_TABLES = (
    """CREATE TABLE alone_stacks (
        service LowCardinality(String), host LowCardinality(String), time DateTime,
        stack Array(String), count UInt64
    ) ENGINE = MergeTree ORDER BY (service, time)""",
    """CREATE TABLE alone_subroutines (
        service LowCardinality(String), subroutine String, window DateTime, samples UInt64
    ) ENGINE = SummingMergeTree ORDER BY (service, subroutine, window)""",
    """CREATE MATERIALIZED VIEW alone_counts TO alone_subroutines AS
    SELECT service, arrayJoin(arrayDistinct(stack)) AS subroutine, toStartOfMinute(time) AS window,
        sum(count) AS samples
    FROM alone_stacks GROUP BY service, subroutine, window""",
)
_INSERT = b"INSERT INTO alone_stacks FORMAT JSONEachRow\n"
_COUNTED = "SELECT sum(count), (SELECT sum(samples) FROM alone_subroutines) FROM alone_stacks"


def measure_alone(dsn: str, store_pid: int, profiles: Sequence[Profile]) -> dict[str, float]:
    """Return samples per second, and per second of the store's processor time, of profiles sent as rows.

    Raises:
        SmidgenError: not every sample was counted.
    """
    for statement in _TABLES:
        ask(dsn, statement)
    bodies = [
        _INSERT + b"\n".join(_rows(profiles[first : first + MESSAGES_IN_INSERT]))
        for first in range(0, len(profiles), MESSAGES_IN_INSERT)
    ]
    began, used = time.perf_counter(), processor_s(store_pid)
    for body in bodies:
        ask(dsn, body)
    seconds, used = time.perf_counter() - began, processor_s(store_pid) - used
    samples = sum(int(profile.counts.sum()) for profile in profiles)
    series = sum(int(p.counts.repeat(_distinct(p)).sum()) for p in profiles)
    if (counted := ask(dsn, _COUNTED).split()) != [str(samples), str(series)]:
        raise SmidgenError(f"bench: ClickHouse alone counted {counted} of {samples} and {series} samples")
    return {"samples/s": samples / seconds, "samples/CPU s of the store": samples / max(used, 1e-9)}


def _rows(profiles: Sequence[Profile]) -> Iterator[bytes]:
    for profile in profiles:
        starts = profile.stack_starts.tolist()
        frames = [profile.frames[index] for index in profile.stack_frames.tolist()]
        own = {"service": profile.service, "host": profile.host, "time": int(profile.start)}
        for number, count in enumerate(profile.counts.tolist()):
            stack = frames[starts[number] : starts[number + 1]]
            yield orjson.dumps({**own, "stack": stack, "count": count})


def _distinct(profile: Profile) -> list[int]:
    """Return the number of distinct subroutines in each stack."""
    starts, flat = profile.stack_starts.tolist(), profile.stack_frames.tolist()
    return [len(set(flat[a:b])) for a, b in zip(starts, starts[1:], strict=False)]
