"""Which commit each environment was deployed with last, which no webhook of a deployment tells."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from agents.webhooks.mapping import Forge, Source
from agents.webhooks.notice import Notice

REMEMBERED = 10_000
"""How many environments are remembered: some forges' users make one for each branch."""

_Key = tuple[Forge, str, str]  # forge, repository, environment


class Environments:
    """Remembers, as long as the process lives, what was deployed where."""

    def __init__(self) -> None:
        self._last: OrderedDict[_Key, tuple[float, str]] = OrderedDict()

    def complete(self, notice: Notice, source: Source) -> Notice:
        """Return a deployment's notice with the commit that its environment had before, if that is known."""
        if notice.occasion != "environment" or notice.before:
            return notice
        _, commit = self._last.get(_key(notice, source), (0.0, ""))
        return replace(notice, before=commit)

    def note(self, notice: Notice, source: Source, *, now: float) -> None:
        """Remember a deployment that was published, unless what was deployed after it came before it."""
        if notice.occasion != "environment" or not notice.after:
            return
        key, time = _key(notice, source), now if notice.time is None else min(notice.time, now)
        if key in self._last and self._last[key][0] > time:
            return
        self._last[key] = (time, notice.after)
        self._last.move_to_end(key)
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)


def _key(notice: Notice, source: Source) -> _Key:
    return source.forge, source.name, notice.name
