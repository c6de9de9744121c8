"""Sampler inside a Python application; applications import ``smidgen.inprocess``."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    public = import_module("smidgen.inprocess")
    if name not in public.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{__name__} will go: import smidgen.inprocess", DeprecationWarning, stacklevel=2)
    return getattr(public, name)
