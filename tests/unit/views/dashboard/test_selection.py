"""Selections of senders as an address says them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import Stratum
from pipeline.model.errors import ConfigError
from pipeline.views.dashboard.pages.explorer import address, narrowed
from pipeline.views.dashboard.selection import (
    SenderChoice,
    choices_of,
    label_text,
    read_senders,
    read_view,
    split_labels,
)

NOW = 1_770_000_000.0
WEST = Stratum("web-1", "v1", (("disk", "ssd,nvme"), ("region", "west")))
EAST = Stratum("web-2", "v2", (("path", "C:\\x"), ("region", "east")))

texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1).map(str.strip)


@pytest.mark.parametrize(
    ("given", "west", "east"),
    [
        ({}, True, True),
        ({"release": "v1"}, True, False),
        ({"release": "!v1"}, False, True),
        ({"release": "*", "host": "web-2"}, False, True),
        ({"host": "web-3"}, False, False),
        ({"label": "region=west"}, True, False),
        ({"label": "!region=west"}, False, True),
        ({"label": r"disk=ssd\,nvme"}, True, False),
        ({"label": r"region=west, disk=ssd\,nvme"}, True, False),
        ({"label": r"region=east,disk=ssd\,nvme"}, False, False),
        ({"label": r"path=C:\x"}, False, True),
        ({"label": r"path=C:\\x,region=east"}, False, True),
        ({"label": "region=west,,"}, True, False),
        ({"label": "region=west", "release": "v2"}, False, False),
    ],
    ids=str,
)
def test_senders_are_included_by_all_that_is_said(given: dict[str, str], west: bool, east: bool) -> None:
    senders = read_senders(given)
    assert (senders.include(WEST), senders.include(EAST)) == (west, east)
    assert senders.every is (not given)


@pytest.mark.parametrize("label", ["east", "region=east,west", "!east", r"east\,west"])
def test_a_label_has_a_name(label: str) -> None:
    with pytest.raises(ConfigError, match="other_label: should be as region=east"):
        read_senders({"other_label": label}, "other_")


@given(st.lists(texts.filter(bool), min_size=1))
def test_labels_of_any_text_come_back(labels: list[str]) -> None:
    assert split_labels(",".join(map(label_text, labels))) == labels


@given(texts, texts, texts)
def test_what_a_choice_says_is_that_sender_alone(name: str, value: str, other: str) -> None:
    name = name.replace("=", "-") or "n"
    one, two = (Stratum("h", "r", ((name, each),)) for each in (value, value + other + "x"))
    (first, second) = choices_of([one, two])["labels"]
    assert {first, second} == {label_text(f"{name}={each}") for each in (value, value + other + "x")}
    if not name.startswith("!") and "*" not in name:
        assert [SenderChoice(label=label_text(one.texts[0])).include(each) for each in (one, two)] == [
            True,
            False,
        ]


def test_a_link_to_one_sender_keeps_the_commas_of_its_label() -> None:
    link = narrowed({"service": "shop"}, "disk")["only"]
    assert callable(link)
    assert link("ssd,nvme") == address({"service": "shop", "label": r"disk=ssd\,nvme"})


@pytest.mark.parametrize(
    ("against", "back"), [("before", 3600.0), ("day", 86_400.0), ("week", 604_800.0), ("same", 0.0)]
)
def test_the_other_side_is_of_an_earlier_span_or_of_others(against: str, back: float) -> None:
    view = read_view({"span": "1h", "against": against, "host": "web-1"}, "shop", NOW)
    assert view.before == (view.start - back, view.end - back)
    assert (view.other_senders is None) is (against == "same")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"other_release": "v1"}, SenderChoice("v1", "web-1", "")),
        ({"other_host": "*"}, SenderChoice("v2", "*", "")),
        ({"other_label": "region=east"}, SenderChoice("v2", "web-1", "region=east")),
    ],
)
def test_what_the_other_side_leaves_open_is_as_here(other: dict[str, str], expected: SenderChoice) -> None:
    given = {"against": "same", "release": "v2", "host": "web-1", **other}
    assert read_view(given, "shop", NOW).other_senders == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"against": "same"}, "against: same needs"),
        ({"start": "2026-02-03", "end": "2026-02-02"}, "start: should be before"),
        ({"span": "2y"}, "span: should be one of"),
        ({"end": "1969-01-01"}, "end: should be between"),
    ],
)
def test_a_view_that_cannot_be_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_view(given, "shop", NOW)


@pytest.mark.parametrize(
    ("senders", "text"),
    [
        (SenderChoice(), ""),
        (SenderChoice("v2", "web-1", "region=east"), "release v2, host web-1, region=east"),
        (SenderChoice("!v2", "", "!region=east"), "not release v2, not region=east"),
    ],
)
def test_senders_are_said_in_words(senders: SenderChoice, text: str) -> None:
    assert str(senders) == text
