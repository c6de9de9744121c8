from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from agents.inprocess.messages import Interval, build_messages
from agents.inprocess.options import Identity, read_options
from pipeline.messages.measurements import decode_profile
from pipeline.model import Annotation, Profile
from pipeline.model.frames import MODULE

IDENTITY = Identity("shop", "host-1", "v2", {"region": "eu"})
START = 1_700_000_000.0


def profiles(stacks: Mapping[tuple[str, ...], int], max_bytes: int = 10**6) -> list[Profile]:
    interval = Interval(START, START + 10, 20.0, stacks)
    return [decode_profile(each.value) for each in build_messages(interval, IDENTITY, "id", max_bytes)]


def test_a_message_is_one_that_the_pipeline_reads() -> None:
    [profile] = profiles(
        {
            ("<module> (app.py)", "endpoint=/buy (<smidgen>)", "Cart.total (shop/cart.py)"): 3,
            (
                "<module> (app.py)",
                "Cart.total (shop/cart.py)",
                "Cart.total.<locals>.<genexpr> (shop/cart.py)",
            ): 2,
        }
    )
    assert profile.frames == (f"app.{MODULE}", "endpoint=/buy", "shop.cart.Cart.total")
    assert profile.annotations == (Annotation(1, "endpoint", "/buy"),)
    assert [list(profile.stack_frames[:3]), list(profile.stack_frames[3:])] == [[0, 1, 2], [0, 2]]
    assert profile.counts.tolist() == [3, 2]
    assert (profile.service, profile.host, profile.release) == ("shop", "host-1", "v2")
    assert (profile.labels, profile.rate_hz, profile.id) == ({"region": "eu"}, 20.0, "id")
    assert (profile.start, profile.end) == (START, START + 10)


@pytest.mark.parametrize(
    ("stacks", "frames", "counts"),
    [
        pytest.param(
            {("f (a.py)", "f.<locals>.<lambda> (a.py)"): 3, ("f (a.py)",): 2},
            ("a.f",),
            [5],
            id="become equal",
        ),
        pytest.param({}, (), [], id="an idle interval is a message too"),
        pytest.param(
            {("f (a.py)", f"{'g' * 2000} (a.py)"): 1, ("f (a.py)",): 2},
            ("a.f",),
            [2],
            id="too large by itself",
        ),
        pytest.param({("f\udcff (a.py)",): 1}, ("a.f?",), [1], id="a name that is no text is replaced"),
    ],
)
def test_stacks(stacks: Mapping[tuple[str, ...], int], frames: tuple[str, ...], counts: list[int]) -> None:
    [profile] = profiles(stacks, max_bytes=1500)
    assert (profile.frames, profile.counts.tolist()) == (frames, counts)


def test_labels_are_counted_as_annotations() -> None:
    [profile] = profiles({("metadata=tier%3Bgold (<smidgen>)", "f (a.py)"): 1})
    assert profile.annotations == (Annotation(0, "metadata", "tier;gold"),)


def test_what_is_too_large_is_split_and_nothing_lost() -> None:
    stacks: dict[tuple[str, ...], int] = {
        ("<module> (app.py)", f"work_{number} (app.py)"): 1 + number for number in range(100)
    }
    parts = profiles(stacks, max_bytes=800)
    assert len(parts) >= 4
    assert sum(int(part.counts.sum()) for part in parts) == sum(stacks.values())
    assert len({part.id for part in parts}) == len(parts)
    whole = {name for part in parts for name in part.frames}
    assert whole == {f"app.{MODULE}", *(f"app.work_{number}" for number in range(100))}


@pytest.mark.parametrize(
    ("given", "environ", "wrong"),
    [
        ({}, {}, "service"),
        ({"service": "a b"}, {}, "service"),
        ({"service": "shop"}, {}, "send_to"),
        ({"rate_hz": "often"}, {}, "rate_hz"),
        ({"rate_hz": math.inf}, {}, "rate_hz"),
        ({"rate_hz": 0}, {}, "rate_hz"),
        ({"interval": "soon"}, {}, "interval"),
        ({"interval": 0.1}, {}, "interval"),
        ({"budget": 2}, {}, "budget"),
        ({"host": "a b"}, {}, "host"),
        ({}, {"SMIDGEN_LABELS": "region"}, "labels"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], environ: dict[str, str], wrong: str) -> None:
    defaults = {} if wrong in ("service", "send_to") else {"service": "shop", "send_to": "file:x"}
    with pytest.raises(ValueError, match=f"^{wrong}: "):
        read_options(defaults | given, environ)


def test_arguments_count_before_the_environment() -> None:
    environ = {
        "SMIDGEN_SERVICE": "other",
        "SMIDGEN_SEND_TO": "http://gateway:4040",
        "SMIDGEN_RATE_HZ": "7",
        "SMIDGEN_INTERVAL": "500ms",
        "SMIDGEN_LABELS": "region=eu, pool=a",
        "SMIDGEN_WALL": "1",
        "SMIDGEN_RELEASE": "",
        "SMIDGEN_HTTP_TOKEN": "abc",
    }
    options = read_options({"service": "shop"}, environ)
    assert options.identity.service == "shop"
    assert options.identity.labels == {"region": "eu", "pool": "a"}
    assert (options.rate_hz, options.interval_s, options.wall, options.token) == (7.0, 0.5, True, "abc")
    assert not read_options({"service": "shop", "wall": False}, environ).wall
    assert "abc" not in repr(options)
