"""Words of messages about updates, and of dry runs."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.delivery.alerts.alert import alert_of
from pipeline.delivery.alerts.markup import as_plain, unbroken, unlinked
from pipeline.delivery.alerts.message import note_of
from tests.support.alert_events import SUSPECT, detected, resolved, updated


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (detected(), "Suspect: "),
        (detected(root_causes=[]), "No change is suspected"),
        (updated("r1"), "Suspects are those of its report"),
        (updated("r1", root_causes=[SUSPECT]), "Suspect: "),
        (resolved("r1"), "By no known change"),
    ],
    ids=["detected", "without a suspect", "update without suspects", "update with new suspects", "resolved"],
)
def test_an_update_without_suspects_does_not_deny_those_of_its_report(
    event: dict[str, Any], words: str
) -> None:
    text = as_plain(note_of(alert_of(event), "").lines)
    assert words in text
    assert text.count("suspect") + text.count("Suspect") + text.count("By no known") == 1


def test_a_terminal_shows_names_and_addresses_as_they_are() -> None:
    broken = unlinked("Ada <ada@shop.example> https://shop.example @all")
    assert "\u200b" in broken
    assert unbroken(broken) == "Ada <ada@shop.example> https://shop.example @all"
