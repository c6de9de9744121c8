from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from pipeline.model import Verdict
from pipeline.model.errors import ConfigError
from pipeline.views.dashboard.item import item_of, similar, with_course
from pipeline.views.dashboard.verdicts import verdicts_of
from pipeline.views.dashboard.words import ago, relative, short_name, size
from tests.unit.views.dashboard.test_query import BASE, ITEMS, NOW

ROW = {
    **{"id": "a", "service": "shop", "workload": "weekly", "metric": "shop.cart.price"},
    **{"metric_kind": "subroutine", "time": 5.0, "detected_time": 9.0},
    **{"before": 0.01, "after": 0.02, "delta": 0.01, "p_value": 0.001},
}


def test_an_item_has_what_its_event_says() -> None:
    change = {"id": "8f2c11d0", "title": "Rules may be nested", "author": "ada"}
    data = {
        **{"relative": 1.0, "waste_servers": 4.0, "group_size": 3, "releases": ["v7"]},
        "root_causes": [{"change": change, "score": 0.9}],
    }
    item = item_of({**ROW, "event": orjson.dumps({"data": data}).decode()})
    assert (item.suspect, item.author, item.members) == ("Rules may be nested", "ada", 3)
    assert (item.relative, item.waste_servers, item.releases) == (1.0, 4.0, ("v7",))


def test_what_an_event_of_a_former_version_lacks_is_left_out() -> None:
    item = item_of({**ROW, "event": '{"data": {"root_causes": null}}'})
    assert (item.suspect, item.relative, item.waste_servers, item.members) == ("", None, None, 0)


@pytest.mark.parametrize(
    ("updates", "verdict", "state"),
    [
        ([], None, "new"),
        (["updated"], None, "new"),
        (["updated", "resolved"], None, "resolved"),
        (["resolved", "updated"], None, "new"),
        (["resolved"], "fixed", "fixed"),
        ([], "cost-shift", "cost-shift"),
    ],
)
def test_a_state_is_what_was_said_last_or_else_measured(updates: list[str], verdict: str, state: str) -> None:
    rows = [
        {"regression": "a", "type": type_, "time": 10.0 + number, "level": 0.01, "share_remaining": 0.0}
        for number, type_ in enumerate(updates)
    ]
    said = {"a": Verdict("a", "shop", verdict, NOW)} if verdict else {}  # type: ignore[arg-type]
    (item,) = with_course([BASE], rows, said, {"a": Verdict("a", "shop", "cause", NOW, subject="8f2c")})
    assert (item.state, item.cause) == (state, "8f2c")


def test_similar_ones_are_of_the_series_then_of_the_name_then_of_the_package() -> None:
    others = (
        replace(BASE, id="package", metric="shop.cart.tax"),
        replace(BASE, id="name", service="search"),
        replace(BASE, id="same"),
        replace(BASE, id="far", metric="lib.codec.read"),
        replace(BASE, id="strange", service="search", metric="shop.cart.tax"),
    )
    assert [one.id for one in similar(BASE, (BASE, *others))] == ["same", "name", "package"]


def test_a_verdict_is_checked_as_the_pipeline_checks_it() -> None:
    (said,) = verdicts_of([("a", "shop")], {"verdict": "fixed", "comment": " yes "}, author="ada", now=NOW)
    assert said == Verdict("a", "shop", "fixed", NOW, "ada", "yes")
    for given, named in (
        ({"verdict": "odd"}, "verdict: should be one of"),
        ({"verdict": "duplicate"}, "subject: missing"),
        ({"verdict": "duplicate", "subject": "a"}, "subject: an event is no duplicate of itself"),
        ({"verdict": "true", "subject": "b"}, "subject: of duplicates and causes alone"),
    ):
        with pytest.raises(ConfigError, match=named):
            verdicts_of([("a", "shop")], given, author="ada", now=NOW)
    with pytest.raises(ConfigError, match="choose a regression"):
        verdicts_of([], {"verdict": "true"}, author="ada", now=NOW)


def test_sizes_are_points_of_cpu_or_in_the_unit_of_the_metric() -> None:
    assert [size(item) for item in (ITEMS[0], replace(BASE, delta=0.00005), ITEMS[5])] == [
        "+1.00 pt",
        "+0.005 pt",
        "+12",
    ]
    assert [relative(ratio) for ratio in (0.041, 4.71, None, 2000.0)] == ["+4.1 %", "+471 %", "new", "new"]
    assert [ago(seconds) for seconds in (-3, 59, 7200, 200_000)] == ["0 s", "59 s", "2 h", "2 d"]
    assert short_name("shop.cart.rules.Price.total") == ("shop.cart.rules.", "Price.total")
    assert short_name("/cart") == ("", "/cart")
