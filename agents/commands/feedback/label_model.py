"""A language model that classes comments, behind an OpenAI-compatible address; off unless a user names one.

The prompt, ``label_prompt.txt``, is that of FBDetect §5.5.2. Comments are what people wrote, so an answer is
believed only if it is one of the statuses.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.analysis.feedback.labeller import Label, Status
from pipeline.model.errors import ConfigError, SmidgenError, file_errors

PROMPT = Path(__file__).with_name("label_prompt.txt")
TIMEOUT_S = 60.0
MOST_CHARACTERS = 20_000
"""Most characters of comments in one prompt; the last ones are used."""

MOST_ANSWER = 1_000_000
"""Most bytes of an answer that are read."""

_STATUSES: Mapping[str, Status] = {
    "cost shift": "cost shift",
    "expected": "will not fix",  # the paper's prompt parts the two for accuracy, and merges them afterwards
    "duplicate": "duplicate",
    "will not fix": "will not fix",
    "fixed": "fixed",
    "false positive": "false positive",
}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows none: comments and token go to the address that the user named, and to no other."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Return nothing, so that the redirection is an error."""


_OPENER = urllib.request.build_opener(_NoRedirects)


class ModelUnavailable(SmidgenError):
    """The address does not answer, or not as an OpenAI-compatible one does."""


@dataclass(frozen=True, slots=True)
class LabelModel:
    """Address and name of a model."""

    endpoint: str
    model: str
    token: str = ""

    @classmethod
    def of(cls, endpoint: str, model: str, token_file: Path | None = None) -> LabelModel:
        """Check the address and read the token.

        Raises:
            ConfigError: neither http nor https, or the file cannot be read.
        """
        if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).hostname:
            raise ConfigError(f"--endpoint: should be an http or https address, not {endpoint[:80]!r}")
        token = ""
        if token_file:
            with file_errors(token_file):
                token = token_file.read_text("utf-8").strip()
        return cls(endpoint.rstrip("/"), model, token)

    def label(self, comments: Sequence[str]) -> Label | None:
        """Return the class that the model gives, None if it cannot determine one.

        Raises:
            ModelUnavailable: the address does not answer, or not as it should.
        """
        answer = self._ask(prompt_of(comments))
        status = _STATUSES.get(answer.strip().strip(".\"'*").lower())
        return Label(status, "model", f"{self.model}: {answer.strip()[:80]}") if status else None

    def _ask(self, prompt: str) -> str:
        message = {"role": "user", "content": prompt}
        body = {"model": self.model, "temperature": 0, "messages": [message]}
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(
            f"{self.endpoint}/chat/completions", json.dumps(body).encode(), headers
        )
        try:
            with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
                reply = json.loads(answer.read(MOST_ANSWER))
            return str(reply["choices"][0]["message"]["content"])
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise ModelUnavailable(f"{self.endpoint}: {error}") from None
        except (KeyError, IndexError, TypeError):
            raise ModelUnavailable(f"{self.endpoint}: no answer of a chat in what it sent") from None


def prompt_of(comments: Sequence[str]) -> str:
    """Return the prompt about comments, oldest first; the last ones where they are too many."""
    quoted = "\n".join('"' + comment.replace('"', "'") + '"' for comment in comments)
    return PROMPT.read_text("utf-8").replace("{comments}", quoted[-MOST_CHARACTERS:])
