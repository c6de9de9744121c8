"""Agent as a process of its own: publishes its service's windows as they become due, until it is killed.

Run as ``python -m loadgen.bench.faults.agent_process FOLDER FIRST``: the folder holds the
agent's job and its state. The process knows nothing of its predecessor: samples that the predecessor had not
published are lost, as those of a real agent are.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from agents.publishing.broker import connect, quiet_client
from agents.publishing.message_queue import MessageQueue
from agents.publishing.publisher import BackgroundPublisher
from pipeline.model import Outgoing
from pipeline.settings.config import Settings
from pipeline.settings.topics import load_topics

JOB, ALLOWED, STATE, DONE = "job", "allowed", "state", "done"

_TICK_S = 0.02
_MESSAGE_S = 0.01  # pause between two messages of a window: its hosts do not send all at once
_CLOSE_S = 900.0
_BUFFER = 1 << 30
_WIDTH = 12


@dataclass(frozen=True)
class AgentJob:
    """Windows that an agent publishes, and their destination."""

    batches: tuple[tuple[Outgoing, ...], ...]
    broker: str
    idempotent: bool
    gap_s: float
    """Seconds from one window to the next."""

    def to_json(self) -> bytes:
        """Return the job as JSON; the inverse of ``job_from_json``."""
        batches = [
            [
                {
                    "topic": message.topic,
                    "key": message.key,
                    "value": message.value.decode("latin-1"),
                    "headers": [(name, value.decode("latin-1")) for name, value in message.headers],
                }
                for message in batch
            ]
            for batch in self.batches
        ]
        return orjson.dumps({**vars(self), "batches": batches})


def job_from_json(text: bytes) -> AgentJob:
    """Return an agent's job from its JSON."""
    raw = orjson.loads(text)
    batches = tuple(
        tuple(
            Outgoing(
                topic=message["topic"],
                key=message["key"],
                value=message["value"].encode("latin-1"),
                headers=tuple((name, value.encode("latin-1")) for name, value in message["headers"]),
            )
            for message in batch
        )
        for batch in raw["batches"]
    )
    return AgentJob(**{**raw, "batches": batches})


@dataclass(frozen=True)
class AgentProgress:
    """Progress of an agent."""

    window: int = 0
    """The window that it publishes, or the next one."""
    offered: int = 0
    """Messages of this window that it handed to its publisher."""
    confirmed: int = 0
    """Least number of messages since its start that the broker has confirmed."""


def read_state(folder: Path) -> AgentProgress:
    """Return the state that an agent wrote last."""
    file = folder / STATE
    numbers = file.read_bytes().split() if file.exists() else []
    return AgentProgress(*map(int, numbers)) if len(numbers) == 3 else AgentProgress()


def main(folder: Path, first: int) -> None:
    """Publish the windows from ``first`` on, each once it is allowed."""
    job = job_from_json((folder / JOB).read_bytes())
    settings = Settings(broker=job.broker, idempotent_producer=job.idempotent)
    quiet_client(settings)
    buffer = MessageQueue(max_messages=_BUFFER, max_bytes=_BUFFER)
    publisher = BackgroundPublisher(lambda: connect(settings, load_topics()), buffer)
    publisher.start()
    state = os.open(folder / STATE, os.O_WRONLY | os.O_CREAT)
    sent = 0

    def say(window: int, offered: int) -> None:
        confirmed = max(0, sent - buffer.waiting.messages - 1)  # one may be under way
        os.pwrite(state, b"".join(b"%*d" % (_WIDTH, n) for n in (window, offered, confirmed)), 0)

    due = time.monotonic()
    for window in range(first, len(job.batches)):
        say(window, 0)
        while time.monotonic() < due or window >= int((folder / ALLOWED).read_text() or 0):
            time.sleep(_TICK_S)
        for number, message in enumerate(job.batches[window]):
            publisher.offer(message)
            sent += 1
            say(window, number + 1)
            time.sleep(_MESSAGE_S)
        due = max(due + job.gap_s, time.monotonic() - 10 * job.gap_s)
    say(len(job.batches), 0)
    delivery = publisher.close(_CLOSE_S)
    lost = delivery.dropped.messages + delivery.unsent.messages
    (folder / DONE).write_text(f"{delivery.published.messages} {lost}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
