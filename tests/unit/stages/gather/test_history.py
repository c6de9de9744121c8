"""What stages passed on in earlier scans: who sees it, in which order, and whose event it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.analysis.dedup.evidence import Reported
from pipeline.messages.events import regression_id
from pipeline.model import Candidate, Scan
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.history import memory_rows, read_history
from pipeline.storage.arrays import ArrayStore

HOUR = 3600.0
T0 = 472_222 * HOUR


def workload(name: str, *, extended: str | None = None, lateness: str | None = None) -> Workload:
    return Workload.model_validate(
        {
            **{"name": name, "resolution": "1m", "rerun_interval": "1h", "historical": "10h"},
            **{"analysis": "2h", "extended": extended, "lateness": lateness, "threshold": {"absolute": 0.01}},
        }
    )


WORKLOADS = {"quick": workload("quick"), "slow": workload("slow", extended="1h", lateness="30m")}


def scan(name: str, end_h: float) -> Scan:
    end = T0 + end_h * HOUR
    return Scan("shop", name, end - 12 * HOUR, end - 2 * HOUR, end, end, 3)


def candidate(metric: str, hour: float) -> Candidate:
    return Candidate("subroutine", metric, "short_term", T0 + hour * HOUR, 0.1, 0.2, 0.0, 0.0)


def event_of(found: Candidate, seen: Scan) -> str:
    return regression_id(seen.service, seen.workload, found, seen.end)


def keep(store: ArrayStore, stage: str, seen: Scan, passed: Sequence[Reported]) -> None:
    for _, columns in memory_rows(stage, seen, passed):
        store.insert("memory", columns)


def kept(*passed: tuple[str, Scan, str]) -> ArrayStore:
    """A store in which stages remember a candidate an hour before the end of each scan."""
    store = ArrayStore()
    for stage, seen, metric in passed:
        found = candidate(metric, (seen.end - T0) / HOUR - 1)
        keep(store, stage, seen, [Reported(found, event_of(found, seen))])
    return store


def seen_by(store: ArrayStore, now: Scan, *, same_workload: bool = False, back_s: float = 0.0) -> list[str]:
    found = read_history(store, "dedup", now, WORKLOADS, same_workload=same_workload, back_s=back_s)
    return [reported.candidate.metric for reported in found]


@pytest.mark.parametrize(
    ("earlier", "now", "seen"),
    [
        pytest.param(scan("quick", 10), scan("quick", 11), True, id="an earlier scan"),
        pytest.param(scan("quick", 10), scan("quick", 10), False, id="this scan, come again after a crash"),
        pytest.param(scan("quick", 11), scan("quick", 10), False, id="a later one, come before the crash"),
        # quick waits for a minute, slow for half an hour: of scans that end together slow runs later.
        pytest.param(scan("quick", 10), scan("slow", 10), True, id="one that waits less for late data"),
        pytest.param(scan("slow", 10), scan("quick", 10), False, id="one that waits longer"),
        pytest.param(scan("slow", 10), scan("quick", 10.5), True, id="which has run half an hour later"),
        pytest.param(
            scan("gone", 10), scan("quick", 10), True, id="a workload that is no more waits for nothing"
        ),
        pytest.param(scan("quick", 1), scan("quick", 14), False, id="before this scan's windows"),
    ],
)
def test_a_scan_sees_those_that_ran_before_it(earlier: Scan, now: Scan, seen: bool) -> None:
    assert seen_by(kept(("dedup", earlier, "a")), now) == (["a"] if seen else [])


def test_further_back_than_the_windows() -> None:
    store = kept(("dedup", scan("quick", 1), "a"))
    assert seen_by(store, scan("quick", 14), back_s=3 * HOUR) == ["a"]


def test_other_stages_and_if_asked_other_workloads_are_left_out() -> None:
    store = kept(
        ("filter", scan("quick", 9), "of a filter"),
        ("dedup", scan("slow", 9), "of slow"),
        ("dedup", scan("quick", 10), "of quick"),
    )
    assert seen_by(store, scan("quick", 11)) == ["of slow", "of quick"]
    assert seen_by(store, scan("quick", 11), same_workload=True) == ["of quick"]


def test_what_is_kept_comes_back_oldest_first() -> None:
    seen = scan("slow", 10)
    first, second = candidate("b", 8.5), candidate("a", 9.5)
    store = ArrayStore()
    keep(
        store,
        "dedup",
        seen,
        [Reported(second, event_of(first, seen)), Reported(first, event_of(first, seen))],
    )
    keep(store, "dedup", seen, [])
    found = read_history(store, "dedup", scan("slow", 11), WORKLOADS, same_workload=True)
    event = event_of(first, seen)
    assert found == [
        Reported(
            first, event, seen.end, seen.end - HOUR, leads=True
        ),  # slow looks as far as its extended window
        Reported(second, event, seen.end, seen.end - HOUR, leads=False),  # it joined the event of the first
    ]


def test_how_far_a_workload_looked_that_is_no_more() -> None:
    store = kept(("dedup", scan("gone", 10), "a"))
    (found,) = read_history(store, "dedup", scan("quick", 11), WORKLOADS, same_workload=False)
    assert found.seen_until == math.inf


def test_remembering_twice_is_remembering_once() -> None:
    store = kept(("dedup", scan("quick", 10), "a"), ("dedup", scan("quick", 10), "a"))
    assert seen_by(store, scan("quick", 11)) == ["a"]
    assert seen_by(store, replace(scan("quick", 11), service="other")) == []
