"""The agent against a real process, a real sampler and a real broker."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from agents.publishing.broker import connect
from agents.publishing.message_queue import MessageQueue
from agents.publishing.pending import Tally
from agents.publishing.publisher import BackgroundPublisher
from pipeline.embedded.broker import EmbeddedBroker
from pipeline.kafka import apply_topics
from pipeline.messages.inputs import decode_change
from pipeline.messages.measurements import decode_profile
from pipeline.model import Change, Outgoing, Profile
from pipeline.settings.config import load_settings
from pipeline.settings.topics import load_topics
from tests.e2e.worker_process import is_idempotent

pytestmark = pytest.mark.e2e

TIMEOUT_S = 240.0

BURNER = """
import sys, time
from agents.profiles.annotate import annotate

class Basket:
    def total(self, n):
        return sum(i * i for i in range(n))

def rare(n):
    return Basket().total(n)

handle = annotate(Basket().total, endpoint="/buy")

def serve(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(50):  # the clock is a call of the system, in which a busy machine lets others run
            handle(20_000)
            rare(1_000)

serve(float(sys.argv[1]))
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def burner(tmp_path: Path) -> Path:
    """A program that burns so many seconds of CPU: ``burner.py SECONDS EXIT_CODE``."""
    path = tmp_path / "burner.py"
    path.write_text(textwrap.dedent(BURNER))
    return path


@pytest.fixture
def agent(broker: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``smidgen agent run`` against the broker."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from pipeline.cli import main; main()", "agent", "run", *arguments]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(broker))
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def environment(broker: str) -> dict[str, str]:
    return {**os.environ, "SMIDGEN_BROKER": broker, "SMIDGEN_IDEMPOTENT_PRODUCER": str(is_idempotent(broker))}


