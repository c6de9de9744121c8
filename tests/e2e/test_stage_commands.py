"""``smidgen stage`` against brokers: messages that are skipped, and stages that go back."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.cli import run
from pipeline.kafka import as_broker
from pipeline.messages.measurements import decode_profile
from pipeline.messages.scans import encode_scan
from pipeline.model import Scan
from pipeline.storage.interface import Store
from pipeline.worker.standing import seat
from tests.e2e.worker_process import (
    START,
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
    stored_samples,
    wait_done,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(own_broker: BrokerUrl, store_dsn: str, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command against the broker and the store."""

    def smidgen(*arguments: str) -> subprocess.CompletedProcess[str]:
        flags = [] if arguments[0] == "dlq" or "rewind" in arguments else ["--store", store_dsn]
        if {"skip", "replay"} & set(arguments) and not is_idempotent(own_broker):
            flags.append("--no-idempotent-producer")
        capfd.readouterr()
        code = run([*arguments, "--broker", own_broker, *flags])
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return smidgen


@pytest.mark.kafka
def test_what_is_skipped_is_not_counted_until_it_is_replayed(
    own_broker: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str, command: Command
) -> None:
    load = build_load(service_name, 60)
    ends = publish_load(own_broker, load)
    partition = max(ends, key=lambda number: ends[number])
    words = ["stage", "skip", "aggregate", "--topic", "profiles", "--partition", str(partition)]

    tried = command(*words, "--messages", "2", "--dry-run")
    assert (tried.returncode, tried.stdout.splitlines()[-1]) == (0, "would skip 2 messages"), tried
    assert read_all(own_broker, "dead-letters") == []

    done = command(*words, "--messages", "2", "--reason", "too deep")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "skipped 2 messages: dead letters now"), (
        done
    )
    skipped = read_all(own_broker, "dead-letters")
    assert {dict(one.headers)["reason"] for one in skipped} == {b"skipped by hand: too deep"}
    assert [dict(one.headers)["offset"] for one in skipped] == [b"0", b"1"]
    (standing,) = [
        one
        for one in map(json.loads, command("stage", "show", "aggregate", "--json").stdout.splitlines())
        if (one["topic"], one["partition"]) == ("profiles", partition)
    ]
    assert [standing[key] for key in ("next", "committed", "stored", "first")] == [2, 2, 2, 0]

    left_out = Load(service_name, tuple(decode_profile(one.value) for one in skipped)).samples
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_done(own_broker, ends, worker)
        assert stored_samples(shared_store, service_name) == load.samples - left_out
        replayed = command("dlq", "replay")
        assert (replayed.returncode, replayed.stdout) == (0, "sent 2 dead letters\n"), replayed
        wait_done(own_broker, {partition: ends[partition] + 2}, worker)
        assert worker.stop() == 0
    assert_counted(shared_store, load)

    nothing = command(*words)
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "nothing to skip, aggregate is at its end" in nothing.stderr


@pytest.mark.kafka
def test_nothing_moves_while_a_worker_runs(own_broker: BrokerUrl, store_dsn: str, command: Command) -> None:
    ends = publish(own_broker, [(b"shop", encode_scan(scan()))], "change-points")
    (partition,) = ends
    with WorkerProcess(own_broker, store_dsn, "filter") as worker:
        wait_done(own_broker, ends, worker, stage="filter", topic="change-points")
        for words in (
            ["skip", "filter", "--partition", str(partition)],
            ["rewind", "filter", "--since", "1h"],
        ):
            done = command("stage", *words)
            assert done.returncode == 2, done
            assert "a worker runs filter: stop all that do, and try again" in done.stderr
        assert worker.stop() == 0
    assert committed(own_broker, "filter", "change-points", [partition]) == {partition: 1}
    assert read_all(own_broker, "dead-letters") == []


@pytest.mark.kafka
def test_going_back_by_time(own_broker: BrokerUrl, command: Command) -> None:
    ends = publish(
        own_broker, [(b"shop", encode_scan(scan(end=START + n))) for n in range(3)], "change-points"
    )
    (partition,) = ends
    at = ["--partition", str(partition)]
    assert command("stage", "skip", "filter", *at, "--messages", "3").returncode == 0

    tried = command("stage", "rewind", "filter", *at, "--since", "1h", "--dry-run")
    assert tried.stdout.splitlines() == [
        f"change-points partition {partition}: 3 messages back, to 0, the oldest that is kept",
        "filter would read 3 messages again",
    ]
    assert committed(own_broker, "filter", "change-points", [partition]) == {partition: 3}
    if is_idempotent(own_broker):  # the embedded broker answers any time with its oldest message
        now = command("stage", "rewind", "filter", "--since", "0s")
        assert now.stdout.endswith("reads 0 messages again\n")
        assert committed(own_broker, "filter", "change-points", [partition]) == {partition: 3}
    assert command("stage", "rewind", "filter", "--since", "1h").stdout.endswith("reads 3 messages again\n")
    assert committed(own_broker, "filter", "change-points", [partition]) == {partition: 0}


def test_a_scan_in_parts_is_skipped_whole(own_broker: BrokerUrl, command: Command) -> None:
    parts = [scan(part=number, parts=3, attempt="a") for number in range(3)]
    other, later = scan(workload="daily"), scan(end=START + 3600.0)
    messages = [(b"shop", encode_scan(one)) for one in (parts[0], other, parts[1], later, parts[2])]
    (partition,) = publish(own_broker, messages, "change-points")
    done = command("stage", "skip", "filter", "--partition", str(partition))
    assert done.stdout.splitlines()[-1] == "skipped 3 messages: dead letters now", done
    offsets = [dict(one.headers)["offset"] for one in read_all(own_broker, "dead-letters")]
    assert offsets == [b"0", b"2", b"4"]
    assert committed(own_broker, "filter", "change-points", [partition]) == {partition: 1}


def test_a_log_that_ends_before_what_was_committed(own_broker: BrokerUrl, command: Command) -> None:
    (partition,) = publish(own_broker, [(b"shop", encode_scan(scan()))], "change-points")

    async def commit_beyond() -> None:
        async with seat(as_broker(own_broker), TOPICS, "filter") as held:
            await held.commit({("change-points", partition): 50})

    asyncio.run(commit_beyond())
    done = command("stage", "skip", "filter", "--partition", str(partition))
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing to skip, filter is at its end" in done.stderr
    assert read_all(own_broker, "dead-letters") == []
    assert committed(own_broker, "filter", "change-points", [partition]) == {partition: 50}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["skip", "aggregate", "--partition", "0"],
            "aggregate reads profiles, metrics, requests, changes, feedback: say",
        ),
        (["skip", "filter", "--partition", "99"], "change-points has no partition 99"),
        (
            ["rewind", "aggregate", "--since", "1h"],
            "aggregate counts each message once, so it cannot go back",
        ),
        (["rewind", "filter", "--since", "1h", "--service", "shop"], "filter goes back by partition"),
        (["rewind", "detect", "--since", "1h", "--partition", "1"], "choose by --service and --workload"),
        (
            ["rewind", "filter", "--since", "soon"],
            "should be a duration such as 2d, or an ISO 8601 time: 'soon'",
        ),
        (["show", "everything"], "'everything' is not one of 'aggregate', 'detect'"),
    ],
)
def test_wrong_wishes(command: Command, words: list[str], line: str) -> None:
    done = command("stage", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def scan(**fields: object) -> Scan:
    made = Scan("shop", "weekly", START, START, START, START + 60.0, series=1)
    return replace(made, **fields)  # type: ignore[arg-type]
