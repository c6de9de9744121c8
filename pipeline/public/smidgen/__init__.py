"""Smidgen for programs that import it: stable names, each loaded when it is used.

``smidgen.client`` reads regression events, ``smidgen.inprocess`` samples the program that imports it, and
``smidgen.replay`` records its requests. All other packages may change in any version.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = ("client", "inprocess", "replay")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"smidgen.{name}")
    if name == "__version__":
        return import_module("pipeline").__version__
    raise AttributeError(f"module 'smidgen' has no attribute {name!r}")
