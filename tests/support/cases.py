"""Checks of many files, queries or names as one test: collecting a case takes longer than the check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def for_every(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once for each value of one of its parameters, and fail with all values that fail.

    All values share the fixtures of one test: use it where the test only reads them.
    """
    cases = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for value in cases:
                try:
                    test(**{name: value}, **fixtures)
                except Exception as error:  # all of them are raised below
                    error.add_note(f"{name}: {value!r}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(cases)} fail", failures)
            assert cases, f"no {name} to check"

        signature = inspect.signature(test)
        rest = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate
