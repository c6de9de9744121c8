"""Interface of targets: options, as the file of rules spells them, and one way to send."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.schedule import Digest, Limit, QuietHours
from pipeline.delivery.alerts.targets.http import Http, TargetRefused
from pipeline.files.validation import StrictModel


class Unsuitable(TargetRefused):
    """A target cannot show this alert, such as a commit's status without a suspected commit."""


class Target(StrictModel):
    """A target with its options; a kind of target adds its own and ``send``."""

    bundles: ClassVar[bool] = True
    """Whether several alerts fit into one message: a digest, and alerts beyond a limit."""

    kind: str
    quiet: tuple[QuietHours, ...] = ()
    digest: Digest | None = None
    limit: Limit | None = None
    follow: bool = True

    @model_validator(mode="after")
    def _single(self) -> Self:
        if self.digest and not self.bundles:
            raise ValueError(f"digest: {self.kind} takes single alerts only")
        return self

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Send a note into a conversation, or begin one where ``thread`` is empty, and return its name.

        A note keeps its id when it is sent again; a target that recognises the id shows it once.

        Raises:
            TargetUnavailable: it did not take it now, so it is sent once more later.
            TargetRefused: it never will.
        """
        raise NotImplementedError


class OneAlert(Target):
    """A target that has a state for each regression: every message is about one."""

    bundles: ClassVar[bool] = False
