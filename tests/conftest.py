"""Fixtures that several suites share: brokers, the store, and names that keep tests apart on them."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from loadgen.engines.clickhouse.server import ClickHouseServer
from loadgen.engines.kafka.cluster import ClusterSettings, KafkaCluster, prepared_jars
from loadgen.engines.kafka.jars import Jars
from pipeline.embedded.stack import EmbeddedStack
from pipeline.kafka import apply_topics
from pipeline.model.errors import SmidgenError
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from tests.e2e.worker_process import TOPICS, BrokerUrl, fresh_broker
from tests.support.scheduling import WaitingBesideCounting, counting_worker

if TYPE_CHECKING:
    from xdist.remote import Producer

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile(
    "smidgen", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fast", settings.get_profile("smidgen"), max_examples=30)
settings.register_profile("calibrate", settings.get_profile("smidgen"), max_examples=1000)
settings.load_profile("smidgen")

_KAFKA = """tests against Apache Kafka: auto runs those marked kafka on it if Java and Maven are there,
require fails without them, all runs all that needs a broker on one and on three brokers too, off runs none"""

_KAFKA_OR_EMBEDDED = "kafka or embedded"
"""Broker of tests marked kafka: that of production, or the embedded one where Java or Maven is missing."""

_LEFT_OUT = "Apache Kafka was left out: "

_ENGINES = {"embedded", "broker_kind", "kafka_jars", "clickhouse"}
"""Fixtures that start a broker or a store: `make test-fast` runs no test that uses one."""

_WAITING = ("tests/e2e/", "tests/kafka/")
"""Tests that drive workers as processes: most of their time is waiting."""

_LONGEST = (
    *("e2e/test_faults.py", "e2e/test_dashboard.py", "e2e/test_counts.py", "e2e/test_dead_letters.py"),
    *("e2e/test_quick_start.py", "e2e/test_documented_commands.py", "kafka/test_logs.py"),
    *("e2e/test_replay_kills.py", "e2e/test_security_secrets.py", "e2e/test_catch_up.py"),
)
"""Files of a minute and more: the first to begin, since one that begins last is waited for."""

_COUNTING_NICE = 10
"""Priority of the process that counts beside those that wait: workers' heartbeats do not come late for it."""


_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30
"""Free in memory's file system, so that engines keep their tables there; a run takes far less."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kafka", choices=("auto", "require", "all", "off"), default="auto", help=_KAFKA)
    parser.addoption("--calibrate", action="store_true", help="also run what needs many seeds or minutes")
    parser.addoption("--pictures", metavar="FOLDER", help="keep the pictures of the dashboard's pages there")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka: runs against Apache Kafka where it is there")
    config.addinivalue_line("markers", "kafka_all: takes long, runs with --kafka=all alone")
    if counting_worker(os.environ):
        os.nice(_COUNTING_NICE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WaitingBesideCounting | None:
    """Have files that wait run beside files that count, where files stay together."""
    if config.getvalue("dist") != "loadfile":
        return None
    return WaitingBesideCounting(config, log, lambda file: file.startswith(_WAITING))


@pytest.fixture(scope="session", autouse=True)
def _no_local_pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests off what a `smidgen up` of the same user runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _engines_in_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have engines write to memory, if it has room: a small part of a table costs twice as much on a disk."""
    tmp_path_factory.getbasetemp()  # stays on disk, where it can be looked at later
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _ROOM_BYTES:
        yield
        return
    made = tempfile.TemporaryDirectory(prefix="smidgen-tests-", dir=_MEMORY, ignore_cleanup_errors=True)
    with made as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """Return where pictures of pages go: the folder that ``--pictures`` names. Otherwise none is taken."""
    named = request.config.getoption("pictures")
    return Path(named) if named else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, nor look through what was collected later: it all stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what needs a broker on the embedded one or on Apache Kafka, or on both if that is asked for."""
    if "broker_kind" not in metafunc.fixturenames:
        return
    kinds = ["embedded"]
    if metafunc.config.getoption("kafka") == "all":
        kinds += ["kafka", "kafka3"]
    elif metafunc.definition.get_closest_marker("kafka"):
        kinds = [_KAFKA_OR_EMBEDDED]
    metafunc.parametrize("broker_kind", kinds, indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, mark what needs a broker or a store, and put what waits for them first."""
    _leave_out(config, items, "kafka_all", wanted=config.getoption("kafka") == "all")
    _leave_out(config, items, "calibrate", wanted=config.getoption("calibrate"))
    for item in items:
        if _ENGINES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("e2e")
    longest = {f"tests/{file}": number for number, file in enumerate(_LONGEST)}
    items.sort(key=lambda item: longest.get(item.nodeid.partition("::")[0], len(longest)))


