"""Flags that commands of trials share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import click

from pipeline.commands.request import FiniteRange
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError


class Pair(click.ParamType):
    """A name and its value, as NAME=VALUE.

    Args:
        form: How it is written, for help and errors.
        value: What stands behind the equals sign; without it a text. Of a number it is the last of them.
        empty: Whether the text may be empty.
    """

    def __init__(
        self, form: str = "NAME=VALUE", value: click.ParamType | None = None, *, empty: bool = True
    ) -> None:
        self.name = form
        self._value = value
        self._empty = empty

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Read both."""
        text = str(value)
        name, equals, given = text.rpartition("=") if self._value else text.partition("=")
        if not equals or not name or not (given or self._empty):
            self.fail(f"{value!r}: should be {self.name}", param, ctx)
        return name, self._value.convert(given, param, ctx) if self._value else given


METRIC_THRESHOLD = Pair("NAME=SHARE", FiniteRange(min=0, min_open=True))
"""A metric and its own threshold."""


def check_known(names: Iterable[str], metrics: Collection[str], path: Path) -> None:
    """Refuse flags about metrics that a file lacks.

    Raises:
        ConfigError: the metric, and those that there are.
    """
    for name in names:
        if name not in metrics:
            raise ConfigError(f"{path}: no metric {name!r}; it has {listed(sorted(metrics), name)}")
