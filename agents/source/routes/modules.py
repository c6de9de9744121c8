"""Modules of a source tree, found as the imports of each language name them."""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from agents.source.routes.source import Class, Unit

_ENDINGS = ("", ".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", "/index.js", "/index.ts", "/index.mjs")


class Modules:
    """The units of a source tree by what imports call them."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.units: Mapping[str, Unit] = {unit.path: unit for unit in units}
        self.classes: Mapping[str, tuple[Unit, Class]] = {
            class_.name: (unit, class_) for unit in self.units.values() for class_ in unit.classes.values()
        }
        self._named: dict[str, list[Unit]] = defaultdict(list)
        packages = {str(PurePosixPath(path).parent) for path in self.units if path.endswith("__init__.py")}
        for unit in self.units.values():
            if unit.language == "Python":
                for name in _import_names(unit.path, packages):
                    self._named[name].append(unit)

    def python(self, dotted: str, importer: Unit) -> tuple[Unit, tuple[str, ...]] | None:
        """Return the module that begins a dotted name, and what is left of the name.

        A module counts by its path from any folder above it that is no package; of several the one nearest
        to the importer. Modules of the standard library are none of the tree's, unless they lie at its top.
        """
        parts = tuple(part for part in dotted.split(".") if part)
        for end in range(len(parts), 0, -1):
            units = self._named.get(".".join(parts[:end]), ())
            if parts[0] in sys.stdlib_module_names:
                units = [unit for unit in units if unit.path.split("/")[0].removesuffix(".py") == parts[0]]
            if units:
                return max(units, key=lambda unit: _common(unit.path, importer.path)), parts[end:]
        return None

    def javascript(self, request: str, importer: Unit) -> Unit | None:
        """Return the module that ``require`` or ``import`` names by a relative path."""
        if not request.startswith("."):
            return None
        path = posixpath.normpath(posixpath.join(posixpath.dirname(importer.path), request))
        stem = path.removesuffix(".js")  # of TypeScript, which imports what it is compiled to
        file_names = (f"{file_name}{ending}" for file_name in (path, stem) for ending in _ENDINGS)
        return next((self.units[file_name] for file_name in file_names if file_name in self.units), None)


def _import_names(path: str, packages: set[str]) -> Iterable[str]:
    """Yield the dotted names of a Python file from each folder that imports may start in."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    for first in range(len(parts)):
        folder = "/".join(parts[:first]) or "."
        if folder not in packages:
            yield ".".join(parts[first:])


def _common(path: str, importer: str) -> tuple[int, int]:
    """Return how many folders two paths share, and how short the first is."""
    pairs = zip(path.split("/"), importer.split("/"), strict=False)
    shared = 0
    for first, second in pairs:
        if first != second:
            break
        shared += 1
    return shared, -len(path)
