"""Naming: the rules and patterns in force for a service, from frames to symbols."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import xxhash

from pipeline.counting.names.rule import NameRule
from pipeline.counting.names.rules import RULES, VERSION
from pipeline.model import Profile
from pipeline.model.frames import series_of

MOST_KEPT = 2**18
"""Most symbols that are cached; the cache is emptied when there are more."""

LONGEST = 4096
"""Longest name that rules apply to, in characters: a longer one is no function's and stays unchanged."""

_CUT = re.compile(r"…#[0-9a-f]{16}$")
"""End of a name that was cut (``frames.cut_name``), which is no whole name."""

_REMARK = re.compile(r"\([^()]*\)$")

_MOST_PASSES = 20
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Pattern:
    """A substitution of a user's: a regular expression and the replacement of its matches."""

    match: str
    replace: str = ""


def check_pattern(pattern: Pattern) -> None:
    """Check that a pattern can be used.

    Raises:
        ValueError: it is no regular expression, or its replacement names a missing group.
    """
    try:
        re.compile(pattern.match).sub(pattern.replace, "")
    except (re.error, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern.match[:200]!r} is no regular expression: {error}") from None


@dataclass(frozen=True)  # without slots: derived values are cached
class Naming:
    """The rules and patterns that turn a service's frames into symbols.

    ``symbol`` is a pure function of the name, idempotent, and never empty. ``rules`` are those that run,
    ``patterns`` run after them.
    """

    rules: tuple[NameRule, ...] = RULES
    patterns: tuple[Pattern, ...] = ()
    _own: set[str] = field(default_factory=set, compare=False, repr=False)  # names that are their symbols
    _known: dict[str, str] = field(default_factory=dict, compare=False, repr=False)  # the symbols of others

    @cached_property  # asked at every read of series
    def version(self) -> str:
        """Return the stored version of the naming: the rules' version, and a hash of the differences."""
        if not self.rules and not self.patterns:
            return "0"
        own = [rule.key for rule in RULES if rule not in self.rules]
        own += [f"{pattern.match}\0{pattern.replace}" for pattern in self.patterns]
        text = "\1".join(own)
        return f"{VERSION}-{xxhash.xxh3_64_hexdigest(text.encode())}" if own else str(VERSION)

    def symbol(self, name: str) -> str:
        """Return the symbol of a frame; annotations and other labels that are no subroutines stay."""
        if name in self._own:
            return name
        symbol = self._known.get(name)
        if symbol is None:
            symbol = self._make(name)
            if len(self._own) + len(self._known) >= MOST_KEPT:
                self._own.clear()
                self._known.clear()
            if symbol == name:
                self._own.add(name)
            else:
                self._known[name] = symbol
        return symbol

    def symbols(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the symbols of names, in their order."""
        names = tuple(names)
        return names if self._own.issuperset(names) else tuple(map(self.symbol, names))

    def changed(self, names: Collection[str]) -> dict[str, str]:
        """Return the symbol of each name that differs from its symbol."""
        if self._own.issuperset(names):  # for speed: most are
            return {}
        return {name: symbol for name in names if (symbol := self.symbol(name)) != name}

    def profile(self, profile: Profile) -> Profile:
        """Return a profile whose frames are symbols; the same object if they were."""
        symbols = self.symbols(profile.frames)
        return profile if symbols == profile.frames else replace(profile, frames=symbols)

    def _make(self, name: str) -> str:
        if not self.patterns and len(name) <= LONGEST and not self._signs.search(name):
            return name  # for speed: most have no sign
        if len(name) > LONGEST or _CUT.search(name) or series_of(name)[0] != "subroutine":
            return name
        if _REMARK.match(name):
            return name  # stands for what was left out, or says what a runtime does
        ruled = self._ruled(name)
        return self._patterned(ruled) if self.patterns else ruled

    def _ruled(self, name: str) -> str:
        """Apply the rules until nothing changes; a name that never stops changing stays as it was."""
        symbol = name
        for _ in range(_MOST_PASSES):
            if not self._signs.search(symbol):
                return symbol
            before = symbol
            for index in sorted({index for hint, index in self._hints if hint in symbol}):
                symbol = self.rules[index].apply(symbol).strip() or symbol
            if symbol == before:
                return symbol
        return name

    @cached_property
    def _signs(self) -> re.Pattern[str]:
        """What is found in every name that the rules change; a rule that is tried takes outer spaces away."""
        signs = (rule.sign or "|".join(map(re.escape, rule.hints)) for rule in self.rules)
        return re.compile("|".join((*signs, r"^\s", r"\s\Z")))

    @cached_property
    def _hints(self) -> list[tuple[str, int]]:
        """The text that a name must contain for a rule to be tried, and the rule's index."""
        return [(hint, index) for index, rule in enumerate(self.rules) for hint in rule.hints]

    def _patterned(self, ruled: str) -> str:
        """Apply the user's patterns until nothing changes; if that never happens, the name stays."""
        symbol = ruled
        for _ in range(_MOST_ROUNDS):
            before = symbol
            for pattern in self.patterns:
                symbol = re.sub(pattern.match, pattern.replace, symbol) or symbol
            symbol = self._ruled(symbol)
            if symbol == before:
                return symbol
        return ruled


@dataclass(frozen=True, slots=True)
class Namings:
    """The naming of every service."""

    default: Naming = Naming()
    services: Mapping[str, Naming] = field(default_factory=dict)

    def of(self, service: str) -> Naming:
        """Return a service's naming."""
        return self.services.get(service, self.default)


def rules_without(keys: Sequence[str]) -> tuple[NameRule, ...]:
    """Return all rules except those with the given keys.

    Raises:
        ValueError: a key that no rule has.
    """
    rule_keys = {rule.key for rule in RULES}
    for key in keys:
        if key not in rule_keys:
            raise ValueError(f"no rule {key!r}; rules are {', '.join(sorted(rule_keys))}")
    return tuple(rule for rule in RULES if rule.key not in keys)
