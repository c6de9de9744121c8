"""Flags that commands of trials share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import click

from pipeline.commands.options import FiniteRange
from pipeline.errors import ConfigError
from pipeline.listing import listed


class Threshold(click.ParamType):
    """A metric and its own threshold, as NAME=SHARE."""

    name = "NAME=SHARE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Read both."""
        name, equals, share = str(value).rpartition("=")
        if not equals or not name:
            self.fail(f"{value!r}: should be NAME=SHARE", param, ctx)
        return name, FiniteRange(min=0, min_open=True).convert(share, param, ctx)


class CovariateOf(click.ParamType):
    """A metric and what should explain it, as METRIC=COVARIATE."""

    name = "METRIC=COVARIATE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Read both."""
        metric, _, covariate = str(value).partition("=")
        if not metric or not covariate:
            self.fail(f"{value!r}: should be METRIC=COVARIATE", param, ctx)
        if metric == covariate:
            self.fail(f"{metric}: explains itself; the covariate should be another metric", param, ctx)
        return metric, covariate


def check_known(names: Iterable[str], metrics: Collection[str], path: Path) -> None:
    """Refuse what a flag says of a metric that a file has not.

    Raises:
        ConfigError: the metric, and those that there are.
    """
    for name in names:
        if name not in metrics:
            raise ConfigError(f"{path}: no metric {name!r}; it has {listed(sorted(metrics), name)}")
