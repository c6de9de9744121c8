"""Types of requests: method and path, with identifiers in the path folded."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Sequence

from agents.logs.tally_state import TypesState

OTHER = "other"

NO_ROUTE = frozenset(("400", "404", "405", "410", "414", "444", "501"))
"""Statuses of requests without a route: scanners of a service invent hundreds of paths."""

MOST_CHILDREN = 30
"""Most different names at one depth of a path; if there are more, they are identifiers and folded."""

MOST_PARENTS = 10_000
"""Most paths for which the names under them are remembered."""

MOST_DEPTH = 16
"""Most parts of a path."""

MOST_REMEMBERED = 100_000
MAX_TYPE = 200
"""Longest type, in characters."""

CUT = "…"
"""Stands for the rest of a path beyond MOST_DEPTH, MAX_TYPE or MOST_PARENTS."""

_METHOD = re.compile(r"[A-Z]{3,10}|-")
_FOLDED = re.compile(
    r"/(?:(?P<date>\d{4}-\d\d(?:-\d\d)?(?:T[\d:.Z+-]+)?)"
    r"|(?P<uuid>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})"
    r"|(?P<id>\d+|\d{3,}[-_][^/ ]*|[^/ ]*[-_]\d{4,})"
    r"|(?P<hash>(?=[a-fA-F]*\d)(?:[0-9a-f]{8,}|[0-9A-F]{8,}))"
    r"|(?P<token>(?=[\w=~-]*\d)(?=[\w=~-]*[A-Za-z])[\w=~-]{20,})"
    r"|(?P<name>[^/ ]*(?:@|%40)[^/ ]*|[^/ ]{61,}))(?=[/ ]|$)"
)
"""Pattern of identifiers in paths; the name of the matching group replaces the identifier."""

_SPELLINGS = frozenset(f":{name}" for name in _FOLDED.groupindex)

_BUNDLE = re.compile(r"([.-])(?=[0-9a-f]*\d)[0-9a-f]{6,32}(?=\.)")
"""The content hash in the name of a file."""


class RequestTypes:
    """Names types, at most ``most`` of them; the rest are ``other``.

    ``rules`` are globs over method and path with the name of each, and come before all else. Names at one
    depth of a path become ``:name`` from the moment on that there are more than MOST_CHILDREN of them. Only
    requests that something answers make names and types.
    """

    def __init__(self, rules: Sequence[tuple[str, str]] = (), most: int = 100) -> None:
        self._rules = tuple((re.compile(fnmatch.translate(glob)), name) for glob, name in rules)
        self._most = most
        self._known: dict[str, str] = {}
        self._types: set[str] = set()
        self._children: dict[tuple[str, ...], set[str]] = {}
        self._folds: set[str] = set()

    def of(self, request: str) -> str:
        """Return the type of a request such as ``GET /cart/17?x=1 HTTP/1.1``."""
        type_ = self._known.get(request)
        if type_ is None:
            folded = self._folded(request)
            type_ = self._known.get(folded)
            if type_ is None:
                type_ = self._known[folded] = self._admitted(self._named(folded))
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[request] = type_
        return type_

    def of_unanswered(self, request: str) -> str:
        """Return the type of a request with a status of NO_ROUTE: a known type, or OTHER."""
        folded = self._folded(request)
        if folded.startswith("="):
            return self.of(request)
        type_ = self._known.get(folded) or self._named(folded, is_new=False)
        return type_ if type_ in self._types else OTHER

    def state(self) -> TypesState:
        """Return the state that names depend on, besides rules and ``most``."""
        children = tuple((parent, tuple(sorted(names))) for parent, names in self._children.items())
        return TypesState(types=tuple(sorted(self._types)), children=children)

    def restore(self, state: TypesState) -> None:
        """Go on from a state; rules may have changed since it was written."""
        self._known.clear()
        self._types = set(state.types)
        self._children = {parent: set(names) for parent, names in state.children}
        self._folds = {_path(parent) for parent, names in state.children if len(names) > MOST_CHILDREN}

    @property
    def folds(self) -> frozenset[str]:
        """Paths under which names became ``:name`` by their number."""
        return frozenset(self._folds)

    def learn(self, requests: Sequence[str]) -> None:
        """Learn from requests before they are counted, so that names are folded from the first one on."""
        for request in requests:
            self._named(self._folded(request))

    def _folded(self, request: str) -> str:
        """Return method and path with identifiers folded, or the name of a rule."""
        method, _, rest = request.partition(" ")
        target = rest.partition(" ")[0]
        if "://" in target[:10]:
            target = "/" + target.partition("://")[2].partition("/")[2]
        path = target.partition("?")[0].partition("#")[0].partition(";")[0]
        whole = f"{method.replace('=', '?')} {path}"  # = begins names of rules
        for pattern, name in self._rules:
            if pattern.match(whole):
                return f"={name}"
        folded = _FOLDED.sub(_spelt, whole)
        return _BUNDLE.sub(r"\1:hash", folded) if "." in folded else folded

    def _named(self, folded: str, *, is_new: bool = True) -> str:
        """Return the name of a type; with ``is_new``, the parts of its path are counted as names."""
        if folded.startswith("="):
            return folded[1:]
        method, _, path = folded.partition(" ")
        if not _METHOD.fullmatch(method) or not path.startswith("/") or not path.isprintable():
            return OTHER
        names: tuple[str, ...] = ()
        room = MAX_TYPE - len(f"{method} /{CUT}")
        for segment in path.strip("/").split("/"):
            name = self._segment(names, segment, is_new=is_new) if len(names) < MOST_DEPTH else CUT
            room -= len(name) + 1
            if name == CUT or room < 0:
                names += (CUT,)
                break
            names += (name,)
        return f"{method} /{'/'.join(names)}"

    def _segment(self, parent: tuple[str, ...], segment: str, *, is_new: bool) -> str:
        if segment in _SPELLINGS:
            return segment
        if parent not in self._children and len(self._children) >= MOST_PARENTS:
            return CUT
        if not is_new:
            return ":name" if len(self._children.get(parent, ())) > MOST_CHILDREN else segment
        children = self._children.setdefault(parent, set())
        if segment not in children and len(children) <= MOST_CHILDREN:
            children.add(segment)
            if len(children) > MOST_CHILDREN:
                self._folds.add(_path(parent))
                self._known.clear()
                self._types.clear()
        return ":name" if len(children) > MOST_CHILDREN else segment

    def _admitted(self, name: str) -> str:
        if name not in self._types:
            if len(self._types) >= self._most:
                return OTHER
            self._types.add(name)
        return name


def folded_paths(type_: str, folds: Collection[str]) -> list[str]:
    """Return those of the paths ``folds`` whose ``:name`` is in a type."""
    before, *rest = type_.partition(" ")[2].split("/:name")
    paths = [before]
    for part in rest:
        paths.append(f"{paths[-1]}/:name{part}")
    return [path or "/" for path in paths[:-1] if (path or "/") in folds]


def _path(segments: Sequence[str]) -> str:
    return f"/{'/'.join(segments)}"


def _spelt(match: re.Match[str]) -> str:
    return f"/:{match.lastgroup}"
