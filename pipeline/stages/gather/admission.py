"""State that admission needs for the partitions of a batch: their names and usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.counting.quota.admission import Admission
from pipeline.counting.quota.limits import PERIOD_S
from pipeline.model import Profile, Record
from pipeline.model.units import DAY_S
from pipeline.storage.interface import RowQuery, Store, UsageQuery


def gather_admission(
    store: Store,
    streams: Mapping[str, str],
    admission: Admission,
    batch: Sequence[Record],
    fresh: Sequence[Record],
) -> None:
    """Load the names and usage that admission lacks; in the middle of a day it lacks none.

    Args:
        store: Holds names and usage.
        streams: By topic, the name of its log.
        admission: Will decide on the batch.
        batch: Records of one topic.
        fresh: The records of the batch that are not counted yet.
    """
    for log, day in admission.missing_names(batch):
        admission.learn_names(
            log, day, store.rows(RowQuery("names", None, day, day + DAY_S, equal={"log": log}))
        )
    profiles = [record for record in fresh if isinstance(record.payload, Profile)]
    for missing in admission.missing_usage(profiles):
        span = (missing.day, missing.day + DAY_S)
        used = store.counts(
            UsageQuery(
                streams[missing.topic], missing.topic, missing.partition, missing.services, span, PERIOD_S
            )
        )
        admission.learn_usage(missing, used)
