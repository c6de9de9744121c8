"""Profile files: the interface of a format, and the registry of those that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import ConfigError

AUTO = "auto"
"""Stands for the first format that recognises a file."""

Stack = tuple[str, ...]
"""Frames as the file spells them, root first."""


@dataclass(frozen=True, slots=True)
class StackSamples:
    """The stacks of a file with their samples, and what was left out."""

    stacks: Mapping[Stack, int]
    frameless: int = 0  # samples of threads that had no frame
    invalid: int = 0  # lines or records that hold no stack with its count
    first_invalid: str = ""  # where and what the first of them is

    @property
    def samples(self) -> int:
        """All samples that have a stack."""
        return sum(self.stacks.values())


class Format(Protocol):
    """A format of profile files. Nothing in a file is fatal: what makes no sense is counted as invalid."""

    name: str
    content: str
    """What a file of it holds, for a message about one that holds nothing of it."""

    def recognises(self, data: bytes) -> bool:
        """Return whether a file is of this format, by its beginning."""

    def parse(self, data: bytes) -> StackSamples:
        """Read a file; equal stacks are added up and stacks counted 0 times left out."""


_registry: dict[str, Format] = {}


def register(format_: Format) -> None:
    """Add a format; ``auto`` asks those that were added later first."""
    _registry[format_.name] = format_


def format_names() -> tuple[str, ...]:
    """Return the names of all formats, ``auto`` first."""
    return (AUTO, *_registry)


def find_format(name: str, data: bytes) -> Format:
    """Return a format by its name, for ``auto`` the one that recognises a file.

    Raises:
        ConfigError: there is no such format, or none that recognises the file.
    """
    if name == AUTO:
        for format_ in reversed(_registry.values()):
            if format_.recognises(data):
                return format_
        raise ConfigError(f"is of no format that is known here: {', '.join(_registry)}")
    if name not in _registry:
        raise ConfigError(f"--format: should be one of {', '.join(format_names())}, not {name!r}")
    return _registry[name]
