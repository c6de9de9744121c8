from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import PRESETS_PATH, load_workloads, read_workload_file
from pipeline.stages.gather.domain_plugins import ENTRY_POINTS
from tests.support.paths import ROOT

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0

# FBDetect Table 3: threshold, re-run interval, historical, analysis and extended window, as printed.
TABLE_3 = {
    "frontfaas-large": ("absolute", 3.0, 30 * MINUTE, 10 * DAY, 3 * HOUR, 0.0),
    "frontfaas-small": ("absolute", 0.005, 2 * HOUR, 10 * DAY, 4 * HOUR, 6 * HOUR),
    "pythonfaas-large": ("absolute", 0.5, 1 * HOUR, 10 * DAY, 6 * HOUR, 0.0),
    "pythonfaas-small": ("absolute", 0.03, 4 * HOUR, 10 * DAY, 6 * HOUR, 6 * HOUR),
    "tao-frontfaas": ("absolute", 0.05, 2 * HOUR, 10 * DAY, 4 * HOUR, 1 * DAY),
    "tao-non-frontfaas": ("absolute", 0.05, 1 * HOUR, 10 * DAY, 1 * DAY, 6 * HOUR),
    "adserving-short": ("absolute", 0.2, 6 * HOUR, 10 * DAY, 1 * DAY, 12 * HOUR),
    "adserving-long": ("absolute", 0.1, 1 * DAY, 16 * DAY, 9 * DAY, 0.0),
    "invoicer-short": ("absolute", 0.5, 12 * HOUR, 14 * DAY, 1 * DAY, 1 * DAY),
    "ct-supply-short": ("relative", 5.0, 12 * HOUR, 7 * DAY, 1 * DAY, 1 * DAY),
    "ct-supply-long": ("relative", 5.0, 12 * HOUR, 10 * DAY, 7 * DAY, 1 * DAY),
    "ct-demand": ("relative", 5.0, 12 * HOUR, 7 * DAY, 1 * DAY, 0.0),
}

GOOD: dict[str, Any] = {
    "name": "mine",
    "resolution": "30m",
    "rerun_interval": "2h",
    "historical": "10d",
    "analysis": "4h",
    "extended": "6h",
    "threshold": {"absolute": 0.00005},
}


@pytest.mark.parametrize(
    ("alteration", "warned"),
    [
        pytest.param({"kdd2018": "core_data"}, True, id="10 days and four hours"),
        pytest.param({"kdd2018": "instagram_median", "historical": "13d"}, True, id="less than a day short"),
        pytest.param({"kdd2018": "core_data", "historical": "13d", "analysis": "1d"}, False, id="14 days"),
        pytest.param({"kdd2018": "efficiency_infra"}, False, id="takes out no cycles"),
        pytest.param({}, False, id="default set-up"),
    ],
)
def test_a_history_too_short_for_weekly_cycles_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, alteration: dict[str, str], warned: bool
) -> None:
    (tmp_path / "w.yaml").write_text(yaml.safe_dump({**GOOD, "detectors": ["kdd2018"], **alteration}))
    load_workloads([str(tmp_path / "w.yaml")])
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == warned
    assert all(line.startswith("workload mine: kdd2018 ") and "no weekly cycle" in line for line in messages)


@pytest.mark.parametrize("name", TABLE_3)
def test_presets_are_the_rows_of_table_3(name: str) -> None:
    (workload,) = load_workloads([name])
    kind, percent, rerun, historical, analysis, extended = TABLE_3[name]
    threshold = workload.threshold.model_dump(exclude_none=True)
    assert threshold == {kind: pytest.approx(percent / 100)}
    assert (
        workload.rerun_interval_s,
        workload.historical_s,
        workload.analysis_s,
        workload.extended_s,
    ) == (rerun, historical, analysis, extended)


def test_presets_are_table_3_and_live() -> None:
    assert [workload.name for workload in read_workload_file(PRESETS_PATH)] == [*TABLE_3, "live"]


