"""`smidgen feedback` over a real store: published, listed and refused verdicts."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.commands.feedback import answer
from loadgen.evaluation.reading import read_truth
from pipeline.backtest.dataset import read_dataset
from pipeline.cli import run
from pipeline.messages.inputs import decode_feedback
from pipeline.messages.ledger import dropped_entries, ledger_columns, reported_entries
from pipeline.messages.records import columns_of
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import Outgoing, Scan, Verdict, VerdictKind
from pipeline.storage.connect import open_store
from tests.contract.rows import change, gcpu, totals
from tests.support.builders import build_candidate, build_dropped

T0 = 1_790_000_000.0
NOW = T0 + 86_400.0


def regression_row(service: str, number: str, **own: Any) -> dict[str, Any]:
    """A row of ``regressions`` as a stage would write it, but for the event."""
    return {
        **{"id": f"{number}-{service}", "service": service, "workload": "live", "metric_kind": "subroutine"},
        **{"metric": "shop.price", "time": T0, "detected_time": T0 + 60, "before": 0.1, "after": 0.12},
        **{"delta": 0.02, "p_value": 1e-9, "event": "{}", **own},
    }


class Typed:
    """A terminal: what is published goes to the store, as aggregate brings it there."""

    def __init__(self, dsn: str, service: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.dsn, self.service, self.capsys = dsn, service, capsys
        self.published: list[Verdict] = []
        self.stores = True

    def publish(self, messages: Sequence[Outgoing], *_: Any) -> None:
        for message in messages:
            said = decode_feedback(message.value)
            assert isinstance(said, Verdict)
            assert (message.topic, message.key) == ("feedback", said.service)
            self.published.append(said)
            if self.stores:
                self.insert("verdicts", verdict_to_row(said))

    def insert(self, table: Any, *rows: dict[str, Any]) -> None:
        with closing(open_store(self.dsn)) as store:
            store.insert(table, columns_of(rows))

    def insert_columns(self, table: Any, columns: Any) -> None:
        with closing(open_store(self.dsn)) as store:
            store.insert(table, columns)

    def __call__(self, line: str, *more: str) -> tuple[int, str, str]:
        words = line.format(s=self.service).split()
        code = run(["feedback", *words, *more, "--store", self.dsn])
        output = self.capsys.readouterr()
        return code, output.out, output.err

    def listed(self, *more: str) -> list[dict[str, Any]]:
        code, out, _ = self("list --service {s} --json", *more)
        assert code == 0
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def typed(
    store_dsn: str, service_name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Typed:
    """A service with three events and one change."""
    typed = Typed(store_dsn, service_name, capsys)
    rows = [regression_row(service_name, number) for number in ("zz1", "zz2", "bb1")]
    typed.insert("regressions", *rows)
    with closing(open_store(store_dsn)) as store:
        store.insert("changes", change(service_name, "8f2c11d0", T0))
    monkeypatch.setattr(answer, "publish_once", typed.publish)
    moments = iter(range(1000))
    monkeypatch.setattr(answer, "system_clock", lambda: NOW + next(moments))
    return typed


def test_an_answer_is_published_and_listed(typed: Typed) -> None:
    code, out, _ = typed("bb1-{s} true --author ada --comment", "the parser's loop", "--wait", "5s")
    assert (code, out) == (0, f"bb1-{typed.service}  {typed.service}  shop.price  true\n")
    (said,) = typed.published
    assert said == Verdict(
        f"bb1-{typed.service}", typed.service, "true", NOW, "ada", comment="the parser's loop"
    )
    (listed,) = typed.listed()
    assert (listed["verdict"], listed["author"], listed["metric"]) == ("true", "ada", "shop.price")
    code, out, _ = typed("list --service {s}")
    line = f"bb1-{typed.service}  {typed.service}  shop.price  true  by ada  2026-09-22 "
    assert out.startswith(line)
    assert out.endswith("(the parser's loop)\n")
    assert typed.listed("--verdict", "false") == []


def test_the_latest_of_all_is_the_state_and_a_cause_stands_beside_it(typed: Typed) -> None:
    assert typed("bb1-{s} cause 8f2c11d --author ada")[0] == 0
    assert typed("bb1-{s} false --author ben")[0] == 0
    assert typed("bb1-{s} acknowledged --author ada")[0] == 0
    (listed,) = typed.listed()
    assert (listed["verdict"], listed["author"]) == ("acknowledged", "ada")
    assert listed["cause"]["change"] == "8f2c11d0"
    assert "cause 8f2c11d0" in " ".join(typed("list --service {s}")[1].split())


def test_duplicates_stand_in_the_line_of_the_first(typed: Typed) -> None:
    assert typed("zz1-{s} true")[0] == typed("zz2-{s} duplicate --of zz1-{s}")[0] == 0
    assert {row["original"] for row in typed.listed()} == {f"zz1-{typed.service}"}
    lines = typed("list --service {s}")[1]
    assert "duplicate" in lines
    assert lines.count("zz1-") == 1
    assert "zz2-" not in lines


def test_what_is_fixed_and_still_there_is_contradicted(typed: Typed) -> None:
    assert typed("bb1-{s} fixed")[0] == 0
    assert [row["fix"] for row in typed.listed()] == ["waiting"]
    scan = {"service": typed.service, "workload": "live", "series": 1, "candidates": 0}
    typed.insert("scans", {**scan, "time": NOW + 30 * 86_400})
    assert [row["fix"] for row in typed.listed()] == ["contradicted"]
    resolved = regression_row(typed.service, "u1", type="resolved", regression=f"bb1-{typed.service}")
    gone = {
        name: value for name, value in resolved.items() if name not in ("detected_time", "delta", "p_value")
    }
    typed.insert("updates", {**gone, "time": NOW + 600, "level": 0.1, "share_remaining": 0.0})
    assert [row["fix"] for row in typed.listed()] == ["confirmed"]


def test_an_expected_one_has_an_end(typed: Typed) -> None:
    assert typed("bb1-{s} expected --until 2026-12-01T00:00:00Z --dry-run")[0] == 0
    assert typed.published == []
    assert typed("bb1-{s} expected --until 2026-12-01T00:00:00Z")[0] == 0
    assert typed.published[0].end == 1_796_083_200.0


def test_what_is_not_stored_in_time_is_said(typed: Typed) -> None:
    typed.stores = False
    code, _, err = typed("bb1-{s} true --wait 1s")
    assert code == 1
    assert err == "published, and not stored within 1 s: does aggregate run?\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("zz9 true", "no event 'zz9'"),
        ("zz true", "'zz' could be zz1-"),
        ("bb1-{s} maybe", "'maybe' is not one of 'true', 'false'"),
        ("bb1-{s}", "Missing argument 'VERDICT'"),
        ("bb1-{s} duplicate", "'duplicate' takes --of ID, and it alone"),
        ("bb1-{s} true --of zz1-{s}", "'duplicate' takes --of ID, and it alone"),
        ("bb1-{s} duplicate --of bb1-{s}", "an event is no duplicate of itself"),
        ("bb1-{s} duplicate --of zz9", "no event 'zz9'"),
        ("bb1-{s} cause", "'cause' takes a CHANGE, and it alone"),
        ("bb1-{s} true 8f2c11d", "'cause' takes a CHANGE, and it alone"),
        ("bb1-{s} cause 99999", "no change '99999' of"),
        ("bb1-{s} true --until 3d", "end: of expected ones alone"),
        ("bb1-{s} expected --until 2020-01-01", "end: should be after time"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(typed: Typed, line: str, reason: str) -> None:
    code, out, err = typed(line)
    assert (code, out, typed.published) == (2, "", [])
    assert reason in err
    assert err.count("\n") == 1


def test_precision_and_thresholds_come_from_answers(typed: Typed) -> None:
    assert typed("precision --service {s}")[1] == "no event has an answer that says whether it is right\n"
    rows = [regression_row(typed.service, f"r{n:02}", after=0.2 + 0.01 * n) for n in range(10)]
    rows += [regression_row(typed.service, f"w{n:02}", after=0.11, detected_time=NOW) for n in range(3)]
    typed.insert("regressions", *rows)
    for row in rows:
        verdict: VerdictKind = "true" if row["id"].startswith("r") else "false"
        typed.insert("verdicts", verdict_to_row(Verdict(row["id"], typed.service, verdict, NOW, "ada")))
    code, out, _ = typed("precision --service {s}")
    assert code == 0
    assert "10 of 13  77 %  (50–92 %)" in out
    code, out, _ = typed("precision --service {s} --json")
    everything = json.loads(out.splitlines()[0])
    assert (everything["by"], everything["hits"], everything["of"]) == ("all", 10, 13)
    code, out, _ = typed("thresholds --service {s} --json --workloads live")
    (proposal,) = map(json.loads, out.splitlines())
    assert proposal["proposed"] == pytest.approx(0.9 if proposal["measure"] == "relative" else 0.09)
    assert (proposal["dropped"]["hits"], proposal["kept"]["of"]) == (3, 10)
    assert [each["area"] for each in proposal["roc"]] == [1.0, 0.5]
    code, out, _ = typed("thresholds --service {s}")
    assert (code, "keeps 10 of 10 right ones" in out) == (0, True)
    code, out, _ = typed("thresholds --service {s} --keep 0.7")
    assert (code, "keeps 8 of 10 right ones" in out) == (0, True)


def test_settings_are_compared_by_what_the_ledger_has(typed: Typed) -> None:
    end = float(int(time.time())) - 3600
    candidates = [
        build_candidate(f"shop.f{n}", before=0.1, after=after, change_time=end - 30)
        for n, after in enumerate((0.13, 0.102))
    ]
    # Table 3's frontfaas-large: an absolute threshold of 0.03.
    scan = Scan(typed.service, "frontfaas-large", end - 90, end - 60, end - 10, end, 2, tuple(candidates[:1]))
    dropped = replace(
        scan, candidates=(), dropped=(build_dropped(candidates[1], "threshold", 0.002, 0.03, "absolute"),)
    )
    entries = [*reported_entries(scan), *dropped_entries(dropped)]
    typed.insert_columns("ledger", ledger_columns(entries))
    scanned = {"service": typed.service, "workload": scan.workload, "series": 2, "candidates": 2}
    typed.insert("scans", {**scanned, "time": end})
    event = regression_row(
        typed.service, entries[0].id, workload=scan.workload, metric="shop.f0", time=end - 30
    )
    typed.insert("regressions", {**event, "id": entries[0].id})
    typed.insert("verdicts", verdict_to_row(Verdict(entries[0].id, typed.service, "false", end, "ada")))
    code, out, _ = typed("compare frontfaas-large --service {s} --threshold 0.04 --json")
    (line,) = map(json.loads, out.splitlines())
    assert (code, line["id"], line["verdict"], line["right"]) == (1, entries[0].id, "false", False)
    assert (line["first"]["fate"], line["second"]) == ("reported", {"fate": "silent", "step": "threshold"})
    code, out, _ = typed("compare frontfaas-large --service {s} --threshold 0.001")
    assert code == 1
    assert out.splitlines()[0].startswith(f"* {entries[1].id}  {typed.service}  shop.f1  ")
    assert out.splitlines()[-1] == (
        "2 regressions, 1 reported by the first: the second reports 0 fewer (0 right, 0 wrong), "
        "at most 1 more (0 right, 0 wrong)"
    )
    code, out, _ = typed("compare frontfaas-large --service {s} --threshold 0.02 --threshold 0.02 --all")
    assert (code, out.count("reported | reported")) == (0, 1)
    for wrong, reason in (
        ("compare nothing --threshold 1", "no workload 'nothing'"),
        ("compare live", "another --threshold"),
    ):
        code, _, err = typed(wrong)
        assert (code, err.count("\n")) == (2, 1)
        assert reason in err


def test_events_are_classed_by_what_people_wrote_and_did(typed: Typed) -> None:
    assert typed("zz1-{s} acknowledged --author ada", "--comment", "Rolled back release 41.")[0] == 0
    assert typed("zz2-{s} false --author ada")[0] == 0
    rows = [json.loads(line) for line in typed("label --service {s} --json")[1].splitlines()]
    assert {row["event"][:3]: (row["status"], row["basis"]) for row in rows} == {
        "zz1": ("fixed", "comment"),
        "zz2": ("false positive", "verdict"),
        "bb1": ("review", "nothing"),
    }
    code, _, err = typed("label --service {s} --endpoint http://127.0.0.1:1/v1")
    assert (code, "--endpoint and --model together" in err) == (2, True)


def test_answered_series_are_kept_as_a_dataset_with_their_truth(typed: Typed, tmp_path: Path) -> None:
    windows = [T0 + 60 * number for number in range(20)]
    typed.insert_columns("totals", totals(typed.service, [(window, 1000) for window in windows]))
    typed.insert_columns("gcpu", gcpu(typed.service, [("shop.price", window, 100) for window in windows]))
    assert typed("export --service {s}", str(tmp_path))[0] == 2
    assert typed("zz1-{s} cause 8f2c11d0")[0] == typed("zz2-{s} false")[0] == 0
    assert typed("bb1-{s} duplicate --of zz1-{s}")[0] == 0
    code, out, err = typed("export --service {s} --history 1h", str(tmp_path))
    folder = tmp_path / typed.service
    assert (code, out, err) == (0, f"{folder}  1 series, 2 answers\n", "")
    dataset = read_dataset(folder)
    assert (dataset.names, dataset.samples.sum(), dataset.totals.sum()) == (("shop.price",), 2000, 20_000)
    assert [change.id for change in dataset.changes] == ["8f2c11d0"]
    rows = read_truth(folder / "truth.jsonl")
    assert [(row.id[:3], row.kind, row.change, row.start) for row in rows] == [
        ("zz1", "regression", "8f2c11d0", T0),
        ("zz2", "transient", None, T0),
    ]