def smidgen(broker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", *arguments]
    return subprocess.run(
        command, env=environment(broker), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def consume(broker: str, topic: str, decode: Callable[[bytes], Any]) -> list[Any]:
    """Read a topic from its beginning to its present end."""

    async def read() -> list[Any]:
        # With "latest", an answer that is under way would be taken after seek_to_beginning all the same.
        consumer = AIOKafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest")
        await consumer.start()
        try:
            partitions = [TopicPartition(topic, p) for p in await consumer._client._wait_on_metadata(topic)]
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            await consumer.seek_to_beginning()
            found = []
            while any([await consumer.position(p) < end for p, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [decode(record.value) for record in records]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(read(), TIMEOUT_S))


def profiles_of(broker: str, service: str) -> list[Profile]:
    found = [profile for profile in consume(broker, "profiles", decode_profile) if profile.service == service]
    return sorted(found, key=lambda profile: profile.start)


def changes_of(broker: str, service: str) -> list[Change]:
    return [change for change in consume(broker, "changes", decode_change) if change.service == service]


def inclusive(profiles: list[Profile]) -> Counter[str]:
    """Count samples per frame, once a stack."""
    counts: Counter[str] = Counter()
    for profile in profiles:
        for index, (a, b) in enumerate(zip(profile.stack_starts, profile.stack_starts[1:], strict=False)):
            for frame in set(profile.stack_frames[a:b].tolist()):
                counts[profile.frames[frame]] += int(profile.counts[index])
    return counts


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_command_is_sampled_from_start_to_end(
    broker: str, service_name: str, burner: Path, agent: Callable[..., subprocess.Popen[str]]
) -> None:
    began = time.time()
    process = agent(
        *("--service", service_name, "--host", "h1", "--interval", "1s", "--label", "zone=a"),
        *("--release", "v7", "--", sys.executable, str(burner), "4", "0"),
    )
    _, err = process.communicate(timeout=TIMEOUT_S)
    ended = time.time()
    assert process.returncode == 0, err
    profiles = profiles_of(broker, service_name)

    assert len(profiles) >= 3
    assert {(p.host, p.release, p.labels["zone"]) for p in profiles} == {("h1", "v7", "a")}
    for before, after in zip(profiles, profiles[1:], strict=False):
        assert before.end == after.start, "sampled without a gap"
    assert len(profiles) <= ended - began + 2, "one a second"
    assert began < profiles[0].start < profiles[-1].end < ended

    counts = inclusive(profiles)
    total = sum(int(profile.counts.sum()) for profile in profiles)
    served = counts["burner.serve"]  # a busy machine takes its time over what comes before
    assert 100 < served <= counts["burner.<module>"] <= total
    assert counts["burner.Basket.total"] > 0.8 * served, "the hot subroutine dominates"
    assert counts["endpoint=/buy"] > 0.8 * counts["burner.Basket.total"]
    assert 0 < counts["burner.rare"] < 0.3 * served
    assert any(a.value == "/buy" for profile in profiles for a in profile.annotations)
    assert not any("<genexpr>" in name or "<locals>" in name for name in counts)
    assert f"({total:,} samples)" in err


def test_the_failure_of_a_command_is_the_agents(
    broker: str, service_name: str, burner: Path, agent: Callable[..., subprocess.Popen[str]]
) -> None:
    process = agent("--service", service_name, "--", sys.executable, str(burner), "1", "3")
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert "failed with exit code 3" in err
    assert profiles_of(broker, service_name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_agent_and_its_command_in_order(
    number: signal.Signals,
    broker: str,
    service_name: str,
    burner: Path,
    agent: Callable[..., subprocess.Popen[str]],
) -> None:
    process = agent(
        *("--service", service_name, "--interval", "1s", "--subprocesses"),
        *("--", "sh", "-c", f"echo $$ > {burner}.pid; exec {sys.executable} {burner} 600 0"),
    )
    wait_until(lambda: len(profiles_of(broker, service_name)) >= 1)
    before = len(profiles_of(broker, service_name))
    time.sleep(0.5)  # so that some is sampled that is not published
    process.send_signal(number)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    pid = int(Path(f"{burner}.pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert len(profiles_of(broker, service_name)) > before, "what was sampled last is published too"


def test_a_running_process_is_sampled_and_goes_on(
    broker: str, service_name: str, burner: Path, agent: Callable[..., subprocess.Popen[str]]
) -> None:
    with subprocess.Popen([sys.executable, str(burner), "600", "0"]) as target:
        try:
            process = agent(
                "--service", service_name, "--interval", "1s", "--native", "--pid", str(target.pid)
            )
            wait_until(lambda: len(profiles_of(broker, service_name)) >= 2)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0
            assert target.poll() is None
        finally:
            target.kill()
    assert "burner.Basket.total" in inclusive(profiles_of(broker, service_name))


def test_what_is_not_python_cannot_be_sampled(
    broker: str, service_name: str, agent: Callable[..., subprocess.Popen[str]]
) -> None:
    with subprocess.Popen(["sleep", "600"]) as target:
        try:
            process = agent("--service", service_name, "--kernel", "py-spy", "--pid", str(target.pid))
            _, err = process.communicate(timeout=TIMEOUT_S)
        finally:
            target.kill()
    assert process.returncode == 2
    assert err.count("\n") == 1
    assert f"cannot sample process {target.pid}" in err


def test_files_are_imported(broker: str, service_name: str, tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    path.write_text("main;f 3\nmain;g 4\nnonsense\n")
    done = smidgen(
        broker, "agent", "import", str(path), "--service", service_name, "--start", "2026-01-01T00:00:00Z"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "7 samples in 2 stacks; 1 invalid line" in done.stdout
    (profile,) = profiles_of(broker, service_name)
    assert inclusive([profile]) == {"main": 7, "f": 3, "g": 4}
    assert (profile.start, profile.end) == (1_767_225_600.0, 1_767_225_660.0)


def test_changes_are_published_by_command_and_by_the_agent(
    broker: str, service_name: str, tmp_path: Path, agent: Callable[..., subprocess.Popen[str]]
) -> None:
    repository = tmp_path / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    for number in range(2):
        (repository / "shop.py").write_text(f"def price():\n    return {number}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", f"Commit {number}"], check=True)
    done = smidgen(
        broker, "changes", "--repo", str(repository), "--service", service_name, "--time", "1700000000"
    )
    assert (done.returncode, done.stderr) == (0, "")
    command = (sys.executable, "-c", "import time; time.sleep(0.5)")
    began = time.time()
    process = agent("--service", service_name, "--changes", str(repository), "--", *command)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    first, second = sorted(changes_of(broker, service_name), key=lambda change: change.time)
    assert (first.title, first.subroutines, first.time) == ("Commit 1", ("shop.price",), 1_700_000_000.0)
    assert second.id == first.id
    assert began <= second.time <= time.time()


def test_an_outage_of_the_broker_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    """The broker freezes; the buffer fills; when it goes on, the newest messages arrive in order."""
    topics = load_topics()
    with EmbeddedBroker() as own:
        asyncio.run(apply_topics(own.url, topics))
        settings = load_settings({"broker": own.url, "idempotent_producer": False}, environ={})
        buffer = MessageQueue(max_messages=5, max_bytes=10_000)
        publisher = BackgroundPublisher(lambda: connect(settings, topics), buffer)
        publisher.start()
        publisher.offer(message(0), samples=1)
        wait_until(lambda: buffer.waiting.messages == 0 and len(received(own.url)) == 1)
        freeze(own.pid)
        publisher.offer(message(1), samples=1)
        wait_until(lambda: buffer.waiting.messages == 0)  # it is in hand, and does not arrive
        for number in range(2, 12):
            publisher.offer(message(number), samples=1)
        assert buffer.waiting.messages == 5
        wait_until(lambda: "sampling goes on" in caplog.text)
        os.kill(own.pid, signal.SIGCONT)
        delivery = publisher.close(timeout_s=TIMEOUT_S)
        assert (delivery.published, delivery.dropped, delivery.unsent) == (Tally(7, 7), Tally(5, 5), Tally())
        assert "dropped meanwhile: 5 messages (5 samples)" in caplog.text
        assert received(own.url) == [0, 1, 7, 8, 9, 10, 11]


def freeze(pid: int) -> None:
    """Suspend a process and wait for all its threads: on a busy machine they go on answering for a while."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    wait_until(lambda: all(state_of(task) == "T" for task in tasks.iterdir()))


def state_of(task: Path) -> str:
    return (task / "stat").read_text("utf-8").rpartition(")")[2].split()[0]


def message(number: int) -> Outgoing:
    return Outgoing("profiles", "s/h", str(number).encode())


def received(broker: str) -> list[int]:
    return [int(value) for value in consume(broker, "profiles", bytes)]
