"""judge over every store: one verdict for the same trials, in any order, however often they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from pipeline.counting.quota.limits import Quota, Quotas
from pipeline.experiments.trials import MODELS
from pipeline.messages.trials import decode_trial, encode_trial
from pipeline.model import ExperimentEnd, Outgoing, Record, TrialMetric, TrialSide
from pipeline.model.errors import StoreUnavailable
from pipeline.model.units import DAY_S
from pipeline.stages.judge import JudgeStage
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery, Store
from tests.contract.rows import T0
from tests.contract.stages.stores import every_store

Message = TrialSide | ExperimentEnd


def trials_of(
    service: str, experiment: str = "e1", trials: int = 6, *, slower: float = 0.0, seed: int = 1, **own: Any
) -> list[Message]:
    """Return both sides of each trial, a trial a minute; side B is slower by a share."""
    rng = np.random.default_rng(seed)
    start, kind = own.pop("start", T0), own.pop("kind", "A/B")
    found: list[Message] = []
    for number in range(trials):
        for side, factor in (("A", 1.0), ("B", 1.0 + slower)):
            points = rng.normal(100.0, 1.0, 30) * factor
            found.append(
                TrialSide(
                    service,
                    experiment,
                    f"t{number:02}",
                    side,  # type: ignore[arg-type]
                    kind,
                    start + 60.0 * number,
                    (TrialMetric("cpu", points, threshold=0.02),),
                    release=f"r{side}",
                    factors={"type": "m5"},
                    **own,
                )
            )
    return found


def end_of(service: str, experiment: str = "e1", trials: int = 0, time: float = T0 + 3600.0) -> ExperimentEnd:
    return ExperimentEnd(service, experiment, time, trials)


class Judge:
    """A worker of the stage: what it publishes is kept."""

    def __init__(self, store: Store, quotas: Quotas | None = None) -> None:
        self._store, self._quotas = store, quotas
        self.now = T0
        self.events: list[dict[str, Any]] = []
        self.restart()

    def restart(self) -> None:
        self.stage = JudgeStage(store=self._store, clock=lambda: self.now, models=MODELS, quotas=self._quotas)

    def idle(self, service: str, *, settled: bool = True) -> list[dict[str, Any]]:
        """Return what is due by the clock; other tests' services share the store."""
        found = [orjson.loads(one.value) for one in self.stage.idle()]
        if settled:
            self.stage.settled()
        return [event for event in found if event["data"]["service"] == service]

    def take(self, messages: Sequence[Message], *, settled: bool = True) -> list[dict[str, Any]]:
        records = [
            Record("trials", 0, offset, decode_trial(encode_trial(one)))
            for offset, one in enumerate(messages)
        ]
        sent: list[Outgoing] = self.stage.handle(records)
        found = [orjson.loads(one.value) for one in sent]
        for one, event in zip(sent, found, strict=True):
            assert one.topic == "trial-verdicts"
            assert one.key == f"{event['data']['service']}/{event['subject']}"
        if settled:
            self.events += found
            self.stage.settled()
        return found


@every_store
def test_an_experiment_is_judged_once_it_has_ended(store: Store, service_name: str) -> None:
    judge = Judge(store)
    assert judge.take(trials_of(service_name, slower=0.05)) == []
    (event,) = judge.take([end_of(service_name)])
    data = event["data"]
    assert (data["decision"], data["complete"], data["revision"], data["trials"]) == ("fail", True, 1, 6)
    assert (data["releases_a"], data["releases_b"]) == (["rA"], ["rB"])
    assert data["machines"] == [{"side": side, "factors": {"type": "m5"}, "trials": 6} for side in ("A", "B")]
    (metric,) = data["metrics"]
    assert (metric["metric"], metric["model"], metric["trials"]) == ("cpu", "paired-t-test", 6)
    assert metric["low"] < metric["difference"] < metric["high"]
    assert metric["difference"] == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("order", ["end first", "shuffled", "one by one", "twice", "replayed"])
def test_the_order_of_messages_does_not_matter(store: Store, service_name: str, order: str) -> None:
    messages = [*trials_of(service_name), end_of(service_name, trials=6)]
    judge = Judge(store)
    if order == "end first":
        judge.take(messages[-1:])
        judge.take(messages[:-1])
    elif order == "shuffled":
        judge.take([messages[index] for index in np.random.default_rng(2).permutation(len(messages))])
    elif order == "one by one":
        for message in reversed(messages):
            judge.take([message])
    elif order == "twice":
        judge.take([*messages, *messages])
    else:
        judge.take(messages)
        judge.restart()
        judge.take(messages)
    plain = Judge(store)
    plain.take([*trials_of(f"{service_name}-plain"), end_of(f"{service_name}-plain", trials=6)])
    (event,), (other,) = judge.events, plain.events
    assert event["data"] == {**other["data"], "service": service_name}


@every_store
def test_a_kill_before_a_verdict_is_published_publishes_it_again(store: Store, service_name: str) -> None:
    messages = [*trials_of(service_name), end_of(service_name)]
    judge = Judge(store)
    (lost,) = judge.take(messages, settled=False)
    judge.restart()
    # By then an A/A experiment would have it judged otherwise: what was decided stays.
    judge.take(trials_of(service_name, "same", 60, kind="A/A", start=T0 - 7200.0))
    assert judge.events == [lost]
    judge.take(messages)
    assert judge.events == [lost]


def test_more_trials_revise_a_verdict(store: Store, service_name: str) -> None:
    messages = trials_of(service_name, trials=8, slower=0.05)
    judge = Judge(store)
    judge.take([*messages[:12], end_of(service_name)])
    judge.take(messages[12:13])
    assert len(judge.events) == 1  # one side is no trial
    judge.take(messages[13:])
    assert [event["data"]["revision"] for event in judge.events] == [1, 2]
    assert [event["data"]["trials"] for event in judge.events] == [6, 8]
    assert judge.events[0]["id"] != judge.events[1]["id"]


