"""Looks of ``smidgen release compare`` at a live store: what a watch waits for, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from pipeline.commands.release import watch as module
from pipeline.commands.release.reading import Asked, NotYet, ReleaseComparison, SampleSource
from pipeline.commands.release.watch import LookSchedule, look_at_store
from pipeline.model.errors import ConfigError, SmidgenError, StoreUnavailable
from pipeline.model.units import HOUR_S
from pipeline.releases.gcpu import GcpuCompareConfig, State
from pipeline.storage.arrays import ArrayStore

BEGUN = 489_000 * HOUR_S + 600.0
ASKED = Asked("v1", "v2", None, (), GcpuCompareConfig(sequential=True))
SOURCE = SampleSource(ArrayStore(), "shop", HOUR_S, 0.0, None)
NOT_THERE = NotYet("release v2: no samples of shop in this span; there are v1")
AWAY = StoreUnavailable("store does not answer")
NO_TABLES = ConfigError("store: no such table")


@dataclass(frozen=True)
class Looked:
    decision: State


@dataclass
class Looks:
    """What looks find one after the other, the last one again and again; ten seconds between two."""

    found: Sequence[State | Exception]
    now: float = BEGUN
    spans: list[tuple[float, float]] = field(default_factory=list)

    def compare(self, source: SampleSource, asked: Asked, span: tuple[float, float]) -> ReleaseComparison:
        self.spans.append(span)
        one = self.found[min(len(self.spans), len(self.found)) - 1]
        if isinstance(one, Exception):
            raise one
        return cast(ReleaseComparison, Looked(one))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def looked(
    looks: Looks, patch: pytest.MonkeyPatch, watch: LookSchedule | None, until: float | None = None
) -> str | SmidgenError:
    patch.setattr(module, "compare", looks.compare)
    patch.setattr(module, "system_clock", lambda: looks.now)
    patch.setattr("time.sleep", looks.sleep)
    try:
        return look_at_store(lambda: SOURCE, ASKED, (None, until), watch).decision
    except SmidgenError as error:
        return error


MINUTE = LookSchedule(10.0, 60.0)
CASES = {
    "decided at once": (["slower"], MINUTE, "slower", 1, 0),
    "decided later": (["open", "open", "steady"], MINUTE, "steady", 3, 0),
    "never decided": (["open"], MINUTE, "open", 7, 0),
    "release that comes later": ([NOT_THERE, NOT_THERE, "slower"], MINUTE, "slower", 3, 1),
    "release that never comes": ([NOT_THERE], MINUTE, NOT_THERE, 7, 1),
    "store that is away for a while": ([AWAY, "open", AWAY, "slower"], MINUTE, "slower", 4, 1),
    "first no store, then no release": ([AWAY, NOT_THERE, "steady"], MINUTE, "steady", 3, 2),
    "store that goes away for ever": (["open", AWAY], MINUTE, "open", 7, 1),
    "store that is never there": ([AWAY], MINUTE, AWAY, 7, 1),
    "store without tables": ([NO_TABLES], MINUTE, NO_TABLES, 1, 0),
    "tables that are dropped": (["open", NO_TABLES], MINUTE, NO_TABLES, 2, 0),
    "no watch": ([NOT_THERE], None, NOT_THERE, 1, 0),
    "no watch, no store": ([AWAY], None, AWAY, 1, 0),
    "no watch, undecided": (["open"], None, "open", 1, 0),
}


@pytest.mark.parametrize(("found", "watch", "end", "times", "lines"), CASES.values(), ids=CASES.keys())
def test_a_watch_waits_for_what_may_come(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: Sequence[State | Exception],
    watch: LookSchedule | None,
    end: str | SmidgenError,
    times: int,
    lines: int,
) -> None:
    looks = Looks(found)
    assert looked(looks, monkeypatch, watch) == end
    assert len(looks.spans) == times
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    assert all(line.startswith("waiting: ") for line in said)


def test_a_store_that_cannot_be_opened_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, failures = Looks(["slower"]), [AWAY, AWAY]
    monkeypatch.setattr(module, "compare", looks.compare)
    monkeypatch.setattr(module, "system_clock", lambda: looks.now)
    monkeypatch.setattr("time.sleep", looks.sleep)

    def opened() -> SampleSource:
        if failures:
            raise failures.pop()
        return SOURCE

    assert look_at_store(opened, ASKED, (None, None), MINUTE).decision == "slower"
    assert looks.now == BEGUN + 20


def test_a_watch_ends_with_the_last_whole_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(["open"])
    assert looked(looks, monkeypatch, LookSchedule(600.0, None), until=BEGUN + 1.5 * HOUR_S) == "open"
    assert [end - BEGUN for _, end in looks.spans] == [*(600.0 * look for look in range(9)), HOUR_S - 600]
