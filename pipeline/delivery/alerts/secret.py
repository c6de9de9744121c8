"""Secrets of targets: given by the environment or a file, never written into the rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, SecretStr

from pipeline.model.errors import ConfigError
from pipeline.settings.config import read_secret


class GivenSecret(SecretStr):
    """A secret that came from the environment or a file."""


def _check(value: object) -> GivenSecret:
    if not isinstance(value, GivenSecret):
        raise ValueError("a secret: give it as {env: NAME} or {file: PATH}")
    return value


Secret = Annotated[SecretStr, BeforeValidator(_check)]
"""The type of an option that holds a secret."""


def with_secrets(raw: Any, folder: Path, environ: Mapping[str, str], where: str) -> Any:
    """Return the content of a file, with each ``{env: NAME}`` and ``{file: PATH}`` replaced by its secret.

    Paths are relative to ``folder``.

    Raises:
        ConfigError: a variable is empty or a file cannot be read; the text has the key and no secret.
    """
    if isinstance(raw, list):
        return [with_secrets(part, folder, environ, f"{where}.{n}") for n, part in enumerate(raw)]
    if not isinstance(raw, dict):
        return raw
    if len(raw) == 1 and isinstance(source := next(iter(raw.values())), str):
        if "env" in raw:
            if not (secret := environ.get(source, "").strip()):
                raise ConfigError(f"{where}: environment {source}: empty")
            return GivenSecret(secret)
        if "file" in raw:
            return GivenSecret(read_secret(folder / Path(source).expanduser(), where))
    return {key: with_secrets(part, folder, environ, f"{where}.{key}") for key, part in raw.items()}


def secrets_in(raw: Any) -> list[str]:
    """Return every secret that ``with_secrets`` has put in."""
    if isinstance(raw, GivenSecret):
        return [raw.get_secret_value()]
    values = raw.values() if isinstance(raw, dict) else raw if isinstance(raw, list) else ()
    return [secret for part in values for secret in secrets_in(part)]
