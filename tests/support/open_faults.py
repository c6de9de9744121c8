"""Mark of a test that fails because of a known fault, until the fault is fixed."""

from __future__ import annotations

import pytest


def open_fault(point: str, fault: str) -> pytest.MarkDecorator:
    """Return a mark for a test of the right behaviour: only a failed assertion counts as the fault.

    A test that passes is reported as a failure, so that the mark goes with the fault.

    Args:
        point: The number under which the fault is listed.
        fault: The wrong behaviour.
    """
    reason = f"open fault {point}: {fault}"
    return pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)
