"""One repository of a forge, as targets speak to it."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

Status = Literal["failure", "success"]


class Forge(Protocol):
    """One repository of a forge. Issues and merge requests go by the numbers that people see."""

    merge_request_mark: ClassVar[str]
    """Prefix that distinguishes a merge request from the issue of its number; empty if they share numbers."""

    async def find_issue(self, marker: str) -> str:
        """Return the issue whose text holds a marker; empty if there is none."""

    async def open_issue(self, title: str, text: str) -> str:
        """Open an issue and return its number."""

    async def close_issue(self, number: str) -> None:
        """Close an issue."""

    async def merge_request_of(self, commit: str) -> str:
        """Return the merge request of a commit; empty if there is none."""

    async def comments(self, subject: Literal["issue", "merge request"], number: str) -> list[str]:
        """Return the texts of the latest comments."""

    async def comment(self, subject: Literal["issue", "merge request"], number: str, text: str) -> None:
        """Add a comment."""

    async def set_status(self, commit: str, state: Status, text: str, link: str) -> None:
        """Set the status of a commit, replacing the one before."""
