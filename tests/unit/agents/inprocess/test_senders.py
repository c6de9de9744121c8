from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agents.inprocess.messages import Message
from agents.inprocess.options import read_options
from agents.inprocess.outbox import Outbox, TryLater
from agents.inprocess.senders import check_target, open_sender

WAIT_S = 60.0


class Receiver:
    """Answers each attempt by the next status; the last one repeats."""

    def __init__(self, statuses: list[int]) -> None:
        self.statuses = statuses
        self.taken: list[bytes] = []
        self.requests: list[tuple[str, str | None, str | None]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = self.headers
                receiver.requests.append((self.path, headers["Content-Type"], headers["Authorization"]))
                status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
                if status == 200:
                    receiver.taken.append(body)
                self.send_response(status)
                self.send_header("Content-Length", "3")
                self.end_headers()
                self.wfile.write(b"no\n")
                if status == 200 and len(receiver.taken) == 1:
                    self.close_connection = True  # without a word, as servers do with idle connections

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver(request: pytest.FixtureRequest) -> Iterator[Receiver]:
    one = Receiver(list(request.param))
    yield one
    one.close()


def send(url: str, values: list[bytes], monkeypatch: pytest.MonkeyPatch, **environ: str) -> None:
    monkeypatch.setattr("agents.inprocess.outbox.FIRST_RETRY_S", 0.01)
    sender = open_sender(read_options({"service": "shop", "send_to": url}, environ))
    for value in values:
        sender.offer(Message(value, 1))
    sender.close(WAIT_S)


AWAY = "not sent, tried again in the background: 127.0.0.1: 503 no"
BACK = "sent again; 0 samples were dropped meanwhile"
REFUSED = "a message of 1 samples was refused: 127.0.0.1: 400 no"


@pytest.mark.parametrize(
    ("receiver", "taken", "said"),
    [
        pytest.param([200], [b"1", b"2", b"3"], [], id="posted in order"),
        pytest.param([503, 429, 200], [b"1", b"2", b"3"], [AWAY, BACK], id="sent again"),
        pytest.param([400, 200], [b"2", b"3"], [REFUSED], id="refused"),
    ],
    indirect=["receiver"],
)
def test_messages_are_posted_until_they_are_taken_or_refused(
    receiver: Receiver,
    taken: list[bytes],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    send(receiver.url + "/in/", [b"1", b"2", b"3"], monkeypatch, SMIDGEN_HTTP_TOKEN="abc")
    assert receiver.taken == taken
    assert set(receiver.requests) == {("/in/profiles", "application/json", "Bearer abc")}
    assert caplog.messages == said


@pytest.mark.parametrize(
    "to", ["", "gateway", "ftp://x", "http://", "kafka://", "file:", "http://x:99999999", "stdout"]
)
def test_an_address_that_makes_no_sense_is_refused(to: str) -> None:
    with pytest.raises(ValueError, match="^send_to: "):
        check_target(to)
    parts = check_target("https://user:secret@gateway")
    assert (parts.username, parts.password) == ("user", "secret")


def test_a_file_gets_a_line_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    send(f"file:{tmp_path}/profiles.jsonl", [b"1", b"2"], monkeypatch)
    assert (tmp_path / "profiles.jsonl").read_bytes() == b"1\n2\n"


def test_what_waits_is_bounded_and_the_oldest_goes_first(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    back = threading.Event()
    tried = threading.Event()
    taken: list[bytes] = []

    def deliver(value: bytes) -> None:
        tried.set()
        if not back.is_set():
            raise TryLater("away")
        taken.append(value)

    outbox = Outbox(deliver, max_bytes=3, first_retry_s=0.01)
    for value in (b"1", b"2", b"3", b"4", b"5"):
        outbox.offer(Message(value, 7))
    assert tried.wait(WAIT_S)
    back.set()
    outbox.close(WAIT_S)
    assert taken == [b"3", b"4", b"5"]
    assert caplog.messages[-1] == "sent again; 14 samples were dropped meanwhile"


def test_the_end_is_not_waited_for_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    def deliver(_value: bytes) -> None:
        raise TryLater("away", after_s=600.0)

    outbox = Outbox(deliver, first_retry_s=0.05)
    outbox.offer(Message(b"1", 7))
    end = time.monotonic() + WAIT_S
    while not caplog.messages and time.monotonic() < end:  # that it is away is said before
        time.sleep(0.01)
    outbox.close(0.2)
    assert caplog.messages[-1] == "7 samples were not sent"
    outbox._thread.join(WAIT_S)  # about as long as the end was waited for
    assert not outbox._thread.is_alive()


def test_a_function_that_fails_loses_its_message_alone(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[bytes] = []

    def take(value: bytes) -> None:
        if value == b"1":
            raise KeyError("x")
        taken.append(value)

    sender = open_sender(read_options({"service": "shop", "send_to": take}, {}))
    for value in (b"1", b"2"):
        sender.offer(Message(value, 1))
    sender.close(WAIT_S)
    assert taken == [b"2"]
    assert caplog.messages == ["a message of 1 samples was refused: KeyError: 'x'"]
