"""The command that counts access logs, without a broker."""

from __future__ import annotations

import gzip
import signal
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from agents.publishing.pending import Tally
from agents.publishing.publisher import Delivery
from pipeline.cli import run, smidgen
from pipeline.messages.measurements import decode_metric_points
from pipeline.messages.requests import decode_requests
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError

LINE = 'h - - [10/Oct/2023:13:{:02}:{:02} +0000] "GET /cart/{} HTTP/1.1" 200 5\n'


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[Outgoing]:
    kept: list[Outgoing] = []

    def publish(messages: Sequence[Outgoing], *_: Any) -> None:
        kept.extend(messages)

    module = import_module("agents.commands.logs")  # the package has a command of the same name
    monkeypatch.setattr(module, "publish_once", publish)
    return kept


def test_files_are_counted_together(tmp_path: Path, published: list[Outgoing]) -> None:
    lines = "".join(LINE.format(i // 60, i % 60, i) for i in range(180))
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "b").write_text(lines + "what is this\n")
    arguments = ["agent", "logs", str(tmp_path / "a.gz"), str(tmp_path / "b"), "--service", "shop"]
    arguments += ["--host", "web-1"]
    result = CliRunner().invoke(smidgen, arguments)
    assert result.exit_code == 0, result.output
    expected = "360 requests of 1 types in 361 lines; 1 lines could not be read, the first: 361"
    assert result.output.strip() == expected
    requests = [decode_requests(each.value) for each in published if each.topic == "requests"]
    assert [(each.host, each.types[0].requests) for each in requests] == [("web-1", 60)] * 4
    metrics = [message for message in published if message.topic == "metrics"]
    found = {p.metric: p for p in (decode_metric_points(message.value) for message in metrics)}
    assert found["requests{GET /cart/:id}"].values.tolist() == [2.0] * 4
    assert metrics[0].key == "shop/requests{GET /cart/:id}"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--follow", "a", "b"], "--follow: takes one file"),
        (["--follow", "-"], "--follow: takes one file"),
        (["a", "--rule", "x"], "LEFT=RIGHT"),
        (["a", "--rule", "GET /\udcff=x"], "LEFT=RIGHT"),
        (["a", "--lateness", "2d", "--follow"], "at most 1d"),
        (["a", "--period", "0s"], "--period"),
        (["a", "--state", "b"], "--state is for --follow"),
        (["a", "--metrics", "127.0.0.1:0"], "--metrics is for --follow"),
        (["a", "--follow", "--metrics", "9464"], "HOST:PORT"),
    ],
)
def test_wrong_usage_is_said(arguments: list[str], problem: str) -> None:
    result = CliRunner().invoke(smidgen, ["agent", "logs", "--service", "shop", *arguments])
    assert result.exit_code == 2
    assert problem in result.output


def test_a_followed_log_may_come_later_in_any_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, times = tmp_path / "later.log", iter([1_700_000_000.0, 1_700_000_100.0])
    module = import_module("agents.commands.logs")
    publisher = Mock(close=Mock(return_value=Delivery(Tally(), Tally(), Tally())))
    publisher.start = lambda: path.write_text('{"ts": 1700000000, "request": "GET /x"}\n')

    def clock() -> float:
        now = next(times, None)
        if now is None:
            signal.raise_signal(signal.SIGINT)
        return now or 1_700_000_200.0

    monkeypatch.setattr(module, "check_broker", lambda _: None)
    monkeypatch.setattr(module, "BackgroundPublisher", lambda *_: publisher)
    monkeypatch.setattr(module, "POLL_S", 0.0)
    monkeypatch.setattr(module, "system_clock", clock)
    arguments = ["agent", "logs", "--service", "shop", "--follow", str(path)]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        result = CliRunner().invoke(smidgen, arguments)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert result.output.strip() == "1 requests of 0 types in 1 lines"


