"""Lines of keys and values as texts: logfmt, with equals signs, and LTSV, with colons and tabs.

Sources: the description at brandur.org/logfmt, where values with spaces are in quotes; Heroku's "HTTP
routing" for its router, whose lines begin with their time; ltsv.org.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LEAST_PAIRS = 3
"""Fewest pairs of a line: other texts may have an equals sign by chance."""

_PAIR = re.compile(r'([A-Za-z_@][\w.@/#-]*)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?:\s+|$)')
_PREFIX = re.compile(r"(?:[^=\s]+\s+)*?(?=[A-Za-z_@][\w.@/#-]*=)")
_TIME = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?(?![\d:])"
)


def logfmt_pairs(line: str) -> Mapping[str, str] | None:
    """Return a line's values by their keys, a time before them as ``time``; None if it is no logfmt."""
    prefix = _PREFIX.match(line)
    if not prefix:
        return None
    pairs: dict[str, str] = {}
    position = prefix.end()
    while match := _PAIR.match(line, position):
        key, quoted, bare = match.groups()
        pairs.setdefault(key, re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare)
        position = match.end()
    if len(pairs) < LEAST_PAIRS or position < len(line):
        return None
    if time := _TIME.search(prefix[0]):
        pairs.setdefault("time", time[0])
    return pairs


_LABELLED = re.compile(r"[\w.-]+:")


def ltsv_pairs(line: str) -> Mapping[str, str] | None:
    """Return the values of a line of LTSV by their labels, without brackets; None if it is no LTSV."""
    parts = line.rstrip("\r\n").split("\t")
    if len(parts) < LEAST_PAIRS or not all(map(_LABELLED.match, parts)):
        return None
    pairs = (part.partition(":") for part in parts)
    return {label: value.removeprefix("[").removesuffix("]") for label, _, value in pairs}
