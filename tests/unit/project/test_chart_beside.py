"""What the chart runs beside the stages, and what watches them: alerts, dashboard, rules."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from pipeline.delivery.alerts import load_rules
from tests.support.chart import ALL, PARTS, PASSWORD, SETS, SMALLEST, of_kind, pod, settings_of
from tests.support.command_lines import trouble
from tests.support.paths import ROOT


def test_rules_and_dashboard_are_those_of_deploy_and_are_asked_of_the_job_that_they_name() -> None:
    (rule,) = of_kind("PrometheusRule", ALL).values()
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text("utf-8"))
    dashboard = of_kind("ConfigMap", ALL)["smidgen-dashboard"]
    assert dashboard["data"]["smidgen.json"] == (ROOT / "deploy/grafana/smidgen.json").read_text("utf-8")
    (monitor,) = of_kind("PodMonitor", ALL).values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "smidgen"}]
    for deployment in of_kind("Deployment", ALL).values():
        assert pod(deployment)["containers"][0]["ports"] == [
            {"name": endpoint["port"], "containerPort": 9464}
        ]
    for deployment in of_kind("Deployment", SMALLEST).values():
        assert "ports" not in pod(deployment)["containers"][0]


def test_alerts_and_dashboard_run_what_the_command_line_takes(tmp_path: Path) -> None:
    values = SETS["alerts and dashboard"]
    found = {name: pod(one) for name, one in of_kind("Deployment", values).items()}
    for part in PARTS:
        (container,) = found[f"smidgen-{part}"]["containers"]
        assert trouble(container["args"]) == ""
        assert set(container["resources"]) == {"requests", "limits"}
        assert container["securityContext"] == found["smidgen-detect"]["containers"][0]["securityContext"]
        assert found[f"smidgen-{part}"]["securityContext"]["runAsNonRoot"] is True
    targets, folder = found["smidgen-alerts"], tmp_path / "etc/smidgen"
    assert settings_of(targets, values, tmp_path).token == PASSWORD + "t"
    assert {"name": "targets", "mountPath": "/run/smidgen/targets", "readOnly": True} in targets[
        "containers"
    ][0]["volumeMounts"]
    (tmp_path / "webhook").write_text("https://hooks.example/x")
    rules = (folder / "alerts.yaml").read_text("utf-8")
    (folder / "alerts.yaml").write_text(rules.replace("/run/smidgen/targets", str(tmp_path)))
    assert set(load_rules(folder / "alerts.yaml", {}).targets) == {"chat"}
    (served,) = of_kind("Service", values).values()
    labels = of_kind("Deployment", values)["smidgen-dashboard"]["spec"]["template"]["metadata"]["labels"]
    assert served["spec"]["selector"].items() <= labels.items()
    (monitor,) = of_kind("PodMonitor", values).values()
    assert "alerts" in monitor["spec"]["selector"]["matchExpressions"][0]["values"]


def test_the_dashboard_alone_has_the_secret_of_the_provider(tmp_path: Path) -> None:
    """Whoever has it can sign sessions."""
    values = SETS["login at a provider"]
    found = {name: pod(one) for name, one in of_kind("Deployment", values).items()}
    (container,) = found["smidgen-dashboard"]["containers"]
    assert trouble(container["args"]) == ""
    assert {"--oidc-client=smidgen", "--triage-group=perf, all", "--read-group=staff"} <= {*container["args"]}
    for name, spec in found.items():
        settings = settings_of(spec, values, tmp_path / name)
        given = settings.oidc_secret and settings.oidc_secret.get_secret_value()
        assert given == (PASSWORD + "o" if name == "smidgen-dashboard" else None)
        (volume,) = [one for one in spec["volumes"] if one["name"] == "secrets"]
        assert ("oidc_secret" in {item["key"] for item in volume["secret"]["items"]}) is bool(given)
    (job,) = of_kind("Job", values).values()
    assert "oidc_secret" not in json.dumps(pod(job))
    for spec in map(pod, of_kind("Deployment", SETS["a provider's secret alone"]).values()):
        assert "secrets" not in {one["name"] for one in spec["volumes"]}
