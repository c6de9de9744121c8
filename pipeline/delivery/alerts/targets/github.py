"""GitHub's REST API: issues, comments on pull requests, commit statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipeline.delivery.alerts.targets.http import Http
from pipeline.delivery.alerts.targets.repository import Status

_LABEL = "smidgen"


@dataclass(frozen=True, slots=True)
class GitHub:
    """A repository of GitHub or of a GitHub Enterprise Server; see ``Forge``."""

    merge_request_mark: ClassVar[str] = ""

    http: Http
    api: str
    repository: str
    token: str
    labels: tuple[str, ...] = ()

    async def find_issue(self, marker: str) -> str:
        """Look through the latest hundred issues that carry the label: GitHub's search is minutes behind."""
        params = {"labels": _LABEL, "state": "all", "per_page": "100"}
        issues = await self._call("GET", "/issues", params=params)
        return next((str(issue["number"]) for issue in issues if marker in (issue.get("body") or "")), "")

    async def open_issue(self, title: str, text: str) -> str:
        """Open an issue with the label by which it is found again."""
        body = {"title": title[:256], "body": text, "labels": [_LABEL, *self.labels]}
        return str((await self._call("POST", "/issues", json=body))["number"])

    async def close_issue(self, number: str) -> None:
        """Close an issue as completed."""
        await self._call("PATCH", f"/issues/{number}", json={"state": "closed"})

    async def merge_request_of(self, commit: str) -> str:
        """Return the number of the pull request that was merged with a commit."""
        pulls = await self._call("GET", f"/commits/{commit}/pulls")
        merged = [pull for pull in pulls if pull.get("merged_at")] or pulls
        return str(merged[0]["number"]) if merged else ""

    async def comments(self, subject: Literal["issue", "merge request"], number: str) -> list[str]:
        """Return the texts of the first hundred comments."""
        answer = await self._call("GET", f"/issues/{number}/comments", params={"per_page": "100"})
        return [str(comment.get("body") or "") for comment in answer]

    async def comment(self, subject: Literal["issue", "merge request"], number: str, text: str) -> None:
        """Add a comment; a pull request is an issue here."""
        await self._call("POST", f"/issues/{number}/comments", json={"body": text})

    async def set_status(self, commit: str, state: Status, text: str, link: str) -> None:
        """Set the status under the context ``smidgen``."""
        body = {"state": state, "context": "smidgen", "description": text}
        body |= {"target_url": link} if link else {}
        await self._call("POST", f"/statuses/{commit}", json=body)

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        url = f"{self.api.rstrip('/')}/repos/{self.repository}{path}"
        return await self.http.call(method, url, headers=headers, **options)
