"""Validation of YAML files by pydantic models, with one line per mistake that names file and key."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError, InvalidMessage, file_errors


class StrictModel(BaseModel):
    """A frozen model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Model = TypeVar("Model", bound=BaseModel)

MAX_YAML_BYTES = 16 * 1024**2
MAX_YAML_DEPTH = 50
MAX_YAML_NODES = 2_000_000
"""Largest file, deepest nesting, and most values, those of an alias counted wherever it stands."""

_MERGE = "tag:yaml.org,2002:merge"
_INT64 = 2**63
_MESSAGE = 500  # characters of a complaint: a wrong value may be long
_KINDS = {
    **dict.fromkeys(("tuple_type", "list_type", "frozen_set_type"), "should be a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "should be a mapping"),
}
"""YAML's names of the kinds of values, by pydantic's names, which are Python's types."""

_WORDS = {
    "Field required": "is missing",
    "should be a valid integer": "should be a whole number",
    "should be a valid integer, got a number with a fractional part": "should be a whole number",
    "should be a valid number": "should be a number",
    "should be a valid boolean": "should be true or false",
    "should be a valid string": "should be text",
}
"""Pydantic's messages in plain words."""


class _CheckedLoader(yaml.SafeLoader):
    """Plain values alone, within bounds, and no key twice in a mapping, where YAML keeps the last unseen."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._nodes = 0
        self._weights: dict[yaml.Node, int] = {}  # values below a node, itself among them

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        alias = bool(self.check_event(yaml.AliasEvent))
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        before = self._nodes
        self._depth += 1
        if self._depth > MAX_YAML_DEPTH:
            raise _problem(f"nested deeper than {MAX_YAML_DEPTH}", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if not alias:
            self._nodes += 1
            self._weights[node] = self._nodes - before
        elif node in self._weights:
            self._nodes += self._weights[node]
        else:
            raise _problem("an alias stands within what it names", mark)
        if self._nodes > MAX_YAML_NODES:
            raise _problem(f"more than {MAX_YAML_NODES} values", mark)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep=deep)
        except (ValueError, OverflowError, AttributeError, LookupError):  # PyYAML of !!bool x
            raise _problem(f"not a {node.tag.rpartition(':')[2]}", node.start_mark) from None
        if isinstance(value, int) and not -_INT64 <= value < _INT64:
            raise _problem("a number beyond 64 bits", node.start_mark)
        if isinstance(value, str) and not _is_encodable(value):
            raise _problem("a text with half a character (a lone surrogate)", node.start_mark)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise _problem(f"key {key.value[:100]!r} stands twice", key.start_mark)
                seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(seen):
            raise _problem("two keys are the same value", node.start_mark)  # such as 1 and true
        return mapping


class WrongYaml(InvalidMessage):
    """YAML that cannot be read, and the line if it is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem = problem
        self.line = line


def parse_yaml(content: bytes) -> Any:
    """Parse YAML safely: plain values, at most MAX_YAML_DEPTH deep and MAX_YAML_NODES of them.

    Raises:
        WrongYaml: it is not YAML, has a key twice or is beyond these bounds.
    """
    try:
        return yaml.load(content.decode(), Loader=_CheckedLoader)  # a SafeLoader
    except UnicodeDecodeError:
        raise WrongYaml("not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        raise WrongYaml(
            str(error.problem), error.problem_mark.line + 1 if error.problem_mark else 1
        ) from None
    except yaml.YAMLError as error:
        raise WrongYaml(str(error).splitlines()[0]) from None
    except (ValueError, OverflowError):  # PyYAML's own, of an escape such as \UFFFFFFFF
        raise WrongYaml("an escape stands for no character") from None


def read_yaml(path: Path) -> Any:
    """Parse a YAML file safely: plain values, at most MAX_YAML_BYTES, MAX_YAML_DEPTH and MAX_YAML_NODES.

    Raises:
        ConfigError: it cannot be read, is not YAML, has a key twice or is beyond these bounds; the text has
            the file and line.
    """
    with file_errors(path), path.open("rb") as file:
        content = file.read(MAX_YAML_BYTES + 1)
    if len(content) > MAX_YAML_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_YAML_BYTES // 1024**2} MiB")
    try:
        return parse_yaml(content)
    except WrongYaml as error:
        where = path if error.line is None else f"{path}:{error.line}"
        raise ConfigError(f"{where}: {error.problem}") from None


def _problem(what: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(problem=what, problem_mark=mark)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def validate(model: type[Model], raw: object, where: str) -> Model:
    """Check ``raw`` against ``model``.

    Raises:
        ConfigError: ``where: key: what is wrong`` for the first wrong key.
    """
    try:
        return model.model_validate(raw, by_alias=True, by_name=False)  # one spelling per key
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        # A misspelt key also leaves the right one missing: what stands there is named, not what does not.
        first = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
        key = ".".join(str(part) for part in first["loc"])
        message = _plain(first["msg"])
        if first["type"] == "extra_forbidden":
            message = f"unknown key{_known_keys(model, first['loc'])}"
        elif first["type"] in _KINDS:
            message = _KINDS[first["type"]]
        elif first["type"] == "literal_error":
            message = f"should be {first['ctx']['expected']}"
        elif first["type"] == "too_short":
            message = f"should hold at least {first['ctx']['min_length']}"
        raise ConfigError(": ".join(part for part in (where, key, message[:_MESSAGE]) if part)) from None
    except (OverflowError, RecursionError) as error:  # of a validator that does sums, or compiles a pattern
        raise ConfigError(f"{where}: {str(error)[:_MESSAGE]}") from None


def _plain(message: str) -> str:
    """Rewrite a message of pydantic in the style of other messages."""
    text = message.removeprefix("Value error, ").removeprefix("Input ").partition(", unable to parse")[0]
    return _WORDS.get(text, text)


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Return in words which keys are allowed at a place in a file, and which of them was meant."""
    *above, key = location
    for candidate in _models_at(model, tuple(above)):
        names = sorted(_fields(candidate))
        near = get_close_matches(str(key), names, n=1)
        hint = f" (did you mean {near[0]}?)" if near and len(names) > 1 else ""
        return f"; known keys are {listed(names)}{hint}"
    return ""


def _models_at(annotation: Any, location: tuple[int | str, ...]) -> Iterator[type[BaseModel]]:
    """Yield the models of what stands at a place within a type, through unions, lists and mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not location:
            yield annotation
        elif location[0] in (fields := _fields(annotation)):
            yield from _models_at(fields[str(location[0])], location[1:])
        return
    is_same_location = get_origin(annotation) in (Union, UnionType, Annotated)
    if is_same_location or location:
        for argument in get_args(annotation):
            yield from _models_at(argument, location if is_same_location else location[1:])


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Return the type of each key, by its spelling in a file."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
