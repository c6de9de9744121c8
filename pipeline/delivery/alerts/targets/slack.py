"""Slack: an incoming webhook, or a bot's token with threads (https://docs.slack.dev)."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator

from pipeline.delivery.alerts.markup import as_plain, as_slack, slack_escaped
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import Target
from pipeline.delivery.alerts.targets.http import Http, TargetRefused, TargetUnavailable

_LATER = frozenset(
    {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}
)


class Slack(Target):
    """A channel. A webhook has no threads: follow-ups are messages of their own."""

    kind: Literal["slack"]
    webhook: Secret | None = None
    token: Secret | None = None
    channel: str = ""
    api: str = "https://slack.com/api"

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.webhook is None) == (self.token is None) or bool(self.channel) != bool(self.token):
            raise ValueError("give either webhook, or token and channel")
        return self

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Post a message, a reply where there is a thread."""
        message: dict[str, Any] = {
            "text": slack_escaped(f"{note.title}\n{as_plain(note.lines)}"),
            "blocks": as_slack(note.lines),
        }
        if self.webhook is not None:
            await http.call("POST", self.webhook.get_secret_value(), json=message)
            return ""
        message |= {"channel": self.channel, "unfurl_links": False}
        message |= {"thread_ts": thread, "reply_broadcast": note.occasion == "unanswered"} if thread else {}
        token = self.token.get_secret_value() if self.token else ""
        answer = await http.call(
            "POST",
            f"{self.api}/chat.postMessage",
            json=message,
            headers={"Authorization": f"Bearer {token}"},
        )
        if not isinstance(answer, dict) or not answer.get("ok"):
            error = str(answer.get("error", "no answer") if isinstance(answer, dict) else "no answer")[:100]
            raise (TargetUnavailable if error in _LATER else TargetRefused)(f"Slack: {error}")
        return thread or str(answer["ts"])
