"""Routes of a web application: a method and a pattern of paths, and the handler that answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    Args:
        methods: In capitals; empty where any is answered.
        pattern: Path with parameters in braces, ``/orders/{id}``; ``{path...}`` takes one or more segments.
        handler: Subroutine as stack frames spell it; of a view without own methods its class.
        path: Of the file that defines the handler.
        line: Of the handler's definition, from 1.
        framework: Such as ``flask``.
    """

    methods: tuple[str, ...]
    pattern: str
    handler: str
    path: str
    line: int
    framework: str

    @property
    def name(self) -> str:
        """Its methods and pattern as types of requests are spelt: ``GET /orders/{id}``."""
        return f"{','.join(self.methods) or '*'} {self.pattern}"


def join_paths(*parts: str) -> str:
    """Join prefixes and a path with one slash between each: ``/api``, ``orders`` → ``/api/orders``."""
    joined = "/".join(part.strip("/") for part in parts if part.strip("/"))
    return f"/{joined}"
