"""Quotas of trials: what is new and within them is taken, in the order in which it comes."""

from __future__ import annotations

import pytest

from pipeline.counting.quota.limits import Quota
from pipeline.counting.quota.trials import Sent, admit_trials
from pipeline.model.units import DAY_S

T0 = 20_000 * DAY_S


def sent(digest: str, points: int = 10, time: float = T0, experiment: str = "e") -> Sent:
    return Sent(experiment, time, points, digest)


@pytest.mark.parametrize(
    ("messages", "stored", "quota", "admitted", "refused"),
    [
        ([sent("a"), sent("b")], [], {}, "ab", 0),
        ([sent("a"), sent("a")], [], {}, "a", 0),
        ([sent("a"), sent("b")], [sent("a")], {}, "b", 0),
        ([sent("a"), sent("b"), sent("c")], [], {"trial_sides": 2}, "ab", 1),
        ([sent("a"), sent("b")], [sent("c")], {"trial_sides": 2}, "a", 1),
        ([sent("a"), sent("b", time=T0 + DAY_S)], [sent("c")], {"trial_sides": 1}, "b", 1),
        ([sent("a"), sent("b", 11), sent("c")], [], {"trial_points": 20}, "ac", 1),
        ([sent("a"), sent("b", time=T0 + DAY_S)], [], {"experiment_points": 10}, "a", 1),
        ([sent("a"), sent("b", experiment="f")], [], {"experiment_points": 10}, "ab", 0),
        # What is stored has come before: it is neither taken nor refused, though it is beyond a quota by now.
        ([sent("a")], [sent("a")], {"trial_sides": 0}, "", 0),
    ],
)
def test_admission(
    messages: list[Sent], stored: list[Sent], quota: dict[str, int], admitted: str, refused: int
) -> None:
    found, beyond = admit_trials([(one, one.digest) for one in messages], stored, Quota(**quota))
    assert ("".join(found), beyond) == (admitted, refused)
