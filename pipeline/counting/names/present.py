"""Present names: what subroutines are called now that had other names before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)  # without slots: what is derived of it is kept
class PresentNames:
    """Former names and the present one of each; used as a naming, whose symbols are the present names."""

    became: Mapping[str, str]

    def symbol(self, name: str) -> str:
        """Return the present name of a subroutine."""
        return self.became.get(name, name)

    def changed(self, names: Collection[str]) -> dict[str, str]:
        """Return the present name of each name that is a former one."""
        return {name: self.became[name] for name in names if name in self.became}

    def former(self, name: str) -> tuple[str, ...]:
        """Return the former names of a subroutine, the last one last."""
        return self._former.get(name, ())

    @cached_property
    def _former(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = defaultdict(list)
        for former, name in self.became.items():
            found[name].append(former)
        return {name: tuple(former) for name, former in found.items()}
