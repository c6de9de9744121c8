"""Ids as people give them."""

from __future__ import annotations

import pytest

from pipeline.model.errors import ConfigError
from pipeline.views.report.ids import full_id, id_prefix

IDS = ("abcdef0000", "abcdef0011", "0123456789")


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("0123456789", "0123456789"),
        ("012345", "0123456789"),
        (" ABCDEF001…", "abcdef0011"),
        ("abcdef001...", "abcdef0011"),
    ],
)
def test_the_first_digits_are_enough(text: str, full: str) -> None:
    assert full_id(id_prefix(text), IDS, "") == full


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abcdef", "'abcdef' could be abcdef0000, abcdef0011: give more digits"),
        ("fedcba", "no candidate 'fedcba': it is gone"),
        ("01234", "'01234' is no id: at least six digits of 0-9 and a-f"),
        ("", "'' is no id: at least six digits of 0-9 and a-f"),
        ("no-such-id", "'no-such-id' is no id: at least six digits of 0-9 and a-f"),
        ("a" * 33, f"'{'a' * 33}' is no id: at least six digits of 0-9 and a-f"),
    ],
)
def test_what_names_none_or_several_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        full_id(id_prefix(text), IDS, "it is gone")
    assert str(refused.value) == message