def test_an_experiment_that_never_ends_is_not_enough_after_a_day_of_event_time(
    store: Store, service_name: str
) -> None:
    judge = Judge(store)
    judge.take(trials_of(service_name, "lost", 2)[:3])
    later = trials_of(service_name, "other", 1, start=T0 + 60.0 + DAY_S - 1.0)
    assert judge.take(later[:1]) == []
    (event,) = judge.take(trials_of(service_name, "other", 1, start=T0 + DAY_S + 60.0))
    data = event["data"]
    assert (event["subject"], data["decision"], data["complete"]) == ("lost", "not enough", False)
    assert (data["trials"], data["half_trials"], data["expected_trials"]) == (1, 1, None)
    (revised,) = judge.take([*trials_of(service_name, "lost", 6), end_of(service_name, "lost")])
    assert (revised["data"]["revision"], revised["data"]["decision"]) == (2, "pass")


@every_store
def test_an_overdue_experiment_of_a_quiet_service_is_judged_by_the_clock(
    store: Store, service_name: str
) -> None:
    judge = Judge(store)
    judge.take(trials_of(service_name, "lost", 2)[:3])
    judge.now = T0 + 60.0 + DAY_S
    assert judge.idle(service_name) == []  # trials may still come
    judge.take(trials_of(service_name, "lost", 2)[3:])
    judge.now += 600.0
    judge.restart()
    assert judge.idle(service_name) == []
    (event,) = judge.idle(service_name, settled=False)
    assert (event["subject"], event["data"]["decision"], event["data"]["trials"]) == ("lost", "not enough", 2)
    judge.restart()  # killed before it was published
    judge.idle(service_name)
    assert [one["id"] for one in judge.idle(service_name)] == [event["id"]]
    assert judge.idle(service_name) == []
    judge.restart()
    assert [judge.idle(service_name) for _ in range(2)] == [[], []]


def test_a_service_is_not_quiet_before_a_day_is_over(store: Store, service_name: str) -> None:
    judge = Judge(store)
    judge.take(trials_of(service_name, "lost", 1)[:1])
    for judge.now in (T0, T0 + DAY_S - 1.0):
        assert judge.idle(service_name) == []
    judge.now = T0 + DAY_S
    (event,) = judge.idle(service_name)
    assert event["data"]["half_trials"] == 1


def test_a_sequential_experiment_ends_once_it_is_decided(store: Store, service_name: str) -> None:
    judge = Judge(store)
    messages = trials_of(service_name, trials=12, slower=0.2, sequential=True)
    found = []
    for first in range(0, len(messages), 2):
        found = judge.take(messages[first : first + 2])
        if found:
            break
    assert found[0]["data"]["decision"] == "fail"
    assert 5 <= found[0]["data"]["trials"] < 12
    assert found[0]["data"]["complete"] is False


@every_store
def test_a_model_is_chosen_by_the_a_a_trials_of_the_service_and_kept(store: Store, service_name: str) -> None:
    judge = Judge(store)
    assert judge.take(trials_of(service_name, "same", 120, kind="A/A", start=T0 - DAY_S)) == []
    late = T0 + 2 * DAY_S
    for name, start in (("e1", T0), ("e2", T0 + 60.0), ("e3", late)):
        end = end_of(service_name, name, time=start + 60.0)
        judge.take([*trials_of(service_name, name, 1, start=start), end])
    rows = store.rows(RowQuery("trial_models", service_name, 0.0, late + DAY_S))
    assert [row["time"] for row in rows] == [T0 + 60.0, late + 60.0]
    assert [row["former"] for row in rows] == ["", rows[0]["model"]]
    for event in judge.events:
        (metric,) = event["data"]["metrics"]
        assert metric["model"] == rows[0]["model"]
        assert len(metric["scores"]) > 3
    assert rows[0]["experiments"] == 60


@every_store
def test_what_is_beyond_the_quota_is_refused_and_counted(store: Store, service_name: str) -> None:
    judge = Judge(store, Quotas(Quota(trial_sides=4)))
    messages = trials_of(service_name)
    judge.take(messages)
    judge.restart()
    judge.take([*messages, end_of(service_name)])
    assert len(store.rows(RowQuery("trials", service_name, 0.0, T0 + DAY_S))) == 4


class Flaky:
    """A store that fails once at the n-th insert, after or before it took it."""

    def __init__(self, store: Store, fails_at: int, *, took: bool) -> None:
        self._store, self._fails_at, self._took, self.inserts = store, fails_at, took, 0

    def insert(self, *arguments: Any, **named: Any) -> None:
        self.inserts += 1
        if self.inserts == self._fails_at and not self._took:
            raise StoreUnavailable("down")
        self._store.insert(*arguments, **named)
        if self.inserts == self._fails_at:
            raise StoreUnavailable("no answer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("took", [True, False], ids=["answer lost", "refused"])
@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
def test_a_call_that_fails_is_repeated_and_changes_nothing(
    service_name: str, fails_at: int, took: bool
) -> None:
    judge = Judge(Flaky(ArrayStore(), fails_at, took=took))
    messages = [*trials_of(service_name, slower=0.05), end_of(service_name)]
    with pytest.raises(StoreUnavailable):
        judge.take(messages)
    judge.restart()
    judge.take(messages)
    plain = Judge(ArrayStore())
    plain.take(messages)
    # Twice where it cannot be known that the first one is noted.
    assert judge.events == plain.events * (2 if (fails_at, took) == (4, False) else 1)
