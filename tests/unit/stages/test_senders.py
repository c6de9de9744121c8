"""Progress of a stage whose hosts are late: scans wait for their profiles, and for nothing else."""

from __future__ import annotations

import numpy as np

from pipeline.messages.scans import decode_progress
from pipeline.model import MetricPoints, Profile, Record
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore

T0 = 1_767_571_200.0
MINUTE = 60.0
LATE_S = 20 * MINUTE


def profile(host: str, end: float) -> Profile:
    one = np.array([0, 1], dtype=np.int64)
    return Profile("shop", host, end - MINUTE, end, ("main",), one[:1], one, np.array([5], dtype=np.int64))


def watermark(stage: AggregateStage, topic: str, offset: int, *payloads: Profile | MetricPoints) -> float:
    records = [Record(topic, 0, offset + number, payload) for number, payload in enumerate(payloads)]
    (message,) = stage.handle(records)
    return decode_progress(message.value).watermark


def test_profiles_wait_for_late_hosts_and_metrics_do_not() -> None:
    stage = AggregateStage(
        store=ArrayStore(),
        clock=lambda: T0 + 3600,
        streams=one_stream("s"),
        window_s=MINUTE,
        stack_window_s=5 * MINUTE,
    )
    for minute in range(6):
        now = T0 + minute * MINUTE
        reached = watermark(
            stage, "profiles", 2 * minute, profile("prompt", now), profile("late", now - LATE_S)
        )
        habit = minute >= 4
        assert reached == now - (LATE_S - MINUTE) * habit
    points = MetricPoints("shop", "rps", np.array([now]), np.array([1.0]))
    assert watermark(stage, "metrics", 0, points) == now
    assert stage.limited == {}, "said within a minute"
    stage.assigned("metrics", [0])
    assert watermark(stage, "profiles", 12, profile("prompt", now + MINUTE)) < now
    stage.assigned("profiles", [0])
    assert watermark(stage, "profiles", 13, profile("prompt", now + 2 * MINUTE)) == now + 2 * MINUTE
