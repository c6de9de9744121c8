"""``smidgen report``: events that it takes or refuses, and the windows that were scanned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.cli import run
from pipeline.messages.events import regression_event
from pipeline.model import Scan
from pipeline.model.errors import InvalidMessage
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import Store
from pipeline.views.report.ids import NOT_REPORTED
from pipeline.views.report.page import ReportData, render_report
from pipeline.views.report.windows import ScanWindows, scan_windows
from tests.unit.views.report.regressions import (
    CHANGE,
    END,
    STACKS,
    START,
    candidate,
    insert_regression,
    plots,
    regression,
    series,
    suspect,
    visible,
)


@pytest.mark.parametrize(
    "missing", ["metric", "before", "delta", "p_value", "workload", "change_time", "detected_time"]
)
def test_an_event_that_lacks_something_is_refused(live: Workload, missing: str) -> None:
    event = regression_event(regression(candidate()))
    windows = scan_windows(event, live)
    del event["data"][missing]

    with pytest.raises(InvalidMessage, match=missing):
        render_report(ReportData(event, windows, series(("subroutine", "shop.rank")), STACKS))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        pytest.param("group", [{"metric": "a"}], id="member without levels"),
        pytest.param("group", ["a"], id="member that is no object"),
        pytest.param("root_causes", [{"score": 1}], id="suspect without a change"),
        pytest.param("root_causes", [{"score": 1, "factors": {}, "change": {"id": "a"}}], id="half a change"),
        pytest.param("p_value", "small", id="text for a number"),
        pytest.param("relative", "much", id="text for a relative change"),
        pytest.param("cost_domains", [{"domain": "a", "finding": "odd"}], id="unknown finding"),
        pytest.param("cost_domains", "class: a", id="domains that are a text"),
        pytest.param("stacks", [["main", "f"]], id="stack without shares"),
        pytest.param("stacks", [{"stack": ["f", 1], "before": 0, "after": 1}], id="frame that is a number"),
        pytest.param("group_size", "many", id="text for a count"),
    ],
)
def test_an_event_with_something_wrong_is_refused(live: Workload, field: str, wrong: object) -> None:
    event = regression_event(regression(candidate(), suspect()))
    event["data"][field] = wrong

    with pytest.raises(InvalidMessage):
        render_report(
            ReportData(event, scan_windows(event, live), series(("subroutine", "shop.rank")), STACKS)
        )


def test_scan_windows_are_those_that_were_scanned(live: Workload) -> None:
    event = regression_event(regression(candidate()))

    assert scan_windows(event, live) == ScanWindows(1.0, END - 50, END - 20, END - 5, END)


def test_scan_windows_are_those_that_the_event_shows(live: Workload) -> None:
    found = regression(candidate())
    scan = Scan("shop", "live", START, START + 20, START + 40, START + 45, 1)

    windows = scan_windows(regression_event(found, scan), live)

    assert windows == ScanWindows(1.0, START, START + 20, START + 40, START + 45)


def test_scan_windows_hold_the_change_when_detected_between_boundaries(live: Workload) -> None:
    event = regression_event(replace(regression(candidate()), detected_time=CHANGE + 1.3))

    windows = scan_windows(event, live)

    assert windows.analysis_start <= CHANGE < windows.analysis_end


@pytest.mark.e2e
def test_the_command_draws_a_stored_event(
    shared_store: Store, store_dsn: str, service_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = regression(candidate(), suspect(), service=service_name)
    insert_regression(shared_store, found)
    target = tmp_path / "report.html"

    code = run(["report", found.id[:8].upper(), "-o", str(target), "--store", store_dsn])

    assert code == 0
    assert capsys.readouterr().out.strip() == str(target)
    text = target.read_text(encoding="utf-8")
    assert "shop.rank went from 4.00 % to 12.00 %" in visible(text)
    assert plots(text) == ["series", "before", "after"]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("nothing", "smidgen: 'nothing' is no id: at least six digits of 0-9 and a-f"),
        ("0123456789", f"smidgen: no candidate '0123456789': {NOT_REPORTED}: smidgen why 0123456789"),
    ],
)
def test_an_unknown_id_is_one_line_and_exit_2(
    store_dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, message: str
) -> None:
    target = tmp_path / "report.html"

    code = run(["report", key, "-o", str(target), "--store", store_dsn])

    assert code == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [message]
    assert not target.exists()


@pytest.mark.e2e
def test_a_workload_that_is_not_known_is_reported(
    shared_store: Store,
    store_dsn: str,
    service_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = replace(regression(candidate(), service=service_name), workload="../own")
    insert_regression(shared_store, found)

    code = run(["report", found.id, "-o", str(tmp_path / "r.html"), "--store", store_dsn])

    assert code == 2
    assert "'../own' is not known" in capsys.readouterr().err
