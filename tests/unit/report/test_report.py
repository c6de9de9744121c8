from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from pipeline.cli import run
from pipeline.codec.events import regression_event, regression_id
from pipeline.errors import InvalidMessage
from pipeline.model import (
    AppliedSilence,
    Candidate,
    Change,
    DomainDecision,
    MetricKind,
    Regression,
    Scan,
    SeriesMatrix,
    SetupExplanation,
    Silence,
    StackChange,
    StackMatrix,
    Suspect,
)
from pipeline.report.page import ReportData, render_report
from pipeline.report.windows import ScanWindows, scan_windows
from pipeline.storage.interface import Store
from pipeline.workloads import Workload
from tests.support.builders import build_stacks
from tests.support.fleets import LIVE

START = 1_700_000_000.0
CHANGE = START + 42.0
END = START + 55.0
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"


def candidate(metric: str = "shop.rank", kind: MetricKind = "subroutine", **changes: object) -> Candidate:
    found = Candidate(
        metric_kind=kind,
        metric=metric,
        kind="short_term",
        change_time=CHANGE,
        before=0.04,
        after=0.12,
        p_value=1e-9,
        statistic=50.0,
    )
    return replace(found, **changes)  # type: ignore[arg-type]  # tests name the fields


def regression(found: Candidate, *suspects: Suspect, service: str = "shop") -> Regression:
    return Regression(regression_id(service, "live", found, END), service, "live", found, END, suspects)


def suspect(text: str = "Search: keep hits in order", sha: str = "f67ada14f", score: float = 0.93) -> Suspect:
    change = Change(sha, "shop", CHANGE - 2, text, "Daniel", text, ("shop/search.py",), ("shop.rank",))
    return Suspect(change, score, {"attribution": 0.98})


def test_what_was_announced_of_it_is_on_its_page(live: Workload) -> None:
    said = Silence("e1", "shop", "expected", CHANGE, CHANGE, owner="<i>Ada</i>", cost=0.01, change="c0de")
    found = replace(regression(candidate()), silences=(AppliedSilence(said, 0.08),))
    text = "Reported though it was expected or muted: e1, of whatever it is about, 1 % announced, 8 % taken"
    assert text in page(found, live)
    assert "by &lt;i&gt;Ada" in page(found, live)


def test_a_flip_has_what_it_switches_on_its_page(live: Workload) -> None:
    code = Change("c0de", "shop", CHANGE - 9e4, "Rank <b>by price</b>", "Ada")
    shown = page(regression(candidate(), replace(suspect("Turn on by_price"), switches=(code,))), live)
    assert "switches <code>c0de</code> Rank &lt;b&gt;by price&lt;/b&gt; by Ada" in shown


def test_what_explains_a_regression_is_on_its_page(live: Workload) -> None:
    one = SetupExplanation("cache.<b>hits", CHANGE, 0.95, 0.81, -0.67, 1.02)
    shown = page(replace(regression(candidate()), explanations=(one,)), live)
    assert "Likely explanation: the set-up metric <code>cache.&lt;b&gt;hits</code>" in shown
    assert '<td class="num">0.95</td><td class="num">0.81</td>' in shown
    assert "Likely explanation" not in page(regression(candidate()), live)


def series(*names: tuple[MetricKind, str], windows: int = 60) -> SeriesMatrix:
    level = np.where(np.arange(windows) < 42, 8.0, 24.0)
    return SeriesMatrix(
        start=START,
        resolution_s=1.0,
        kinds=tuple(kind for kind, _ in names),
        names=tuple(name for _, name in names),
        samples=np.tile(level, (len(names), 1)),
        totals=np.full(windows, 200.0),
    )


STACKS = build_stacks(
    {"main->loop->search->rank": (4, 12), "main->loop->search": (6, 6), "main->loop->feed": (90, 82)}
)
NO_STACKS = StackMatrix((), np.empty(0), np.empty(0), 0.0, 0.0)


@pytest.fixture
def live() -> Workload:
    return LIVE


