"""Targets that keep what is sent to them, and receivers of what the others send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.delivery.alerts.targets import KINDS
from tests.support.alert_desk import BEGUN, HEARD, WRONG, Recorder
from tests.support.alert_receivers import HttpReceiver


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "recorder", Recorder)
    HEARD.clear()
    WRONG.clear()
    BEGUN.clear()


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with HttpReceiver() as running:
        yield running
