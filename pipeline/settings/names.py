"""The file that says how each service's frames become symbols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.counting.names import Naming, Namings, Pattern, check_pattern, rules_without
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError


class _Pattern(StrictModel):
    match: str
    replace: str = ""


class _Naming(StrictModel):
    rules: bool = True
    without: tuple[str, ...] = ()
    patterns: tuple[_Pattern, ...] = ()


class _File(StrictModel):
    default: _Naming = _Naming()
    services: dict[str, dict[str, Any]] = {}


def read_namings(path: Path | None) -> Namings:
    """Read a file of names; what a service leaves out is as in ``default``. Without one, all rules hold.

    Raises:
        ConfigError: it cannot be read, or the key that is wrong.
    """
    if path is None:
        return Namings()
    raw = read_yaml(path)
    file = validate(_File, {} if raw is None else raw, str(path))
    services = {}
    for service, given in file.services.items():
        where = f"{path}: services.{service[:100]}"
        services[service] = _naming_of(
            validate(_Naming, {**file.default.model_dump(), **given}, where), where
        )
    return Namings(_naming_of(file.default, f"{path}: default"), services)


def _naming_of(given: _Naming, where: str) -> Naming:
    patterns = tuple(Pattern(pattern.match, pattern.replace) for pattern in given.patterns)
    try:
        for pattern in patterns:
            check_pattern(pattern)
        rules = rules_without(given.without)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    return Naming(rules if given.rules else (), patterns)