@pytest.mark.parametrize(
    ("name", "series", "direction"),
    [
        ("frontfaas-small", "gcpu", "up"),
        ("ct-supply-short", "service", "down"),
        ("ct-supply-long", "service", "down"),
        ("ct-demand", "service", "up"),
    ],
)
def test_supply_falls_and_demand_rises(name: str, series: str, direction: str) -> None:
    (workload,) = load_workloads([name])
    assert (workload.series, workload.direction) == (series, direction)


def test_live_looks_at_seconds() -> None:
    (live,) = load_workloads(["live"])
    assert live.resolution_s <= 5
    assert live.span_s <= 120


def write(tmp_path: Path, raw: object, name: str = "workload.yaml") -> Path:
    path = tmp_path / name
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return path


def test_a_file_holds_one_workload(tmp_path: Path) -> None:
    (workload,) = load_workloads([str(write(tmp_path, GOOD))])
    assert workload.name == "mine"
    assert workload.span_s == 10 * DAY + 4 * HOUR + 6 * HOUR
    assert workload.wait_s == workload.resolution_s, "one window of patience unless configured"
    assert workload.lookback_s == workload.analysis_s
    assert (workload.series, workload.direction, workload.detectors) == ("gcpu", "up", ("short_term",))


def test_a_file_holds_a_list(tmp_path: Path) -> None:
    second = {**GOOD, "name": "other", "extended": None, "lateness": "5m", "change_lookback": "1d"}
    _, other = load_workloads([str(write(tmp_path, [GOOD, second]))])
    assert (other.extended_s, other.wait_s, other.lookback_s) == (0.0, 5 * MINUTE, DAY)


def test_cost_domains_of_ones_own(tmp_path: Path) -> None:
    raw = {**GOOD, "cost_domains": [{"name": "cart", "subroutines": ["shop.cart.*", "re:pay_.*"]}]}
    (workload,) = read_workload_file(write(tmp_path, raw))
    (domain,) = workload.cost_domains
    assert (domain.name, domain.subroutines) == ("cart", ("shop.cart.*", "re:pay_.*"))


DOCS = ROOT / "docs" / "workloads.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("key", ["cost_domains", "merge_rules"])
def test_documented_examples_are_read(tmp_path: Path, key: str) -> None:
    (example,) = [text for kind, text in BLOCKS if kind == "yaml" and text.startswith(f"{key}:")]
    (workload,) = read_workload_file(write(tmp_path, {**GOOD, **yaml.safe_load(example)}))
    assert getattr(workload, key)


def test_the_documented_entry_point_is_the_one_that_is_loaded() -> None:
    (example,) = [tomllib.loads(text) for kind, text in BLOCKS if kind == "toml"]
    assert list(example["project"]["entry-points"]) == [ENTRY_POINTS]


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"stacks": 0.5}, id="any"),
        pytest.param({"stacks": 0.5, "between": "gcpu"}, id="stacks of gCPU"),
        pytest.param({"correlation": 0.9, "between": "mixed"}, id="mixed"),
        pytest.param({"metric_id": 0.6, "correlation": 0.8, "between": "service"}, id="service"),
    ],
)
def test_rules_that_can_hold(tmp_path: Path, rule: dict[str, Any]) -> None:
    (workload,) = read_workload_file(write(tmp_path, {**GOOD, "merge_rules": [rule]}))
    (read,) = workload.pairwise.rules
    bounds = {key: bound for key, bound in rule.items() if key != "between"}
    assert (read.between, read.bounds) == (rule.get("between", "any"), bounds)


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        pytest.param(None, {"throughput", "Errors", "p99_ms"}, id="all"),
        pytest.param(["*THROUGH*"], {"throughput"}, id="one pattern, any case"),
        pytest.param(["!err*"], {"throughput", "p99_ms"}, id="all but"),
        pytest.param(["*r*", "!*rr*"], {"throughput"}, id="both"),
        pytest.param(["thr"], set(), id="the whole name"),
    ],
)
def test_patterns_choose_metrics(tmp_path: Path, patterns: list[str] | None, chosen: set[str]) -> None:
    raw = {**GOOD, "series": "service"} | ({} if patterns is None else {"metrics": patterns})
    (workload,) = read_workload_file(write(tmp_path, raw))
    assert {name for name in ("throughput", "Errors", "p99_ms") if workload.looks_at(name)} == chosen


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("ct-supply-short", {"throughput", "availability", "cache_hit_ratio", "members_online"}),
        ("ct-supply-long", {"throughput", "availability", "cache_hit_ratio", "members_online"}),
        (
            "ct-demand",
            {"requests_per_server", "latency_p50_ms", "latency_p99_ms", "error_rate", "errors_per_s", "mem"}
            | {"cpu_utilisation", "memory_mb", "retries", "members_online"},
        ),
    ],
)
def test_presets_leave_out_what_improves_in_their_direction(name: str, chosen: set[str]) -> None:
    every = {
        *("throughput", "requests_per_server", "latency_p50_ms", "latency_p99_ms", "error_rate"),
        *("cpu_utilisation", "memory_mb", "mem", "errors_per_s", "retries"),
        *("availability", "cache_hit_ratio", "members_online"),
    }
    (workload,) = load_workloads([name])
    assert {metric for metric in every if workload.looks_at(metric)} == chosen


