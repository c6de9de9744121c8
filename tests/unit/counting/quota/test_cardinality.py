"""The names of a partition: which are known since when, and which may still come."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
import yaml

from pipeline.counting.quota.cardinality import KnownNames, NameSet, hash_name
from pipeline.counting.quota.limits import PartitionQuota
from pipeline.model.units import DAY_S
from pipeline.settings.topics import load_topics
from tests.support.paths import ROOT

DAY = 19_000 * DAY_S


def rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def learn(known: KnownNames, stored: Iterable[Mapping[str, Any]], day: float) -> None:
    """Let it learn a day and the day before from rows, as a store would give them."""
    for missing in known.missing([day, day - DAY_S]):
        known.learn(missing, [row for row in stored if row["time"] == missing])


@pytest.mark.parametrize(
    ("names", "most", "most_in_all", "admitted"),
    [
        pytest.param(["a", "b"], 2, 9, [True, True], id="room for all"),
        pytest.param(["a", "b", "c"], 2, 9, [True, True, False], id="the first ones, in their order"),
        pytest.param(["a", "b"], 2, 1, [True, False], id="no room left by all services together"),
        pytest.param(["old", "a", "b", "c"], 2, 9, [True, True, True, False], id="known the day before"),
        pytest.param(["a", "a"], 1, 9, [True, True], id="one name twice is one"),
    ],
)
def test_who_is_admitted(names: list[str], most: int, most_in_all: int, admitted: list[bool]) -> None:
    known = KnownNames("log/profiles/0")
    learn(known, [], DAY - DAY_S)
    learn(known, [], DAY)
    known.admit("shop", DAY - DAY_S, ["old"], 0, 0, most=9, most_in_all=9)
    assert known.admit("shop", DAY, names, 5, 5, most=most, most_in_all=most_in_all) == admitted


def test_what_was_stored_is_known_and_the_lowest_offset_of_a_name_counts() -> None:
    known = KnownNames("log/profiles/0")
    row = {"service": "shop", "time": DAY}
    learn(
        known,
        [
            {**row, "hashes": [hash_name("a"), hash_name("b")], "offsets": [9, 4]},
            {**row, "hashes": [hash_name("a")], "offsets": [7]},
        ],
        DAY,
    )
    assert known.missing([DAY, DAY - DAY_S]) == []
    assert (known.first_seen("shop", DAY, "a"), known.first_seen("shop", DAY, "c")) == (7, None)
    assert known.admit("shop", DAY, ["a", "b"], 5, 5, most=9, most_in_all=9) == [False, True], "a came later"


@pytest.mark.parametrize("extra", [0, 5000])
def test_a_set_of_names_knows_where_each_came_first(extra: int) -> None:
    known = NameSet()
    known.add_all([hash_name(f"n{i}") for i in range(extra)], [50 + i for i in range(extra)])
    known.add(hash_name("a"), 7)
    known.add_all([hash_name("a"), hash_name("b")], [9, 8])
    assert known.offset_of(hash_name("a")) == 7
    assert known.offset_of(hash_name("b")) == 8
    assert known.offset_of(hash_name("c")) is None
    assert known.offset_of(hash_name("n0")) == (50 if extra else None)
    assert len(known) == extra + 2
    assert known.first == 7
    assert known.known_before(8).tolist() == [hash_name("a")]


def test_days_that_are_not_used_are_read_again() -> None:
    known = KnownNames("log/profiles/0")
    stored: list[dict[str, Any]] = []
    for day in range(20):
        learn(known, stored, DAY + day * DAY_S)
        known.admit("shop", DAY + day * DAY_S, ["a", f"n{day}"], day, day, most=2, most_in_all=9)
        stored += rows(known.unsaved())
        known.saved()
        assert len(known._days) <= 6
    learn(known, stored, DAY)
    assert known.admit("shop", DAY, ["n0", "n1", "a"], 20, 20, most=2, most_in_all=9) == [True, False, True]


def test_a_name_of_an_earlier_day_takes_little_memory() -> None:
    """Ids of messages are as many as messages; three days of them are kept."""
    known, per_day, days = KnownNames("log/profiles/0/ids"), 6000, 2
    tracemalloc.start()
    for number in range(days * per_day):
        day = DAY + number // per_day * DAY_S
        learn(known, [], day)
        known.note("shop", day, f"message-{number}", number)
        known.saved()
    learn(known, [], DAY + days * DAY_S)
    known.note("shop", DAY + days * DAY_S, "the next day", days * per_day)
    known.saved()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 25 * days * per_day
    first = [known.first_seen("shop", DAY, f"message-{number}") for number in range(per_day)]
    assert first == list(range(per_day))


def test_names_of_an_attacker_fit_into_memory() -> None:
    """A worker of all partitions, each with as many new names of a day as a quota lets in."""
    known, names = KnownNames("log/profiles/0"), 60_000
    learn(known, [], DAY)
    tracemalloc.start()
    for first in range(0, names, 2000):
        offset, batch = first // 2000, [f"s.mod{first + number:09d}.fn" for number in range(2000)]
        assert all(known.admit("s", DAY, batch, offset, offset, most=names, most_in_all=names))
        known.saved()
    name_bytes = tracemalloc.get_traced_memory()[0] / names
    tracemalloc.stop()
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    limit = compose["services"]["aggregate"]["deploy"]["resources"]["limits"]["memory"]
    partitions = load_topics()["profiles"].partitions
    assert name_bytes * PartitionQuota().names * partitions < 0.75 * int(limit.removesuffix("G")) * 2**30
