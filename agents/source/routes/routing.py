"""Routes of a framework in a source tree: the objects that hold them, their mounts, and their patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agents.source.routes.mounts import Key, Mounts
from agents.source.routes.python_tree import CallSite, Handler, Position, PythonTree, owner_of
from agents.source.routes.route import Route


@dataclass(frozen=True, slots=True)
class Dialect:
    """A framework's spelling of routes.

    Args:
        framework: Its name.
        pattern: Returns the pattern of a path.
        makers: Constructor of an object that holds routes → keyword of its prefix, empty for none.
        mounting: Method that mounts such an object on another → positions of the object and of the prefix.
        replaces: True if the prefix of a mount replaces the object's own.
    """

    framework: str
    pattern: Callable[[str], str]
    makers: Mapping[str, str]
    mounting: Mapping[str, tuple[Position, Position]]
    replaces: bool = False


@dataclass(slots=True)
class Routing:
    """The routes of a tree in one dialect."""

    tree: PythonTree
    dialect: Dialect
    mounts: Mounts = field(default_factory=Mounts)

    def __post_init__(self) -> None:
        tree, dialect = self.tree, self.dialect
        for site in tree.calls:
            if site.name in dialect.makers and (key := tree.bound_key(site)):
                prefix = tree.text_at(site, (-1, dialect.makers[site.name]))
                self.mounts.add(key, dialect.pattern(prefix or ""))
        for site in tree.calls:
            if site.name in dialect.mounting and (parent := self.parent(site)):
                child_at, prefix_at = dialect.mounting[site.name]
                prefix = tree.text_at(site, prefix_at)
                if child := tree.key_at(site, child_at):
                    replaces = dialect.replaces and prefix is not None
                    self.mounts.mount(parent, child, dialect.pattern(prefix or ""), replaces=replaces)

    def parent(self, site: CallSite) -> Key | None:
        """Return the object on which a method is called."""
        return self.tree.key(owner_of(site.node), site.scope)

    def routes(
        self,
        key: Key | None,
        path: str | None,
        handler: Handler | None,
        methods: Sequence[str],
        inside: str = "",
    ) -> Iterator[Route]:
        """Yield the routes of a path, one for each way to be mounted; none if path or handler is not known.

        Args:
            key: Object that holds the route.
            path: As the framework spells it.
            handler: Function or class that answers.
            methods: Methods that are answered; if empty, GET for a function, all for a class.
            inside: Pattern between the object's prefix and the path.
        """
        if handler is None or path is None:
            return
        for pattern in self.mounts.paths(key, inside, self.dialect.pattern(path)):
            yield from self.tree.routes_of(handler, pattern, methods, self.dialect.framework)


def or_get(methods: Sequence[str], handler: Handler | None) -> Sequence[str]:
    """Return the methods, or if none are given GET for a function and all for a class."""
    return methods or ([] if handler and handler.entity.type else ["GET"])
