"""Prefixes of routes: applications, blueprints and routers, and where each is mounted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from agents.source.routes.route import join_paths

Key = tuple[str, str]
"""An object of the source: path of its file, and its name there."""

_MOST_WAYS = 20
"""Most prefixes to which one object is followed."""


@dataclass(frozen=True, slots=True)
class _Mount:
    parent: Key
    prefix: str
    replaces: bool


class Mounts:
    """Objects that hold routes, each with a prefix of its own, mounted on others or on none."""

    def __init__(self) -> None:
        self._own: dict[Key, str] = {}
        self._mounts: dict[Key, list[_Mount]] = defaultdict(list)

    def add(self, key: Key, prefix: str = "") -> None:
        """Record an object and its own prefix."""
        self._own[key] = prefix

    def mount(self, parent: Key, child: Key, prefix: str = "", *, replaces: bool = False) -> None:
        """Record that a child's routes are also those of its parent, under a prefix.

        Args:
            parent: Object on which the child is mounted.
            child: Object that is mounted.
            prefix: Prefix of the mount.
            replaces: True if the prefix replaces the child's own prefix; else it precedes it.
        """
        if parent != child:
            self._mounts[child].append(_Mount(parent, prefix, replaces))

    def __contains__(self, key: object) -> bool:
        return key in self._own

    def prefixes(self, key: Key | None) -> list[str]:
        """Return the whole prefixes of an object's routes, one for each way to be mounted."""
        if key is None:
            return [""]
        ways = list(dict.fromkeys(self._ways(key, frozenset())))
        return ways[:_MOST_WAYS] or [self._own.get(key, "")]

    def paths(self, key: Key | None, *parts: str) -> Iterator[str]:
        """Yield the whole paths of a route of an object, one for each way to be mounted.

        Args:
            key: The object.
            parts: Of the path, from the object's prefix on.
        """
        yield from (join_paths(prefix, *parts) for prefix in self.prefixes(key))

    def _ways(self, key: Key, seen: frozenset[Key]) -> Iterator[str]:
        own = self._own.get(key, "")
        if not self._mounts.get(key):
            yield own
            return
        for mount in self._mounts[key]:
            if mount.parent in seen or len(seen) > _MOST_WAYS:
                continue
            inside = mount.prefix if mount.replaces else join_paths(mount.prefix, own)
            for number, before in enumerate(self._ways(mount.parent, seen | {key})):
                if number >= _MOST_WAYS:
                    break
                yield join_paths(before, inside)
