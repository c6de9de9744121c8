"""Jira Cloud's REST API v3: an issue for each regression."""

from __future__ import annotations

import base64
from typing import Any, Literal

from pydantic import Field

from pipeline.delivery.alerts.markup import as_jira
from pipeline.delivery.alerts.message import Note, how_to_answer
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import OneAlert
from pipeline.delivery.alerts.targets.http import Http, TargetRefused


class Jira(OneAlert):
    """A project of Jira. Issues are found again by a label, comments by a property."""

    kind: Literal["jira"]
    url: str
    user: str
    token: Secret
    project: str = Field(pattern=r"^\w+$")
    issue_type: str = "Task"
    labels: tuple[str, ...] = ()
    resolved: str = ""
    replies: bool = False

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Open an issue, unless it exists; or comment on it, and move it if its regression is resolved."""
        label = f"smidgen-{note.alert.regression}"
        key = thread or await self._find(label, http)
        if not key:
            fields = {
                "project": {"key": self.project},
                "issuetype": {"name": self.issue_type},
                "summary": note.title[:255],
                "description": self._document(note),
                "labels": ["smidgen", label, *self.labels],
            }
            return str((await self._call(http, "POST", "/issue", json={"fields": fields}))["key"])
        if note.occasion != "detected":
            await self._comment(note, key, http)
            if note.occasion == "resolved" and self.resolved:
                await self._move(key, http)
        return key

    def _document(self, note: Note) -> dict[str, Any]:
        asks = self.replies and note.answerable
        return as_jira((*note.lines, how_to_answer()) if asks else note.lines)

    async def _find(self, label: str, http: Http) -> str:
        body = {"jql": f'labels = "{label}"', "maxResults": 1, "fields": ["key"]}
        answer = await self._call(http, "POST", "/search/jql", json=body)
        issues = answer.get("issues") or []
        return str(issues[0]["key"]) if issues else ""

    async def _comment(self, note: Note, key: str, http: Http) -> None:
        path, own = f"/issue/{key}/comment", f"{note.id}.{note.occasion}"
        params = {"expand": "properties", "orderBy": "-created"}
        there = (await self._call(http, "GET", path, params=params)).get("comments") or []
        if any(p.get("value") == own for comment in there for p in comment.get("properties") or []):
            return
        properties = [{"key": "smidgen", "value": own}]
        await self._call(http, "POST", path, json={"body": self._document(note), "properties": properties})

    async def _move(self, key: str, http: Http) -> None:
        path = f"/issue/{key}/transitions"
        transitions = (await self._call(http, "GET", path)).get("transitions") or []
        chosen = next(
            (transition["id"] for transition in transitions if transition.get("name") == self.resolved), None
        )
        if chosen is None:
            raise TargetRefused(f"{key} has no transition {self.resolved!r}")
        await self._call(http, "POST", path, json={"transition": {"id": chosen}})

    async def _call(self, http: Http, method: str, path: str, **options: Any) -> Any:
        login = base64.b64encode(f"{self.user}:{self.token.get_secret_value()}".encode()).decode()
        url = f"{self.url.rstrip('/')}/rest/api/3{path}"
        return await http.call(method, url, headers={"Authorization": f"Basic {login}"}, **options)
