"""Ids of events and candidates as people give them: the first digits are enough."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError

NOT_REPORTED = "the store has forgotten that regression, or what has the id was not reported"
"""Why no regression has an id that somebody was given."""

_PREFIX = re.compile(r"[0-9a-f]{6,32}")


def id_prefix(text: str) -> str:
    """Return the beginning of an id that a person gave; blanks, capitals and a final ``…`` do not matter.

    Raises:
        ConfigError: it is none.
    """
    prefix = text.strip().rstrip("….").lower()
    if not _PREFIX.fullmatch(prefix):
        raise ConfigError(f"{text!r} is no id: at least six digits of 0-9 and a-f")
    return prefix


def full_id(prefix: str, ids: Iterable[str], hint: str) -> str:
    """Return the one id that has this beginning; ``hint`` says why there may be none.

    Raises:
        ConfigError: there is none, or there are several.
    """
    fitting = sorted({full for full in ids if full.startswith(prefix)})
    if not fitting:
        raise ConfigError(f"no candidate {prefix!r}: {hint}")
    if len(fitting) > 1:
        raise ConfigError(f"{prefix!r} could be {listed(fitting)}: give more digits")
    return fitting[0]
