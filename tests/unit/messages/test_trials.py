"""Trials as messages: what is taken, what is refused and why, and that they come back as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from pipeline.messages.trials import decode_trial, encode_trial
from pipeline.model import ExperimentEnd, TrialMetric, TrialSide
from pipeline.model.errors import InvalidMessage

SIDE: dict[str, Any] = {
    **{
        "kind": "A/B",
        "service": "shop",
        "experiment": "e",
        "trial": "1",
        "side": "A",
        "time": 1_760_000_000.0,
    },
    "metrics": {"cpu": {"points": [1, 2.5, 0]}},
}
END = {"kind": "end", "service": "shop", "experiment": "e", "time": 1_760_000_000.0}


def with_points(points: Any, **more: Any) -> dict[str, Any]:
    return {**SIDE, "metrics": {"cpu": {"points": points, **more}}}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({**SIDE, "kind": "B/B"}, "kind: should be"),
        ({**SIDE, "side": "C"}, "side: should be"),
        ({**SIDE, "experiment": ""}, "experiment: empty"),
        ({**SIDE, "metrics": {}}, "metrics: empty"),
        (
            {**SIDE, "metrics": {f"m{n}": {"points": [1.0]} for n in range(201)}},
            "metrics: more than 200 items",
        ),
        ({**SIDE, "metrics": {"": {"points": [1.0]}}}, "metrics"),
        ({**SIDE, "trials": 0}, "trials: "),
        ({**SIDE, "trials": 10_001}, "trials: 10001 is more than 10000"),
        ({**SIDE, "time": 5.0}, "time: 5 is not a time"),
        ({**SIDE, "time": 1_760_100_000.0}, "time: 100000 s in the future"),
        ({**SIDE, "factors": {"type": 3}}, "factors.type: should be a string"),
        ({**END, "trials": -1}, "trials: "),
        ({key: value for key, value in END.items() if key != "time"}, "time: missing"),
        (with_points([]), "metrics.cpu.points: empty"),
        (with_points("x"), "metrics.cpu.points: should be a list"),
        (with_points([1.0, "2"]), "metrics.cpu.points: should be numbers"),
        (with_points([1.0, True]), "metrics.cpu.points: should be numbers"),
        (with_points([1.0, None]), "metrics.cpu.points: should be numbers"),
        (with_points([1.0, -2.0]), "metrics.cpu.points[1]: should be 0, or from 1e-100 to 1e+100"),
        (with_points([1.0, 1e101]), "metrics.cpu.points[1]: "),
        (with_points([1.0, 1e-101]), "metrics.cpu.points[1]: "),
        (with_points([1.0], warm_up=-1), "metrics.cpu.warm_up: "),
        (with_points([1.0], threshold=0), "metrics.cpu.threshold: "),
        (with_points([1.0], direction="none"), "metrics.cpu.direction: should be"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_field(raw: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidMessage) as refused:
        decode_trial(orjson.dumps(raw), now=1_760_000_000.0)
    assert str(refused.value).startswith(reason)


HUGE = orjson.dumps(SIDE).replace(b"2.5", b"1" + b"0" * 400)


@pytest.mark.parametrize(
    "value", [None, b"", b"[]", b"{", b'{"kind": "A/B"', b'{"points": 1' + b"0" * 400, HUGE]
)
def test_what_is_no_object_is_refused(value: bytes | None) -> None:
    with pytest.raises(InvalidMessage, match=r"not JSON|points|empty|object"):
        decode_trial(value)


def test_a_side_comes_back_as_it_was() -> None:
    metrics = (
        TrialMetric("cpu", np.array([1.0, 2.0]), warm_up=1, threshold=0.02, direction="down"),
        TrialMetric("größe", np.array([0.0])),
    )
    side = TrialSide(
        *("shop", "e", "1", "B", "A/A", 1_760_000_000.5, metrics, "r1"),
        factors={"type": "m5"},
        trials=7,
        sequential=True,
    )
    found = decode_trial(encode_trial(side))
    assert isinstance(found, TrialSide)
    for one, other in zip(found.metrics, metrics, strict=True):
        assert one.points.tolist() == other.points.tolist()
        assert (one.metric, one.warm_up, one.threshold, one.direction) == (
            *(other.metric, other.warm_up, other.threshold, other.direction),
        )
    assert encode_trial(found) == encode_trial(side)
    assert (found.trials, found.sequential, found.factors, found.release) == (7, True, {"type": "m5"}, "r1")


def test_the_same_bytes_have_one_digest_and_others_another() -> None:
    end = ExperimentEnd("shop", "e", 1_760_000_000.0, 3)
    first, again = (decode_trial(encode_trial(end)) for _ in range(2))
    assert first == again
    assert first.digest != decode_trial(encode_trial(ExperimentEnd("shop", "e", 1_760_000_000.0, 4))).digest
