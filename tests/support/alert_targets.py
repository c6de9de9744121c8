"""Targets of alerts, and notes to send to them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from pipeline.delivery.alerts.alert import SuspectedChange
from pipeline.delivery.alerts.message import Note, digest_of, note_of
from pipeline.delivery.alerts.secret import GivenSecret
from pipeline.delivery.alerts.targets import KINDS, Http, Target
from pipeline.files.validation import validate
from tests.support.alert_events import alert, detected, resolved, updated

DASHBOARD = "https://smidgen.example.com"
SHA = "8f2c11d0"


def secret(text: str = "secret-token") -> GivenSecret:
    return GivenSecret(text)


def target(kind: str, **options: Any) -> Target:
    return validate(KINDS[kind], {"kind": kind, **options}, "targets.one")


def send(target: Target, note: Note, thread: str = "") -> str:
    async def sending() -> str:
        http = Http()
        try:
            return await target.send(note, thread, http)
        finally:
            await http.close()

    return asyncio.run(sending())


REPORT = note_of(alert(), DASHBOARD)
UPDATE = note_of(alert(updated("r1")), DASHBOARD)
END = note_of(alert(resolved("r1")), DASHBOARD)
OTHER = note_of(alert(detected("r9")), DASHBOARD)
DIGEST = digest_of([alert(), alert(updated("r2"))], DASHBOARD, "d1")
EVIL = note_of(
    replace(
        alert(service="a<b>&c", metric="<script>`x` *y* @all #1 ![z](u)"),
        suspect=SuspectedChange(
            "8f2c11d0",
            "<!channel> @here fixes #7 GH-12 $3 ~bug https://evil www.evil **b** </p>\r\nBcc: x@y",
            "Eve <e>",
            0.9,
        ),
    ),
    DASHBOARD,
)
