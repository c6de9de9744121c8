"""Routes of Spring: mappings of controllers' classes and methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agents.source.routes.java_source import JavaFile, Text
from agents.source.routes.route import Route, join_paths
from pipeline.counting.routes.patterns import of_braces

FRAMEWORK = "spring"

_DEEPEST = 5


def find_spring(files: Sequence[JavaFile]) -> Iterator[Route]:
    """Yield the routes of controllers; what has no text that is known here is left out."""
    constants = {name: text for file in files for name, text in file.constants.items()}
    for file in files:
        for method in file.mapped:
            function = file.unit.functions[method.qualified]
            own = f"{function.owner.rpartition('$')[2]}."
            for before in method.outer.paths:
                for after in method.inner.paths:
                    prefix, path = (_text(part, constants, own) for part in (before, after))
                    if prefix is not None and path is not None:
                        pattern = join_paths(of_braces(prefix), of_braces(path))
                        methods = method.inner.methods or method.outer.methods
                        yield Route(methods, pattern, function.name, file.unit.path, function.line, FRAMEWORK)


def _text(text: Text, constants: Mapping[str, Text], own: str, depth: int = 0) -> str | None:
    parts: list[str] = []
    for part in text:
        if part.startswith('"'):
            parts.append(part[1:])
            continue
        constant = constants.get(part) or constants.get(own + part)
        value = _text(constant, constants, own, depth + 1) if constant and depth < _DEEPEST else None
        if value is None:
            return None
        parts.append(value)
    return "".join(parts)
