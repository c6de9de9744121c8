from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import orjson
import pytest

from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format
from agents.logs.log_file import read_log
from agents.logs.request_type import folded_paths
from pipeline.messages.measurements import decode_metric_points
from pipeline.messages.requests import decode_requests
from pipeline.messages.schema.requests import MAX_BUCKET, MIN_BUCKET
from pipeline.model import MetricPoints, Outgoing
from pipeline.model.errors import ConfigError

START = 1_700_000_010  # a multiple of 30 s


def line(at: float, path: str = "/cart/1", status: int = 200, took: float = 0.1) -> str:
    fields = {"ts": START + at, "method": "GET", "path": path, "status": status, "duration_s": took}
    return orjson.dumps(fields).decode()


def tally(**options: object) -> RequestTally:
    return RequestTally(
        TallyOptions("shop", "h1", **options),  # type: ignore[arg-type]
        line_format("json"),
        RequestTypes(),
    )


def read(messages: Sequence[Outgoing]) -> dict[str, MetricPoints]:
    found = [decode_metric_points(message.value) for message in messages if message.topic == "metrics"]
    return {points.metric: points for points in found}


def test_requests_by_type_and_period() -> None:
    subject = tally()
    subject.add([line(i * 0.5, f"/cart/{i}" if i % 3 else "/") for i in range(600)])
    found = read(subject.finish())
    cart = found["requests{GET /cart/:id}"]
    assert cart.setup
    assert (cart.unit, cart.kind) == ("{request}/s", "traffic")
    assert cart.values == pytest.approx(4 / 3)
    assert cart.timestamps.tolist() == [START + 30 * i for i in range(1, 9)]
    assert found["requests{GET /}"].values == pytest.approx(2 / 3)
    assert found["responses{2xx}"].values == pytest.approx(2.0)
    assert not any(points.metric.startswith("response_") for points in found.values())


def test_a_type_without_requests_in_a_period_has_none() -> None:
    subject = tally()
    subject.add([line(i) for i in range(90)] + [line(90 + i, "/") for i in range(90)])
    assert read(subject.finish())["requests{GET /cart/:id}"].values.tolist() == [1, 1, 0, 0]


def test_a_table_has_response_times_where_the_log_has() -> None:
    subject = tally()
    subject.add(
        [line(i, took=(0.1, 0.4)[i % 2]) for i in range(60)] + [line(60 + i, "/", took=0) for i in range(61)]
    )
    table = subject.table()
    assert list(table) == [
        *("time", "GET /", "GET /cart/:id"),
        *("response_time{GET /}", "response_time{GET /cart/:id}"),
    ]
    assert table["response_time{GET /cart/:id}"] == pytest.approx(
        [0.2, np.nan, np.nan], rel=0.03, nan_ok=True
    )
    assert table["response_time{GET /}"] == pytest.approx([np.nan, 1e-6, 1e-6], rel=0.05, nan_ok=True)
    untimed = tally()
    untimed.add([line(i, took="-") for i in range(120)])  # type: ignore[arg-type]
    assert list(untimed.table()) == ["time", "GET /cart/:id"]


def test_requests_are_sent_by_host_release_and_period() -> None:
    subject = tally(release="v2")
    took = [0.0, 1e-9, 0.1, 0.1, 1e9]
    lines = [line(30 + i, status=200 + 100 * (i % 4), took=each) for i, each in enumerate(took)]
    subject.add([line(0), *lines, line(40, "/"), line(60)])
    sent = [message for message in subject.finish() if message.topic == "requests"]
    assert [message.key for message in sent] == ["shop/h1"]
    found = decode_requests(sent[0].value)
    assert (found.service, found.host, found.release) == ("shop", "h1", "v2")
    assert (found.start, found.period_s) == (START + 30, 30.0)
    home, cart = found.types
    assert (home.type, home.requests, home.responses) == ("GET /", 1, (0, 1, 0, 0, 0))
    assert (cart.type, cart.requests, cart.responses) == ("GET /cart/:id", 5, (0, 2, 1, 1, 1))
    bucket = math.ceil(math.log2(0.1) * 32) - 1
    assert cart.times == ((MIN_BUCKET, 2), (bucket, 2), (MAX_BUCKET, 1))


def test_latency_and_errors_are_judged_where_asked() -> None:
    took = np.random.default_rng(1).lognormal(-2, 0.7, 3000)
    subject = tally(latency=True, errors=True)
    lines = [
        line(30 + i * 0.01, status=503 if i % 10 == 0 else 200, took=t) for i, t in enumerate(took.tolist())
    ]
    subject.add([line(0), *lines, line(60)])
    found = read(subject.finish())
    p99 = found["response_time.p99{GET /cart/:id}"]
    assert (p99.setup, p99.unit, p99.kind) == (False, "s", "latency")
    assert p99.values[0] == pytest.approx(np.quantile(took, 0.99), rel=0.03)
    assert found["response_errors{GET /cart/:id}"].values[0] == pytest.approx(0.1)


def test_lines_of_closed_periods_are_counted() -> None:
    subject = tally(lateness_s=5.0)
    subject.add([line(0), line(31), line(62)])
    assert not read(subject.close())  # the first period is not whole
    subject.add([line(66)])
    assert list(read(subject.close())["requests{GET /cart/:id}"].timestamps) == [START + 30]
    subject.add([line(59)])
    assert subject.omissions.late == 1
    assert "1 came after their period was closed" in subject.summary()
    assert not subject.close(START + 94), "where no line comes, periods end by the clock"
    assert subject.close(START + 95)


