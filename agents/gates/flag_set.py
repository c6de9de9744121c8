"""Sets of flags as flagd has them (https://flagd.dev/reference/flag-definitions), and their differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import yaml

from pipeline.codec.fields import MAX_NAME
from pipeline.errors import InvalidMessage

FlagSet = Mapping[str, Mapping[str, Any]]
"""Gate → what decides on its value: state, default variant, variants and targeting."""

MOST_FLAGS = 20_000
MAX_BYTES = 16 * 1024**2
"""Most flags of a set, and largest file of one."""

ABSENT = "absent"
"""The state of a flag that a set has not."""

_DECIDES = ("state", "defaultVariant", "variants", "targeting")


def read_flag_set(content: bytes) -> FlagSet:
    """Read a set of flags from JSON or YAML.

    Raises:
        InvalidMessage: what is wrong with it.
    """
    if len(content) > MAX_BYTES:
        raise InvalidMessage(f"larger than {MAX_BYTES} bytes")
    try:
        raw = orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            raw = yaml.safe_load(content)
        except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
            raise InvalidMessage("neither JSON nor YAML") from None
    return flag_set_of(raw)


def flag_set_of(raw: object) -> FlagSet:
    """Return the flags of a parsed definition: ``{"flags": {gate: {"state": …, "variants": …}}}``.

    Raises:
        InvalidMessage: it is none, and where.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("flags"), dict):
        raise InvalidMessage("flags: should be an object of flags, as flagd has them")
    if len(raw["flags"]) > MOST_FLAGS:
        raise InvalidMessage(f"flags: more than {MOST_FLAGS}")
    shared = raw.get("$evaluators")
    shared = shared if isinstance(shared, dict) else {}
    found: dict[str, Mapping[str, Any]] = {}
    for gate, flag in raw["flags"].items():
        if not isinstance(gate, str) or not gate or len(gate) > MAX_NAME:
            raise InvalidMessage("flags: names should be texts of 1 to 4096 characters")
        if not isinstance(flag, dict):
            raise InvalidMessage(f"flags.{gate[:100]}: should be an object")
        own = {name: flag[name] for name in _DECIDES if flag.get(name) not in (None, {}, "")}
        if isinstance(own.get("defaultVariant"), bool):  # what YAML makes of on and off
            own["defaultVariant"] = "on" if own["defaultVariant"] else "off"
        used = {name: rule for name, rule in shared.items() if _refers(own.get("targeting"), name)}
        found[gate] = {**own, **({"evaluators": used} if used else {})}
    return found


def differences(before: FlagSet, after: FlagSet) -> Iterator[tuple[str, str, str]]:
    """Yield each gate that two sets differ in, by name, with its state before and after in a few words."""
    for gate in sorted({*before, *after}):
        old, new = before.get(gate), after.get(gate)
        if _plain(old) != _plain(new):
            yield gate, *_words(old, new)


def _words(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> tuple[str, str]:
    first, second = _state(old), _state(new)
    if first != second or old is None or new is None:
        return first, second
    changed = [name for name in (*_DECIDES, "evaluators") if _plain(old.get(name)) != _plain(new.get(name))]
    return first, f"{second}, with other {' and '.join(changed)}"


def _state(flag: Mapping[str, Any] | None) -> str:
    if flag is None:
        return ABSENT
    if str(flag.get("state", "ENABLED")).upper() == "DISABLED":
        return "off"
    variant = str(flag.get("defaultVariant", "on"))[:100]
    return f"{variant} with targeting" if flag.get("targeting") else variant


def _refers(rule: object, name: str) -> bool:
    return rule is not None and f'"$ref":{orjson.dumps(name).decode()}' in _plain(rule).decode()


def _plain(value: object) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    except (TypeError, RecursionError):  # nested deeper than any rule is
        return repr(type(value)).encode()
