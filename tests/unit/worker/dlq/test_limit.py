"""When most of a stage's input is bad, and when it is only somebody's garbage."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from pipeline.worker.dlq.limit import MAX_KNOWN, MAX_STRANGERS, DeadLetterLimit, LimitConfig, source_of

LIMIT = LimitConfig(share=0.5, least=20, after_s=600.0, sources=3)
STEP_S = 10.0
SERVICES = [f"service-{number}" for number in range(6)]


@dataclass
class Bench:
    """The limit with a clock; every step a batch of keys that can be used, and one of those that cannot."""

    limit: LimitConfig = LIMIT
    expected: frozenset[str] = frozenset()
    now: float = 1000.0
    dead_letter_limit: DeadLetterLimit = field(init=False)

    def __post_init__(self) -> None:
        self.dead_letter_limit = DeadLetterLimit(self.limit, lambda: self.now, self.expected)

    def note(
        self, good: list[str], bad: list[str], *, for_s: float = STEP_S, copies: int = 1
    ) -> tuple[str, float]:
        """Repeat a batch for so long or until it stops; return the reason and after how long it came."""
        began = self.now
        while self.now < began + for_s:
            self.dead_letter_limit.note(
                (f"{s}/h".encode() for s in good), (f"{s}/h".encode() for s in bad * copies)
            )
            if reason := self.dead_letter_limit.reason_to_stop():
                return reason, self.now - began
            self.now += STEP_S
        return "", for_s


HOUR_S = 3600.0


def test_a_broken_deploy_of_all_senders_stops_it_after_a_while() -> None:
    bench = Bench()
    assert bench.note(SERVICES, [], for_s=HOUR_S)[0] == ""
    reason, after_s = bench.note([], SERVICES, for_s=HOUR_S)
    assert reason.startswith("6 of 6 sources (service-0, service-1, service-2, …) send nothing usable: ")
    assert after_s == 600.0


def test_a_broken_worker_stops_although_it_never_heard_anything_good() -> None:
    reason, after_s = Bench().note([], SERVICES, for_s=HOUR_S)
    assert reason.startswith("6 of 6 sources")
    assert after_s == 600.0


def test_services_that_the_store_knows_have_a_vote_from_the_start() -> None:
    """A worker that was restarted with a broken decoder, by which a few are still understood."""
    strangers = [f"stranger-{number}" for number in range(50)]
    assert Bench().note(SERVICES[:1], SERVICES[1:] + strangers, for_s=HOUR_S)[0] == ""
    bench = Bench(expected=frozenset(SERVICES))
    reason, after_s = bench.note(SERVICES[:1], SERVICES[1:] + strangers, for_s=HOUR_S)
    assert reason.startswith("5 of 6 sources")
    assert after_s == 600.0
    assert Bench(expected=frozenset(SERVICES)).note(SERVICES[:1], strangers, for_s=HOUR_S)[0] == ""


@pytest.mark.parametrize(
    ("good", "bad", "stops"),
    [
        pytest.param(3, 3, False, id="half of the senders is not most"),
        pytest.param(2, 4, True, id="four of six"),
        pytest.param(1, 2, False, id="two senders are too few to judge by"),
        pytest.param(0, 2, False, id="even if they are all there are"),
        pytest.param(0, 3, True, id="three are enough"),
    ],
)
def test_how_many_senders_it_takes(good: int, bad: int, stops: bool) -> None:
    bench = Bench()
    services = SERVICES[: good + bad]
    bench.note(services, [], for_s=HOUR_S)
    assert bool(bench.note(services[:good], services[good:], for_s=HOUR_S)[0]) is stops


def test_a_flood_of_one_service_stops_nothing() -> None:
    bench = Bench()
    bench.note(SERVICES, [])
    assert bench.note(SERVICES[1:], SERVICES[:1], for_s=HOUR_S, copies=500) == ("", HOUR_S)
    assert bench.dead_letter_limit.bad == 1


def test_a_flood_under_invented_names_stops_nothing_while_others_are_well() -> None:
    bench = Bench()
    rng = np.random.default_rng(1)
    for _ in range(400):
        strangers = [f"stranger-{number}" for number in rng.integers(0, 50, 100)]
        assert bench.note(SERVICES[:1], strangers) == ("", STEP_S)


def test_a_flood_under_the_names_of_others_stops_nothing() -> None:
    bench = Bench()
    assert bench.note(SERVICES, SERVICES, for_s=HOUR_S, copies=200) == ("", HOUR_S)


def test_a_short_flood_under_any_names_stops_nothing_before_anybody_was_heard() -> None:
    bench = Bench()
    strangers = [f"stranger-{number}" for number in range(1000)]
    assert bench.note([], strangers, for_s=LIMIT.after_s - STEP_S, copies=3)[0] == ""
    assert bench.note(SERVICES[:1], strangers, for_s=HOUR_S)[0] == ""


def test_one_good_message_makes_a_sender_good_again() -> None:
    bench = Bench()
    bench.note(SERVICES, [])
    bench.note([], SERVICES, for_s=LIMIT.after_s - STEP_S)
    bench.note(SERVICES, [])
    assert bench.note([], SERVICES, for_s=LIMIT.after_s - STEP_S)[0] == ""
    assert bench.note([], SERVICES, for_s=HOUR_S)[1] == STEP_S


def test_a_few_messages_are_no_reason() -> None:
    bench = Bench(LimitConfig(share=0.5, least=500, after_s=600.0, sources=3))
    bench.note([], SERVICES, for_s=600.0 + 2 * STEP_S)
    assert bench.dead_letter_limit.bad == 6
    assert bench.dead_letter_limit.reason_to_stop() == ""
    assert bench.note([], SERVICES, copies=100)[0]


def test_a_share_of_one_never_stops() -> None:
    bench = Bench(LimitConfig(share=1.0, least=1, after_s=1.0, sources=1))
    assert bench.note([], SERVICES, for_s=HOUR_S) == ("", HOUR_S)


def test_senders_that_fell_silent_have_no_vote_and_leave_theirs_to_no_stranger() -> None:
    bench = Bench()
    bench.note(SERVICES, [], for_s=HOUR_S)
    # Three of them go on, and break; the other three are gone for good.
    _, after_s = bench.note([], SERVICES[:3], for_s=24 * HOUR_S)
    assert after_s == pytest.approx(4 * LIMIT.after_s, abs=2 * STEP_S)
    bench = Bench()
    bench.note(SERVICES, [])
    strangers = [f"stranger-{number}" for number in range(100)]
    assert bench.note([], strangers, for_s=8 * HOUR_S)[0] == ""


def test_topics_that_only_smidgen_writes_are_judged_at_once_and_by_any_sender() -> None:
    bench = Bench(LIMIT.within())
    assert bench.note(["shop"], [])[0] == ""
    reason, after_s = bench.note([], ["shop"], for_s=HOUR_S)
    assert reason.startswith("1 of 1 sources (shop)")
    assert after_s == (LIMIT.least - 1) * STEP_S


def test_what_is_remembered_is_bounded_and_strangers_displace_nobody() -> None:
    bench = Bench()
    bench.note(SERVICES, [])
    bench.note([], [f"stranger-{number}" for number in range(10 * MAX_STRANGERS)])
    assert len(bench.dead_letter_limit._strangers) == MAX_STRANGERS
    assert len(bench.dead_letter_limit._known) == len(SERVICES)
    bench.note([f"known-{number}" for number in range(MAX_KNOWN + 10)], [])
    assert len(bench.dead_letter_limit._known) == MAX_KNOWN


@pytest.mark.parametrize(
    ("key", "source"),
    [
        (b"shop/host-1", "shop"),
        (b"shop", "shop"),
        (b"shop/a/b", "shop"),
        (None, ""),
        (b"", ""),
        (b"\xff\xfe/h", "\ufffd\ufffd"),
        (b"a\nb/h", "a\ufffdb"),
        (b"x" * 10_000, "x" * 200),
    ],
)
def test_the_sender_is_the_service_that_the_key_names(key: bytes | None, source: str) -> None:
    assert source_of(key) == source
