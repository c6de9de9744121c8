"""Names in one line of an error, however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

_MOST_NAMED = 8
_LONGEST = 100  # characters of a name
_SEARCHED = 10_000  # names that are compared with the wanted one
_NEAR = 0.6


def listed(names: Sequence[str], wanted: str = "", *, none: str = "none") -> str:
    """Write names, those that are most like the wanted one first, and how many are left out.

    >>> listed(["a", "b", "values"], "value")
    'values, a, b'
    """
    near = get_close_matches(wanted, names[:_SEARCHED], _MOST_NAMED, _NEAR) if wanted else []
    shown = [*near, *(name for name in names[: 2 * _MOST_NAMED] if name not in near)][:_MOST_NAMED]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return ", ".join(name[:_LONGEST] for name in shown) + more or none
