"""All further services of apprise, by their URLs (https://github.com/caronc/apprise)."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated, Literal

from pydantic import Field

from pipeline.delivery.alerts.markup import as_plain, unmentioned
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import Target
from pipeline.delivery.alerts.targets.http import Http, TargetRefused, TargetUnavailable


class AppriseUrls(Target):
    """Services of apprise. Its URLs hold passwords, so each is a secret."""

    kind: Literal["apprise"]
    urls: Annotated[tuple[Secret, ...], Field(min_length=1)]

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Notify every address; if one of them fails, all of them are notified again."""
        await asyncio.to_thread(self._notify, note)
        return ""

    def _notify(self, note: Note) -> None:
        import apprise  # half a second, for those who use it

        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it logs addresses
        notifier = apprise.Apprise()
        for number, url in enumerate(self.urls):
            if not notifier.add(url.get_secret_value()):
                raise TargetRefused(f"urls.{number}: apprise does not know such an address")
        # As text: what targets want as HTML or Markdown, apprise escapes.
        if not notifier.notify(
            title=unmentioned(note.title),  # some of them mention whom a text names
            body=unmentioned(as_plain(note.lines)),
            body_format=apprise.NotifyFormat.TEXT,
        ):
            raise TargetUnavailable("apprise: not every address took it")
