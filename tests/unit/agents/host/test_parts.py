"""Parts of processes merged into messages: nothing is lost, nothing is mixed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.host.parts import Part, encode_part, merge_parts, with_endpoint
from agents.host.rules import Identity
from pipeline.messages.measurements import decode_profile

NOW = 1_700_000_000.0
SHOP = Identity("shop", "v1", (("region", "eu"),))


def part(
    stacks: dict[tuple[str, ...], int],
    identity: Identity = SHOP,
    start: float = 0,
    end: float = 10,
    rate: float = 19,
) -> Part:
    return Part(identity, rate, NOW + start, NOW + end, stacks)


def test_processes_of_one_service_share_a_message_and_its_frames() -> None:
    parts = [part({("a", "b"): 1, ("a",): 2}, end=10.02), part({("a", "b"): 3, ("c",): 4}, start=5)]
    (merged,) = merge_parts(parts, 10)
    assert merged == part({("a", "b"): 4, ("a",): 2, ("c",): 4}, end=10.02)
    ((message, samples),) = encode_part(merged, "h1", 10_000).messages
    profile = decode_profile(message.value)
    assert (message.key, samples) == ("shop/h1", 10)
    assert (profile.release, dict(profile.labels), profile.rate_hz) == ("v1", {"region": "eu"}, 19)
    assert profile.frames == ("a", "b", "c")
    assert profile.id


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(part({("a",): 1}, Identity("shop", "v2", SHOP.labels)), id="another release"),
        pytest.param(part({("a",): 1}, Identity("shop", "v1")), id="other labels"),
        pytest.param(part({("a",): 1}, rate=49), id="another rate"),
        pytest.param(part({("a",): 1}, start=10, end=20), id="another interval"),
    ],
)
def test_what_no_message_could_hold_together_has_its_own(other: Part) -> None:
    assert len(merge_parts([part({("a",): 1}), other], 10)) == 2


def test_an_interval_without_samples_has_a_message_that_moves_event_time_on() -> None:
    (merged,) = merge_parts([part({}), part({})], 10)
    ((message, samples),) = encode_part(merged, "h1", 10_000).messages
    assert (samples, decode_profile(message.value).end) == (0, NOW + 10)


def test_a_message_is_split_where_it_is_too_large() -> None:
    merged = part({(f"function_{number}",): 1 for number in range(100)})
    encoded = encode_part(merged, "h1", 700)
    assert sum(samples for _, samples in encoded.messages) == 100
    assert len({decode_profile(message.value).id for message, _ in encoded.messages}) > 1
    assert max(len(message.value) for message, _ in encoded.messages) <= 700


def test_an_endpoint_is_an_annotation_of_all_stacks() -> None:
    stacks = with_endpoint({("a",): 1, ("b",): 2}, "/buy")
    ((message, _),) = encode_part(part(dict(stacks)), "h1", 10_000).messages
    profile = decode_profile(message.value)
    (annotation,) = profile.annotations
    assert (annotation.kind, annotation.value) == ("endpoint", "/buy")
    assert set(profile.stack_frames[profile.stack_starts[:-1]]) == {annotation.frame}
    assert with_endpoint({("a",): 1}, "") == {("a",): 1}


STACKS = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple), st.integers(1, 9), max_size=4
)
PARTS = st.lists(
    st.builds(
        part,
        STACKS,
        st.sampled_from([SHOP, Identity("shop", "v2"), Identity("mail")]),
        st.integers(0, 19),
        st.integers(20, 40),
        st.sampled_from([19.0, 49.0]),
    )
)


@given(PARTS)
def test_counts_are_the_sum(parts: list[Part]) -> None:
    def counted(given: list[Part]) -> Counter[tuple[Identity, float, tuple[str, ...]]]:
        found: Counter[tuple[Identity, float, tuple[str, ...]]] = Counter()
        for each in given:
            for stack, count in each.stacks.items():
                found[each.identity, each.rate_hz, stack] += count
        return found

    merged = merge_parts(parts, 10)
    assert counted(merged) == counted(parts)
    assert {(each.identity, each.rate_hz) for each in merged} == {(e.identity, e.rate_hz) for e in parts}
    assert merge_parts(merged, 1000) == merge_parts(merge_parts(merged, 1000), 1000)
