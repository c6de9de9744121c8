"""What admission has to know of a batch's partitions: the names they brought, and what they have used."""

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
    """Let admission learn what it does not know yet; in the middle of a day that is nothing.

    Args:
        store: Where names and usage are.
        streams: By topic, the name of its log.
        admission: Is going to decide.
        batch: Records of one topic.
        fresh: Those of them that are not counted yet.
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
