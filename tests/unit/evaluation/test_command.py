"""``smidgen score`` and ``smidgen compare`` on files, good and bad ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from pipeline.backtest.dataset import Dataset, write_dataset
from pipeline.cli import run
from pipeline.model.clock import to_iso

START = 1_767_571_200.0
HOUR = 3600.0


def truth_row(row_id: str = "r1", **keys: Any) -> dict[str, Any]:
    return {
        "id": row_id,
        "kind": "regression",
        "service": "shop",
        "subroutines": ["shop.a", "shop.main"],
        "metric_kind": "subroutine",
        "start": START + 48 * HOUR,
        "end": None,
        "delta": 0.001,
        "change": "c1",
        **keys,
    }


def event(event_id: str = "e1", kind: str = "smidgen.regression.detected", **data: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": event_id,
        "type": kind,
        "source": "/smidgen/shop",
        "time": to_iso(START + 60 * HOUR),
        "data": {
            "service": "shop",
            "workload": "frontfaas-small",
            "metric": "shop.a",
            "metric_kind": "subroutine",
            "kind": "short_term",
            "change_time": to_iso(START + 48 * HOUR),
            "detected_time": to_iso(START + 60 * HOUR),
            "before": 0.001,
            "after": 0.002,
            "delta": 0.001,
            "relative": 1.0,
            "p_value": 1e-9,
            "group": [{"metric": "shop.main", "metric_kind": "subroutine"}],
            "root_causes": [{"change": {"id": "c1"}, "score": 0.9, "factors": {}}],
            **data,
        },
    }


LEDGER_LINE = {
    "service": "shop",
    "workload": "frontfaas-small",
    "scan_end": START + 60 * HOUR,
    "candidate": {
        "metric_kind": "subroutine",
        "metric": "shop.a",
        "kind": "short_term",
        "change_time": START + 48 * HOUR,
        "before": 0.001,
        "after": 0.00104,
        "p_value": 1e-4,
        "statistic": 20.0,
    },
    "step": "threshold",
    "statistic": 0.00004,
    "bound": 0.00005,
    "reason": "absolute change below the threshold",
}


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a truth of two rows, of which an event reports one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "truth.jsonl", [truth_row(), truth_row("r2", subroutines=["shop.b"])])
    write(tmp_path / "events.jsonl", [event()])
    return tmp_path


SCORE = ["score", "--truth", "truth.jsonl", "--events", "events.jsonl"]


@pytest.mark.usefixtures("folder")
def test_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORE, "--json"]) == 0
    out, err = capfd.readouterr()
    found = orjson.loads(out)
    assert (found["precision"], found["recall"], found["false_positive_rate"]) == (1.0, 0.5, None)
    assert (found["true_positives"], found["false_positives"], found["false_negatives"]) == (1, 0, 1)
    assert found["root_cause"]["top_1"]["value"] == 1.0
    assert found["missed"] == ["r2"]
    assert found["delay_s"]["median"] == 12 * HOUR
    assert err == ""


def test_updates_and_replays_are_left_out(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(folder / "events.jsonl", [event(), event(), event("e1", "smidgen.regression.resolved")])
    assert run([*SCORE, "--json"]) == 0
    found = orjson.loads(capfd.readouterr().out)
    assert (found["events"], found["repeated"], found["precision"]) == (1, 0, 1.0)


def test_a_row_may_say_itself_whether_it_is_expected(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(folder / "truth.jsonl", [truth_row(kind="leak", expected=True), truth_row("r2", expected=False)])
    assert run([*SCORE, "--json"]) == 0
    found = orjson.loads(capfd.readouterr().out)
    assert [(kind["kind"], kind["expected"]) for kind in found["kinds"]] == [
        ("leak", True),
        ("regression", False),
    ]


@pytest.mark.usefixtures("folder")
def test_tolerance_decides(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    write(folder / "events.jsonl", [event(change_time=to_iso(START + 45 * HOUR))])
    for tolerance, recall in (("2h", 0.0), ("3h", 0.5)):
        assert run([*SCORE, "--json", "--tolerance", tolerance]) == 0
        assert orjson.loads(capfd.readouterr().out)["recall"] == recall


def test_an_unknown_workload_is_said(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(folder / "events.jsonl", [event(workload="mine")])
    assert run([*SCORE, "--json"]) == 0
    out, err = capfd.readouterr()
    assert orjson.loads(out)["recall"] == 0.5
    assert err.startswith("workload 'mine' is no preset")


def test_table_and_page(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steps = [{"step": "detected", "remaining": 9}, {"step": "threshold", "remaining": 1}]
    (folder / "funnel.json").write_bytes(orjson.dumps({"scans": 3, "series": 300, "steps": steps}))
    write(folder / "ledger.jsonl", [LEDGER_LINE])
    write(
        folder / "truth.jsonl",
        [truth_row(), truth_row("<script>alert(1)</script>", subroutines=["<img src=x>"])],
    )
    page = ["--funnel", "funnel.json", "--ledger", "ledger.jsonl", "--html", "out.html"]
    assert run([*SCORE, *page]) == 0
    out = capfd.readouterr().out
    assert "precision" in out
    assert "1/9" in out
    html = (folder / "out.html").read_text()
    assert "figure-roc" in html
    assert "figure-funnel" in html
    assert "<script>alert(1)" not in html
    assert "<img src=x>" not in html
    assert 'src="http' not in html


BAD: dict[str, tuple[str, Any, str]] = {
    "no such truth": ("truth.jsonl", None, ": No such file"),
    "truth not JSON": ("truth.jsonl", b"\n{", ":2: not JSON"),
    "truth not an object": ("truth.jsonl", b"[]", ":1: should be a JSON object, not a list"),
    "truth without start": ("truth.jsonl", truth_row(start=None), ":1: start: missing"),
    "truth in milliseconds": ("truth.jsonl", truth_row(start=START * 1000), ":1: start: "),
    "truth without delta": ("truth.jsonl", truth_row(delta=None), ":1: delta: missing"),
    "truth of another type": ("truth.jsonl", truth_row(delta="big"), ":1: delta: should be a num"),
    "truth twice": ("truth.jsonl", [truth_row(), truth_row()], ":2: id: 'r1' stands twice"),
    "truth ends first": ("truth.jsonl", truth_row(end=START), ":1: end: before start"),
    "truth of nothing": ("truth.jsonl", truth_row(subroutines=[]), ":1: subroutines: empty"),
    "truth of numbers": ("truth.jsonl", truth_row(subroutines=[1]), ":1: subroutines[0]: should"),
    "truth of no kind": ("truth.jsonl", truth_row(kind="regresion"), ":1: kind: 'regresion' is"),
    "truth that may be": ("truth.jsonl", truth_row(expected="yes"), ":1: expected: should be true"),
    "truth of a stage": ("truth.jsonl", truth_row(stages=[[START]]), ":1: stages[0]: should be a"),
    "truth of a time": ("truth.jsonl", truth_row(stages=[["x", 1]]), ":1: stages[0]: not"),
    "truth in disorder": (
        "truth.jsonl",
        truth_row(stages=[[START + 9, 0.5], [START, 1]]),
        ":1: stages: should be in order",
    ),
    "event not JSON": ("events.jsonl", b"nonsense", ":1: not JSON"),
    "no CloudEvent": ("events.jsonl", {"data": {}}, ":1: specversion: missing"),
    "event without data": ("events.jsonl", {**event(), "data": 1}, ":1: data: should be an object"),
    "event without metric": ("events.jsonl", event(metric=None), ":1: data.metric: missing"),
    "event without time": ("events.jsonl", event(change_time="then"), ":1: data.change_time: not"),
    "group of numbers": ("events.jsonl", event(group=[3]), ":1: data.group[0]: should be"),
    "member without name": ("events.jsonl", event(group=[{}]), ":1: data.group[0].metric: missing"),
    "suspect of nothing": (
        "events.jsonl",
        event(root_causes=[{}]),
        ":1: data.root_causes[0]: should be an object",
    ),
    "change without id": (
        "events.jsonl",
        event(root_causes=[{"change": {}}]),
        ":1: data.root_causes[0].change.id: missing",
    ),
    "funnel of nothing": ("funnel.json", {"scans": 1, "series": 2}, ": steps: missing"),
    "funnel step": (
        "funnel.json",
        {"scans": 1, "series": 2, "steps": [{"step": "detected"}]},
        ": steps[0].remaining: missing",
    ),
    "ledger line": ("ledger.jsonl", {**LEDGER_LINE, "step": None}, ":1: step: missing"),
}


@pytest.mark.parametrize(("name", "content", "message"), [pytest.param(*c, id=n) for n, c in BAD.items()])
def test_a_bad_file_is_named_with_line_and_key(
    folder: Path, capfd: pytest.CaptureFixture[str], name: str, content: Any, message: str
) -> None:
    steps = [{"step": "detected", "remaining": 1}]
    (folder / "funnel.json").write_bytes(orjson.dumps({"scans": 1, "series": 9, "steps": steps}))
    write(folder / "ledger.jsonl", [LEDGER_LINE])
    if content is None:
        (folder / name).unlink()
    else:
        rows = content if isinstance(content, list) else [content]
        raw = b"\n".join(row if isinstance(row, bytes) else orjson.dumps(row) for row in rows)
        (folder / name).write_bytes(raw)
    assert run([*SCORE, "--funnel", "funnel.json", "--ledger", "ledger.jsonl"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"{name}{message}" in err


@pytest.mark.usefixtures("folder")
def test_a_ledger_needs_a_funnel(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORE, "--ledger", "ledger.jsonl"]) == 2
    assert "--ledger needs --funnel" in capfd.readouterr().err


@pytest.mark.usefixtures("folder")
def test_compare_same(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "events.jsonl", "events.jsonl", "--json"]) == 0
    assert orjson.loads(capfd.readouterr().out) == {"same": True, "both": 1, "only_a": [], "only_b": []}


def test_compare_folders_with_plots(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, events in (("a", [event()]), ("b", [event("e9", metric="shop.b", group=[])])):
        (folder / name).mkdir()
        write(folder / name / "events.jsonl", events)
    write(folder / "b" / "ledger.jsonl", [LEDGER_LINE])
    write_dataset(_dataset(), folder / "data")
    assert run(["compare", "a", "b", "--json", "--data", "data", "--html", "out.html"]) == 1
    found = orjson.loads(capfd.readouterr().out)
    assert [one["metric"] for one in found["only_a"]] == ["shop.a"]
    assert found["only_a"][0]["lost"]["step"] == "threshold"
    assert [one["lost"] for one in found["only_b"]] == [None]
    html = (folder / "out.html").read_text()
    assert html.count('id="figure-event-') == 2
    assert "absolute change below the threshold" in html
    assert run(["compare", "a", "b"]) == 1
    assert "shop.b" in capfd.readouterr().out


def test_names_of_others_neither_steer_the_terminal_nor_style_it(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "shop.[/red]\x1b]0;x\x07" + "y" * 200
    write(folder / "other.jsonl", [event("e9", metric=name, group=[])])
    write(folder / "truth.jsonl", [truth_row(subroutines=[name], kind="[/a]\x1b[2J", expected=True)])
    assert run(["compare", "events.jsonl", "other.jsonl"]) == 1
    assert "shop.[/red]\\x1b]0;x\\x07" + "y" * 200 in capfd.readouterr().out
    assert run(SCORE) == 0
    out = capfd.readouterr().out
    assert "[/a]\\x1b[2J" in out
    assert "\x1b" not in out


@pytest.mark.usefixtures("folder")
def test_compare_with_a_folder_that_holds_no_events(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    assert run(["compare", "empty", "events.jsonl"]) == 2
    assert capfd.readouterr().err == "smidgen: empty/events.jsonl: No such file or directory\n"


def _dataset() -> Dataset:
    windows = 6 * 72
    rng = np.random.default_rng(1)
    return Dataset(
        service="shop",
        start=START,
        end=START + windows * 600.0,
        window_s=600.0,
        stack_window_s=3600.0,
        kinds=("subroutine", "subroutine"),
        names=("shop.a", "shop.b"),
        samples=rng.poisson(100, (2, windows)).astype(np.float64),
        totals=np.full(windows, 100_000.0),
        stacks=(("shop.main", "shop.a"),),
        stack_samples=np.full((1, windows // 6), 600.0),
        metrics=(),
        changes=(),
    )
