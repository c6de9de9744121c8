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
    "py_spy": "py-spy",
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
    extras = extras_of(package)
    if not extras:
        return None
    return _hint(package, larger_extra if extras[0] == "server" and larger_extra else extras[0])


def extras_of(package: str) -> list[str]:
    """Return the extras that list a package, as in pyproject.toml; the base install is the empty text."""
    from importlib import metadata  # takes as long as a whole --help

    try:
        lines = metadata.requires("smidgen") or []
    except metadata.PackageNotFoundError:
        return []
    listing = re.compile(
        rf"{re.escape(package)}(?![A-Za-z0-9._-])(?:.*\bextra == [\"'](\w+))?", re.IGNORECASE
    )
    return [found[1] or "" for line in lines if (found := listing.match(line))]


def _hint(package: str, extra: str) -> str:
    return f"{package} is not installed: pip install " + (f"'smidgen[{extra}]'" if extra else "smidgen")
