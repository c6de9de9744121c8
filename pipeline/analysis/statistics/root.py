"""Root of a falling function, which may have none."""

from __future__ import annotations

from collections.abc import Callable


def root_between(
    function: Callable[[float], float], least: float, most: float, **options: float
) -> float | None:
    """Return where a falling function reaches 0; None if it does not within the bounds, or is no number.

    Args:
        function: Above 0 at ``least`` and at most 0 at ``most`` if there is a root.
        least: Lower bound.
        most: Upper bound.
        options: Of ``scipy.optimize.brentq``, such as ``xtol``.
    """
    if not (function(least) > 0 >= function(most)):  # false for NaN, too
        return None
    from scipy.optimize import brentq  # slow to import, and every worker imports modules that import this one

    return float(brentq(function, least, most, **options))
