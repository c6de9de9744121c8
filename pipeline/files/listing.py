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

    One or two names are never left out: the rest would take as much room as they do.

    >>> listed(["a", "b", "values"], "value")
    'values, a, b'
    """
    most = len(names) if len(names) <= _MOST_NAMED + 2 else _MOST_NAMED
    near = get_close_matches(wanted, names[:_SEARCHED], max(most, 1), _NEAR) if wanted else []
    shown = [*near, *(name for name in names[: 2 * most] if name not in near)][:most]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return ", ".join(name[:_LONGEST] for name in shown) + more or none
