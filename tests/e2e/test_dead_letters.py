"""A broken deploy, its dead letters, and their replay: nothing is lost and nothing counted twice."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from pipeline.cli import run
from pipeline.codec.inputs import encode_profile
from pipeline.kafka import Entry
from pipeline.runtime.dlq.dead_letter import outcome_value
from pipeline.storage.interface import Store
from tests.e2e import worker_process
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    committed,
    is_idempotent,
    publish,
    publish_load,
    read_all,
    wait_done,
    wait_until,
)

pytestmark = pytest.mark.e2e

BROKEN = """
import pipeline.codec.inputs as inputs
from pipeline.errors import InvalidMessage
good = inputs.decode_profile
def decode_profile(value, *, now=None):
    profile = good(value, now=now)
    if {condition}:
        raise InvalidMessage("counts: of a form that this version does not know")
    return profile
inputs.decode_profile = decode_profile

# As on a loaded machine: it commits late, and when it ends there is no time left for it.
import faust.transport.consumer as transport
import pipeline.runtime.worker.app as app
from pipeline.runtime.worker.service import Service
app.COMMIT_INTERVAL_S = 1e3
initialise = transport.Consumer.__init__
def seldom(self, *args, **kwargs):
    initialise(self, *args, **kwargs)
    self._commit_every = None
transport.Consumer.__init__ = seldom
shut_down = Service._shut_down
async def too_late(self, *args, **kwargs):
    return False
async def without_commit(self):
    transport.Consumer.commit = too_late
    await shut_down(self)
Service._shut_down = without_commit
"""
"""A deploy whose decoder refuses what it should take, and whose commits are late unless it asks for them."""


@contextmanager
def broken_worker(
    monkeypatch: pytest.MonkeyPatch, broker: str, store: str, condition: str, **settings: str
) -> Iterator[WorkerProcess]:
    with monkeypatch.context() as patch:
        patch.setattr(worker_process, "_MAIN", BROKEN.format(condition=condition) + worker_process._MAIN)
        for key, value in settings.items():
            patch.setenv(f"SMIDGEN_{key.upper()}", value)
        worker = WorkerProcess(broker, store, "aggregate")
    with worker:
        yield worker


def here(capfd: pytest.CaptureFixture[str], broker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which is quicker where nothing is killed."""
    flag = [] if is_idempotent(broker) or arguments[0] == "list" else ["--no-idempotent-producer"]
    capfd.readouterr()
    code = run(["dlq", *arguments, "--broker", broker, *flag])
    return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())


def dlq(broker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(broker, *arguments), capture_output=True, text=True, timeout=150, check=False
    )


def command(broker: str, *arguments: str, batch: int = 7) -> list[str]:
    flag = [] if is_idempotent(broker) or arguments[0] == "list" else ["--no-idempotent-producer"]
    main = f"""
from pipeline.runtime.dlq import replay
from pipeline.cli import main
replay.MAX_DEAD_LETTERS = {batch}
replay.SESSION_S = 6.0  # the shortest that brokers allow: the next replay waits for it after a kill
main()
"""
    return [sys.executable, "-c", main, "dlq", *arguments, "--broker", broker, *flag]


def header(entry: Entry, name: str) -> str:
    return dict(entry.headers).get(name, b"").decode()


def dead_letters(broker: str) -> list[Entry]:
    return [entry for entry in read_all(broker, "dead-letters") if not header(entry, "receipt")]


def copies(broker: str, topic: str = "profiles") -> Counter[str]:
    """How often each dead letter stands on its topic again."""
    found = (header(entry, "replayed-from") for entry in read_all(broker, topic))
    return Counter(origin for origin in found if origin)


def wait_all_read(broker: str, worker: WorkerProcess, topic: str = "profiles") -> None:
    ends: dict[int, int] = {}
    for entry in read_all(broker, topic):
        ends[entry.partition] = max(ends.get(entry.partition, 0), entry.offset + 1)
    wait_done(broker, ends, worker, topic=topic)


def make_dead_letters(
    monkeypatch: pytest.MonkeyPatch, broker: str, store: str, loads: Sequence[Load]
) -> None:
    """Let a broken worker refuse every message of some loads."""
    for load in loads:
        publish_load(broker, load)
    with broken_worker(monkeypatch, broker, store, "True", dead_letter_limit="1") as worker:
        wait_until(
            lambda: len(dead_letters(broker)) == sum(len(load.profiles) for load in loads),
            "all dead letters",
            worker,
        )
        wait_all_read(broker, worker)
        assert worker.stop() == 0


