"""The truth table of what becomes of a silenced regression."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.lifecycle import (
    OpenRegression,
    SilenceCase,
    Silenced,
    SilencedNews,
    SilencedState,
    SilenceEvidence,
    Update,
    as_found_now,
    decide_news,
)
from pipeline.model import Silence
from tests.support.builders import build_candidate

NOW = 1_700_000_000.0
RISE = build_candidate("cart.tax", before=0.1, after=0.2, change_time=NOW - 900, statistic=900.0)
OPEN = OpenRegression("r1", RISE)
MUTED = Silence("s1", "shop", "muted", NOW - 999, NOW - 999, NOW + 60, owner="ada")
EXPECTED = Silence("s1", "shop", "expected", NOW - 999, NOW - 999, subroutine="cart.*", cost=0.12)
HIGHER = Update(
    "updated", OPEN, "shop", "live", NOW, NOW - 60, 0.4, escalated=replace(RISE, before=0.2, after=0.4)
)
JOINED = Update(
    "updated", OPEN, "shop", "live", NOW, NOW - 60, 0.2, joined=(build_candidate("cart.find", after=0.4),)
)
GONE = Update("resolved", OPEN, "shop", "live", NOW, NOW - 60, 0.1)


def news(
    state: SilencedState, *silences: Silence, update: Update | None = None, left: float | None = 1.0
) -> SilencedNews:
    one = Silenced(OPEN, "live", state, "s1", frozenset())
    case = SilenceCase("r1", as_found_now(one, update))
    return decide_news(one, case, update, left, SilenceEvidence(NOW, silences))


@pytest.mark.parametrize(
    ("silence", "update", "left", "state", "noted", "code"),
    [
        pytest.param(MUTED, None, 1.0, "muted", False, "muted", id="muted still"),
        pytest.param(MUTED, JOINED, 1.0, "muted", True, "muted", id="muted still, joined by another"),
        pytest.param(MUTED, GONE, 0.0, "gone", True, None, id="gone while it was muted"),
        pytest.param(replace(MUTED, end=NOW), None, 1.0, "reported", True, "ended", id="ended, all there"),
        pytest.param(replace(MUTED, end=NOW), None, 0.5, "reported", True, "ended", id="ended, half there"),
        pytest.param(replace(MUTED, end=NOW), None, 0.4, "muted", False, None, id="ended, hardly there"),
        pytest.param(replace(MUTED, end=NOW), None, None, "muted", False, None, id="ended, no data"),
        pytest.param(replace(MUTED, end=NOW), HIGHER, None, "reported", True, "ended", id="ended, higher"),
        pytest.param(replace(MUTED, removed=NOW), None, 1.0, "reported", True, "ended", id="removed"),
        pytest.param(EXPECTED, None, 1.0, "expected", False, None, id="expected still"),
        pytest.param(EXPECTED, HIGHER, 1.0, "reported", True, "beyond", id="escalated beyond the cost"),
        pytest.param(
            replace(EXPECTED, cost=0.5), HIGHER, 1.0, "expected", True, "within", id="escalated within"
        ),
        pytest.param(EXPECTED, JOINED, 1.0, "reported", True, "beyond", id="joined by what costs more"),
        pytest.param(replace(EXPECTED, removed=NOW), None, 1.0, "reported", True, "removed", id="taken back"),
    ],
)
def test_what_becomes_of_it(
    silence: Silence,
    update: Update | None,
    left: float | None,
    state: SilencedState,
    noted: bool,
    code: str | None,
) -> None:
    found = news(silence.kind, silence, update=update, left=left)
    assert (found.state, found.noted) == (state, noted)
    codes = [decision.code for decision in found.decision.decisions]
    assert codes == ([code] if code and (noted or silence is MUTED) else [])


def test_what_a_change_announced_stays_silent_when_the_change_is_forgotten() -> None:
    found = news("expected")
    assert (found.state, found.noted) == ("expected", False)


def test_its_levels_are_those_of_its_last_news() -> None:
    one = Silenced(OPEN, "live", "muted", "s1", frozenset())
    assert as_found_now(one, None) == RISE
    assert as_found_now(one, HIGHER).after == 0.4
    assert [member.metric for member in as_found_now(one, JOINED).group] == ["cart.find"]
    member = build_candidate("cart.find", after=0.3)
    group = replace(one, regression=OpenRegression("r1", replace(RISE, group=(member,))))
    higher = replace(HIGHER, escalated=replace(member, before=0.3, after=0.5))
    assert as_found_now(group, higher).group[0].after == 0.5
