"""Dashboards of deploy/grafana/tables: each query runs on the store, with macros and variables filled in."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
import yaml

from pipeline.storage.connect import open_client, open_store
from tests.support.paths import ROOT

FOLDER = ROOT / "deploy" / "grafana"
DASHBOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted((FOLDER / "tables").glob("*.json"))
}
PLUGIN = "grafana-clickhouse-datasource"
NOW = time.time() // 600 * 600
NASTY = "shop's \\ $x"
VALUES = {"service": NASTY, "kind": "subroutine", "name": "shop.f", "metric": "latency"}


def targets(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the queries of panels and annotations by their titles."""
    found = {panel["title"]: target for panel in board["panels"] for target in panel["targets"]}
    return found | {each["name"]: each["target"] for each in board["annotations"]["list"]}


def variables(board: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["query"] for each in board["templating"]["list"] if each["type"] == "query"}


QUERIES = {
    **{(n, title): t["rawSql"] for n, board in DASHBOARDS.items() for title, t in targets(board).items()},
    **{(n, f"${name}"): sql for n, board in DASHBOARDS.items() for name, sql in variables(board).items()},
}


def filled(sql: str) -> str:
    """Put in what the plugin puts in: the last day, steps of ten minutes, and values as texts of SQL."""
    start, end = int((NOW - 86_400) * 1000), int((NOW + 3600) * 1000)
    span = rf"\1 >= fromUnixTimestamp64Milli({start}) AND \1 <= fromUnixTimestamp64Milli({end})"
    sql = re.sub(r"\$__timeFilter_ms\((\w+)\)", span, sql)
    sql = re.sub(r"\$__timeInterval\((\w+)\)", r"toStartOfInterval(toDateTime(\1), INTERVAL 600 second)", sql)
    for name, value in VALUES.items():
        quoted = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        sql = sql.replace(f"${{{name}:singlequote}}", quoted)
    return sql


@pytest.fixture(scope="module")
def dsn(store_dsn: str) -> str:
    """A database with a service of 10 samples a window, 4 of them in shop.f, and a regression of it."""
    dsn = f"{store_dsn}/grafana_{uuid4().hex[:12]}"
    at = NOW - 600
    log = {"stream": "x", "topic": "profiles", "partition": 0, "last_offset": 1}
    who = {"service": NASTY, "workload": "live", "metric_kind": "subroutine", "metric": "shop.f"}
    levels = {"before": 0.1, "after": 0.15}
    event = {
        "data": {
            "waste_servers": 20.5,
            "root_causes": [{"change": {"title": "Rules may be nested", "author": "Ada"}}],
        }
    }
    ledger = {
        **{
            "id": "c",
            "service": NASTY,
            "workload": "live",
            "time": at,
            "scan_start": at,
            "analysis_start": at,
        },
        **{"analysis_end": at, "metric_kind": "subroutine", "metric": "shop.g", "kind": "short_term"},
        **{"change_time": at, **levels, "p_value": 0.0, "statistic": 1.0, "step": "went_away", "value": 1.0},
        **{"bound": 0.5, "reason": "", "passed": "[]", "code": "returned", "subjects": [], "domains": "[]"},
        **{"change_time_interval": []},
    }
    delivery = {
        **{"id": "d", "service": NASTY, "time": at, "event": "r", "regression": "r", "target": "chat"},
        **{"manner": "single", "state": "waiting", "partition": 0, "due_time": at, "changed_time": at},
        **{"thread": "", "detail": "", "content": "{}"},
    }
    regression = {**who, "time": at, "detected_time": at, **levels, "delta": 0.05, "p_value": 0.0}
    update = {**who, "type": "resolved", "time": at, **levels, "level": 0.1, "share_remaining": 0.0}
    change = {
        **{"id": "8f2c", "service": NASTY, "time": at, "title": "Rules may be nested", "author": "Ada"},
        **{"summary": "", "files": [], "subroutines": [], "gates": [], "content": ""},
    }
    unjudged = {"service": NASTY, "workload": "live", "time": at, "code": "no_history", "series": 8}
    stack = {"stack_id": 1, "frames": ["main", "shop.f"], "window": at, "width_s": 600.0, "samples": 4}
    rows: list[tuple[Any, dict[str, Any]]] = [
        ("totals", {"service": NASTY, "window": at, "samples": 10, **log}),
        (
            "gcpu",
            {
                "service": NASTY,
                "kind": "subroutine",
                "subroutine": "shop.f",
                "window": at,
                "samples": 4,
                **log,
            },
        ),
        ("stacks", {"service": NASTY, **stack, **log}),
        ("metrics", {"service": NASTY, "metric": "latency", "setup": 0, "time": at, "value": 3.0, **log}),
        ("changes", change),
        ("regressions", {"id": "r", **regression, "event": json.dumps(event)}),
        ("regressions", {"id": "gone", **regression, "event": "{}"}),
        ("updates", {"id": "u", "regression": "gone", **update, "event": "{}"}),
        ("ledger", ledger),
        ("unjudged", {**unjudged, "value": 0.1, "bound": 0.5}),
        ("alerts", delivery),
        ("alerts", {**delivery, "id": "e"}),
        ("alerts", {**delivery, "id": "e", "state": "sent"}),
    ]
    with closing(open_store(dsn)) as store:
        store.migrate()
        for table, row in rows:
            store.insert(table, {name: [value] for name, value in row.items()})
    return dsn


