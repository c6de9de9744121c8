"""Alert rules and dashboard ask for what workers export, and every metric is asked for and explained."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pipeline.stages.factory import STAGES
from pipeline.telemetry.metrics import METRICS, PREFIX
from tests.support.cases import for_every
from tests.support.exporter import scrape_agent, scrape_alerts, scrape_worker
from tests.support.open_faults import open_fault
from tests.support.paths import ROOT

ALERTS = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
}
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/smidgen.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = {
    **{name: rule["expr"] for name, rule in ALERTS.items()},
    **{
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in PANELS
        for target in panel["targets"]
    },
}
SITUATIONS = ROOT / "deploy/prometheus/alerts.test.yaml"
RUNBOOK = (ROOT / "docs/runbook.md").read_text("utf-8")
METRICS_PAGE = (ROOT / "docs/worker-metrics.md").read_text("utf-8")

OF_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus gives to all that it scrapes."""

Exported = Mapping[str, Mapping[str, set[str]]]
"""By the name of a series: the labels, and what values each has."""


@pytest.fixture(scope="module")
def exposition() -> str:
    return scrape_worker() + scrape_alerts() + scrape_agent()


@pytest.fixture(scope="module")
def exported(exposition: str) -> Exported:
    found: dict[str, dict[str, set[str]]] = {"up": {}}  # of Prometheus itself
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            labels = found.setdefault(sample.name, defaultdict(set))
            for label, value in sample.labels.items():
                labels[label].add(value)
    return found


def parsed(query: str) -> promql_parser.Expr:
    """Parse a query with what Grafana puts for its variables."""
    return promql_parser.parse(re.sub(r"\$__(rate_interval|range)", "5m", query))


def nodes(tree: promql_parser.Expr) -> Iterator[promql_parser.Expr]:
    found: list[promql_parser.Expr] = []
    promql_parser.walk(tree, pre_visit=lambda node: found.append(node))
    yield from found


def selectors(query: str) -> list[promql_parser.VectorSelector]:
    return [node for node in nodes(parsed(query)) if isinstance(node, promql_parser.VectorSelector)]


def family(name: str) -> str:
    short = name.removeprefix(PREFIX)
    return short if short in METRICS else re.sub(r"_(bucket|sum|count)$", "", short)


def test_what_a_worker_exports_is_in_the_format_of_prometheus(exposition: str) -> None:
    kinds = {found.name: found.type for found in text_string_to_metric_families(exposition)}
    for name, (kind, _) in METRICS.items():
        assert kinds[PREFIX + (name.removesuffix("_total") if kind == "counter" else name)] == kind
    assert {kind == "counter" for name, (kind, _) in METRICS.items() if name.endswith("_total")} == {True}
    assert not [n for n, (kind, _) in METRICS.items() if kind == "counter" and not n.endswith("_total")]


def test_a_worker_exports_every_metric_that_has_a_name(exported: Exported) -> None:
    assert {family(name) for name in exported if name != "up"} == set(METRICS)


@for_every("query", QUERIES)
def test_a_query_parses_and_asks_for_what_is_exported(query: str, exported: Exported) -> None:
    asked = selectors(QUERIES[query])
    assert asked
    for selector in asked:
        assert selector.name in exported
        labels = exported[str(selector.name)]
        for matcher in selector.matchers.matchers:
            if matcher.name in OF_PROMETHEUS:
                continue
            assert matcher.name in labels, str(selector)
            wanted = [] if matcher.value.startswith("$") else matcher.value.split("|")
            assert set(wanted) <= labels[matcher.name], str(selector)


@for_every("query", QUERIES)
def test_a_query_sums_by_labels_that_there_are(query: str, exported: Exported) -> None:
    for node in nodes(parsed(QUERIES[query])):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            for name in {selector.name for selector in selectors(str(node.expr))}:
                assert set(node.modifier.labels) <= {*exported[str(name)], *OF_PROMETHEUS}


@for_every("query", QUERIES)
def test_counters_are_asked_for_their_increase_and_gauges_are_not(query: str) -> None:
    over_time = {"rate", "increase"}
    calls = [node for node in nodes(parsed(QUERIES[query])) if isinstance(node, promql_parser.Call)]
    grown = [
        str(one.vector_selector.name)
        for call in calls
        if call.func.name in over_time
        for one in call.args
        if isinstance(one, promql_parser.MatrixSelector)
    ]
    for selector in selectors(QUERIES[query]):
        if selector.name != "up":
            is_gauge = METRICS[family(str(selector.name))][0] == "gauge"
            assert is_gauge != (selector.name in grown), str(selector)


