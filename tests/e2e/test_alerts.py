"""Alerts as processes over a real broker and store: each event once, even if the processes are killed."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pipeline.kafka import Producer, ProducerOptions, as_broker
from pipeline.model import Outgoing
from pipeline.model.clock import system_clock
from tests.e2e.worker_process import TOPICS, BrokerUrl, wait_until
from tests.support.alert_events import detected, encoded, resolved, updated, verdict
from tests.support.alert_receivers import HttpReceiver, Reply, Request

_MAIN = """
from pipeline.kafka import member
from pipeline.cli import main
member.SESSION_S, member.REBALANCE_S = 6.0, 8.0  # the shortest that brokers allow: a test waits for them
main()
"""


class AlertsProcess:
    """``smidgen alerts run`` as a process of its own."""

    def __init__(self, broker: str, store: str, rules: Path, *more: str) -> None:
        self._log = tempfile.NamedTemporaryFile("w+", prefix="smidgen-alerts-", suffix=".log")  # noqa: SIM115
        command = [sys.executable, "-c", _MAIN, "alerts", "run", "--rules", str(rules), *more]
        self.process = subprocess.Popen(
            [*command, "--broker", broker, "--store", store], stdout=self._log, stderr=self._log
        )

    @property
    def log(self) -> str:
        """Everything it has logged so far."""
        return Path(self._log.name).read_text()

    def wait_ready(self, partitions: str = r"alerts of") -> None:
        """Wait until it has its partitions."""
        wait_until(lambda: partitions in self.log, "partitions", self)

    def kill(self) -> None:
        """End it as the kernel would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(150)


class SlackApi:
    """Takes messages of a bot: each that begins a thread has a time stamp of its own."""

    def __init__(self, running: ExitStack) -> None:
        self.away = False
        self.http = running.enter_context(HttpReceiver(self._reply))

    def _reply(self, request: Request) -> Reply:
        if self.away:
            return 503, {}
        return 200, {"ok": True, "ts": f"{len(self.http.requests)}.0"}

    @property
    def taken(self) -> list[Any]:
        """Messages that it took, in order."""
        return [] if self.away else self.http.sent("POST", "/chat.postMessage")


@pytest.fixture
def running() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def slack(running: ExitStack) -> SlackApi:
    return SlackApi(running)


@pytest.fixture
def own_store(store_dsn: str) -> str:
    """A database that holds nothing of other tests."""
    return f"{store_dsn}/alerts_{uuid4().hex[:12]}"


def write_rules(path: Path, slack: SlackApi, **rules: Any) -> Path:
    """Write rules that send everything to one channel."""
    (path / "token").write_text("xoxb-secret-token")
    target = {"kind": "slack", "channel": "#perf", "token": {"file": "token"}, "api": slack.http.url}
    file = path / "alerts.yaml"
    file.write_text(json.dumps({"targets": {"chat": target}, "rules": [{"to": ["chat"]}], **rules}))
    return file


def publish(broker: str, *events: dict[str, Any]) -> None:
    """Publish events, each under its service."""

    async def send() -> None:
        options = ProducerOptions(idempotent=False)
        producer = await Producer.open(as_broker(broker), TOPICS, options)
        try:
            for event in events:
                topic = "trial-verdicts" if "experiment" in event["data"] else "regressions"
                await producer.send(Outgoing(topic, event["data"]["service"], encoded(event)))
        finally:
            await producer.close()

    asyncio.run(send())


def several(first: int, end: int) -> list[dict[str, Any]]:
    """Return detected events of ten services, as of now."""
    now = system_clock()
    return [detected(f"r{n}", service=f"shop-{n % 10}", metric=f"m{n}", time=now) for n in range(first, end)]


def titles(slack: SlackApi) -> Counter[str]:
    """How often each regression was the subject of a message."""
    return Counter(message["text"].split()[1] for message in slack.taken)


def test_each_event_is_sent_once_over_kills_and_restarts(
    own_broker: BrokerUrl, own_store: str, slack: SlackApi, tmp_path: Path
) -> None:
    rules = write_rules(tmp_path, slack)
    first = AlertsProcess(own_broker, own_store, rules, "--health", "127.0.0.1:0")
    first.wait_ready()
    (address,) = re.findall(r"health: (http://\S+)", first.log)
    with urllib.request.urlopen(f"{address}/ready", timeout=60) as answer:
        assert json.load(answer)["checks"]["alerts: assignment"] == "ok"
    publish(own_broker, *several(0, 10))
    wait_until(lambda: len(slack.taken) >= 10, "ten messages", first)
    wait_until(lambda: first.log.count("sent ") >= 10, "ten kept", first)
    second = AlertsProcess(own_broker, own_store, rules)
    second.wait_ready("alerts of 3 partitions")
    first.kill()
    publish(own_broker, *several(5, 20))  # some of them once more, as after a crash of the pipeline
    wait_until(lambda: len(titles(slack)) >= 20, "twenty messages", second)
    publish(own_broker, *several(20, 21))
    wait_until(lambda: len(titles(slack)) >= 21, "the last message", second)
    assert second.stop() == 0
    assert set(titles(slack).values()) == {1}
    assert "xoxb-secret-token" not in first.log + second.log


