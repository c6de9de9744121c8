"""Gates that a diff reads, by the calls of flag clients in its changed lines, in any language.

The names of readers are those of OpenFeature's evaluation API and of the clients of LaunchDarkly, Unleash,
Flagsmith and Flipper; further ones are given by name. A gate is the text that such a call begins with, or
that follows one other argument, as a context does in Go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

MOST_GATES = 100
"""Most gates of one change: what reads more moves code about."""

_KNOWN = (
    # OpenFeature: getBooleanValue, get_string_details, BooleanValue, ...
    r"get(?:Boolean|String|Number|Integer|Int|Double|Float|Object|Structure)(?:Value|Details)(?:Async)?",
    r"get_(?:boolean|string|integer|float|object)_(?:value|details)(?:_async)?",
    r"(?:Boolean|String|Float|Int|Object)Value(?:Details)?",
    # LaunchDarkly: variation, boolVariation, BoolVariationDetail, ...
    r"(?:[bB]ool|[sS]tring|[iI]nt|[dD]ouble|[fF]loat64|[nN]umber|[jJ][sS][oO][nN](?:Value)?)Variation(?:Detail)?",
    r"variation(?:_detail|Detail)?",
    # Unleash
    r"is_?[eE]nabled|IsEnabled|getVariant|get_variant|useFlag",
    # Flagsmith
    r"isFeatureEnabled|is_feature_enabled|IsFeatureEnabled|hasFeature|has_feature|getFeatureValue"
    r"|get_feature_value|GetFeatureValue",
    # Flipper, GitLab
    r"(?:Feature|Flipper)(?:\.|::)(?:enabled|disabled)\?",
)
_ARGUMENT = r"""\s*\(\s*(?:[\w.]+(?:\(\))?\s*,\s*)?(?:["'`]([\w.:/-]{1,200})["'`]|:(\w{1,200}))"""
_TESTS = re.compile(r"(?:^|/)(?:tests?|__tests__)/|(?:^|/)test_[^/]+$|_test\.\w+$|\.(?:test|spec)\.\w+$")


def gates_read(lines: Iterable[tuple[str, str]], readers: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the gates that changed lines read, sorted; tests are left out, which nothing in production runs.

    Args:
        lines: The path of a file and the text of one of its lines, added or removed.
        readers: Names of further functions whose first argument is a gate, such as ``conf.get``.
    """
    pattern = _pattern(tuple(readers))
    gates = {
        match[1] or match[2]
        for path, text in lines
        if "(" in text and not _TESTS.search(path)
        for match in pattern.finditer(text)
    }
    return tuple(sorted(gates)[:MOST_GATES])


@lru_cache
def _pattern(readers: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join((*_KNOWN, *map(re.escape, readers)))
    return re.compile(rf"(?<!\w)(?:{names}){_ARGUMENT}")
