from __future__ import annotations

import orjson
import pytest

from agents.profiles.message import Message, Source, build_profile, encode_within
from pipeline.messages.measurements import decode_profile
from pipeline.messages.schema.inputs import MAX_COUNT
from pipeline.model import Annotation, Profile
from pipeline.model.errors import InvalidMessage
from pipeline.model.frames import MAX_LABEL

SOURCE = Source("shop", "h1", "v1", {"zone": "a"})


def build(stacks: dict[tuple[str, ...], int], id: str = "") -> Message:
    return build_profile(stacks, source=SOURCE, start=1_700_000_000.0, end=1_700_000_002.0, id=id)


def decoded_profile(stacks: dict[tuple[str, ...], int]) -> Profile:
    return decode_profile(orjson.dumps(build(stacks)))


def unpack(profile: Profile) -> dict[tuple[str, ...], int]:
    starts = profile.stack_starts
    stacks = [profile.stack_frames[a:b] for a, b in zip(starts, starts[1:], strict=False)]
    named = [tuple(profile.frames[frame] for frame in stack) for stack in stacks]
    assert len(set(named)) == len(named)
    return dict(zip(named, profile.counts.tolist(), strict=True))


def test_stacks_that_become_equal_are_one() -> None:
    profile = decoded_profile(
        {
            ("f (a.py:1)",): 1,
            ("f (a.py:2)",): 2,
            ("f (a.py:1)", "f.<locals>.<genexpr> (a.py:1)"): 4,
            ("g",): 8,
        }
    )
    assert unpack(profile) == {("a.f",): 7, ("g",): 8}


def test_the_message_says_where_and_when() -> None:
    stack = tuple(f"f{i}" for i in range(2000))
    (message,), lost = encode_within(build({stack: 3}), 1 << 20)
    profile = decode_profile(message.value)
    assert (profile.service, profile.host, profile.release) == ("shop", "h1", "v1")
    assert (profile.start, profile.end) == (1_700_000_000.0, 1_700_000_002.0)
    assert (dict(profile.labels), profile.frames) == ({"zone": "a"}, stack)
    assert (message.samples, lost) == (3, 0)
    (idle,), _ = encode_within(build({}), 10_000)
    assert decode_profile(idle.value).counts.size == 0


def test_annotations_point_at_their_frame() -> None:
    profile = decoded_profile({("main (a.py)", "endpoint=/buy (<smidgen>)", "f (a.py)"): 3})
    assert profile.frames == ("a.main", "endpoint=/buy", "a.f")
    assert profile.annotations == (Annotation(1, "endpoint", "/buy"),)


def test_frames_too_long_to_be_kept_are_cut_and_stay_different() -> None:
    long = "x" * (1 << 20)
    profile = build({("main", long): 1, ("main", f"{long}y"): 2})
    (message,), lost = encode_within(profile, 10_000)
    decoded = decode_profile(message.value)
    assert lost == 0
    assert decoded.counts.tolist() == [1, 2]
    assert sorted(map(len, decoded.frames)) == [4, MAX_LABEL, MAX_LABEL]
    assert len(set(decoded.frames)) == 3


def test_a_large_profile_becomes_several_messages() -> None:
    stacks: dict[tuple[str, ...], int] = {
        (f"root{i % 3}", f"endpoint=/{i} (<smidgen>)", f"leaf-{i}"): i + 1 for i in range(50)
    }
    whole = build(stacks)
    messages, lost = encode_within(whole, 800)
    assert len(messages) > 5
    assert lost == 0
    assert all(len(message.value) <= 800 for message in messages)
    parts = [decode_profile(message.value) for message in messages]
    assert [message.samples for message in messages] == [int(part.counts.sum()) for part in parts]
    found: dict[tuple[str, ...], int] = {}
    for part in parts:
        found |= unpack(part)
        assert {part.frames[a.frame] for a in part.annotations} == {
            frame for frame in part.frames if frame.startswith("endpoint=")
        }
    assert found == unpack(decoded_profile(stacks))


def test_a_stack_larger_than_a_message_is_left_out_and_counted() -> None:
    messages, lost = encode_within(build({("x" * 3000,): 5, ("a",): 2}), 1000)
    assert [message.samples for message in messages] == [2]
    assert lost == 5


def test_more_samples_than_a_message_can_hold() -> None:
    with pytest.raises(InvalidMessage, match="more than"):
        build({("f (a.py:1)",): MAX_COUNT, ("f (a.py:2)",): 1})


def test_the_parts_of_a_profile_have_ids_of_their_own() -> None:
    profile = build({("a", f"f{i}" * 9): i + 1 for i in range(64)}, id="interval-7")
    parts, lost = encode_within(profile, 900)
    ids = [decode_profile(part.value).id for part in parts]
    assert len(parts) > 2
    assert lost == 0
    assert len(set(ids)) == len(ids)
    assert all(id.startswith("interval-7/") for id in ids)
    again, _ = encode_within(profile, 900)
    assert [part.value for part in again] == [part.value for part in parts]
    assert [decode_profile(p.value).id for p in encode_within(build({("a",): 1}), 900)[0]] == [""]
