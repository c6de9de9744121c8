"""``smidgen why`` over files: lines, pages and mistakes."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import orjson
import pytest

from pipeline.backtest.dataset import write_dataset
from pipeline.cli import run
from pipeline.messages.events import regression_event, update_event
from pipeline.messages.ledger import dropped_entries, entry_to_json
from tests.support.fleets import BASE, SLOWER, as_dataset, record
from tests.unit.commands.explained import DROPPED, GONE, REGRESSION, REPORTED, SCAN


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a backtest leaves: data, ledger and events."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    write_dataset(as_dataset(record("shop", [(60, BASE), (40, SLOWER)])), tmp_path / "data")
    ledger = [entry_to_json(entry) for entry in dropped_entries(SCAN)]
    events = [regression_event(REGRESSION, SCAN), update_event(GONE)]
    for name, rows in (("ledger", ledger), ("events", events)):
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return tmp_path


FILES = ["--ledger", "ledger.jsonl", "--ledger", "events.jsonl"]

DOMAIN = {
    **{"domain": "class: cart", "finding": "shifted", "before": 0.3, "after": 0.301},
    **{"statistic": 0.02, "bound": 0.5},
}


def test_a_dropped_one_is_reported_and_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", DROPPED[:6], "--ledger", "ledger.jsonl", "--data", "data"]) == 0
    out = capsys.readouterr().out
    assert "search.find rose from 20 % to 21 %" in out
    assert "✗ threshold" in out
    assert "▲ 2023-11-14 22:14:18 UTC" in out
    assert "-o OUT.html draws SAX letters, trend and season too" in out
    assert "\x1b" not in out, "no colour where nobody sees it"


def test_the_page_and_the_terminal_show_cost_domains(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = json.loads((folder / "ledger.jsonl").read_text())
    domain = {**DOMAIN, "domain": "class: <i>cart</i>"}
    (folder / "shift.jsonl").write_text(json.dumps({**line, "step": "cost_shift", "domains": [domain]}))
    arguments = ["why", DROPPED, "--ledger", "shift.jsonl", "--data", "data"]
    assert run(arguments) == 0
    assert "domain   class: <i>cart</i> (30 % → 30.1 %) did not rise with it" in capsys.readouterr().out
    assert run([*arguments, "-o", "why.html"]) == 0
    text = (folder / "why.html").read_text(encoding="utf-8")
    assert "class: &lt;i&gt;cart" in text
    assert "did not rise with it: the cost came from within</td>" in text


def test_a_reported_one_is_found_in_the_events(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", REPORTED, *FILES]) == 0
    out = capsys.readouterr().out
    assert "It was reported." in out
    assert "resolved since" in out
    assert "▲" not in out, "without data there is nothing to draw"


def test_lines_are_listed_newest_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", *FILES]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert (first.split()[0], second.split()[0]) == (REPORTED[:12], DROPPED[:12])
    assert first.endswith("cart.tax  10 % → 16 %  reported")
    assert second.endswith("search.find  20 % → 21 %  threshold 0.01 against 0.03")


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (["--metric", "cart.tax"], 1),
        (["--service", "shop"], 2),
        (["--service", "other"], 0),
        (["--since", "2023-11-14T22:14:36Z"], 0),
        (["--since", "2023-11-14T22:14:35Z"], 2),
        (["--since", "1d"], 2),
        (["--limit", "1"], 1),
    ],
)
def test_lines_are_chosen(
    folder: Path, capsys: pytest.CaptureFixture[str], flags: list[str], wanted: int
) -> None:
    assert run(["why", "--json", *FILES, *flags]) == 0
    assert len(capsys.readouterr().out.splitlines()) == wanted


def test_a_line_as_json_is_that_of_the_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", DROPPED, "--json", *FILES]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((folder / "ledger.jsonl").read_text())


def test_a_page_has_everything_and_needs_no_network(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", REPORTED[:8], *FILES, "--data", "data", "-o", "why.html"]) == 0
    text = (folder / "why.html").read_text(encoding="utf-8")
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    shown = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())
    assert "cart.tax rose from 10 % to 16 % of the service's CPU" in shown
    assert "SAX letters: one for every" in shown
    assert "the green line is the trend after the change (Theil-Sen)" in shown
    assert len(re.findall(r'<path class="trend(-before)?"', text)) == 2
    assert len(text) < 100_000, "a page is mailed around"
    assert "new pattern" in shown
    assert "Round <b>twice</b>" in shown
    assert "<b>twice" not in text, "what comes from outside is escaped"
    assert 'id="figure-series"' in text
    assert "default-src 'none'" in text
    assert not re.search(r'<(script|link|img|iframe)[^>]*\b(src|href)="?http', text)


NOTHING = {
    "no such service": (["--service", "shopp"], "nothing in the ledger of service 'shopp'; it has shop"),
    "no such metric": (["--metric", "cart.tux"], "no such series, or it never changed"),
    "too late": (
        ["--since", "2090-01-01"],
        "nothing in the ledger since 2090-01-01 00:00:00 UTC; the newest",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), NOTHING.values(), ids=NOTHING.keys())
def test_what_leaves_nothing_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert run(["why", *arguments, *FILES]) == 0
    assert expected in capsys.readouterr().out


def test_a_span_before_now_counts_from_the_newest_scan_of_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["why", "--since", "1m", *FILES]) == 0
    assert capsys.readouterr().out.count("\n") == 2


ERRORS = {
    "unknown id": (["abcdef", *FILES], "no candidate 'abcdef'"),
    "reported, but no events file": ([REPORTED, "--ledger", "ledger.jsonl"], "give the events file as well"),
    "too short": (["abc", *FILES], "'abc' is no id: at least six digits"),
    "no id": (["cart.tax", *FILES], "'cart.tax' is no id"),
    "id and service": ([REPORTED, "--service", "shop", *FILES], "give either ID, or --service"),
    "data without a ledger": ([REPORTED, "--data", "data"], "--data needs --ledger"),
    "page without an id": (["-o", "x.html", *FILES], "-o needs an ID"),
    "no such ledger": ([REPORTED, "--ledger", "gone.jsonl"], "gone.jsonl: No such file"),
    "no JSON": ([REPORTED, "--ledger", "broken.jsonl"], "broken.jsonl:2: not JSON"),
    "no line": ([REPORTED, "--ledger", "other.jsonl"], "other.jsonl:1: candidate: should be an object"),
    "no such data": ([REPORTED, *FILES, "--data", "gone"], "gone: No such file or directory"),
    "since when": (
        ["--since", "yesterday", *FILES],
        "Invalid value for '--since': should be a duration such as 2d",
    ),
    "unwritable page": ([REPORTED, *FILES, "--data", "data", "-o", "no/such/why.html"], "No such file"),
}


@pytest.mark.parametrize(("arguments", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_a_mistake_is_one_line_and_exit_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    (folder / "broken.jsonl").write_text("\n{")
    (folder / "other.jsonl").write_text('{"service": "shop"}')
    assert run(["why", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    assert expected in err


def test_digits_that_fit_several_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = json.loads((folder / "ledger.jsonl").read_text())
    twin = {**line, "id": DROPPED[:8] + "0" * 24}
    (folder / "twin.jsonl").write_text(json.dumps(twin))
    assert run(["why", DROPPED[:8], *FILES, "--ledger", "twin.jsonl"]) == 2
    assert "give more digits" in capsys.readouterr().err
    assert run(["why", DROPPED[:20], *FILES, "--ledger", "twin.jsonl"]) == 0


def test_an_unknown_workload_is_explained_but_not_drawn(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = json.loads((folder / "ledger.jsonl").read_text())
    (folder / "own.jsonl").write_text(json.dumps({**line, "workload": "own"}))
    assert run(["why", DROPPED, "--ledger", "own.jsonl", "--data", "data"]) == 0
    captured = capsys.readouterr()
    assert "search.find rose" in captured.out
    assert captured.err == "series not drawn: workload 'own' is not known; name its file with --workloads\n"
    assert run(["why", DROPPED, "--ledger", "own.jsonl", "--data", "data", "-o", "x.html"]) == 2
