"""The optional packages: those of the extra ``embedded``."""

from __future__ import annotations

import importlib.util

from pipeline.errors import ConfigError


def require_embedded(package: str) -> None:
    """Check that a package of the extra ``embedded`` is installed.

    Raises:
        ConfigError: it is not; the text says how to get it.
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"{package} is not installed: pip install 'smidgen[embedded]'")
