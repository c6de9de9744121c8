"""Pages of trials over HTTP: experiments, the work behind a verdict, and models on A/A tests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard import Login, Sources, create_app
from pipeline.views.dashboard.experiments import PAGE, TrialQuery, read_list, read_query
from pipeline.views.dashboard.model_choices import courses_of
from pipeline.views.dashboard.trial_figures import draw_course, draw_differences
from pipeline.views.dashboard.trial_words import difference, discarded, interval, why_model
from tests.support.judged_trials import judge_experiments

END = 1_790_000_000.0
SCORE = {"model": "m", "false_positives": 0.03, "false_negatives": 0.1, "detectability": 0.02, "holds": True}
METRIC: dict[str, Any] = {
    **{"metric": "cpu", "decision": "fail", "threshold": 0.02, "alpha": 0.05, "direction": "up"},
    **{"difference": 0.05, "low": 0.04, "high": None, "model": "m", "scores": [SCORE]},
}


@pytest.fixture(scope="module")
def judged() -> ArrayStore:
    store = ArrayStore()
    judge_experiments(store, END)
    return store


def ask(store: ArrayStore, *paths: str) -> list[tuple[int, str]]:
    """Return status and text of some addresses."""

    async def use() -> list[tuple[int, str]]:
        app = create_app(Sources(store, clock=lambda: END), Login())
        async with TestClient(TestServer(app)) as client:
            answers = [await client.get(path, headers={"Accept": "text/html"}) for path in paths]
            return [(answer.status, await answer.text()) for answer in answers]

    return asyncio.run(use())


def test_the_list_has_every_experiment_with_its_latest_verdict(judged: ArrayStore) -> None:
    page = read_list(judged, TrialQuery(), END)
    assert [(one.service, one.name, one.verdict, one.trials) for one in page.lines] == [
        ("shop", "pr-9", "running", 3),
        ("search", "pr-0", "not enough", 6),
        ("shop", "pr-1", "fail", 8),
        ("shop", "short", "not enough", 2),
        ("shop", "feature/harmless", "not enough", 6),
        ("shop", "pr-0", "fail", 6),
    ]
    assert page.counts == {"fail": 2, "not enough": 3, "pass": 0, "running": 1}
    assert page.services == ("search", "shop")
    latest = page.lines[2].data
    assert latest is not None
    assert latest["revision"] == 2


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (TrialQuery(service="search"), ["pr-0"]),
        (TrialQuery(verdict="fail"), ["pr-1", "pr-0"]),
        (TrialQuery(service="shop", verdict="running"), ["pr-9"]),
        (TrialQuery(service="nobody"), []),
        (TrialQuery(verdict="fail", page=9), ["pr-1", "pr-0"]),
    ],
)
def test_the_list_is_filtered(judged: ArrayStore, query: TrialQuery, names: list[str]) -> None:
    assert [one.name for one in read_list(judged, query, END).lines] == names
    assert all(one.data for one in read_list(judged, query, END).lines if one.verdict != "running")


def test_an_experiment_that_nobody_goes_on_with_does_not_run(judged: ArrayStore) -> None:
    assert read_list(judged, TrialQuery(verdict="running"), END + 2 * DAY_S).total == 0


def test_a_long_list_has_pages(judged: ArrayStore) -> None:
    store = ArrayStore()
    (row,) = judged.rows(RowQuery("trial_verdicts", "search", 0.0, 2 * END, equal={"state": "published"}))
    for number in range(PAGE + 3):
        one = {**row, "experiment": f"e{number}", "id": f"i{number}", "time": row["time"] + number}
        store.insert("trial_verdicts", {name: [value] for name, value in one.items()})
    first, second = (read_list(store, TrialQuery(page=page), END) for page in (1, 2))
    assert (len(first.lines), len(second.lines), first.pages, first.total) == (PAGE, 3, 2, PAGE + 3)
    assert second.lines[-1].name == "e0"


@pytest.mark.parametrize(
    "given", [{"verdict": "good"}, {"page": "0"}, {"page": "x"}, {"page": "1" * 5000}, {"state": "open"}]
)
def test_a_wrong_filter_is_named(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(given))}: "):
        read_query(given)


def test_an_experiment_shows_its_work(judged: ArrayStore) -> None:
    ((status, page), (_, first), (_, one), (_, running)) = ask(
        judged,
        "/trials/shop/pr-1",
        "/trials/shop/pr-1?revision=1",
        "/trials/shop/feature%2Fharmless?metric=cpu",
        "/trials/shop/pr-9",
    )
    assert status == 200
    for text in ("fewest errors", "points of each side", "type=m5.large", "revision 2", "rB", "p-value"):
        assert text in page, text
    assert page.count('class="figure"') == 2
    assert "This is revision 1" in first
    assert "verdict in force alone" in first
    assert one.count('class="figure"') == 1
    assert "There is no verdict yet" in running


def test_trials_and_models_are_drawn(judged: ArrayStore) -> None:
    ((_, trials), (_, course), *missing) = ask(
        judged,
        "/trials/differences.json?service=shop&experiment=pr-1&metric=cpu",
        "/trials/models/course.json?service=shop&metric=cpu&number=1",
        "/trials/differences.json?service=shop&experiment=pr-1&metric=none",
        "/trials/differences.json?service=shop&experiment=pr-9&metric=cpu",
        "/trials/models/course.json?service=shop&metric=cpu&number=99",
    )
    (drawn,) = json.loads(trials)["data"]
    assert len(drawn["customdata"]) == 8
    assert "chosen" in [trace["name"] for trace in json.loads(course)["data"]]
    assert [status for status, _ in missing] == [404, 404, 404]


def test_models_are_shown_with_their_errors(judged: ArrayStore) -> None:
    ((_, page), (_, one), (_, other)) = ask(
        judged,
        "/trials/models",
        "/trials/models?service=shop&metric=cpu",
        "/trials/models?service=nobody",
    )
    assert "A/A trials of two weeks, shop" in page
    assert page.count("<tr data-href=") == 6
    assert "Experiments of 6 trials" in one
    assert "t-test-outlier-cap" in one
    assert "No model has been chosen yet for nobody" in other


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/trials/shop/none", 404),
        ("/trials/shop/pr-1?revision=9", 404),
        ("/trials/shop/pr-1?revision=x", 400),
        ("/trials?verdict=good", 400),
        ("/trials/differences.json?service=shop", 400),
    ],
)
def test_what_is_not_there_is_an_error_page(judged: ArrayStore, path: str, status: int) -> None:
    assert ask(judged, path)[0][0] == status


def test_trials_that_the_store_forgot_leave_the_verdict(judged: ArrayStore) -> None:
    store = ArrayStore()
    rows = judged.rows(RowQuery("trial_verdicts", "shop", 0.0, 2 * END, equal={"experiment": "pr-0"}))
    store.insert("trial_verdicts", {name: [row[name] for row in rows] for name in rows[0]})
    ((status, page),) = ask(store, "/trials/shop/pr-0")
    assert status == 200
    assert "keeps trials for 30 days" in page
    assert 'class="figure"' not in page


def test_names_are_no_markup(judged: ArrayStore) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    store = ArrayStore()
    (row,) = judged.rows(RowQuery("trial_verdicts", "search", 0.0, 2 * END, equal={"state": "published"}))
    event = row["event"].replace("latency_ms", hostile).replace('"rB"', f'"{hostile}"')
    one = {**row, "service": hostile, "experiment": hostile, "event": event}
    store.insert("trial_verdicts", {name: [value] for name, value in one.items()})
    address = "/trials/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    for status, page in ask(store, "/trials", address):
        assert status == 200
        assert "<img src=x" not in page
    figure = draw_differences({hostile: 0.1}, METRIC)
    assert figure is not None
    assert "<" not in figure.data[0].customdata[0]


def test_a_trial_that_never_became_steady_has_no_point() -> None:
    figure = draw_differences({"t1": 0.04, "t2": float("nan"), "t3": 0.06}, METRIC)
    assert figure is not None
    assert list(figure.data[0].x) == [1, 3]
    band = figure.layout.shapes[0]
    assert (band.y0, band.y1) == (4.0, figure.layout.yaxis.range[1])
    assert draw_differences({"t1": float("nan")}, METRIC) is None


def test_a_course_knows_its_changes() -> None:
    row = {"service": "s", "metric": "cpu", "trials": 6, "threshold": 0.01, "alpha": 0.05, "experiments": 20}
    scores = json.dumps([SCORE, {**SCORE, "model": "n", "detectability": None, "holds": False}])
    models = ("n", "m", "m", "")
    rows = [
        {**row, "time": 100.0 * n, "model": model, "former": "", "scores": scores}
        for n, model in enumerate(models)
    ]
    (course,) = courses_of(rows)
    assert [each.time for each in course.changes] == [300.0, 100.0]
    assert (course.since, course.latest.model, course.latest.score) == (300.0, "", None)
    assert [score.model for score in course.scores] == ["m", "n"]
    chosen = next(trace for trace in draw_course(course).data if trace.name == "chosen")
    assert list(chosen.y) == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "1 of 1 models held 5 % of false positives, and of these it had the fewest errors: 3.0 %"),
        ({"scores": [{**SCORE, "holds": False}], "model": "paired-t-test"}, "none of 1 models held 5 %"),
        ({"scores": [], "model": "paired-t-test"}, "too few A/A trials of this metric"),
        ({"scores": [], "model": "anytime-valid t-test"}, "all looks together"),
        ({"scores": [], "model": "none"}, "nothing to compare"),
    ],
)
def test_why_a_model_was_taken(given: dict[str, Any], said: str) -> None:
    assert said in why_model({**METRIC, **given})


def test_figures_in_words() -> None:
    assert (difference(0.0507), difference(None)) == ("+5.07 %", "–")
    assert interval(0.04, None) == "+4 to ∞ %"
    assert interval(None, -0.04) == "−∞ to -4 %"
    assert interval(None, None) == "unbounded"
    assert discarded([0, 0], []) == "no points"
    assert discarded([3, 3], []) == "6 points of each side, 3 a trial"
    assert discarded([3, 40, 5], [1]).endswith("3 to 5 a trial; trial 2 never became steady and is left out")
