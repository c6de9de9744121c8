"""Confirmed causes as the last stage reads them, over every store."""

from __future__ import annotations

from typing import Any

import orjson

from pipeline.analysis.feedback import Confirmation
from pipeline.messages.records import columns_of
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import Verdict
from pipeline.stages.gather.verdicts import ConfirmedCauses
from tests.contract.stages.test_following import START, Scans
from tests.contract.stages.test_following import scans as scans
from tests.contract.test_feedback_commands import regression_row


def report(scans: Scans, number: str, *suspects: dict[str, Any]) -> str:
    event = orjson.dumps({"data": {"root_causes": list(suspects)}}).decode()
    row = regression_row(scans.service, number, event=event)
    scans.store.insert("regressions", columns_of([row]))
    return str(row["id"])


def confirm(scans: Scans, event: str, change: str, second: float) -> None:
    said = Verdict(event, scans.service, "cause", START + second, "ada", subject=change)
    scans.store.insert("verdicts", columns_of([verdict_to_row(said)]))


def test_what_was_confirmed_before_a_scan_is_known_to_it(scans: Scans) -> None:
    suspects = [
        {"change": {"id": "c1"}, "evidence": {"text": 2.0}},
        {"change": {"id": "c2"}, "evidence": {"deployment": 1.0}},
    ]
    first, old = report(scans, "r1", *suspects), report(scans, "r2", {"change": {"id": "c1"}})
    confirm(scans, first, "c2", 50)
    confirm(scans, old, "c1", 60)
    confirm(scans, report(scans, "r3", *suspects), "c1", 90)
    causes = ConfirmedCauses(scans.store)
    mine = Confirmation({"c1": {"text": 2.0}, "c2": {"deployment": 1.0}}, "c2")
    for _ in range(2):
        found = causes.gather(scans.at(70))
        assert mine in found
        assert Confirmation({}, "c1") in found, "what an earlier version wrote has no evidence"
    assert len(causes.gather(scans.at(100))) == len(found) + 1
