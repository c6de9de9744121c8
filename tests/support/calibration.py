"""Cases of a measured rate: one of them runs with every test, the others with --calibrate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def calibrated(cases: Iterable[Any], always: Callable[[Any], bool]) -> list[Any]:
    """Return cases for ``parametrize``: those for which ``always`` is false have the mark ``calibrate``."""
    return [
        case if always(case) else pytest.param(*_values(case), marks=pytest.mark.calibrate) for case in cases
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
