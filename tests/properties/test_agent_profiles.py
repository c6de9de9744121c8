from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.profiles.formats.collapsed import parse_collapsed
from agents.profiles.message import Source, build_profile, encode_within
from agents.profiles.naming import name_stack
from agents.publishing.message_queue import MessageQueue
from agents.publishing.pending import Pending
from pipeline.messages.measurements import decode_profile
from pipeline.model import Outgoing

NAMES = st.one_of(
    st.sampled_from(
        ["f (a.py)", "f.<locals>.<genexpr> (a.py)", "<lambda> (a.py)", "endpoint=/x (<smidgen>)"]
    ),
    st.text(
        st.characters(exclude_characters=";", exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=12
    ),
)
STACKS = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=6).map(tuple), st.integers(1, 1000), max_size=20
)
SOURCE = Source("s", "h")


@given(STACKS.filter(lambda stacks: not any(s[0].startswith(("#", "//", "process ")) for s in stacks)))
def test_no_sample_is_lost_from_file_to_messages(stacks: dict[tuple[str, ...], int]) -> None:
    text = "\n".join(f"{';'.join(stack)} {count}" for stack, count in stacks.items())
    collapsed = parse_collapsed(("\ufeff" + text).encode())
    assert collapsed.invalid == 0
    assert collapsed.samples == sum(stacks.values())
    profile = build_profile(collapsed.stacks, source=SOURCE, start=1e9, end=1e9 + 2)
    assert sum(profile["counts"]) == sum(stacks.values())
    messages, lost = encode_within(profile, 400)
    parts = [decode_profile(message.value) for message in messages]
    assert sum(int(part.counts.sum()) for part in parts) + lost == sum(stacks.values())
    assert all(len(message.value) <= 400 for message in messages)


@given(st.lists(NAMES, max_size=8))
def test_naming_only_removes_anonymous_frames(stack: list[str]) -> None:
    named = name_stack(stack)
    assert len(named) <= len(stack)
    kept = [name_stack([frame])[0] for frame in stack]
    assert [f.name for f in kept if not f.anonymous] == [f.name for f in named if not f.anonymous]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_error(data: bytes) -> None:
    collapsed = parse_collapsed(data)
    assert all(count > 0 and all(stack) for stack, count in collapsed.stacks.items())


@given(
    st.lists(st.one_of(st.integers(0, 60), st.none()), max_size=60), st.integers(1, 5), st.integers(1, 100)
)
def test_the_buffer_keeps_its_bounds_and_loses_count_of_nothing(
    steps: list[int | None], max_messages: int, max_bytes: int
) -> None:
    buffer = MessageQueue(max_messages=max_messages, max_bytes=max_bytes)
    put, taken = [], []
    for number, size in enumerate(steps):
        if size is None:
            pending = buffer.take()
            taken += [pending.message.key] if pending else []
        else:
            put.append(str(number))
            buffer.put(Pending(Outgoing("profiles", str(number), b"x" * size), samples=1))
        assert buffer.waiting.messages <= max_messages
        assert buffer.waiting_bytes <= max_bytes
        assert len(taken) + buffer.dropped.messages + buffer.waiting.messages == len(put)
    while pending := buffer.take():
        taken.append(pending.message.key)
    assert taken == [key for key in put if key in set(taken)]  # in order, none twice
    assert buffer.waiting_bytes == 0
