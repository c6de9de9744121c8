"""Sets of flags as flagd has them (https://flagd.dev/reference/flag-definitions), and their differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from agents.source.gates.plain_json import PlainJson
from pipeline.files.validation import WrongYaml, parse_yaml
from pipeline.messages.fields import MAX_NAME
from pipeline.model.errors import InvalidMessage

FlagSet = Mapping[str, Mapping[str, Any]]
"""Gate → settings that decide on its value: state, default variant, variants and targeting."""

MOST_FLAGS = 20_000
MAX_BYTES = 16 * 1024**2
"""Most flags of a set, and largest file of one."""

ABSENT = "absent"
"""The state of a flag that is missing in a set."""

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
            raw = parse_yaml(content)
        except WrongYaml as error:
            raise InvalidMessage(f"neither JSON nor YAML: {error}") from None
    return flag_set_of(raw)


def flag_set_of(raw: object) -> FlagSet:
    """Return the flags of a parsed definition: ``{"flags": {gate: {"state": …, "variants": …}}}``.

    What decides is copied as plain JSON, so that sets compare whatever they were parsed from.

    Raises:
        InvalidMessage: it is none, or beyond JSON or the bounds, and where.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("flags"), dict):
        raise InvalidMessage("flags: should be an object of flags, as flagd has them")
    if len(raw["flags"]) > MOST_FLAGS:
        raise InvalidMessage(f"flags: more than {MOST_FLAGS}")
    plain = PlainJson(MAX_BYTES)
    shared = raw.get("$evaluators")
    shared = plain.copy(shared, "$evaluators", 3) if isinstance(shared, dict) else {}
    flags: dict[str, Mapping[str, Any]] = {}
    for gate, flag in raw["flags"].items():
        if not isinstance(gate, str) or not gate or len(gate) > MAX_NAME:
            raise InvalidMessage("flags: names should be texts of 1 to 4096 characters")
        if not isinstance(flag, dict):
            raise InvalidMessage(f"flags.{gate[:100]}: should be an object")
        own = {name: flag[name] for name in _DECIDES if flag.get(name) not in (None, {}, "")}
        if isinstance(own.get("defaultVariant"), bool):  # what YAML makes of on and off
            own["defaultVariant"] = "on" if own["defaultVariant"] else "off"
        own = plain.copy(own, f"flags.{plain.copy(gate, 'flags')[:100]}", 2)
        targeting = _json(own.get("targeting")) if shared else b""
        used = {name: rule for name, rule in shared.items() if b'"$ref":' + _json(name) in targeting}
        flags[gate] = {**own, **({"evaluators": used} if used else {})}
    return flags


def differences(before: FlagSet, after: FlagSet) -> Iterator[tuple[str, str, str]]:
    """Yield each gate that two sets differ in, by name, with its state before and after in a few words."""
    for gate in sorted({*before, *after}):
        old, new = before.get(gate), after.get(gate)
        if _json(old) != _json(new):
            yield gate, *_words(old, new)


def _words(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> tuple[str, str]:
    first, second = _state(old), _state(new)
    if first != second or old is None or new is None:
        return first, second
    changed = [name for name in (*_DECIDES, "evaluators") if _json(old.get(name)) != _json(new.get(name))]
    return first, f"{second}, with other {' and '.join(changed)}"


def _state(flag: Mapping[str, Any] | None) -> str:
    if flag is None:
        return ABSENT
    if str(flag.get("state", "ENABLED")).upper() == "DISABLED":
        return "off"
    variant = str(flag.get("defaultVariant", "on"))[:100]
    return f"{variant} with targeting" if flag.get("targeting") else variant


def _json(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