def test_a_broken_deploy_stops_the_stage_and_a_replay_after_the_fix_counts_everything_once(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = [build_load(f"{service_name}-{n}", 60, seed=n) for n in range(4)]
    rest = [build_load(f"{service_name}-{n}", 3, seed=10 + n) for n in range(4)]
    for load in loads:
        publish_load(own_broker, load)
    scanned: dict[str, list[Any]] = {
        "service": [load.service for load in loads],
        "workload": ["live"] * 4,
        "time": [time.time() - 60] * 4,
    }
    shared_store.insert("scans", {**scanned, "series": [1] * 4, "candidates": [0] * 4})
    refuses = "profile.service[-1] != '3'"  # one service of four is well
    settings = {"dead_letter_after": "1s", "dead_letter_min": "20"}
    with broken_worker(monkeypatch, own_broker, store_dsn, refuses, **settings) as worker:
        deadline = time.monotonic() + 90
        while worker.process.poll() is None:  # agents go on sending
            assert time.monotonic() < deadline, worker.log
            for number, load in enumerate(rest):
                publish_load(own_broker, load)
                loads[number] = Load(load.service, (*loads[number].profiles, *load.profiles))
            time.sleep(0.3)
        assert worker.process.returncode == 1
        assert "Traceback" not in worker.log
        lines = [line for line in worker.log.splitlines() if " ERROR pipeline" in line]
        assert len(lines) == 1, lines
        (line,) = lines
        assert re.search(
            r"aggregate: stopping, most of profiles is bad: 3 of 4 sources \(.*\) send nothing usable: "
            r"\d+ messages refused; the last one: counts: of a form .* Nothing of this batch is acknowledged",
            line,
        )
    kept = dead_letters(own_broker)
    # What is refused in the batch that stops it comes again: that batch is not acknowledged.
    assert 0 < len(kept) < sum(len(load.profiles) for load in loads), "the rest stays on its topic"

    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        done = dlq(own_broker, "replay")
        assert (done.returncode, done.stdout) == (
            0,
            f"sent {len(dead_letters(own_broker))} dead letters\n",
        ), done
        wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    for load in loads:
        assert_counted(shared_store, load)


def test_a_flood_of_garbage_from_one_service_or_under_invented_names_stops_nobody(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = build_load(service_name, 40)
    publish_load(own_broker, load)
    rng = random.Random(1)
    garbage: list[tuple[bytes | None, bytes | None]] = [(b"hostile/h", b"garbage")] * 500
    garbage += [(f"invented-{rng.randrange(300)}/h".encode(), b"{}") for _ in range(500)]
    garbage += [(None, b"")] * 100
    monkeypatch.setenv("SMIDGEN_DEAD_LETTER_AFTER", "1s")
    monkeypatch.setenv("SMIDGEN_DEAD_LETTER_MIN", "1")
    with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=200) as worker:
        wait_all_read(own_broker, worker)
        for _ in range(4):  # over much longer than a second
            publish(own_broker, garbage)
            wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    assert_counted(shared_store, load)
    assert len(dead_letters(own_broker)) == 4 * len(garbage)


@pytest.mark.kafka
def test_a_replay_that_is_killed_again_and_again_sends_every_dead_letter_once(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = [build_load(f"{service_name}-{n}", 40, seed=n) for n in range(2)]
    make_dead_letters(monkeypatch, own_broker, store_dsn, loads)
    rng = random.Random(own_broker)
    kills = 0
    for _ in range(40):
        process = subprocess.Popen(
            command(own_broker, "replay", batch=3),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Each … is a batch: after some of them, somewhere within the next one.
        assert process.stderr is not None
        for _ in range(rng.randrange(1, 6)):
            if not process.stderr.readline():
                break
        time.sleep(rng.uniform(0.0, 0.05))
        if process.poll() is None and kills < 3:
            process.kill()
            kills += 1
        out, err = process.communicate(timeout=150)
        if process.returncode == 0:
            break
    assert process.returncode == 0, (out, err)
    assert kills == 3
    again = dlq(own_broker, "replay")
    assert (again.returncode, again.stdout) == (0, "sent 0 dead letters\n"), again
    origins = {f"{entry.partition}/{entry.offset}" for entry in dead_letters(own_broker)}
    assert copies(own_broker) == Counter(origins), "each of them, and once"
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    for load in loads:
        assert_counted(shared_store, load)


@pytest.mark.kafka
def test_copies_of_a_replayed_dead_letter_are_counted_once(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a client library makes them that did not hear the broker's answer, at once or much later."""
    load = build_load(service_name, 60)
    make_dead_letters(monkeypatch, own_broker, store_dsn, [load])
    assert dlq(own_broker, "replay").returncode == 0
    replayed = [entry for entry in read_all(own_broker, "profiles") if header(entry, "replay")]
    asyncio.run(send_again(own_broker, replayed[:40]))
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        worker.kill()
    asyncio.run(send_again(own_broker, replayed))
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    assert sum(copies(own_broker).values()) == 160
    assert_counted(shared_store, load)


async def send_again(broker: str, entries: Sequence[Entry]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    for e in entries:
        await producer.send_and_wait(
            TOPICS["profiles"].name, e.value, key=e.key, partition=e.partition, headers=list(e.headers)
        )
    await producer.stop()


def test_only_one_replay_works_at_a_time(
    own_broker: BrokerUrl, store_dsn: str, service_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_dead_letters(monkeypatch, own_broker, store_dsn, [build_load(service_name, 30)])
    slow = command(own_broker, "replay", batch=1)
    slow[2] = slow[2].replace(
        "main()\n",
        "import asyncio\nsend = replay.Replay._send\n"
        "async def slowly(*a):\n    await asyncio.sleep(2)\n    return await send(*a)\n"
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
    assert re.search(r"5 │ profiles +│ aggregate │ start: # is not a time +│ yes", summary.stdout), summary
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


async def write_dead_letters(broker: str, made: Sequence[tuple[bytes, bytes, dict[str, str]]]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    for key, value, headers in made:
        pairs = [(name, text.encode()) for name, text in headers.items()]
        await producer.send_and_wait(TOPICS["dead-letters"].name, value, key=key, headers=pairs)
    await producer.stop()


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
