"""Releases of a web application with truth: source, commits, and the commit that slowed a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import Change

_DOMAINS = (
    *("orders", "cart", "prices", "stock", "users", "search", "reviews", "invoices", "coupons", "shipping"),
    *("returns", "catalog", "reports", "sessions", "images", "mails"),
)
_VERBS = (
    "load",
    "check",
    "merge",
    "sort",
    "render",
    "count",
    "store",
    "parse",
    "join",
    "filter",
    "build",
    "read",
)
_DEEPEST = 4
"""Largest number of calls from a handler to the function that a commit slows."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of an application and its release.

    Args:
        about: Description in one sentence.
        functions: Number of functions besides handlers.
        handlers: Number of handlers, one for each type of request.
        commits: Number of commits of the release.
        modified: Mean number of functions that a commit modifies.
        shared: Share of calls that lead to functions of any domain.
        named: Share of commits whose title names a function that they modify.
    """

    about: str
    functions: int = 200
    handlers: int = 20
    commits: int = 20
    modified: float = 3.0
    shared: float = 0.2
    named: float = 0.5


SIZES = {
    "plain": Size("Twenty commits over 200 functions."),
    "large-release": Size("A hundred commits.", commits=100),
    "large-commits": Size("Commits modify eight functions in the mean.", modified=8.0),
    "shared-code": Size("Half of the calls lead to functions of any domain.", shared=0.5),
    "large-source": Size("A thousand functions and 60 handlers.", functions=1000, handlers=60),
    "silent": Size("No title names what its commit modifies.", named=0.0),
}


@dataclass(frozen=True, slots=True)
class ReleaseCase:
    """One release, and the truth.

    Args:
        sources: Path → text of the new release.
        changes: Its commits.
        request: Type of request that costs more.
        slow: Id of the commit that slows it.
        depth: Number of calls from the handler to the function that the commit slowed.
    """

    sources: dict[str, bytes]
    changes: tuple[Change, ...]
    request: str
    slow: str
    depth: int


def draw_release(size: Size, rng: np.random.Generator) -> ReleaseCase:
    """Draw an application, its commits, and the commit that slowed a function.

    The function is one that a handler reaches by one to four calls, each number as likely; the request is any
    of those that reach the function by this number.
    """
    tree = _Tree.drawn(size, rng)
    depths = [tree.depths(handler) for handler in range(size.handlers)]
    depth = int(rng.integers(1, _DEEPEST + 1))
    reached = sorted({name for reach in depths for name, deep in reach.items() if deep == depth})
    slow = int(rng.choice(reached))
    handler = int(rng.choice([n for n, reach in enumerate(depths) if reach.get(slow) == depth]))
    guilty = int(rng.integers(size.commits))
    changes = tuple(
        tree.change(number, size, rng, slow if number == guilty else None) for number in range(size.commits)
    )
    return ReleaseCase(tree.sources(), changes, f"GET {tree.path(handler)}", changes[guilty].id, depth)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Functions in domains; a function calls only those with larger numbers, so there is no recursion."""

    names: Sequence[str]
    domains: Sequence[int]  # domain of each function
    calls: Sequence[Sequence[int]]
    entries: Sequence[Sequence[int]]  # callees of each handler

    @classmethod
    def drawn(cls, size: Size, rng: np.random.Generator) -> _Tree:
        domains = [int(index) for index in rng.integers(len(_DOMAINS), size=size.functions)]
        names = [f"{_VERBS[int(rng.integers(len(_VERBS)))]}_{number}" for number in range(size.functions)]

        def called(domain: int, after: int, most: int) -> list[int]:
            near = [n for n in range(after, size.functions) if domains[n] == domain]
            callees = []
            for _ in range(int(rng.integers(1, most + 1))):
                pool = range(after, size.functions) if not near or rng.random() < size.shared else near[:8]
                if len(pool):
                    callees.append(int(rng.choice(pool)))
            return sorted(set(callees))

        calls = [called(domains[number], number + 1, 3) for number in range(size.functions)]
        entries = [called(number % len(_DOMAINS), 0, 4) for number in range(size.handlers)]
        return cls(names, domains, calls, entries)

    def depths(self, handler: int) -> dict[int, int]:
        """Return function → number of calls from a handler."""
        by_function = dict.fromkeys(self.entries[handler], 1)
        left = list(by_function)
        for number in left:
            for called in self.calls[number]:
                if called not in by_function:
                    by_function[called] = by_function[number] + 1
                    left.append(called)
        return by_function

    def path(self, handler: int) -> str:
        """Return the path of a handler's route."""
        return f"/{_DOMAINS[handler % len(_DOMAINS)]}/view{handler}"

    def subroutine(self, number: int) -> str:
        """Return a function's name as stack frames spell it."""
        return f"shop.{_DOMAINS[self.domains[number]]}.{self.names[number]}"

    def change(self, number: int, size: Size, rng: np.random.Generator, slow: int | None) -> Change:
        """Draw a commit: a function, and more functions of the same domain."""
        first = int(rng.integers(size.functions)) if slow is None else slow
        near = [n for n, domain in enumerate(self.domains) if domain == self.domains[first] and n != first]
        more = min(int(rng.geometric(1.0 / size.modified)) - 1, len(near))
        modified = (
            [first, *(int(function) for function in rng.choice(near, more, replace=False))]
            if more
            else [first]
        )
        named = self.names[int(rng.choice(modified))] if rng.random() < size.named else "what was asked for"
        return Change(
            id=f"{number:040x}",
            service="shop",
            time=float(number),
            title=f"Change {named}",
            files=(f"shop/{_DOMAINS[self.domains[first]]}.py",),
            subroutines=tuple(sorted(map(self.subroutine, modified))),
            content="\n".join(f"+    {self.names[function]}()" for function in modified),
        )

    def sources(self) -> dict[str, bytes]:
        """Return the source: a module for each domain, and one with the handlers."""
        lines: dict[str, list[str]] = {name: [] for name in _DOMAINS}
        for number, domain in enumerate(self.domains):
            body = [f"    {self._spelt(called, domain)}()" for called in self.calls[number]] or ["    pass"]
            lines[_DOMAINS[domain]] += [f"def {self.names[number]}():", *body]
        imports = f"from shop import {', '.join(_DOMAINS)}"
        files = {
            f"shop/{name}.py": "\n".join([imports, *module_lines]).encode()
            for name, module_lines in lines.items()
        }
        app = ["from flask import Flask", imports, "app = Flask(__name__)"]
        for handler, entries in enumerate(self.entries):
            body = [f"    {self._spelt(called, -1)}()" for called in entries]
            app += [f"@app.get('{self.path(handler)}')", f"def view{handler}():", *body]
        return {**files, "shop/app.py": "\n".join(app).encode(), "shop/__init__.py": b""}

    def _spelt(self, number: int, domain: int) -> str:
        name = self.names[number]
        return name if self.domains[number] == domain else f"{_DOMAINS[self.domains[number]]}.{name}"