def _leave_out(config: pytest.Config, items: list[pytest.Item], marker: str, *, wanted: bool) -> None:
    marked = [] if wanted else [item for item in items if item.get_closest_marker(marker)]
    if marked:
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if not item.get_closest_marker(marker)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why Apache Kafka was left out; tests may have run in other processes, so their reports say it."""
    reasons = {
        report.longrepr[2].partition(_LEFT_OUT)[2]
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple) and _LEFT_OUT in report.longrepr[2]
    }
    for reason in sorted(reasons):
        terminalreporter.write_line(f"{_LEFT_OUT}{reason}", yellow=True)


@pytest.fixture(scope="session")
def kafka_jars(request: pytest.FixtureRequest) -> Jars:
    """Apache Kafka, ready to start; without it the test is skipped or fails, as ``--kafka`` says."""
    jars = _kafka_jars(request.config)
    if isinstance(jars, Jars):
        return jars
    if request.config.getoption("kafka") in ("require", "all"):
        pytest.fail(jars)
    pytest.skip(f"{_LEFT_OUT}{jars}")


def _kafka_jars(config: pytest.Config) -> Jars | str:
    """Return the jars of Apache Kafka, or why there are none."""
    if config.getoption("kafka") == "off":
        return "--kafka=off"
    try:
        return prepared_jars()
    except SmidgenError as error:
        return str(error)


@pytest.fixture
def kafka_cluster(kafka_jars: Jars) -> Iterator[Callable[..., KafkaCluster]]:
    """Starts clusters of Apache Kafka with the arguments of ``ClusterSettings``; they end with the test."""
    with ExitStack() as running:
        yield lambda brokers=1, **settings: running.enter_context(
            KafkaCluster(brokers, ClusterSettings(jars=kafka_jars, **settings))
        )


@pytest.fixture
def kafka_broker(kafka_jars: Jars) -> Iterator[BrokerUrl]:
    """Bootstrap server of one broker of Apache Kafka with the topics, and nothing else on it."""
    with fresh_broker("kafka") as url:
        yield url


@pytest.fixture(scope="session")
def embedded() -> Iterator[EmbeddedStack]:
    """A broker and a store on loopback, with tables, for the whole run."""
    with EmbeddedStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Which broker a test runs on: embedded, kafka or kafka3 (three brokers)."""
    kind = str(request.param)
    if kind == _KAFKA_OR_EMBEDDED:
        may_miss = request.config.getoption("kafka") in ("auto", "off")
        kind = "embedded" if may_miss and isinstance(_kafka_jars(request.config), str) else "kafka"
    if kind != "embedded":
        request.getfixturevalue("kafka_jars")
    return kind


@pytest.fixture(scope="session")
def broker(broker_kind: str, request: pytest.FixtureRequest) -> Iterator[BrokerUrl]:
    """Bootstrap servers of a broker with the topics, which tests share."""
    if broker_kind == "embedded":
        stack: EmbeddedStack = request.getfixturevalue("embedded")
        asyncio.run(apply_topics(stack.broker, TOPICS))
        yield BrokerUrl(stack.broker, idempotent=False)
    else:
        with fresh_broker(broker_kind) as url:
            yield url


@pytest.fixture
def own_broker(broker_kind: str) -> Iterator[BrokerUrl]:
    """Bootstrap servers of a broker with the topics, and nothing of another test on it."""
    with fresh_broker(broker_kind) as url:
        yield url


@pytest.fixture(scope="session")
def store_dsn(embedded: EmbeddedStack) -> str:
    """DSN of the embedded store, which every process can use."""
    return embedded.store


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouseServer]:
    """ClickHouse's own server, for the whole run."""
    with ClickHouseServer() as server:
        yield server


@pytest.fixture(scope="session")
def clickhouse_dsn(clickhouse: ClickHouseServer) -> str:
    """DSN of ClickHouse's own server, with tables."""
    with closing(open_store(clickhouse.url)) as store:
        store.migrate()
    return clickhouse.url


@pytest.fixture
def shared_store(store_dsn: str) -> Iterator[Store]:
    """The embedded store, opened; keep apart from other tests by ``service_name``."""
    with closing(open_store(store_dsn)) as store:
        yield store


@pytest.fixture
def service_name() -> str:
    """A service that no other test uses."""
    return f"service-{uuid4().hex[:12]}"
