"""A record for which the store refuses what it takes is left out after some tries, and stops nobody."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from pipeline.messages.scans import decode_scan, encode_scan, split_scan
from pipeline.model.errors import QueryRefused
from pipeline.worker.dlq import TooManyDeadLetters
from pipeline.worker.omissions import TRIES, Omissions
from tests.unit.messages.test_assembler import scan
from tests.unit.worker.faked_loop import Bench, FakeEvent, SkippingStage, drive, unavailable


def refused() -> None:
    raise QueryRefused("memory limit exceeded")


def fine() -> None:
    return None


def build(*outcomes: Callable[[], object]) -> Bench:
    bench = Bench(stage=SkippingStage)
    bench.stage.outcomes = list(outcomes)
    return bench


def omitted(bench: Bench) -> list[int]:
    assert isinstance(bench.stage, SkippingStage)
    return bench.stage.omitted


def event(bench: Bench, offset: int, service: str) -> FakeEvent:
    return bench.event(offset, key=service.encode())


def test_a_refused_record_is_a_dead_letter_after_some_tries(caplog: pytest.LogCaptureFixture) -> None:
    bench = build(*[refused] * TRIES)
    with caplog.at_level(logging.ERROR):
        drive(bench.run([event(bench, 4, "shop")], [event(bench, 5, "shop")]))
    assert bench.log.count("handle [4]") == TRIES
    assert bench.log[-4:] == ["ack 0/4", "handle [5]", "settled", "ack 0/5"]
    (packet,) = bench.publisher.packets
    headers = dict(packet.headers)
    assert (packet.key, packet.value, headers["offset"]) == (b"shop", b"x", b"4")
    assert headers["reason"] == b"left out after 5 tries: memory limit exceeded"
    assert omitted(bench) == [4]
    assert "service=shop: left out after 5 tries" in caplog.text
    counts = {name: value for name, _, value in bench.telemetry.samples()}
    assert (counts["left_out_messages_total"], counts["dead_letters_total"]) == (1, 1)


def test_a_refusal_that_passes_leaves_nothing_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    bench = build(refused, refused, unavailable, refused)
    drive(bench.run([event(bench, 4, "shop")]))
    assert bench.log.count("handle [4]") == 5
    assert not bench.publisher.packets
    assert bench.log[-1] == "ack 0/4"
    assert caplog.text.count("fake: query refused, trying again: memory limit exceeded") == 3
    assert caplog.text.count("fake: store unavailable, trying again: ") == 1


def test_an_outage_is_waited_for_however_long() -> None:
    bench = build(*[unavailable] * (2 * TRIES))
    drive(bench.run([event(bench, 4, "shop")]))
    assert not bench.publisher.packets
    assert bench.log[-1] == "ack 0/4"


def test_a_stage_that_must_count_everything_tries_for_as_long_as_it_takes() -> None:
    bench = Bench()
    bench.stage.outcomes = [refused] * (2 * TRIES)
    drive(bench.run([event(bench, 4, "shop")]))
    assert not bench.publisher.packets
    assert bench.log[-1] == "ack 0/4"


def test_of_a_batch_only_the_refused_record_is_left_out() -> None:
    bench = build(refused, fine, *[refused] * TRIES)
    drive(bench.run([event(bench, 1, "a"), event(bench, 2, "b"), event(bench, 3, "c")]))
    handled = [line for line in bench.log if line.startswith("handle")]
    assert handled == ["handle [1, 2, 3]", "handle [1]", *["handle [2]"] * TRIES, "handle [3]"]
    assert [dict(packet.headers)["offset"] for packet in bench.publisher.packets] == [b"2"]
    assert bench.log[-3:] == ["ack 0/1", "ack 0/2", "ack 0/3"]


def test_a_service_that_was_left_out_is_tried_once_until_it_passes() -> None:
    bench = build(*[refused] * TRIES, refused, fine, *[refused] * TRIES)
    drive(bench.run(*([event(bench, offset, "shop")] for offset in range(4))))
    tried = [bench.log.count(f"handle [{offset}]") for offset in range(4)]
    assert tried == [TRIES, 1, 1, TRIES]


def test_all_parts_of_a_scan_are_dead_letters() -> None:
    bench = Bench(inputs={"change-points": decode_scan}, stage=SkippingStage)
    bench.stage.outcomes = [fine, *[refused] * TRIES]
    parts = [encode_scan(part) for part in split_scan(scan(5), 2)]
    other = encode_scan(scan(1, service="other"))  # comes between them
    values = [(b"shop", parts[0]), (b"other", other), *((b"shop", part) for part in parts[1:])]
    events = [bench.event(n, v, topic="change-points", key=k) for n, (k, v) in enumerate(values)]
    drive(bench.run(events[:2], events[2:], topic="change-points"))
    assert [packet.value for packet in bench.publisher.packets] == parts
    assert omitted(bench) == [len(values) - 1]
    assert bench.log[-1] == f"ack 0/{len(values) - 1}"


def test_a_stage_stops_when_most_services_are_refused() -> None:
    bench = build(*[refused] * (3 * TRIES))
    drive(bench.run(*([event(bench, offset, f"s{offset}")] for offset in range(3))))
    (failure,) = bench.failures
    assert isinstance(failure, TooManyDeadLetters)
    assert "the store refuses what 3 of 3 services (s0, s1, s2) take" in str(failure)
    assert [line for line in bench.log if line.startswith("ack")] == ["ack 0/0", "ack 0/1"]


@pytest.mark.parametrize(
    ("handled", "left_out", "stops"),
    [
        ((), ("a", "b"), False),
        ((), ("a", "b", "c"), True),
        (("d", "e", "f"), ("a", "b", "c"), False),
        (("d", "e"), ("a", "b", "c"), True),
        (("a", "d"), ("a", "b", "c"), True),
    ],
)
def test_votes(handled: tuple[str, ...], left_out: tuple[str, ...], stops: bool) -> None:
    omissions = Omissions(0.5)
    omissions.handled(handled)
    reasons = [omissions.left_out(service) for service in left_out]
    assert bool(reasons[-1]) == stops
    assert not any(reasons[:-1])
