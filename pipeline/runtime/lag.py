"""How far a consumer is behind its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from faust.transport.consumer import Consumer

if TYPE_CHECKING:
    from pipeline.runtime.app import StageApp

Place = tuple[str, int]
"""Topic (the broker's name) and partition."""


def lags(app: StageApp) -> dict[Place, int | None]:
    """Return how many messages of each assigned partition are not committed; None where it is not known.

    It is known from the first fetch of a partition on. What was fetched and waits in memory is not done.
    """
    if not app.started:
        return {}
    consumer = cast(Consumer, app.consumer)
    found: dict[Place, int | None] = {}
    for tp in consumer.assignment():
        end, committed = consumer.highwater(tp), consumer._committed_offset[tp]
        found[tp.topic, tp.partition] = None if end is None else max(0, end - (committed or 0))
    return dict(sorted(found.items()))
