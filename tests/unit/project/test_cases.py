"""One test for many values names each of them that fails, and leaves fixtures to pytest."""

from __future__ import annotations

import inspect

import pytest

from tests.support.cases import for_every


def test_every_value_that_fails_is_named() -> None:
    seen = []

    @for_every("value", [1, 2, 3])
    def check(value: int, fixture: str) -> None:
        seen.append((value, fixture))
        assert value != 2

    assert list(inspect.signature(check).parameters) == ["fixture"]
    with pytest.raises(ExceptionGroup, match="1 of 3 fail") as raised:
        check(fixture="x")
    assert seen == [(1, "x"), (2, "x"), (3, "x")]
    assert raised.value.exceptions[0].__notes__ == ["value: 2"]


def test_a_check_of_nothing_fails() -> None:
    with pytest.raises(AssertionError, match="no value to check"):
        for_every("value", [])(lambda value: None)()