def test_files_out_of_order_are_added_up() -> None:
    one, two = [line(i) for i in range(120)], [line(i + 0.5) for i in range(120)]
    subject = tally()
    subject.add(two)
    subject.add(one)
    assert read(subject.finish())["requests{GET /cart/:id}"].values.tolist() == [2, 2]


def test_one_wrong_year_does_not_close_what_comes() -> None:
    subject = tally(lateness_s=5.0)
    subject.add([line(0), line(31), line(40 * 365 * 86_400), line(32)], now=START + 33.0)
    subject.close(START + 33.0)
    subject.add([line(34), line(90)], now=START + 90.0)
    assert read(subject.close(START + 96.0))["requests{GET /cart/:id}"].values.tolist() == [0.1]
    assert (subject.omissions.late, subject.omissions.invalid_lines) == (0, [3])


def test_a_status_that_is_no_number_is_no_error() -> None:
    subject = tally(errors=True)
    subject.add([line(i, status=status) for i, status in enumerate(("abc", 599, 499, 600))])  # type: ignore[arg-type]
    assert read(subject.finish())["response_errors{GET /cart/:id}"].values == pytest.approx(0.5)


def test_a_log_read_twice_has_the_same_ids() -> None:
    ids = []
    for _ in range(2):
        subject = tally()
        subject.add([line(i) for i in range(120)])
        ids.append([orjson.loads(message.value)["id"] for message in subject.finish()])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ids[0])


def test_lines_that_cannot_be_read_are_named() -> None:
    subject = tally()
    subject.add([line(0), "x", "", line(1), '{"ts": 1, "path": "/x", "status": 200}', *["y"] * 9])
    assert (subject.omissions.invalid, subject.omissions.invalid_lines) == (11, [2, 5, 6, 7, 8])


def test_memory_is_bounded_by_closing_old_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.logs.request_tally.MOST_CELLS", 10)
    subject, found = tally(), []
    for i in range(100):
        subject.add([line(i * 30.0)])
        found += subject.close()
    found += subject.finish()
    wanted = [START + 30 * i for i in range(1, 99)]
    assert [decode_requests(m.value).start for m in found if m.topic == "requests"] == wanted
    points = [decode_metric_points(m.value) for m in found if m.topic == "metrics"]
    times = [one.timestamps for one in points if one.metric.startswith("requests")]
    assert sorted(np.concatenate(times)) == wanted


def test_gzip_and_plain_files_are_read(tmp_path: Path) -> None:
    content = "\n".join(f"line {i}" for i in range(200_000)).encode()
    (tmp_path / "a.gz").write_bytes(gzip.compress(content, 1))
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf" + content)  # a byte order mark is no part of a line
    for name in ("a", "a.gz"):
        found = [line for lines in read_log(tmp_path / name) for line in lines]
        assert (len(found), found[0], found[-1]) == (200_000, "line 0", "line 199999")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(content, 1)[:-100])
    with pytest.raises(ConfigError, match="damaged"):
        list(read_log(tmp_path / "cut.gz"))


def test_a_scan_leaves_the_types_of_a_service_as_they_are() -> None:
    counted = tally()
    scan = [line(n, f"/{a}{b}.php", 404) for n, (a, b) in enumerate(product("abcdefgh", "klmnopq"))]
    counted.add([line(0.0, "/cart/1"), *scan, line(59.0, "/cart/2", 404), line(59.5, "/search")])
    columns = counted.table()
    assert columns == {
        "time": [START, START + 30.0],
        "GET /cart/:id": [1.0, 1.0],
        "GET /search": [0.0, 1.0],
        "other": [30.0, 26.0],
    } | {name: column for name, column in columns.items() if name.startswith("response_time")}
    assert counted.summary() == "59 requests of 3 types in 59 lines; 56 have no type of their own"


def test_names_that_were_folded_by_their_number_are_said() -> None:
    subject = tally()
    subject.add([line(i * 0.5, f"/api/{chr(97 + i % 8)}x{chr(97 + i // 8 % 5)}/show") for i in range(200)])
    subject.add([line(i * 0.5, "/help") for i in range(200)])
    table = subject.table()
    folded = sum(table["GET /api/:name/show"])
    assert folded > 100
    assert subject.omissions.clauses()[-1] == (
        f"{folded:,.0f} to more than 30 names at /api were folded to :name: --rule names types"
    )


def test_paths_that_were_cut_are_said() -> None:
    subject = tally()
    deep = "/a" * 16
    subject.add([line(i * 0.5, f"{deep}/{'xy'[i % 2]}") for i in range(200)])
    assert sum(subject.table()[f"GET {deep}/…"]) == subject.omissions.cut
    assert 100 < subject.omissions.cut < 200
    assert subject.omissions.clauses()[-1] == (
        f"{subject.omissions.cut} to paths beyond 16 parts, 200 characters or 10,000 paths were cut to …: "
        "--rule names types"
    )


@pytest.mark.parametrize(
    ("type_", "folds", "paths"),
    [
        ("GET /api/:name", {"/api"}, ["/api"]),
        ("GET /:name/x/:name", {"/", "/:name/x"}, ["/", "/:name/x"]),
        ("GET /:name/x/:name", {"/:name/x"}, ["/:name/x"]),
        ("GET /api/:name", {"/"}, []),
        ("a rule", {"/"}, []),
    ],
)
def test_paths_whose_names_were_folded(type_: str, folds: set[str], paths: list[str]) -> None:
    assert folded_paths(type_, folds) == paths


def test_folds_survive_a_restart() -> None:
    types = RequestTypes()
    types.learn([f"GET /api/{chr(97 + i % 8)}x{chr(97 + i // 8)}" for i in range(40)])
    restored = RequestTypes()
    restored.restore(types.state())
    assert restored.folds == types.folds == {"/api"}
