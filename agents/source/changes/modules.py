"""Module, package or crate of a source file, as its language's stack frames spell it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from agents.source.changes.languages import Language

_GO_MODULE = re.compile(r"^module\s++\"?([^\s\"]++)", re.MULTILINE)

MAX_MANIFEST_BYTES = 256 * 1024
MAX_MANIFEST_LINE = 1000
"""Largest manifest that is read, and longest line in it, since a key of many parts takes their square."""


def module_of_source(language: Language, path: str, package: str, manifests: Mapping[str, bytes]) -> str:
    """Return the package, namespace, module path or crate module of a file.

    Kotlin's has the class that holds what stands outside classes besides: ``com.acme.BasketKt``.

    ``package`` is what the source declares; ``manifests`` holds ``go.mod`` and ``Cargo.toml`` files by path.
    """
    if language.name == "Kotlin":
        return f"{package}.{PurePosixPath(path).stem}Kt".lstrip(".")
    if not language.manifest:
        return package
    path = path.lstrip("/")  # as a tree that no git made may hold it
    folder, manifest = _nearest(language, path, manifests)
    inside = PurePosixPath(path).relative_to(folder)
    if language.name == "Go":
        root = _GO_MODULE.search(manifest.decode(errors="replace"))
        if package in ("", "main") or not root:
            return package
        return "/".join([root[1], *inside.parent.parts])
    parts = [part for part in inside.with_suffix("").parts if part != "src"]
    if parts and parts[-1] in ("lib", "main", "mod"):
        parts.pop()
    return "::".join(part for part in (_crate(manifest), *parts) if part)


def manifest_paths(language: Language, path: str) -> Iterator[str]:
    """Yield where the manifest of a file's module may stand, the nearest first."""
    if language.manifest:
        yield from (str(folder / language.manifest) for folder in PurePosixPath(path).parents)


def _nearest(language: Language, path: str, manifests: Mapping[str, bytes]) -> tuple[PurePosixPath, bytes]:
    for candidate in manifest_paths(language, path):
        if candidate in manifests:
            return PurePosixPath(candidate).parent, manifests[candidate]
    return PurePosixPath(), b""


def _crate(manifest: bytes) -> str:
    longest = max(map(len, manifest.split(b"\n")))
    if len(manifest) > MAX_MANIFEST_BYTES or longest > MAX_MANIFEST_LINE:
        return ""
    try:
        name = tomllib.loads(manifest.decode(errors="replace")).get("package", {}).get("name", "")
    except (ValueError, AttributeError, RecursionError):  # not TOML, a number of thousands of digits; nested
        return ""
    return str(name).replace("-", "_")