def test_presets_and_files_mix_in_the_order_given(tmp_path: Path) -> None:
    found = load_workloads(["live", str(write(tmp_path, GOOD)), "ct-demand"])
    assert [workload.name for workload in found] == ["live", "mine", "ct-demand"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"resolution": None}, "resolution: should be a duration", id="null resolution"),
        pytest.param({"resolution": "0s"}, "resolution: ", id="zero resolution"),
        pytest.param({"historical": "10 days"}, "historical: should be a duration", id="wrong duration"),
        pytest.param({"resolution_s": 5}, "resolution_s: unknown key", id="inner name of a key"),
        pytest.param({"thresold": 1}, "thresold: unknown key", id="unknown key"),
        pytest.param(
            {"threshold": {"absolut": 0.1}},
            "threshold.absolut: unknown key; known keys are absolute, relative",
            id="unknown nested key",
        ),
        pytest.param({"threshold": {}}, "threshold: give either absolute or relative", id="neither"),
        pytest.param(
            {"threshold": {"absolute": 0.1, "relative": 0.1}},
            "threshold: give either absolute or relative",
            id="both",
        ),
        pytest.param({"threshold": {"absolute": 0}}, "threshold.absolute: ", id="zero threshold"),
        pytest.param({"threshold": 0.1}, "threshold: should be a mapping", id="bare threshold"),
        pytest.param({"detectors": ["medium_term"]}, "detectors.0: ", id="unknown detector"),
        pytest.param({"detectors": []}, "detectors: should hold at least 1", id="no detector"),
        pytest.param(
            {"direction": "sideways"},
            "direction: should be 'up' or 'down'",
            id="unknown direction",
        ),
        pytest.param({"series": "cpu"}, "series: ", id="unknown series"),
        pytest.param(
            {"steps": ["went_away"]},
            "steps: went_away: no optional step; there are seasonality",
            id="step that is not optional",
        ),
        pytest.param(
            {"metrics": ["*throughput*"]},
            "metrics chooses service-level metrics; it needs series: service",
            id="metrics of gCPU",
        ),
        pytest.param(
            {"series": "service", "metrics": []},
            "metrics: give at least one pattern, or leave the key out",
            id="no pattern",
        ),
        pytest.param(
            {"series": "service", "metrics": ["ok", "!"]}, "metrics: a pattern is empty", id="nothing"
        ),
        pytest.param({"series": "service", "metrics": [5]}, "metrics.0: ", id="number for a pattern"),
        pytest.param(
            {"kdd2018": "core_data"},
            "kdd2018 sets up a detector that detectors does not name",
            id="set-up of a detector that does not run",
        ),
        pytest.param(
            {"detectors": ["kdd2018"], "kdd2018": "web"}, "kdd2018: ", id="unknown set-up of kdd2018"
        ),
        pytest.param({"lateness": "-1s"}, "lateness: should be a duration", id="negative lateness"),
        pytest.param(
            {"analysis": "45m"},
            "analysis of 45m is not a whole number of resolution 30m",
            id="broken windows",
        ),
        pytest.param({"name": "a b"}, "name: ", id="name with a space"),
        pytest.param(
            {"cost_domains": [{"name": "cart", "subroutines": [one]} for one in ("a", "b")]},
            "cost_domains: two of the name 'cart'",
            id="two cost domains of one name",
        ),
        pytest.param(
            {"cost_domains": {"name": "cart"}},
            "cost_domains: should be a list",
            id="mapping for a list of cost domains",
        ),
        pytest.param(
            {"merge_rules": {"stacks": 0.5}}, "merge_rules: should be a list", id="mapping for rules"
        ),
        pytest.param({"merge_rules": [0.5]}, "merge_rules.0: should be a mapping", id="bare rule"),
        pytest.param(
            {"merge_rules": [{"cause": 0.7}, {"stack": 0.5}]},
            "merge_rules.1.stack: unknown key; known keys are between, caller, cause, correlation, ",
            id="unknown key of a rule",
        ),
        pytest.param(
            {"merge_rules": [{"between": "gcpu"}]},
            "merge_rules.0: give at least one of cause",
            id="rule of nothing",
        ),
        pytest.param(
            {"merge_rules": [{"stacks": 0.5, "between": "service"}]},
            "merge_rules.0: stacks can never hold with between: service, since service-level metrics "
            "have no stacks; give correlation or metric_id",
            id="stacks of service-level metrics",
        ),
        pytest.param(
            {"merge_rules": [{"cause": 0.5, "caller": 0.5, "correlation": 0.9, "between": "mixed"}]},
            "merge_rules.0: cause, caller can never hold with between: mixed",
            id="cause of a service-level metric",
        ),
    ],
)
def test_a_mistake_is_named_by_file_workload_and_key(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, {**GOOD, **change})
    with pytest.raises(ConfigError) as caught:
        load_workloads([str(path)])
    assert str(caught.value).startswith(f"{path}: {change.get('name', 'mine')}: {message}")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        pytest.param(
            {"subroutines": ["re:("]}, "subroutines: 're:(' is no regular expression", id="broken pattern"
        ),
        pytest.param({"subroutines": []}, "subroutines: ", id="nothing"),
        pytest.param({"subroutines": ["a", ""]}, "subroutines: a pattern is empty", id="empty pattern"),
        pytest.param(
            {"subroutines": ["re:"]}, "subroutines: a pattern is empty", id="empty regular expression"
        ),
        pytest.param({"subroutines": "x"}, "subroutines: should be a list", id="text for a list of patterns"),
        pytest.param(
            {"patterns": ["x"], "subroutines": ["x"]},
            "patterns: unknown key; known keys are name, subroutines",
            id="unknown key",
        ),
    ],
)
def test_a_mistake_of_a_cost_domain_is_named(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    path = write(tmp_path, {**GOOD, "cost_domains": [{"name": "cart", **keys}]})
    with pytest.raises(ConfigError) as caught:
        load_workloads([str(path)])
    assert str(caught.value).startswith(f"{path}: mine: cost_domains.0.{message}")


def test_a_missing_key_in_a_list_names_the_row(tmp_path: Path) -> None:
    path = write(tmp_path, [GOOD, {"threshold": {"absolute": 0.1}}])
    with pytest.raises(ConfigError) as caught:
        load_workloads([str(path)])
    assert str(caught.value) == f"{path}: 2: name: is missing"


@pytest.mark.parametrize(
    "raw", [[], None, 5, ["live"]], ids=["empty list", "empty", "number", "list of names"]
)
def test_what_is_no_workload_is_refused(tmp_path: Path, raw: object) -> None:
    with pytest.raises(ConfigError, match="workload"):
        load_workloads([str(write(tmp_path, raw))])


def test_an_unknown_name_lists_the_presets() -> None:
    with pytest.raises(ConfigError, match="'frontfas'; presets are frontfaas-large, .*live"):
        load_workloads(["frontfas"])


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {**GOOD, "name": "live"})
    with pytest.raises(ConfigError, match="workload 'live' is given twice"):
        load_workloads(["live", str(path)])


@pytest.mark.parametrize(
    "bound",
    [
        {"historical_most": "1d"},
        {"historical_most": "8d"},
        {"resolution_most": "1m"},
    ],
)
def test_most_is_from_the_least_to_less_than_a_week(tmp_path: Path, bound: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="_most should be from"):
        load_workloads([str(write(tmp_path, {**GOOD, **bound}))])