def test_two_processes_share_the_events_and_send_each_once(
    own_broker: BrokerUrl, own_store: str, slack: SlackApi, tmp_path: Path
) -> None:
    rules = write_rules(tmp_path, slack)
    first = AlertsProcess(own_broker, own_store, rules)
    first.wait_ready()
    publish(own_broker, *several(0, 20))
    second = AlertsProcess(own_broker, own_store, rules)  # a rebalance amid it
    second.wait_ready("alerts of 3 partitions")
    first.wait_ready("alerts of 3 partitions")
    publish(own_broker, *several(20, 60))
    wait_until(lambda: len(titles(slack)) >= 60, "sixty", first, second)
    shares = [process.log.count("sent ") for process in (first, second)]
    assert second.stop() == 0  # what it has goes to the other one
    publish(own_broker, *several(60, 70))
    wait_until(lambda: len(titles(slack)) >= 70, "seventy", first)
    assert first.stop() == 0
    assert set(titles(slack).values()) == {1}
    assert min(shares) > 0


def test_verdicts_on_trials_are_sent_once_beside_regressions(
    own_broker: BrokerUrl, own_store: str, slack: SlackApi, tmp_path: Path
) -> None:
    rules = write_rules(tmp_path, slack, rules=[{"to": ["chat"], "events": ["regression", "trial-fail"]}])
    now = system_clock()
    first = AlertsProcess(own_broker, own_store, rules)
    first.wait_ready()
    publish(own_broker, detected("r1", time=now), verdict("pr-7", time=now))
    wait_until(lambda: first.log.count("sent ") >= 2, "two messages", first)
    first.kill()
    second = AlertsProcess(own_broker, own_store, rules)
    second.wait_ready()
    publish(own_broker, verdict("pr-7", time=now), verdict("pr-8", "not enough", time=now))
    publish(own_broker, verdict("pr-7", "pass", revision=2, time=now + 1))
    wait_until(lambda: len(slack.taken) >= 3, "a third message", second)
    assert second.stop() == 0
    about = [message["text"].splitlines()[0] for message in slack.taken]
    assert sorted(about[:2]) == [
        "shop: experiment pr-7 fails: cpu +5.00%",
        "shop: shop.pricing.total takes 33.3% more CPU",
    ]
    assert about[2:] == ["shop: experiment pr-7 is within its thresholds"]
    assert "thread_ts" in slack.taken[2]


def test_what_becomes_of_a_regression_follows_in_its_thread_after_a_restart(
    own_broker: BrokerUrl, own_store: str, slack: SlackApi, tmp_path: Path
) -> None:
    rules, now = write_rules(tmp_path, slack), system_clock()
    first = AlertsProcess(own_broker, own_store, rules)
    first.wait_ready()
    publish(own_broker, detected("r1", time=now))
    wait_until(lambda: "sent " in first.log, "a message", first)
    assert first.stop() == 0
    second = AlertsProcess(own_broker, own_store, rules)
    second.wait_ready()
    publish(own_broker, updated("r1", time=now + 1), resolved("r1", time=now + 2))
    wait_until(lambda: len(slack.taken) >= 3, "three messages", second)
    assert second.stop() == 0
    first_one, *rest = slack.taken
    assert "thread_ts" not in first_one
    assert [message["thread_ts"] for message in rest] == ["1.0", "1.0"]
    assert "escalated" in rest[0]["text"]
    assert "back to its level" in rest[1]["text"]


def test_a_dry_run_prints_and_sends_nothing(own_broker: BrokerUrl, slack: SlackApi, tmp_path: Path) -> None:
    rules = write_rules(tmp_path, slack, dashboard_url="https://smidgen.example.com")
    publish(own_broker, detected("r1", time=system_clock()))
    command = [sys.executable, "-m", "pipeline", "alerts", "run", "--rules", str(rules), "--dry-run"]
    done = subprocess.run(
        [*command, "--no-follow", "--broker", own_broker], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "chat (single, now): shop: shop.pricing.total takes 33.3% more CPU" in done.stdout
    assert "https://smidgen.example.com/regressions/r1" in done.stdout
    assert slack.http.requests == []
