from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from pipeline.counting.quota.limits import PartitionQuota, Quota, Quotas
from pipeline.model import Record, RequestCounts, TypeCounts
from pipeline.model.frames import OTHER
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RequestQuery

START = 1_700_000_010.0


def message(types: Sequence[str], release: str = "v1", service: str = "shop") -> RequestCounts:
    counts = tuple(
        TypeCounts(name, 1 + n, (0, 1 + n, 0, 0, 0), ((5, 1 + n),)) for n, name in enumerate(types)
    )
    return RequestCounts(service, "web-1", START, 30.0, counts, release)


def counted(quotas: Quotas, *messages: RequestCounts) -> tuple[dict[tuple[str, str], float], dict[str, int]]:
    store = ArrayStore()
    stage = AggregateStage(
        store=store,
        clock=map(float, count(int(START) + 60, 600)).__next__,  # what is limited is said every minute
        streams=one_stream("log"),
        window_s=60.0,
        stack_window_s=300.0,
        quotas=quotas,
    )
    stage.handle([Record("requests", 0, n, each) for n, each in enumerate(messages)])
    found: dict[tuple[str, str], float] = {}
    for service in ("shop", "news", OTHER):
        releases = store.counts(RequestQuery(service, START, START + 30)).releases
        rows = store.counts(RequestQuery(service, START, START + 30, releases))
        for release, name, (many,) in zip(rows.releases, rows.types, rows.requests.tolist(), strict=True):
            found[f"{service} {release}".strip(), name] = many
    return found, dict(stage.limited)


def test_types_beyond_the_quota_are_counted_together() -> None:
    found, limited = counted(Quotas(Quota(names=2)), message("abcd"), message("cb"))
    assert found == {("shop v1", "a"): 1, ("shop v1", "b"): 4, ("shop v1", OTHER): 8}
    assert limited == {"folded_names": 3}


def test_releases_beyond_the_quota_are_counted_without_one() -> None:
    found, limited = counted(Quotas(Quota(strata=1)), message("a"), message("a", "v2"))
    assert found == {("shop v1", "a"): 1, ("shop", "a"): 1}
    assert limited == {"folded_strata": 1}


def test_services_beyond_the_quota_are_counted_as_one() -> None:
    partition = PartitionQuota(services=1)
    found, limited = counted(Quotas(partition=partition), message("a"), message("ab", service="news"))
    assert found == {("shop v1", "a"): 1, (OTHER, OTHER): 3}
    assert limited == {"refused_messages": 1}


def test_copies_of_a_message_are_counted_once() -> None:
    one = replace(message("a"), id="1")
    found, limited = counted(Quotas(), one, one, replace(one, id="2"))
    assert found == {("shop v1", "a"): 2}
    assert limited == {"repeated_messages": 1}
