"""GitLab's REST API: issues, comments on merge requests, commit statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from pipeline.delivery.alerts.targets.http import Http
from pipeline.delivery.alerts.targets.repository import Status

_LABEL = "smidgen"
_PATHS = {"issue": "issues", "merge request": "merge_requests"}


@dataclass(frozen=True, slots=True)
class GitLab:
    """A project of GitLab; see ``Forge``."""

    merge_request_mark: ClassVar[str] = "!"

    http: Http
    api: str
    repository: str
    token: str
    labels: tuple[str, ...] = ()

    async def find_issue(self, marker: str) -> str:
        """Look through the latest hundred issues that carry the label."""
        params = {"labels": _LABEL, "state": "all", "per_page": "100", "scope": "all"}
        issues = await self._call("GET", "/issues", params=params)
        return next((str(issue["iid"]) for issue in issues if marker in (issue.get("description") or "")), "")

    async def open_issue(self, title: str, text: str) -> str:
        """Open an issue with the label by which it is found again."""
        body = {"title": title[:255], "description": text, "labels": ",".join((_LABEL, *self.labels))}
        return str((await self._call("POST", "/issues", json=body))["iid"])

    async def close_issue(self, number: str) -> None:
        """Close it."""
        await self._call("PUT", f"/issues/{number}", json={"state_event": "close"})

    async def merge_request_of(self, commit: str) -> str:
        """Return the number of the merge request that was merged with a commit."""
        requests = await self._call("GET", f"/repository/commits/{commit}/merge_requests")
        merged = [
            merge_request for merge_request in requests if merge_request.get("state") == "merged"
        ] or requests
        return str(merged[0]["iid"]) if merged else ""

    async def comments(self, subject: Literal["issue", "merge request"], number: str) -> list[str]:
        """Return the texts of the latest hundred notes."""
        params = {"per_page": "100", "sort": "desc"}
        notes = await self._call("GET", f"/{_PATHS[subject]}/{number}/notes", params=params)
        return [str(note.get("body") or "") for note in notes]

    async def comment(self, subject: Literal["issue", "merge request"], number: str, text: str) -> None:
        """Add a note."""
        await self._call("POST", f"/{_PATHS[subject]}/{number}/notes", json={"body": text})

    async def set_status(self, commit: str, state: Status, text: str, link: str) -> None:
        """Set the status under the name ``smidgen``."""
        words = {"failure": "failed", "success": "success"}
        body = {"state": words[state], "name": "smidgen", "description": text}
        body |= {"target_url": link} if link else {}
        await self._call("POST", f"/statuses/{commit}", json=body)

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        url = f"{self.api.rstrip('/')}/projects/{quote(self.repository, safe='')}{path}"
        return await self.http.call(method, url, headers={"PRIVATE-TOKEN": self.token}, **options)
