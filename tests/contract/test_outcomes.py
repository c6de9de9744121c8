"""Outcomes of scans in every store: they are kept, and the first one written counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from pipeline.messages import outcomes as codec
from pipeline.messages.outcomes import ScanOutcome, attempt_of, outcome_columns, outcome_of, outcome_pieces
from pipeline.model import Outgoing, Scan
from pipeline.stages.outcomes import Outcomes
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_client
from pipeline.storage.interface import Store
from tests.contract.rows import T0

HOUR_S = 3600.0


def scan(service: str | None = None, *, end: float = T0, workload: str = "w") -> Scan:
    return Scan(service or uuid4().hex, workload, end - 600.0, end - 60.0, end, end, series=1)


def outcome(text: str = "first") -> ScanOutcome:
    """An outcome with everything that one may hold."""
    memory: dict[str, Sequence[Any]] = {
        "stage": ["dedup"],
        "before": [math.inf],
        "change_time_interval": [[1.0, 2.5]],
    }
    return ScanOutcome(
        rows=(("memory", memory), ("updates", {"id": [text], "level": [0.25]})),
        messages=(
            Outgoing("regressions", "s", text.encode(), (("content-type", b"application/json"),)),
            Outgoing("unique", "s", "größe".encode()),
        ),
        noted={"ledger": {"id": [text]}, "late": 2},
    )


def of(message: str) -> ScanOutcome:
    return ScanOutcome(messages=(Outgoing("unique", "s", message.encode()),))


def said(found: ScanOutcome) -> list[bytes]:
    return [message.value for message in found.messages]


def never() -> ScanOutcome:
    raise AssertionError("decided again")


def test_an_outcome_comes_back_as_it_was(store: Store) -> None:
    seen = scan()
    first = Outcomes(store, "dedup").of(seen, outcome)
    again = Outcomes(store, "dedup").of(seen, never)
    for found in (first, again):
        assert found.rows == outcome().rows
        assert found.noted == outcome().noted
        assert [(m.topic, m.value, m.headers) for m in found.messages] == [
            (m.topic, m.value, m.headers) for m in outcome().messages
        ]
        assert {m.key for m in again.messages} == {seen.service}


def test_an_empty_outcome_is_one_too(store: Store) -> None:
    seen = scan()
    assert Outcomes(store, "filter").of(seen, ScanOutcome) == ScanOutcome()
    assert Outcomes(store, "filter").of(seen, never) == ScanOutcome()


@pytest.mark.parametrize(
    ("stage", "other"),
    [
        pytest.param("rootcause", {}, id="another stage"),
        pytest.param("dedup", {"workload": "v"}, id="another workload"),
        pytest.param("dedup", {"end": T0 + 0.25}, id="another end"),
        pytest.param("dedup", {"service": "o"}, id="another service"),
    ],
)
def test_each_scan_of_each_stage_has_its_own(store: Store, stage: str, other: dict[str, str]) -> None:
    name = uuid4().hex
    Outcomes(store, "dedup").of(scan(name), lambda: of("one"))
    theirs = scan(**{"service": name, **other}) if "service" not in other else scan(name + "o")  # type: ignore[arg-type]
    assert said(Outcomes(store, stage).of(theirs, lambda: of("other"))) == [b"other"]
    assert said(Outcomes(store, "dedup").of(scan(name), never)) == [b"one"]


def test_of_two_workers_that_decide_at_once_the_first_to_write_counts(store: Store) -> None:
    seen = scan()

    def while_another_decides() -> ScanOutcome:
        Outcomes(store, "dedup").of(seen, lambda: of("quick"))
        return of("slow")

    assert said(Outcomes(store, "dedup").of(seen, while_another_decides)) == [b"quick"]
    assert said(Outcomes(store, "dedup").of(seen, never)) == [b"quick"]


def test_what_a_killed_worker_left_half_written_does_not_count(store: Store) -> None:
    seen = scan()
    half = outcome_pieces(of("half"))
    *_, last = outcome_columns("dedup", seen, half)
    store.insert("outcomes", {name: cells[:-1] for name, cells in last.items()})
    assert said(Outcomes(store, "dedup").of(seen, lambda: of("whole"))) == [b"whole"]
    assert said(Outcomes(store, "dedup").of(seen, never)) == [b"whole"]


def test_a_large_outcome_is_written_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "CHUNK_CHARACTERS", 10)
    seen = scan()
    large = ScanOutcome(messages=tuple(Outgoing("unique", "s", f"message {n}".encode()) for n in range(30)))
    assert len(list(outcome_columns("dedup", seen, outcome_pieces(large)))) > 10
    Outcomes(store, "dedup").of(seen, lambda: large)
    assert said(Outcomes(store, "dedup").of(seen, never)) == said(large)


def test_an_outcome_that_has_lost_pieces_is_decided_again(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    seen = scan()
    *_, last = outcome_columns("dedup", seen, outcome_pieces(outcome()))
    store.insert("outcomes", {name: [cells[0], cells[-1]] for name, cells in last.items()})
    assert said(Outcomes(store, "dedup").of(seen, lambda: of("anew"))) == [b"anew"]
    assert "1 of 5 pieces of its outcome are there" in caplog.text


def test_an_outcome_that_was_deleted_can_be_kept_anew(sql_store: ClickHouseStore, dsn: str) -> None:
    seen = scan()
    for text in ("first", "second", "second"):  # the store knows the token of what is gone
        assert said(Outcomes(sql_store, "dedup").of(seen, partial(of, text))) == [text.encode()]
        assert said(Outcomes(sql_store, "dedup").of(seen, never)) == [text.encode()]
        with closing(open_client(dsn)) as client:
            client.command(
                "ALTER TABLE outcomes DELETE WHERE service = {service:String} SETTINGS mutations_sync = 2",
                parameters={"service": seen.service},
            )


def test_an_attempt_is_known_by_all_that_it_holds() -> None:
    pieces = outcome_pieces(outcome())
    assert attempt_of(pieces) == attempt_of(outcome_pieces(outcome()))
    others = [pieces[1:], pieces[::-1], outcome_pieces(outcome("second")), []]
    assert len({attempt_of(each) for each in (pieces, *others)}) == 5
    assert outcome_of(scan("s"), pieces) == outcome()
