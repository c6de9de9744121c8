"""Choice of dead letters in a replay: those chosen, those without receipt, and none beside another replay."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
from collections import Counter
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from pipeline.cli import run
from pipeline.messages.measurements import encode_profile
from pipeline.worker.dlq.dead_letter import outcome_value
from tests.e2e.dead_letters import command, copies, dlq, here, make_dead_letters, write_dead_letters
from tests.e2e.worker_process import TOPICS, BrokerUrl, build_load, committed

pytestmark = pytest.mark.e2e


def test_only_one_replay_works_at_a_time(
    own_broker: BrokerUrl, store_dsn: str, service_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_dead_letters(monkeypatch, own_broker, store_dsn, [build_load(service_name, 30)])
    slow = command(own_broker, "replay", batch=1)
    slow[2] = slow[2].replace(
        "main()\n",
        "import asyncio\nsend, sent = replay.Replay._send, []\n"
        "async def slowly(*a):\n    await asyncio.sleep(600 if sent else 0)\n    sent.append(a)\n"
        "    return await send(*a)\n"
        "replay.Replay._send = slowly\nmain()\n",
    )
    first = subprocess.Popen(slow, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stderr is not None
        assert first.stderr.readline().startswith("… 1 dead letter")
        second = dlq(own_broker, "replay")
        assert second.returncode == 2
        assert "another replay is at work" in second.stderr
        assert first.poll() is None, first.communicate()
    finally:
        first.kill()
        first.communicate()
    done = dlq(own_broker, "replay")
    assert done.returncode == 0, done
    assert max(copies(own_broker).values()) == 1
    assert len(copies(own_broker)) == 30


def listed(capfd: pytest.CaptureFixture[str], broker: str, *arguments: str) -> list[dict[str, Any]]:
    done = here(capfd, broker, "list", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_list_and_replay_choose_dead_letters_and_say_what_cannot_be_sent(
    own_broker: BrokerUrl, service_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    good = encode_profile(build_load(service_name, 1).profiles[0])
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def dead_letter(n: int, **changed: str) -> tuple[bytes, bytes, dict[str, str]]:
        headers = {"topic": "profiles", "partition": "1", "offset": str(n), "stage": "aggregate"}
        headers |= {"reason": f"start: {n} is not a time", "time": now}
        return f"{service_name}/h".encode(), good, headers | changed

    made = [
        *(dead_letter(n) for n in range(5)),
        dead_letter(5, reason="host: missing", time="2025-01-01T00:00:00Z"),
        dead_letter(6, truncated="99999999", reason="too large"),
        dead_letter(7, partition="-1", offset="-1", topic="windows", reason="too many bytes", stage="detect"),
        dead_letter(8, null="value", reason="empty message"),
        dead_letter(9, topic="elsewhere"),
        dead_letter(10, topic="metrics", reason="\x1b[31mred\nreason"),
    ]
    asyncio.run(write_dead_letters(own_broker, made))
    assert len(listed(capfd, own_broker)) == 11
    assert {
        len(listed(capfd, own_broker, *flags)) for flags in (["--topic", "windows"], ["--stage", "detect"])
    } == {1}
    assert len(listed(capfd, own_broker, "--reason", "is not a time", "--topic", "profiles")) == 5
    assert len(listed(capfd, own_broker, "--since", "1d")) == 10
    assert len(listed(capfd, own_broker, "--service", service_name, "--limit", "3")) == 3
    assert listed(capfd, own_broker, "--service", "other") == []
    (hostile,) = listed(capfd, own_broker, "--topic", "metrics")
    assert hostile["reason"] == "\ufffd[31mred\ufffdreason"
    obstacles = Counter(entry["obstacle"] for entry in listed(capfd, own_broker))
    assert obstacles[""] == 7

    summary = here(capfd, own_broker, "list")
    assert re.search(r"5 +profiles +aggregate +start: # is not a time +yes", summary.stdout), summary
    assert "too large" in here(capfd, own_broker, "list", "--letters").stdout

    chosen = ["--reason", "is not a time", "--topic", "profiles"]
    dry = here(capfd, own_broker, "replay", *chosen, "--dry-run")
    assert (dry.returncode, dry.stdout.splitlines()[-1]) == (0, "would send 5 dead letters")
    assert copies(own_broker) == Counter()
    some = here(capfd, own_broker, "replay", *chosen, "--limit", "2")
    assert (some.returncode, some.stdout) == (0, "sent 2 dead letters\n"), some
    rest = here(capfd, own_broker, "replay", *chosen)
    assert (rest.returncode, rest.stdout) == (0, "sent 3 dead letters\n"), rest
    assert set(copies(own_broker).values()) == {1}
    assert len(copies(own_broker)) == 5
    assert Counter(entry["status"] for entry in listed(capfd, own_broker, "--all")) == {
        "open": 6,
        "replayed": 5,
    }

    everything = here(capfd, own_broker, "replay")
    assert everything.returncode == 1
    assert everything.stdout == "sent 2 dead letters\n"
    for reason in ("too large to be kept whole", "made by a stage", "never had a value", "does not name"):
        assert reason in everything.stderr
    assert copies(own_broker, "metrics").total() == 1


def test_a_receipt_that_nobody_can_read_stops_a_replay(
    own_broker: BrokerUrl, capfd: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(write_dead_letters(own_broker, [(b"k", b"nonsense", {"receipt": "sent"})]))
    done = here(capfd, own_broker, "replay")
    assert done.returncode == 2
    assert "not a receipt of a replay" in done.stderr
    assert committed(own_broker, "dlq-replay", "dead-letters", [0]) == {0: 0}


def test_a_forged_receipt_hides_no_dead_letter_from_who_has_the_key(
    own_broker: BrokerUrl,
    service_name: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a stage's user could write it, with the rights that docs/security.md gives it."""
    good = encode_profile(build_load(service_name, 1).profiles[0])
    headers = {"topic": "profiles", "partition": "1", "stage": "aggregate", "reason": "host: missing"}
    key = f"{service_name}/h".encode()
    made = [(key, good, {**headers, "offset": str(n)}) for n in range(3)]
    asyncio.run(write_dead_letters(own_broker, made))
    first, second, _ = listed(capfd, own_broker)
    for one, receipt in ((first, outcome_value("forged", [first["offset"]])), (second, b"nonsense")):
        asyncio.run(forge(own_broker, one["partition"], receipt))
    monkeypatch.setenv("SMIDGEN_RECEIPT_KEY", "what only the operator knows")
    assert [one["status"] for one in listed(capfd, own_broker)] == ["unsigned", "open", "open"]
    done = here(capfd, own_broker, "replay")
    assert (done.returncode, done.stdout) == (1, "sent 2 dead letters\n"), done
    assert "has a receipt that is not signed; --unsigned sends it" in done.stderr
    done = here(capfd, own_broker, "replay", "--unsigned")
    assert (done.returncode, done.stdout) == (0, "sent 1 dead letter\n"), done
    assert [one["status"] for one in listed(capfd, own_broker, "--all")] == ["replayed"] * 3
    assert set(copies(own_broker).values()) == {1}


async def forge(broker: str, partition: int, receipt: bytes) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    topic, kind = TOPICS["dead-letters"].name, [("receipt", b"sent")]
    await producer.send_and_wait(topic, receipt, partition=partition, headers=kind)
    await producer.stop()


def test_who_has_nothing_to_send_waits_for_nobody(
    own_broker: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def joined(*_: object) -> None:
        pytest.fail("it joins the group of replays, which takes seconds")

    monkeypatch.setattr("pipeline.commands.dlq.alone", joined)
    assert run(["dlq", "replay", "--broker", own_broker]) == 0
    assert capsys.readouterr().out == "sent 0 dead letters\n"
