"""How frames are spelt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.profiles.formats.frames import FrameParts, join_frame, split_frame, without_line


@pytest.mark.parametrize(
    ("frame", "parts"),
    [
        ("work (shop/cart.py:12)", FrameParts("work", "shop/cart.py", 12)),
        ("work (cart.py)", FrameParts("work", "cart.py")),
        ("<module> (<string>:1)", FrameParts("<module>", "<string>", 1)),
        ("f (C:\\a.cc:3)", FrameParts("f", "C:\\a.cc", 3)),
        ("operator() (const char*)", FrameParts("operator() (const char*)")),
        ("f(int)", FrameParts("f(int)")),
        ("main.(*T).f", FrameParts("main.(*T).f")),
        ("a - b", FrameParts("a - b")),
        ("sleep [c function] - (unknown)", FrameParts("sleep [c function] - (unknown)")),
    ],
)
def test_parts(frame: str, parts: FrameParts) -> None:
    assert split_frame(frame) == parts
    assert join_frame(*parts) == frame


@given(st.text(alphabet="ab ():/.0123456789<>", min_size=1, max_size=30))
def test_parts_of_anything_join_to_it(frame: str) -> None:
    assert join_frame(*split_frame(frame)) == frame


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("work (shop/cart.py:12)", "work (shop/cart.py)"),
        ("f (<frozen os>:3)", "f (<frozen os>)"),
        ("main.alpha (/go/src/main.go:12)", "main.alpha"),
        ("f (/usr/lib/libf.so.6)", "f"),
        ("0x1f (/usr/lib/libf.so.6)", "[libf.so.6]"),
        ("0x7ffe12", "[unknown]"),
        ("operator() (const char*)", "operator() (const char*)"),
        ("work - /srv/a.rb:9", "work"),
        ("block in f - lib/a b.rb:12", "block in f"),
        ("cart.py:9 - total", "total (cart.py)"),
        ("lib/a.rb:9 - block in f", "block in f"),
        ("/srv/a.py:work:9", "work (/srv/a.py)"),
    ],
)
def test_names_of_functions(frame: str, name: str) -> None:
    assert without_line(frame) == name