def page(
    found: Regression, live: Workload, matrix: SeriesMatrix | None = None, stacks: StackMatrix = STACKS
) -> str:
    event = regression_event(found)
    if matrix is None:
        matrix = series((found.candidate.metric_kind, found.candidate.metric))
    return render_report(ReportData(event, scan_windows(event, live), matrix, stacks))


def visible(text: str) -> str:
    """Return what stands outside scripts and styles, with entities decoded."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def plots(text: str) -> list[str]:
    return re.findall(r'id="figure-(\w+)"', text)


def test_a_page_says_what_happened(live: Workload) -> None:
    member = candidate("/search", "endpoint", before=0.13, after=0.2)
    found = regression(candidate(group=(member,)), suspect(), suspect("Rename", "abc", 0.1))

    text = page(found, live, series(("endpoint", "/search"), ("subroutine", "shop.rank")))

    shown = visible(text)
    assert "shop.rank went from 4.00 % to 12.00 % of the service's CPU" in shown
    assert "+8.00 points" in shown
    assert "+200 %" in shown
    assert "Most likely cause: Search: keep hits in order" in shown
    assert shown.index("Search: keep hits in order") < shown.index("Rename")
    assert "attribution 0.98" in shown
    assert "/search endpoint 13.00 % 20.00 % +7.00 points" in shown
    assert "historical 30 s, analysis 15 s, extended 5 s" in shown
    assert plots(text) == ["series", "before", "after"]
    assert text.count("<polyline") == 1


def test_a_page_names_the_frame_behind_a_symbol(live: Workload) -> None:
    event = regression_event(regression(candidate()))
    report = ReportData(event, scan_windows(event, live), series(("subroutine", "shop.rank")), STACKS)
    assert "frame shop.rank<int>(int) workload" in visible(
        render_report(replace(report, frame="shop.rank<int>(int)"))
    )
    assert "<dt>frame" not in render_report(report)


DOMAINS = (
    DomainDecision("class: shop", "too large", 0.9, 0.95, 0.3, -2.0),
    DomainDecision("callers: shop.find", "rose", 0.1, 0.18, 0.97, 0.5),
    DomainDecision("module: shop.new", "new", 0.0, 0.12, 1.0, 0.5),
)
LINES = (
    StackChange(("main", "loop", "shop.find", "shop.rank"), 0.03, 0.1),
    StackChange(("main", "loop", "…", "shop.rank", "shop.sort", "…"), 0.01, 0.005),
)


def test_a_page_shows_why_it_is_no_cost_shift(live: Workload) -> None:
    shown = visible(page(regression(candidate(domains=DOMAINS)), live))

    rose = "callers: shop.find rose with it: the cost is new 10.00 % 18.00 % 97 % 50 %"
    large = "class: shop is too large to show such a change above its own noise 90.00 % 95.00 % – –"
    assert shown.index(rose) < shown.index(large) < shown.index("module: shop.new did not exist before")


def test_a_page_shows_which_stacks_changed(live: Workload) -> None:
    text = page(replace(regression(candidate()), stacks=LINES), live)

    shown = visible(text)
    assert "All begin with main › loop ." in shown
    assert "+7.00 3.00 % 10.00 % shop.find › shop.rank" in shown
    assert "-0.50 1.00 % 0.50 % … › shop.rank › shop.sort › …" in shown
    stacks = text[text.index('id="h-stacks"') : text.index('id="h-flame"')]
    assert stacks.count("<mark><code>shop.rank</code></mark>") == 3, "in the note and in each line"
    assert re.findall(r'rect width="(\d+)%"', stacks) == ["100", "7"]


def test_one_stack_is_shown_whole(live: Workload) -> None:
    shown = visible(page(replace(regression(candidate()), stacks=LINES[:1]), live))

    assert "All begin with" not in shown
    assert "main › loop › shop.find › shop.rank" in shown


def test_factors_are_drawn_and_explained(live: Workload) -> None:
    factors = {"attribution": 0.98, "text": 0.4, "moon": 2.0}
    text = page(regression(candidate(), replace(suspect(), factors=factors)), live)

    shown = visible(text)
    assert "attribution 0.98 share of the regression from stacks" in shown
    assert "moon 2.00" in shown, "a factor of another version"
    table = text[text.index('<table class="factors"') :].split("</table>")[0]
    assert re.findall(r'rect width="(\d+)%"', table) == ["98", "100", "40"]


@pytest.mark.parametrize(
    ("servers", "reported"),
    [(500_000.0, "servers it takes 40,000 of 500,000"), (2.0, "servers it takes 0.16 of 2")],
)
def test_the_waste_is_reported_in_servers(live: Workload, servers: float, reported: str) -> None:
    assert reported in visible(page(replace(regression(candidate()), servers=servers), live))


def test_what_is_not_known_is_not_reported(live: Workload) -> None:
    """Also an event from before there were domains, stacks and servers."""
    event = regression_event(regression(candidate()))
    for added in ("cost_domains", "stacks", "servers", "waste_servers", "group_size"):
        del event["data"][added]
    matrix = series(("subroutine", "shop.rank"))
    shown = visible(render_report(ReportData(event, scan_windows(event, live), matrix, STACKS)))

    for absent in ("Cost domains", "Which stacks changed", "servers it takes"):
        assert absent not in shown


def test_a_group_that_was_cut_says_so(live: Workload) -> None:
    event = regression_event(regression(candidate(group=(candidate("/a", "endpoint"),))))
    event["data"]["group_size"] = 700
    matrix = series(("subroutine", "shop.rank"))

    shown = visible(render_report(ReportData(event, scan_windows(event, live), matrix, STACKS)))

    assert "And 699 more, which the event leaves out." in shown


def test_the_smallest_regressions_have_digits(live: Workload) -> None:
    shown = visible(page(regression(candidate(before=0.0001, after=0.00015)), live))

    assert "went from 0.01 % to 0.015 %" in shown
    assert "+0.005 points" in shown


def test_a_page_needs_no_network(live: Workload) -> None:
    text = page(regression(candidate(), suspect()), live)

    assert "default-src 'none'" in text
    assert not re.search(r'<(script|link|img|iframe)[^>]*\b(src|href)="?http', text)
    assert "Plotly.newPlot" in text
    assert len(text) > 1_000_000  # plotly itself is inside


def test_hostile_text_stays_text(live: Workload) -> None:
    member = candidate(HOSTILE + "member", "endpoint")
    domain = DomainDecision(HOSTILE, "rose", 0.1, 0.2, 1.0, 0.5)
    found = replace(
        regression(
            candidate(HOSTILE, group=(member,), domains=(domain,)), suspect(HOSTILE, HOSTILE), service=HOSTILE
        ),
        stacks=(StackChange((HOSTILE, "x"), 0.1, 0.2), StackChange((HOSTILE, "y"), 0.1, 0.2)),
    )
    stacks = replace(STACKS, stacks=(("main", HOSTILE), ("main", "<b>x</b>"), ("main", "y")))
    clean = page(regression(candidate(group=(candidate("/a", "endpoint"),)), suspect()), live, stacks=stacks)

    text = page(found, live, stacks=stacks)

    # No element more than in a page of harmless text, and none with a handler.
    assert text.count("<script") == clean.count("<script")
    assert text.count("<img") == clean.count("<img")
    assert "<script>alert" not in text
    assert "alert(1)</script>" not in text
    assert HOSTILE in html.unescape(text)
    assert "49" not in visible(text).split("alert")[1][:60]


def test_labels_in_plots_carry_no_markup(live: Workload) -> None:
    stacks = build_stacks({"main-><b>bold</b>": (5, 5), "main->other": (5, 5)})

    text = page(regression(candidate()), live, stacks=stacks)

    call = text[text.index('Plotly.newPlot(                        "figure-before"') :]
    assert "<b>bold" not in call.split("</script>")[0]
    assert json.loads('"' + re.findall(r'"([^"]*bold[^"]*)"', call)[0] + '"') == "&lt;b&gt;bold&lt;/b&gt;"


def test_without_stacks_there_are_no_flame_graphs(live: Workload) -> None:
    text = page(regression(candidate()), live, stacks=NO_STACKS)

    assert plots(text) == ["series"]
    assert "No change was deployed just before it" in visible(text)


def test_a_series_that_is_gone_is_said_to_be(live: Workload) -> None:
    text = page(regression(candidate()), live, series(("endpoint", "/other")), NO_STACKS)

    assert plots(text) == []
    assert "no longer has this series" in visible(text)


def test_windows_without_samples_leave_a_gap(live: Workload) -> None:
    matrix = series(("subroutine", "shop.rank"))
    matrix.totals[10:20] = 0

    text = page(regression(candidate()), live, matrix)

    assert plots(text)[0] == "series"
    assert "NaN" not in text[text.rindex("Plotly.newPlot") :]


def test_service_metrics_keep_their_unit(live: Workload) -> None:
    found = candidate("throughput", "service", before=1500.0, after=1312.5)
    matrix = replace(series(("service", "throughput")), totals=np.ones(60))

    shown = visible(page(regression(found), live, matrix, NO_STACKS))

    assert "throughput went from 1500 to 1312 CPU" not in shown
    assert "throughput went from 1500 to 1312" in shown
    assert "-187.5" in shown


@pytest.mark.parametrize("before", [0.0, 1e-18])
def test_what_did_not_exist_before_is_new(live: Workload, before: float) -> None:
    assert "relative new p-value" in visible(page(regression(candidate(before=before)), live))


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
    _store(shared_store, found)
    target = tmp_path / "report.html"

    code = run(["report", found.id, "-o", str(target), "--store", store_dsn])

    assert code == 0
    assert capsys.readouterr().out.strip() == str(target)
    text = target.read_text(encoding="utf-8")
    assert "shop.rank went from 4.00 % to 12.00 %" in visible(text)
    assert plots(text) == ["series", "before", "after"]


@pytest.mark.e2e
def test_an_unknown_id_is_one_line_and_exit_2(
    store_dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.html"

    code = run(["report", "nothing", "-o", str(target), "--store", store_dsn])

    assert code == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["smidgen: no regression 'nothing' in the store"]
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
    _store(shared_store, found)

    code = run(["report", found.id, "-o", str(tmp_path / "r.html"), "--store", store_dsn])

    assert code == 2
    assert "'../own' is not known" in capsys.readouterr().err


def _store(store: Store, found: Regression) -> None:
    windows = [START + second for second in range(60)]
    held = [8 if window < CHANGE else 24 for window in windows]

    def head(times: list[float]) -> dict[str, list[object]]:
        position = {"stream": "test", "topic": "profiles", "partition": 0, "last_offset": 1}
        same = {name: [value] * len(times) for name, value in {"service": found.service, **position}.items()}
        return {**same, "window": list(times)}

    store.insert("totals", {**head(windows), "samples": [200] * 60})
    series_of = {"kind": ["subroutine"] * 60, "subroutine": ["shop.rank"] * 60}
    store.insert("gcpu", {**head(windows), **series_of, "samples": held})
    coarse = windows[::5] * 2
    store.insert(
        "stacks",
        {
            **head(coarse),
            "width_s": [5.0] * 24,
            "stack_id": [1] * 12 + [2] * 12,
            "frames": [["main", "shop.rank"]] * 12 + [["main", "shop.feed"]] * 12,
            "samples": [5 * count for count in held[::5]] + [1000 - 5 * count for count in held[::5]],
        },
    )
    row = {
        "id": found.id,
        "service": found.service,
        "workload": found.workload,
        "metric_kind": found.candidate.metric_kind,
        "metric": found.candidate.metric,
        "time": found.candidate.change_time,
        "detected_time": found.detected_time,
        "before": found.candidate.before,
        "after": found.candidate.after,
        "delta": found.candidate.delta,
        "p_value": found.candidate.p_value,
        "event": orjson.dumps(regression_event(found)).decode(),
    }
    store.insert("regressions", {name: [value] for name, value in row.items()})