def labels_of(tree: Any, exported: Exported) -> set[str]:
    """Return the labels that every result of a query has."""
    match tree:
        case promql_parser.VectorSelector():
            return {*exported[str(tree.name)], *OF_PROMETHEUS}
        case promql_parser.MatrixSelector():
            return labels_of(tree.vector_selector, exported)
        case promql_parser.AggregateExpr():
            return set(tree.modifier.labels if tree.modifier else ())
        case promql_parser.ParenExpr():
            return labels_of(tree.expr, exported)
        case promql_parser.Call() if tree.func.name == "absent":
            return {matcher.name for matcher in tree.args[0].matchers.matchers}
        case promql_parser.Call():
            return {label for each in tree.args for label in labels_of(each, exported)}
        case promql_parser.BinaryExpr() if str(tree.op) == "or":
            return labels_of(tree.lhs, exported) & labels_of(tree.rhs, exported)
        case promql_parser.BinaryExpr():
            return labels_of(tree.lhs, exported) or labels_of(tree.rhs, exported)
    return set()


def anchors(page: str) -> set[str]:
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    }


@for_every("alert", ALERTS)
def test_an_alert_has_a_summary_a_severity_and_a_section_of_the_runbook(
    alert: str, exported: Exported
) -> None:
    rule = ALERTS[alert]
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"page", "ticket", "info"}
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert page == "docs/runbook.md"
    assert anchor in anchors(RUNBOOK)
    named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert rule["annotations"]["summary"]
    assert named <= labels_of(parsed(rule["expr"]), exported)


def test_situations_of_the_rules_are_of_alerts_that_there_are() -> None:
    tried = yaml.safe_load(SITUATIONS.read_text("utf-8"))
    names = {rule["alertname"] for test in tried["tests"] for rule in test["alert_rule_test"]}
    assert names <= set(ALERTS)
    assert tried["rule_files"] == ["alerts.yaml"]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
@pytest.mark.parametrize("command", [("check", "rules", "alerts.yaml"), ("test", "rules", SITUATIONS.name)])
def test_prometheus_takes_the_rules_and_they_fire_as_they_should(command: tuple[str, ...]) -> None:
    found = subprocess.run(["promtool", *command], cwd=SITUATIONS.parent, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@open_fault("44.18", "counts from before the first scrape of a process are no increase: no alarm fires")
@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_alarms_fire_on_counts_from_before_the_first_scrape() -> None:
    command = ["promtool", "test", "rules", str(Path(__file__).with_name("first_scrape.test.yaml"))]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_the_runbook_lists_the_alerts_with_their_sections() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]\(#([\w-]+)\) \| (\w+) \|", RUNBOOK, re.MULTILINE)
    assert sorted(rows) == sorted(
        (name, rule["annotations"]["runbook"].partition("#")[2], rule["labels"]["severity"])
        for name, rule in ALERTS.items()
    )


def test_every_metric_is_explained_with_its_labels(exported: Exported) -> None:
    table = re.findall(r"^\| (`smidgen_.*?) \|(.*?)\|", METRICS_PAGE, re.MULTILINE)
    explained = {
        family(name): set(labels.strip().split(", ")) - {""}
        for names, labels in table
        for name in re.findall(r"smidgen_\w+", names)
    }
    shown = {family(name): set(labels) - {"le"} for name, labels in exported.items() if name != "up"}
    assert explained == shown


def test_somebody_looks_at_every_metric() -> None:
    asked = {family(str(selector.name)) for query in QUERIES.values() for selector in selectors(query)}
    assert set(METRICS) <= asked


def test_the_dashboard_asks_the_data_source_that_is_chosen() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    asking = [*PANELS, *(t for p in PANELS for t in p["targets"])]
    asking += [one for one in variables.values() if one["type"] == "query"]
    assert all(one["datasource"] == chosen for one in asking)
    used = set(re.findall(r"\$(?!__)(\w+)", " ".join(QUERIES.values())))
    assert used <= set(variables)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_variables_of_the_dashboard_are_labels(exported: Exported) -> None:
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"])
            assert asked
            assert asked[2] in {*exported[asked[1]], *OF_PROMETHEUS}


def test_the_worker_that_is_asked_does_all_stages(exported: Exported) -> None:
    assert exported["smidgen_messages_total"]["stage"] == set(STAGES)
    assert exported["smidgen_silent_service_timestamp_seconds"]["service"] == {"shop"}
