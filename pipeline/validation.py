"""Reads YAML files against pydantic models, so that a mistake is named by file and key in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.errors import ConfigError


class StrictModel(BaseModel):
    """A frozen model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Model = TypeVar("Model", bound=BaseModel)

_MERGE = "tag:yaml.org,2002:merge"


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping, where YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def read_yaml(path: Path) -> Any:
    """Parse a YAML file safely.

    Raises:
        ConfigError: it cannot be read, is not YAML or has a key twice; the text has the file and line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)  # a SafeLoader
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from None


def validate(model: type[Model], raw: object, where: str) -> Model:
    """Check ``raw`` against ``model``.

    Raises:
        ConfigError: ``where: key: what is wrong`` for the first wrong key.
    """
    try:
        return model.model_validate(raw, by_alias=True, by_name=False)  # one spelling per key
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = f"unknown key; known keys are {', '.join(sorted(_keys_at(model, first['loc'])))}"
        raise ConfigError(": ".join(part for part in (where, key, message) if part)) from None


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the keys allowed where an unknown one stands, following nested models."""
    current = model
    for step in location[:-1]:
        field = current.model_fields.get(str(step))
        annotation: Any = field.annotation if field else None
        options = [annotation, *getattr(annotation, "__args__", ())]
        nested = [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
        if not nested:
            break
        current = nested[0]
    return [field.alias or name for name, field in current.model_fields.items()]
