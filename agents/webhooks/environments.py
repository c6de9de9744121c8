"""Memory of the commit that each environment was deployed with last: no webhook of a deployment has it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from agents.webhooks.forge_event import ForgeEvent
from agents.webhooks.mapping import Forge, WebhookSource

REMEMBERED = 10_000
"""Most environments that are remembered: some users make one for each branch."""

_Key = tuple[Forge, str, str]  # forge, repository, environment


class Environments:
    """Remembers, as long as the process lives, the last commit of each environment."""

    def __init__(self) -> None:
        self._last: OrderedDict[_Key, tuple[float, str]] = OrderedDict()

    def complete(self, event: ForgeEvent, source: WebhookSource) -> ForgeEvent:
        """Return a deployment's event with the commit that its environment had before, if that is known."""
        if event.occasion != "environment" or event.before:
            return event
        _, commit = self._last.get(_key(event, source), (0.0, ""))
        return replace(event, before=commit)

    def note(self, event: ForgeEvent, source: WebhookSource, *, now: float) -> None:
        """Remember a deployment that was published, unless what was deployed after it came before it."""
        if event.occasion != "environment" or not event.after:
            return
        key, time = _key(event, source), now if event.time is None else min(event.time, now)
        if key in self._last and self._last[key][0] > time:
            return
        self._last[key] = (time, event.after)
        self._last.move_to_end(key)
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)


def _key(event: ForgeEvent, source: WebhookSource) -> _Key:
    return source.forge, source.name, event.name
