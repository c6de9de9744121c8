"""Names as stack frames of other languages spell them, and as changes to their sources do."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from loadgen.fleet.scenario import Language
from pipeline.model.frames import series_of

_ARGUMENTS = ("int", "Item const&", "std::vector<Item> const&", "Item const&, unsigned long")
_TYPES = ("Item", "std::string", "std::pair<int, Item>")
_CLONES = ("", "", "", " [clone .constprop.0]", " [clone .part.1]", " [clone .isra.0]")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A drawn name in parts: ``shop.cart.rows.CartReader.read_rows`` in packages, class and method."""

    packages: tuple[str, ...]
    owner: str  # empty outside of a class
    method: str
    number: int  # the same for the same method of the same class

    def pick(self, choices: tuple[str, ...], salt: int = 0) -> str:
        return choices[(self.number >> (8 * salt)) % len(choices)]

    @property
    def camel(self) -> str:
        first, *rest = self.method.split("_")
        return first + "".join(word.capitalize() for word in rest)

    @property
    def closure(self) -> bool:
        """One in eight is anonymous code inside the function of that name."""
        return self.number % 8 == 0


def _python(parts: _Parts) -> str:
    return ".".join(part for part in (*parts.packages, parts.owner, parts.method) if part)


def _java(parts: _Parts) -> str:
    method = f"lambda${parts.camel}${parts.number % 5}" if parts.closure else parts.camel
    return f"{'/'.join((*parts.packages, parts.owner or 'Main'))}.{method}"


def _go(parts: _Parts) -> str:
    receiver = f".(*{parts.owner})" if parts.owner else ""
    method = parts.camel[:1].upper() + parts.camel[1:]
    return f"{'/'.join(parts.packages)}{receiver}.{method}{'.func1' if parts.closure else ''}"


def _cpp(parts: _Parts) -> str:
    owner = f"{parts.owner}<{parts.pick(_TYPES)}>" if parts.owner and parts.number % 3 == 0 else parts.owner
    scopes = [part for part in (*parts.packages, owner) if part]
    clone = parts.pick(_CLONES, 2)
    return f"{'::'.join((*scopes, parts.method))}({parts.pick(_ARGUMENTS, 1)}){clone}"


def _rust(parts: _Parts) -> str:
    inner = "::{{closure}}" if parts.closure else ""
    scopes = [part for part in (*parts.packages, parts.owner, parts.method) if part]
    return f"{'::'.join(scopes)}{inner}::h{parts.number:016x}"


def _javascript(parts: _Parts) -> str:
    return f"{parts.owner}.{parts.camel}" if parts.owner else parts.camel


def _php(parts: _Parts) -> str:
    scope = "\\".join(part[:1].upper() + part[1:] for part in (*parts.packages, parts.owner) if part)
    return f"{scope}::{parts.camel}"


_FRAMES: Mapping[Language, Callable[[_Parts], str]] = {
    "python": _python,
    "java": _java,
    "go": _go,
    "cpp": _cpp,
    "rust": _rust,
    "javascript": _javascript,
    "php": _php,
}


@dataclass(frozen=True, slots=True)
class Spelling:
    """Spelling of the drawn names in a service's language."""

    language: Language

    def frame(self, label: str) -> str:
        """Return an element of a stack as a sampler prints it; annotations stay unchanged."""
        if self.language == "python" or series_of(label)[0] != "subroutine":
            return label
        return _FRAMES[self.language](_parts(label))

    def declared(self, name: str) -> str:
        """Return a subroutine as a change to its source names it: no arguments, no closures, no hashes."""
        if self.language == "python":
            return name
        parts = _parts(name)
        plain = _Parts(parts.packages, parts.owner, parts.method, number=1)
        if self.language in ("cpp", "rust"):
            return "::".join(part for part in (*parts.packages, parts.owner, parts.method) if part)
        return _FRAMES[self.language](plain)


@lru_cache(maxsize=100_000)
def _parts(name: str) -> _Parts:
    *packages, method = name.split(".")
    owner = packages.pop() if packages and packages[-1][:1].isupper() else ""
    bare = f"{owner}.{method}".encode()  # code that moves keeps its arguments and closures
    number = int.from_bytes(hashlib.blake2b(bare, digest_size=8).digest(), "big")
    return _Parts(tuple(packages), owner, method, number)
