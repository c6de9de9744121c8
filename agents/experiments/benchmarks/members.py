"""Members of JSON documents that are not trusted, each of the type that is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

_ADDRESS = re.compile(r"0x[0-9a-f]+")
"""Address of an object in its ``repr``, which is another one in each run."""


def labels_of(document: object, prefix: str = "") -> dict[str, str]:
    """Return the texts, numbers and lists of an object as labels; those of inner objects as ``outer.name``.

    What is nested deeper than three objects is left out.

    >>> labels_of({"cpu": {"count": 8}, "args": ["-Xmx1g"], "load": None})
    {'cpu.count': '8', 'args': '-Xmx1g'}
    """
    labels: dict[str, str] = {}
    for name, value in document.items() if isinstance(document, dict) else ():
        if isinstance(value, dict):
            labels |= labels_of(value, f"{prefix}{name}.") if prefix.count(".") < 2 else {}
        elif isinstance(value, list) and value and not any(isinstance(item, dict | list) for item in value):
            labels[f"{prefix}{name}"] = _ADDRESS.sub("0x", " ".join(map(str, value)))
        elif isinstance(value, str | int | float) and value != "":
            labels[f"{prefix}{name}"] = _ADDRESS.sub("0x", str(value))
    return labels


def objects(values: object) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a list; an entry that is no object becomes an empty one."""
    for value in values if isinstance(values, list) else []:
        yield value if isinstance(value, dict) else {}


def json_object(line: str) -> Mapping[str, Any]:
    """Return the JSON object of a line, empty if it holds none."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def part(document: object, name: str) -> Mapping[str, Any]:
    """Return an object within an object, empty if there is none."""
    member = document.get(name) if isinstance(document, dict) else None
    return member if isinstance(member, dict) else {}


def with_parameters(name: object, parameters: object) -> object:
    """Return a benchmark's name with its parameters as ``name[a=1,b=2]``."""
    if not (isinstance(name, str) and isinstance(parameters, dict) and parameters):
        return name
    return f"{name}[{','.join(f'{key}={value}' for key, value in sorted(parameters.items()))}]"


def text_of(value: object) -> str:
    """Return a value that is a text, and an empty one for others."""
    return value if isinstance(value, str) else ""