@pytest.mark.parametrize("text", ["what is this\n" * 3, '{"a": 1}\n{"b": 2}\n'])
def test_a_log_of_which_no_line_can_be_read_is_said(
    tmp_path: Path, published: list[Outgoing], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd").write_text(text)
    for extra in ([], ["--table", str(tmp_path / "counts.csv")]):
        assert run(["agent", "logs", "--service", "shop", str(tmp_path / "odd"), *extra]) == 2
        assert capsys.readouterr().err.count("no line could be read") == 1
    assert not (tmp_path / "counts.csv").exists()
    assert published == []


def test_a_file_that_is_empty_or_absent_is_said(tmp_path: Path, published: list[Outgoing]) -> None:
    (tmp_path / "empty").write_text("")
    for name in ("empty", "absent"):
        result = CliRunner().invoke(smidgen, ["agent", "logs", "--service", "shop", str(tmp_path / name)])
        assert isinstance(result.exception, ConfigError)
        assert name in str(result.exception)
    assert published == []


def test_counts_become_a_table(tmp_path: Path, published: list[Outgoing]) -> None:
    lines = [LINE.format(i // 60, i % 60, i) for i in range(180)]
    lines[95] = lines[95].replace("/cart/95", "/buy")
    (tmp_path / "a").write_text("".join(lines))
    table = tmp_path / "counts.csv"
    arguments = ["agent", "logs", str(tmp_path / "a"), "--service", "shop", "--table", str(table)]
    result = CliRunner().invoke(smidgen, arguments)
    assert result.exit_code == 0, result.output
    # The first and the last period are left out: of them the log may hold a part.
    assert table.read_text().splitlines() == [
        "time,GET /buy,GET /cart/:id",
        *(f"{1696942800 + start},{int(start == 90)},{30 - int(start == 90)}" for start in (30, 60, 90, 120)),
    ]
    assert published == []


@pytest.mark.parametrize("extra", [["--follow"], []])
def test_a_table_that_cannot_be_written_is_refused_before(tmp_path: Path, extra: list[str]) -> None:
    log = tmp_path / "a"
    log.write_text(LINE.format(0, 0, 0))
    arguments = ["agent", "logs", str(log), "--service", "shop", "--table", str(log), *extra]
    assert CliRunner().invoke(smidgen, arguments).exit_code != 0
    assert log.read_text() == LINE.format(0, 0, 0)


@pytest.mark.parametrize("state", ["absent/state", ".", "a"])
def test_a_state_that_cannot_be_written_is_refused_before(
    tmp_path: Path, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text(LINE.format(0, 0, 0))
    arguments = ["--follow", str(tmp_path / "a"), "--service", "shop", "--broker", "127.0.0.1:1"]
    assert run(["agent", "logs", *arguments, "--state", str(tmp_path / state)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 or "Usage" in error
    assert "--state" in error or f"{tmp_path / state}: " in error


@pytest.mark.parametrize(
    ("fields", "options", "code", "said"),
    [
        ('"latency": 250', [], 2, "2 have a duration whose unit nothing says, such as 250: --duration-unit"),
        ('"latency": "soon"', [], 2, "2 have a duration that could not be read, such as 'soon'"),
        ('"x": 1', [], 2, "--latency: no response time could be read"),
        ('"latency": 250', ["--duration-unit", "ms"], 0, "2 requests of 1 types in 2 lines\n"),
        ('"latency": "250ms"', [], 0, "2 requests of 1 types in 2 lines\n"),
    ],
)
def test_response_times_that_are_asked_for_are_there_or_refused(
    fields: str,
    options: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    published: list[Outgoing],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "access.json"
    path.write_text(f'{{"ts": 1700000000, "method": "GET", "path": "/x", {fields}}}\n' * 2)
    arguments = ["agent", "logs", str(path), "--service", "shop", "--latency", *options]
    assert run(arguments) == code
    assert bool(published) == (code == 0)
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


@pytest.mark.parametrize(
    ("time", "options", "code", "said"),
    [
        ("2026-02-10 12:00:00", [], 0, "times without an offset count as UTC: --time-zone names another"),
        ("2026-02-10 12:00:00", ["--time-zone", "Europe/Berlin"], 0, "2 requests of 1 types in 2 lines\n"),
        ("2026-02-10 12:00:00Z", [], 0, "2 requests of 1 types in 2 lines\n"),
        ("2026-03-29 02:30:00", ["--time-zone", "Europe/Berlin"], 2, "showed it twice, or never"),
        ("2026-10-25 02:30:00", ["--time-zone", "Europe/Berlin"], 2, "showed it twice, or never"),
        (
            "2026-10-25 02:30:00+01:00",
            ["--time-zone", "Europe/Berlin"],
            0,
            "2 requests of 1 types in 2 lines\n",
        ),
        *(
            ("2026-02-10 12:00:00", ["--time-zone", zone], 2, "should be a time zone such as Europe/Berlin")
            for zone in ("Berlin", "europe/berlin", "", "+02:00", "Europe", "right/UTC", "../etc/passwd")
        ),
        ("10/02/2026 12:00", [], 2, "day, month and year may be meant in another order"),
        ("2026-02-10 12:00:00 CET", [], 2, "its time zone should be an offset such as +01:00"),
    ],
)
def test_times_are_read_or_the_reason_is_said(
    time: str,
    options: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    published: list[Outgoing],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "access.json"
    path.write_text(f'{{"time": "{time}", "method": "GET", "path": "/x"}}\n' * 2)
    assert run(["agent", "logs", str(path), "--service", "shop", *options]) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
