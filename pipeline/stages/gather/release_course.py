"""A look at a new release once more, for people: requests of both releases, and what they explain."""

from __future__ import annotations

from pipeline.model import FloatArray, SeriesKey
from pipeline.releases.requests import Rollout
from pipeline.stages.gather.rollouts import gather_releases, gather_rollout
from pipeline.storage.interface import Store


def gather_release(
    store: Store, service: str, release: str, metric: str, end: float
) -> tuple[Rollout, FloatArray] | None:
    """Return the periods of a release and of the one before up to a look, and a metric in them: (periods,).

    It is None where the store no longer has them; the metric is NaN in periods without points.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    succession = gather_releases(store, service, end).succession
    if succession is None or succession.new != release:
        return None
    rollout = gather_rollout(store, service, succession)
    start, end = float(rollout.starts[0]), float(rollout.starts[-1]) + rollout.width_s
    matrix = store.series("service", service, start, end, rollout.width_s, [SeriesKey("service", metric)])
    if not matrix.names:
        return None
    column = ((rollout.starts - matrix.start) / rollout.width_s).round().astype(int)
    return rollout, matrix.samples[0][column]
