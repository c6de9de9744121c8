"""Answers of the embedded store's front, compared with those of ClickHouse's own server."""

from __future__ import annotations

import gzip
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import NamedTuple
from urllib.parse import quote
from uuid import uuid4

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from loadgen.engines.clickhouse.server import ClickHouseServer

_ERROR = re.compile(r"Code: (\d+)\. DB::Exception: .*\(([A-Z_]+)\)", re.DOTALL)


class Answer(NamedTuple):
    """What a client goes by: a failure's code and name in place of the body, whose words may differ."""

    status: int
    code: str
    form: str
    kind: str
    body: bytes | tuple[str, str]


def ask(url: str, arguments: str, body: bytes | None, headers: Mapping[str, str], method: str) -> Answer:
    request = urllib.request.Request(f"{url}/{arguments}", body, dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = answer.headers, answer.read()
            status = answer.status
    except urllib.error.HTTPError as error:
        found, status = (error.headers, error.read()), error.code
    named, text = found
    failure = _ERROR.search(text.decode(errors="replace")) if status != 200 else None
    return Answer(
        status,
        named.get("X-ClickHouse-Exception-Code", ""),
        named.get("X-ClickHouse-Format", "") if status == 200 else "",
        named["Content-Type"] if status == 200 else "",
        (failure[1], failure[2]) if failure else text,
    )


def case(name: str, body: bytes | None, arguments: str = "", method: str = "POST", **headers: str) -> object:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return pytest.param(arguments, body, named, method, id=name)


FORMATS = (
    *("TSV", "TabSeparated", "TSVRaw", "TSVWithNames", "CSV", "CSVWithNames", "JSONEachRow"),
    *("JSONCompactEachRow", "Native", "RowBinary", "Vertical", "Values", "Null", "LineAsString"),
    *("PrettyCompactMonoBlock", "Parquet", "JSONStringsEachRow"),
)
SAME = [
    case("statement in the URL", None, "?query=SELECT+1", "GET"),
    case("statement in both", b" + 2", "?query=SELECT+1"),
    case("a trailing semicolon", b"SELECT 1;"),
    case("a semicolon in a text", b"SELECT 'a;b' ; "),
    case("several statements", b"SELECT 1; SELECT 2"),
    case("nothing", b""),
    case("space", b" \n"),
    case("a link that makes a table", None, "?query=CREATE+TABLE+x+(a+Int8)+ENGINE%3DMemory", "GET"),
    case("a link that adds rows", None, "?query=INSERT+INTO+system.one+VALUES+(1)", "GET"),
    case("HEAD", None, "?query=SELECT+1", "HEAD"),
    case("readonly", b"CREATE TABLE x (a Int8) ENGINE=Memory", "?readonly=1"),
    *(case(f"format {name}", f"SELECT 1 AS a FORMAT {name}".encode()) for name in FORMATS),
    case("format of the URL", b"SELECT 'a', 1", "?default_format=CSV"),
    case("format of a header", b"SELECT 1 AS a", X_ClickHouse_Format="JSONEachRow"),
    case("unknown format", b"SELECT 1 FORMAT Nope"),
    case("unknown default format", b"SELECT 1", "?default_format=Nope"),
    case("syntax", b"SELEC 1"),
    case("unknown table", b"SELECT * FROM nowhere"),
    case("unknown table of an insert", b"INSERT INTO nowhere FORMAT TSV\n1"),
    case("unknown function", b"SELECT nothing(1)"),
    case("unknown column", b"SELECT nothing"),
    case("unknown type", b"SELECT CAST(1 AS Nothing2)"),
    case("unknown engine", b"CREATE TABLE x (a Int8) ENGINE = Nothing"),
    case("unknown database", b"SELECT 1", "?database=nowhere"),
    case("unknown setting", b"SELECT 1", "?colour=1"),
    case("setting that is no number", b"SELECT 1", "?max_threads=x"),
    case("text that is no number", b"SELECT toInt32('x')"),
    case("types that do not fit", b"SELECT 1 + 'a'"),
    case("failure while it runs", b"SELECT throwIf(1)"),
    case("division by zero", b"SELECT intDiv(1, 0)"),
    case("too many rows", b"SELECT count() FROM numbers(100) WHERE number > 3", "?max_rows_to_read=10"),
    case("too much memory", b"SELECT groupArray(number) FROM numbers(9000000)", "?max_memory_usage=1000000"),
    case("too slow", b"SELECT count() FROM system.numbers", "?max_execution_time=1"),
    case("setting", b"SELECT getSetting('max_threads')", "?max_threads=7"),
    case("database of the URL", b"SELECT currentDatabase()", "?database=system"),
    case("database of a header", b"SELECT currentDatabase()", X_ClickHouse_Database="system"),
    case("parameter", b"SELECT {a:String}", f"?param_a={quote('größe')}"),
    case("escapes of a parameter", b"SELECT {a:String}", f"?param_a={quote(chr(92) + 't' + chr(92) * 2)}"),
    case("tab in a parameter", b"SELECT {a:String}", "?param_a=x%09y"),
    case("quote in a parameter", b"SELECT {a:String}", "?param_a=x%27%3B--"),
    case("array as parameter", b"SELECT {a:Array(Nullable(Int32))}", "?param_a=%5BNULL%2C1%5D"),
    case("null as parameter", b"SELECT {a:Nullable(String)} IS NULL", "?param_a=%5CN"),
    case("identifier as parameter", b"SELECT * FROM system.{t:Identifier}", "?param_t=one"),
    case("parameter of another type", b"SELECT {a:Int32}", "?param_a=x"),
    case("parameter that is not given", b"SELECT {a:Int32}"),
    case("compressed statement", gzip.compress(b"SELECT 7", mtime=0), Content_Encoding="gzip"),
    case(
        "wait for the end", b"SELECT throwIf(number = 3000000) FROM numbers(3000001)", "?wait_end_of_query=1"
    ),
]


@pytest.mark.parametrize(("arguments", "body", "headers", "method"), SAME)
def test_the_front_answers_as_the_server_does(
    store_dsn: str,
    clickhouse: ClickHouseServer,
    arguments: str,
    body: bytes | None,
    headers: dict[str, str],
    method: str,
) -> None:
    wanted = ask(clickhouse.url, arguments, body, headers, method)
    assert ask(store_dsn, arguments, body, headers, method) == wanted


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_run_nothing(server_dsn: str, method: str) -> None:
    # The statement stands in the address: a body that nobody reads may cut the connection before the answer.
    assert ask(server_dsn, "?query=SELECT%201", None, {}, method).status in (405, 501)


@pytest.fixture
def client(server_dsn: str) -> Iterator[clickhouse_connect.driver.Client]:
    with closing(clickhouse_connect.get_client(dsn=server_dsn, autogenerate_session_id=False)) as opened:
        yield opened


@pytest.mark.parametrize("compress", [False, "lz4", "zstd", "gzip"])
def test_the_driver_adds_and_reads_rows(server_dsn: str, compress: str | bool) -> None:
    client = clickhouse_connect.get_client(dsn=server_dsn, compress=compress, autogenerate_session_id=False)
    with closing(client):
        table = f"packed_{uuid4().hex}"
        client.command(f"CREATE TABLE {table} (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
        rows = [(number, f"größe {number}" * 20) for number in range(30_000)]  # several blocks
        client.insert(table, rows, column_names=["a", "b"])
        assert client.query(f"SELECT a, b FROM {table} ORDER BY a").result_rows == rows
        client.command(f"DROP TABLE {table}")


def test_the_driver_learns_the_code_of_a_failure(client: clickhouse_connect.driver.Client) -> None:
    with pytest.raises(DatabaseError) as raised:
        client.query("SELECT * FROM nowhere")
    assert (raised.value.code, raised.value.name) == (60, "UNKNOWN_TABLE")


def test_the_driver_notices_a_failure_after_the_first_rows(client: clickhouse_connect.driver.Client) -> None:
    sql = "SELECT throwIf(number = 3000000) AS a, number FROM numbers(4000000)"
    settings = {"max_block_size": 1000, "wait_end_of_query": 0, "http_response_buffer_size": 0}
    with pytest.raises(DatabaseError):
        _ = client.query(sql, settings=settings).result_rows  # the answer is read as its rows are used


def test_long_parameters_travel_in_a_form(client: clickhouse_connect.driver.Client) -> None:
    long = "größe '\\\n" * 5_000
    assert client.query("SELECT {text:String}", {"text": long}).result_rows == [(long,)]
