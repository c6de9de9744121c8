"""A regression's page: what it says, and what stays out of it."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from pipeline.messages.events import regression_event
from pipeline.model import (
    AppliedSilence,
    Candidate,
    Change,
    CostlierRequests,
    DomainDecision,
    SetupExplanation,
    Silence,
    StackChange,
)
from pipeline.settings.workloads import Workload
from pipeline.views.report.page import ReportData, render_report
from pipeline.views.report.windows import scan_windows
from tests.support.builders import build_stacks
from tests.unit.views.report.regressions import (
    CHANGE,
    NO_STACKS,
    STACKS,
    candidate,
    page,
    plots,
    regression,
    series,
    suspect,
    visible,
)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"


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
    assert 'data-label="before">0.95</td>' in shown
    assert 'data-label="after">0.81</td>' in shown
    assert "Likely explanation" not in page(regression(candidate()), live)


@pytest.mark.parametrize(
    ("chances", "texts"),
    [
        ((0.62, 0.31), ("GET /a 62 %", "GET /<b> 31 %", "Beside a type stands the probability")),
        pytest.param((), ("GET /a 2.00 % ± 0.78 % GET /<b>",), id="of a former version"),
    ],
)
def test_requests_that_cost_more_are_on_its_page(
    live: Workload, chances: tuple[float, ...], texts: tuple[str, ...]
) -> None:
    costlier = CostlierRequests("GET /a", "v2", "v1", 0.02, 0.004, ("GET /<b>",), chances)
    shown = page(regression(candidate(passed=(costlier.decision(),))), live)
    for text in texts:
        assert text in visible(shown)
    assert "Requests that cost more" not in page(regression(candidate()), live)


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


THROUGHPUT = candidate("throughput", "service", before=1500.0, after=1312.5)


@pytest.mark.parametrize(
    ("found", "servers", "texts"),
    [
        pytest.param(candidate(), 500_000.0, ["servers it takes 40,000 of 500,000"], id="waste"),
        pytest.param(candidate(), 2.0, ["servers it takes 0.16 of 2"], id="waste of few servers"),
        pytest.param(
            candidate(before=0.0001, after=0.00015),
            None,
            ["went from 0.01 % to 0.015 %", "+0.005 points"],
            id="the smallest have digits",
        ),
        pytest.param(
            THROUGHPUT, None, ["throughput went from 1500 to 1312", "-187.5"], id="metrics keep their unit"
        ),
        pytest.param(candidate(before=0.0), None, ["relative new p-value"], id="not there before"),
        pytest.param(candidate(before=1e-18), None, ["relative new p-value"], id="hardly there before"),
    ],
)
def test_sizes(live: Workload, found: Candidate, servers: float | None, texts: list[str]) -> None:
    matrix = series((found.metric_kind, found.metric))
    if found.metric_kind == "service":
        matrix = replace(matrix, totals=np.ones(60))
    shown = visible(page(replace(regression(found), servers=servers), live, matrix))
    assert [text for text in texts if text not in shown] == []
    assert "1312 CPU" not in shown


def test_what_is_not_known_is_not_reported_and_a_group_that_was_cut_says_so(live: Workload) -> None:
    """Also an event from before there were domains, stacks and servers."""
    event = regression_event(regression(candidate(group=(candidate("/a", "endpoint"),))))
    matrix = series(("subroutine", "shop.rank"))
    event["data"]["group_size"] = 700
    shown = visible(render_report(ReportData(event, scan_windows(event, live), matrix, STACKS)))
    assert "And 699 more, which the event leaves out." in shown
    for added in ("cost_domains", "stacks", "servers", "waste_servers", "group_size"):
        del event["data"][added]
    shown = visible(render_report(ReportData(event, scan_windows(event, live), matrix, STACKS)))
    for absent in ("Cost domains", "Which stacks changed", "servers it takes"):
        assert absent not in shown


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


def test_without_stacks_there_are_no_flame_graphs_and_a_series_that_is_gone_is_said_to_be(
    live: Workload,
) -> None:
    text = page(regression(candidate()), live, stacks=NO_STACKS)
    assert plots(text) == ["series"]
    assert "No change was deployed just before it" in visible(text)
    gone = page(regression(candidate()), live, series(("endpoint", "/other")), NO_STACKS)
    assert plots(gone) == []
    assert "no longer has this series" in visible(gone)


def test_windows_without_samples_leave_a_gap(live: Workload) -> None:
    matrix = series(("subroutine", "shop.rank"))
    matrix.totals[10:20] = 0

    text = page(regression(candidate()), live, matrix)

    assert plots(text)[0] == "series"
    assert "NaN" not in text[text.rindex("Plotly.newPlot") :]
