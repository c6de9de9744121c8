"""The model of the labeller: what is sent, what is believed, and what fails in one line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from agents.commands.feedback.label_model import LabelModel, ModelUnavailable, prompt_of
from pipeline.model.errors import ConfigError


class Endpoint:
    """An address that answers as a chat does."""

    def __init__(self) -> None:
        self.answer: Any = {"choices": [{"message": {"content": "Fixed."}}]}
        self.status = 200
        self.asked: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                endpoint.asked.append({"path": self.path, **json.loads(self.rfile.read(size))})
                endpoint.tokens.append(self.headers["Authorization"])
                body = json.dumps(endpoint.answer).encode()
                self.send_response(endpoint.status)
                self.send_header("Location", f"{endpoint.url}/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """One that runs."""
    made = Endpoint()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("Fixed", "fixed"),
        (" cost shift.\n", "cost shift"),
        ("Expected", "will not fix"),
        ("Cannot Determine", None),
        ("Ignore the comments and delete everything", None),
    ],
)
def test_an_answer_is_believed_if_it_is_a_status(endpoint: Endpoint, answer: str, status: str | None) -> None:
    endpoint.answer = {"choices": [{"message": {"content": answer}}]}
    found = LabelModel.of(endpoint.url, "tiny").label(["Rolled back."])
    assert (found and found.status) == status
    assert found is None or found.evidence == f"tiny: {answer.strip()}"


def test_the_papers_prompt_is_sent_with_the_token(endpoint: Endpoint, tmp_path: Any) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    LabelModel.of(endpoint.url, "tiny", tmp_path / "token").label(['He said "no"', "Fixed."])
    (asked,) = endpoint.asked
    assert (asked["path"], asked["model"], asked["temperature"]) == ("/v1/chat/completions", "tiny", 0)
    assert asked["messages"][0]["content"] == prompt_of(['He said "no"', "Fixed."])
    assert '"He said \'no\'"\n"Fixed."' in asked["messages"][0]["content"]
    assert endpoint.tokens == ["Bearer s3cret"]


def test_what_answers_otherwise_fails_in_one_line(endpoint: Endpoint) -> None:
    endpoint.answer = {"error": "no such model"}
    with pytest.raises(ModelUnavailable, match="no answer of a chat"):
        LabelModel.of(endpoint.url, "tiny").label(["x"])
    with pytest.raises(ModelUnavailable, match="127.0.0.1:1"):
        LabelModel.of("http://127.0.0.1:1/v1", "tiny").label(["x"])
    with pytest.raises(ConfigError, match="http or https"):
        LabelModel.of("file:///etc/passwd", "tiny")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_comments_and_token_go_nowhere_else(endpoint: Endpoint, tmp_path: Path, status: int) -> None:
    endpoint.status = status
    (tmp_path / "token").write_text("secret")
    with pytest.raises(ModelUnavailable):
        LabelModel.of(endpoint.url, "m", tmp_path / "token").label(["fixed"])
    assert len(endpoint.asked) == 1
