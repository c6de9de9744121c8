"""Bad input: each bad message becomes a dead letter, the good ones are counted, and no process stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
import pytest

from pipeline.kafka import Entry
from pipeline.messages.measurements import encode_profile
from pipeline.storage.connect import open_store
from tests.e2e.worker_process import (
    START,
    TOPICS,
    WorkerProcess,
    fresh_broker,
    publish,
    read_all,
    stored_samples,
    wait_done,
)
from tests.support.builders import build_profile

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]

KEY = b"shop/h1"  # one key, one partition: bad and good ones stand next to each other
HUGE_BYTES = 50 * 1024 * 1024


def profile(**fields: Any) -> bytes:
    good: dict[str, Any] = {
        "service": "bad",
        "host": "h1",
        "start": START,
        "end": START + 1,
        "frames": ["a", "b"],
        "stacks": [[0, 1]],
        "counts": [1],
    }
    changed = {**good, **fields}
    return orjson.dumps({name: value for name, value in changed.items() if value is not None})


GOOD = profile()
NOW = time.time()

BAD: dict[str, tuple[str, bytes | None, str]] = {
    "truncated": ("profiles", GOOD[: len(GOOD) // 2], "not JSON"),
    "not JSON": ("profiles", b"hello", "not JSON"),
    "not UTF-8": ("profiles", b'{"service": "\xff\xfe"}', "not JSON"),
    "JSON but a list": ("profiles", b"[1, 2]", "should be a JSON object"),
    "nested without end": ("profiles", b"[" * 100_000, "not JSON"),
    "empty": ("profiles", b"", "empty message"),
    "no value": ("profiles", None, "empty message"),
    "missing field": ("profiles", profile(service=None), "service: missing"),
    "number for text": ("profiles", profile(service=7), "service: should be a string"),
    "text for numbers": ("profiles", profile(counts=["1"]), "counts: should be integers"),
    "object for a list": ("profiles", profile(frames={}), "frames: should be a list"),
    "counts for other stacks": ("profiles", profile(counts=[1, 2]), "counts: 2 of them for 1 stacks"),
    "index out of range": ("profiles", profile(stacks=[[0, 2]]), "stacks: index 2 outside 2 frames"),
    "negative index": ("profiles", profile(stacks=[[0, -1]]), "stacks: index -1 outside 2 frames"),
    "negative count": ("profiles", profile(counts=[-1]), "counts: should be between 0"),
    "count beyond 64 bits": (
        "profiles",
        GOOD.replace(b'"counts":[1]', b'"counts":[1e30]'),
        "counts: should be",
    ),
    "far future": ("profiles", profile(start=NOW + 1e6, end=NOW + 1e6 + 1), "in the future"),
    "1970": ("profiles", profile(start=0, end=1), "start: 0 is not a time"),
    "milliseconds": ("profiles", profile(start=START * 1000, end=START * 1000 + 1), "is not a time"),
    "end before start": ("profiles", profile(end=START - 1), "end: should be at or after start"),
    "50 MB": ("profiles", b'{"service": "' + b"x" * HUGE_BYTES, "more than the 16777216 that profiles takes"),
    "metric with a NaN": (
        "metrics",
        b'{"service": "s", "metric": "m", "points": [[1700000000, NaN]]}',
        "not JSON",
    ),
    "metric with a text": (
        "metrics",
        b'{"service": "s", "metric": "m", "points": [[1700000000, "1"]]}',
        "points[0][1]: should be a number",
    ),
    "change without id": ("changes", b'{"service": "s", "time": 1700000000}', "id: missing"),
}


@dataclass(frozen=True)
class Outcome:
    """What a worker made of all bad messages, each between two good ones."""

    dead_letters: dict[str, list[Entry]]  # by reason
    service: str
    good: int
    counted: int
    exit_code: int
    log: str


@pytest.fixture(scope="module")
def outcome(broker_kind: str, store_dsn: str) -> Iterator[Outcome]:
    service = f"service-{uuid4().hex[:12]}"
    good = (KEY, encode_profile(build_profile({"a;b": 3, "a;c": 4}, service=service, start=START)))
    with fresh_broker(broker_kind) as broker:
        profiles: list[tuple[bytes | None, bytes | None]] = [good]
        for topic, value, _ in BAD.values():
            if topic == "profiles":
                profiles += [(KEY, value), good]
            else:
                publish(broker, [(KEY, value)], topic)
        with WorkerProcess(broker, store_dsn, "aggregate", batch_size=200) as worker:
            ends = publish(broker, profiles)
            wait_done(broker, ends, worker)
            for topic in ("metrics", "changes"):
                count = sum(t == topic for t, _, _ in BAD.values())
                partition = read_all(broker, topic)[0].partition
                wait_done(broker, {partition: count}, worker, topic=topic)
            code, log = worker.stop(), worker.log
        store = open_store(store_dsn)
        dead_letters: dict[str, list[Entry]] = {}
        for dead_letter in read_all(broker, "dead-letters"):
            dead_letters.setdefault(header(dead_letter, "reason"), []).append(dead_letter)
        counted = stored_samples(store, service)
        store.close()
        yield Outcome(dead_letters, service, 7 * profiles.count(good), counted, code, log)


def header(dead_letter: Entry, name: str) -> str:
    return dict(dead_letter.headers)[name].decode()


@pytest.mark.parametrize("case", [pytest.param(name, id=name) for name in BAD])
def test_goes_to_dead_letters_with_reason_and_origin(outcome: Outcome, case: str) -> None:
    topic, value, reason = BAD[case]
    limit = TOPICS["dead-letters"].max_message_bytes
    found = [
        dead_letter
        for text, dead_letters in outcome.dead_letters.items()
        for dead_letter in dead_letters
        if reason in text and (dead_letter.value or b"") == (value or b"")[: len(dead_letter.value or b"")]
        if header(dead_letter, "topic") == topic and (bool(dead_letter.value) == bool(value))
    ]
    assert found, f"no dead letter says {reason!r}: {sorted(outcome.dead_letters)}"
    dead_letter = found[0]
    assert dead_letter.key == KEY
    assert header(dead_letter, "stage") == "aggregate"
    assert int(header(dead_letter, "offset")) >= 0
    assert int(header(dead_letter, "partition")) >= 0
    if value and len(value) > limit:
        assert header(dead_letter, "truncated") == str(len(value))
        assert 0 < len(dead_letter.value or b"") <= limit
    else:
        assert (dead_letter.value or b"") == (value or b"")


def test_one_dead_letter_each(outcome: Outcome) -> None:
    assert sum(map(len, outcome.dead_letters.values())) == len(BAD)
    origins = {
        (header(dead_letter, "topic"), header(dead_letter, "partition"), header(dead_letter, "offset"))
        for dead_letters in outcome.dead_letters.values()
        for dead_letter in dead_letters
    }
    assert len(origins) == len(BAD)


def test_good_messages_in_the_same_batch_are_counted(outcome: Outcome) -> None:
    assert outcome.counted == outcome.good


def test_no_worker_was_stopped(outcome: Outcome) -> None:
    assert outcome.exit_code == 0
    assert "Traceback" not in outcome.log
    assert "ERROR" not in outcome.log
