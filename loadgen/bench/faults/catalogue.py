"""Faults by name: their strikes and number, their load, and the loss that they may cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, TypeAdapter

from loadgen.bench.faults import strikes
from loadgen.bench.faults.load import Shape
from loadgen.bench.faults.strikes import Strike
from pipeline.files.validation import read_yaml


def _strike(strike: object) -> object:
    return getattr(strikes, strike) if isinstance(strike, str) else strike


@dataclass(frozen=True)
class Fault:
    """One kind of trouble."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    strike: Annotated[Strike, BeforeValidator(_strike)]
    times: int
    about: str
    gap_s: tuple[float, float] = (1.0, 9.0)
    """Least and largest pause before each strike, in seconds."""
    lasts_s: float = 0.0
    """Seconds that a strike lasts: exactly for some strikes, about for others."""
    windows_a_strike: float = 8.0
    shape: Mapping[str, Any] = field(default_factory=dict)
    """Differences from the plain load."""
    clocks: tuple[float, ...] = ()
    proxied: bool = False
    small_disk: bool = False
    former: bool = False
    """Whether the workers are of a former version at first; each stage is replaced once."""
    durable: bool = False
    """Whether the broker's log must outlive it: not the embedded one's."""
    malformed: int = 0
    agents: bool = False
    """Whether agents are processes of their own."""
    stages: bool = False
    """Whether strikes are on workers: each stage in turn."""
    kinds: tuple[str, ...] = ()
    """Kinds that a strike draws from."""
    idempotent: bool = False
    """Whether agents need idempotent producers, which the embedded broker refuses."""
    live: bool = False
    """Whether the data end about now, so that clocks matter."""

    def planned(self, times: int | None) -> Fault:
        """Return the fault with another number of strikes, if the fault strikes at all."""
        fixed = self.strike in (strikes.odd_load, strikes.malformed_load, strikes.roll)
        return self if times is None or fixed else replace(self, times=times)

    def load_shape(self, now: float) -> Shape:
        """Return the load for all strikes: long enough for work to be under way throughout."""
        windows = max(120, round(self.times * self.windows_a_strike))
        shape = Shape(windows=windows, **self.shape)
        if not self.live:
            return shape
        start = (now - windows * 300.0) // 86_400 * 86_400
        return replace(shape, windows=round((now // 600 * 600 - start) / 300), start=start)

    @property
    def seconds(self) -> float:
        """Approximate duration of the strikes, which the load should last for."""
        return self.times * (sum(self.gap_s) / 2 + self.lasts_s)


@cache
def read_catalogue() -> Mapping[str, Fault]:
    """Return the faults of catalogue.yaml by name, in its order."""
    content = read_yaml(Path(__file__).with_name("catalogue.yaml"))
    return TypeAdapter(dict[str, Fault]).validate_python(content)
