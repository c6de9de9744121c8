"""Packages of the extras (pyproject.toml), and what to install where one is missing."""

from __future__ import annotations

import importlib.util
import re

from pipeline.model.errors import ConfigError

_DISTRIBUTIONS = {
    "faust": "faust-streaming",
    "google": "protobuf",
    "grpc": "grpcio",
    "jwt": "pyjwt",
    "mode": "mode-streaming",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Imported name → package, where they differ by more than the sign between words."""

_OWN = ("pipeline", "agents", "loadgen")


def require(module: str) -> None:
    """Check that a module of an extra is installed, without importing it.

    Raises:
        ConfigError: the module is not installed; the text says how to get it.
    """
    if importlib.util.find_spec(module) is None:
        raise ConfigError(installation_hint(module) or f"{module} is not installed")


def installation_hint(module: str, larger_extra: str = "") -> str | None:
    """Return what is missing without a module, and how to install it; None for no module of ours.

    Args:
        module: Name of a module that cannot be imported.
        larger_extra: Extra to name instead of ``server``, which it includes.
    """
    name = module.partition(".")[0]
    if name in _OWN:
        return None if importlib.util.find_spec(name) else _hint(name, "all")
    package = _DISTRIBUTIONS.get(name, name.replace("_", "-"))
    extra = _extra_of(package)
    if extra is None:
        return None
    return _hint(package, larger_extra if extra == "server" and larger_extra else extra)


def _extra_of(package: str) -> str | None:
    """Return the extra that lists a package in pyproject.toml, an empty text for the base install."""
    from importlib import metadata  # takes as long as a whole --help

    try:
        lines = metadata.requires("smidgen") or ()
    except metadata.PackageNotFoundError:
        return None
    listing = re.compile(rf"(?i){re.escape(package)}(?![\w.-])(?:.*\bextra == [\"'](\w+))?")
    return next((match[1] or "" for line in lines if (match := listing.match(line))), None)


def _hint(package: str, extra: str) -> str:
    return f"{package} is not installed: pip install " + (f"'smidgen[{extra}]'" if extra else "smidgen")
