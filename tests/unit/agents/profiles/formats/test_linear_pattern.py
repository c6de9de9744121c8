"""Patterns that are matched in time linear in a text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.profiles.formats import linear_pattern
from agents.profiles.formats.linear_pattern import LinearPattern

PARTS = (
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    r"\.",
    r"\w",
    "(a|b)",
    "(ab)?",
    "(?:a|bb)*",
    "a*?",
    "(a*)*",
    "^",
    "a$",
    "|",
)


@given(
    pattern=st.lists(st.sampled_from(PARTS), max_size=6).map("".join),
    text=st.text(alphabet="ab.", max_size=6),
)
def test_whole_texts_match_as_by_backtracking(pattern: str, text: str) -> None:
    assert LinearPattern(pattern).matches(text) == bool(re.fullmatch(pattern, text))


@pytest.mark.parametrize("pattern", ["(a*)*b", "(.*)(.*)(.*)(.*)x", "((a+)+)+b"])
def test_what_backtracking_takes_for_ever_takes_a_moment(pattern: str) -> None:
    """Where it took the power of the length, this test would not end within its limit."""
    assert not LinearPattern(pattern).matches("a" * 2_000)


@pytest.mark.parametrize(
    "pattern",
    [
        "a{2}",
        "(?i)a",
        "(?=a)",
        r"\1",
        r"\pL",
        "a)",
        "(a",
        "[a",
        "*a",
        "a**",
        "[[:alpha:]]",
        "a\\",
        "(" * 10_000,
    ],
)
def test_what_is_not_read_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not read in a pattern"):
        LinearPattern(pattern)


def test_a_pattern_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_pattern, "MAX_STEPS", 1_000)
    with pytest.raises(ValueError, match="takes too long"):
        LinearPattern("a*b").matches("a" * 2_000)
