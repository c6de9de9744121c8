"""A worker as its operator sees it: its health, its counters, its log, its end; and what doctor finds."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipeline.cli import run
from pipeline.embedded.stack import EmbeddedStore
from pipeline.settings.config import Settings
from pipeline.settings.topics import load_topics
from pipeline.settings.workloads import load_workloads
from pipeline.stages.factory import STAGES, StageNeeds, build_stage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import Store
from tests.e2e.worker_process import (
    BrokerUrl,
    FailingStore,
    WorkerProcess,
    assert_counted,
    build_load,
    is_idempotent,
    publish,
    publish_load,
    wait_done,
    wait_until,
)

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def health_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMIDGEN_HEALTH", "127.0.0.1:0")


class Probe:
    """Asks the health endpoint of a worker."""

    def __init__(self, worker: WorkerProcess) -> None:
        wait_until(lambda: self._found(worker) is not None, "a health endpoint", worker)
        self.url = str(self._found(worker))

    def _found(self, worker: WorkerProcess) -> str | None:
        found = re.search(r"health: (http://127\.0\.0\.1:\d+)", worker.log)
        return found[1] if found else None

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"{self.url}/{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def checks(self, path: str) -> dict[str, str]:
        checks: dict[str, str] = json.loads(self.get(path)[1])["checks"]
        return checks

    def counter(self, name: str, stage: str = "aggregate") -> float:
        found = re.search(rf'^smidgen_{name}{{stage="{stage}"}} (\S+)$', self.get("metrics")[1], re.MULTILINE)
        assert found, name
        return float(found[1])


@pytest.mark.kafka
def test_ready_and_live_through_an_outage_of_the_store_and_counters_to_the_unit(
    own_broker: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    load = build_load(service_name, 100)
    away = threading.Event()
    with (
        FailingStore(store_dsn, lambda _: "refused" if away.is_set() else None) as failing,
        WorkerProcess(own_broker, failing.url, "aggregate") as worker,
    ):
        probe = Probe(worker)
        worker.wait_ready()
        wait_until(lambda: probe.get("ready")[0] == 200, "a ready worker", worker)
        assert set(probe.checks("ready")) == {
            "worker",
            "aggregate: assignment",
            "background tasks",
            "broker",
            "store",
        }
        away.set()
        publish(own_broker, [(b"shop/h", b"not a profile")] * 3)
        ends = publish_load(own_broker, load)
        wait_until(lambda: probe.counter("store_retries_total") > 0, "a retry", worker)
        assert probe.get("live")[0] == 200, "a restart would help nobody"
        away.clear()
        wait_done(own_broker, ends, worker)
        wait_until(lambda: probe.counter("samples_total") == load.samples, "every sample counted", worker)
        wait_until(lambda: probe.counter("dead_letters_total") == 3, "three dead letters", worker)
        assert probe.counter("messages_total") == len(load.profiles) + 3
        metrics = probe.get("metrics")[1]
        lags = re.findall(
            r'^smidgen_lag_messages{.*stage="aggregate",.*topic="profiles".*} (\S+)$', metrics, re.M
        )
        assert lags == ["0.0"] * 12
        assert run(["doctor", "--worker", probe.url]) == 0
        assert worker.stop() == 0
    assert run(["doctor", "--worker", probe.url]) == 1
    assert_counted(shared_store, load)


def test_not_ready_without_a_store(own_broker: BrokerUrl) -> None:
    with EmbeddedStore() as store, WorkerProcess(own_broker, store.url, "aggregate") as worker:
        probe = Probe(worker)
        worker.wait_ready()
        wait_until(lambda: probe.get("ready")[0] == 200, "a ready worker", worker)
        store.stop()
        wait_until(lambda: "does not answer" in probe.checks("ready")["store"], "a missing store", worker)
        assert probe.get("ready")[0] == 503
        assert probe.checks("ready")["broker"] == "ok"
        assert probe.get("live")[0] == 200
        assert worker.stop() == 0


@pytest.fixture
def hanging(store_dsn: str) -> Iterator[tuple[str, threading.Event]]:
    """A store that holds every INSERT of a batch, and what is set once it holds one."""
    reached, release = threading.Event(), threading.Event()

    def fault(number: int) -> Callable[[bool], None] | None:
        def hold(done: bool) -> None:
            if not done:
                reached.set()
                release.wait(300)

        return hold if number > 1 else None  # the first one notes the log, before anything is read

    with FailingStore(store_dsn, fault) as failing:
        yield failing.url, reached
        release.set()


def test_a_worker_under_load_ends_within_its_bound_and_the_next_one_goes_on(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    hanging: tuple[str, threading.Event],
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, reached = hanging
    load = build_load(service_name, 200)
    ends = publish_load(own_broker, load)
    monkeypatch.setenv("SMIDGEN_DRAIN", "500ms")
    with WorkerProcess(own_broker, url, "aggregate") as worker:
        assert reached.wait(240), worker.log
        assert worker.stop(240.0) == 0
        assert "finishing the batch takes more than 0.5 s: going on without" in worker.log
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_done(own_broker, ends, worker)
        assert worker.stop() == 0
    assert_counted(shared_store, load)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(
    own_broker: BrokerUrl,
    hanging: tuple[str, threading.Event],
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    url, reached = hanging
    publish_load(own_broker, build_load(service_name, 20))
    monkeypatch.setenv("SMIDGEN_DRAIN", "10m")
    with WorkerProcess(own_broker, url, "aggregate") as worker:
        assert reached.wait(240), worker.log
        probe = Probe(worker)
        worker.process.send_signal(number)
        wait_until(lambda: probe.checks("ready")["worker"] == "is stopping", "a stopping worker", worker)
        worker.process.send_signal(number)
        assert worker.process.wait(240) == 128 + number
        assert f"{number.name} again: ending at once, unacknowledged" in worker.log


def test_the_log_as_json_has_position_and_counts(
    own_broker: BrokerUrl, store_dsn: str, service_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMIDGEN_LOG_FORMAT", "json")
    load = build_load(service_name, 20)
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        ends = publish_load(own_broker, load)
        wait_done(own_broker, ends, worker)
        assert worker.stop() == 0
        lines: list[dict[str, Any]] = [json.loads(line) for line in worker.log.splitlines()]
    assert lines
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    batches = [line for line in lines if " batch messages=" in line["message"]]
    assert sum(line["samples"] for line in batches) == load.samples
    assert {line["stage"] for line in batches} == {"aggregate"}


def findings(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    code = run(["doctor", "--json", *arguments])
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    return code, {line["check"]: line for line in lines}


@pytest.mark.kafka
def test_doctor_finds_what_is_wrong_and_says_what_to_do(
    own_broker: BrokerUrl, store_dsn: str, service_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["--broker", own_broker, "--store", store_dsn]
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        worker.wait_ready()
        load = build_load(service_name, 20)
        publish(own_broker, [(b"shop/h", b"{}")] * 5)
        wait_done(own_broker, publish_load(own_broker, load), worker)
        code, found = findings(capfd, *where)
        assert code == 0, found
        assert {name: line["status"] for name, line in found.items() if name != "py-spy"} == {
            **dict.fromkeys(
                ["broker", "topics", "lag of aggregate", "agents", "store", "tables", "names"], "ok"
            ),
            **dict.fromkeys([f"lag of {stage}" for stage in STAGES[1:]], "warn"),
            **{"dead letters": "warn", "clock of the store": "ok"},
            **{name: found[name]["status"] for name in found if name.startswith("disk")},
            "scans": found["scans"]["status"],  # other tests' services are in the store, too
        }
        read = "profiles 0, metrics 0, requests 0, changes 0, feedback 0"
        assert found["lag of aggregate"]["detail"] == f"1 process; {read}"
        assert found["lag of detect"]["detail"].startswith("nobody works on it; windows ")
        assert found["lag of detect"]["advice"] == "smidgen worker detect"
        least = (
            5 if is_idempotent(own_broker) else 1
        )  # the embedded broker leaves out what was published together last
        kept = int(found["dead letters"]["detail"].split()[0])
        assert least <= kept <= 5
        worker.stop()
    code, found = findings(capfd, "--broker", own_broker, "--store", "http://u:hunter2@127.0.0.1:9")
    assert code == 2, "a password on the command line is refused"
    code, found = findings(capfd, "--broker", own_broker, "--store", "http://127.0.0.1:9")
    assert (code, found["store"]["status"]) == (1, "fail")
    assert found["broker"]["status"] == "ok", "the other checks are made all the same"
    code, found = findings(capfd, "--broker", "127.0.0.1:9", "--store", store_dsn)
    assert (code, found["broker"]["status"], found["store"]["status"]) == (1, "fail", "ok")
    run(["doctor", *where])
    assert "what to do" in capfd.readouterr().out


def test_doctor_knows_what_each_stage_reads() -> None:
    settings = Settings()
    for name in STAGES:
        stage = build_stage(
            name,
            StageNeeds(
                settings=settings,
                workloads=load_workloads(settings.workloads),
                store=ArrayStore(),
                streams=one_stream("s"),
                clock=time.time,
            ),
        )
        assert tuple(stage.inputs) == load_topics().inputs(name)


def test_health_is_refused_to_other_machines_without_a_token(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "aggregate", "--health", "0.0.0.0:0", "--broker", "127.0.0.1:9"]) == 2
    assert "set http_token_file too" in capfd.readouterr().err