def answer(dsn: str, sql: str) -> list[dict[str, Any]]:
    with closing(open_client(dsn)) as client:
        return list(client.query(filled(sql)).named_results())


@pytest.mark.parametrize(("board", "title"), QUERIES)
def test_a_query_finds_what_there_is(dsn: str, board: str, title: str) -> None:
    sql = QUERIES[board, title]
    assert "$" not in filled(sql).replace(NASTY.replace("\\", "\\\\").replace("'", "\\'"), "")
    assert answer(dsn, sql)


@pytest.mark.parametrize(
    ("board", "title", "wanted"),
    [
        ("series", "gCPU of ${name}", {"gcpu": 0.4}),
        ("series", "Regressions", {"text": "shop.f +5 % of CPU", "tags": ["subroutine", "live"]}),
        ("series", "Resolved", {"text": "resolved: shop.f"}),
        ("series", "Changes", {"text": "Rules may be nested by Ada", "tags": ["8f2c"]}),
        ("series", "${metric}", {"value": 3.0}),
        ("series", "Stacks that hold ${name}", {"stack": "main;shop.f", "samples": 4}),
        ("series", "$service", {"service": NASTY}),
        (
            "services",
            "Open regressions",
            {"id": "r", "suspect": "Rules may be nested", "waste_servers": 20.5},
        ),
        ("services", "Servers that they take", {"servers": 20.5}),
        ("services", "Alerts waiting", {"waiting": 1}),
        ("services", "Alerts by target", {"target": "chat", "sent": 1, "dropped": 0}),
        ("services", "What became of candidates", {"step": "went_away", "candidates": 1}),
    ],
)
def test_a_query_gives_the_right_numbers(dsn: str, board: str, title: str, wanted: dict[str, Any]) -> None:
    found = answer(dsn, QUERIES[board, title])
    assert [{name: row[name] for name in wanted} for row in found][:1] == [wanted]
    if title == "Open regressions":
        assert [row["id"] for row in found] == ["r"]


@pytest.mark.parametrize("board", DASHBOARDS)
def test_a_dashboard_asks_the_data_source_that_is_chosen_and_has_no_panel_twice(board: str) -> None:
    content = DASHBOARDS[board]
    ids = [panel["id"] for panel in content["panels"]]
    assert len(ids) == len(set(ids))
    asked = [*content["panels"], *content["annotations"]["list"]]
    asked += [each for each in content["templating"]["list"] if each["type"] == "query"]
    assert all(each["datasource"] == {"type": PLUGIN, "uid": "${datasource}"} for each in asked)
    used = set(re.findall(r"\$\{(\w+):singlequote\}", json.dumps(content)))
    assert used <= set(variables(content))


@pytest.mark.parametrize("board", DASHBOARDS)
def test_values_are_put_in_as_texts_of_sql(board: str) -> None:
    for (name, title), sql in QUERIES.items():
        if name == board:
            assert re.findall(r"\$\{?(?!__)\w+(?!:singlequote)\b[^:]", sql) == [], title


def test_links_lead_to_dashboards_that_there_are() -> None:
    known = {content["uid"] for content in DASHBOARDS.values()}
    for content in DASHBOARDS.values():
        links = set(re.findall(r"/d/([\w-]+)", json.dumps(content)))
        assert links
        assert links <= known


def test_the_provisioned_source_and_folder_are_those_of_the_dashboards() -> None:
    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/smidgen.yaml").read_text())["datasources"]
    assert source["type"] == PLUGIN
    assert source["secureJsonData"]["password"].startswith("$")
    (provider,) = yaml.safe_load((FOLDER / "provisioning/dashboards/smidgen.yaml").read_text())["providers"]
    assert provider["type"] == "file"
    assert provider["options"]["path"].endswith("/smidgen")
