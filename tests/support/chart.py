"""Objects of deploy/helm/smidgen as Helm's own engine renders it, for sets of values.

The engine is the package helm-python-sdk, which holds Helm's library.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.settings.config import PREFIX, Settings, load_settings, setting_fields
from pipeline.settings.topics import load_topics
from tests.support.paths import ROOT

helm = pytest.importorskip("helm_python", reason="Helm's engine has wheels for Linux on x86-64 alone")

CHART = ROOT / "deploy/helm/smidgen"
VERSIONS = ["1.27", "1.30", "1.34", "1.37"]
PASSWORD = "p@ss: w/ö\"rd'%\\ #{{ x }}\t✓"
TOPICS = load_topics()
PARTS = ("alerts", "dashboard")
"""What may run beside the stages."""

Object = dict[str, Any]

SMALLEST: Object = {"broker": "kafka:9092", "store": "http://smidgen@clickhouse:8123/smidgen"}
OWN_TOPICS = re.sub(
    r"^  name: (.*)$", r"  name: fleet.\1", (ROOT / "topics.yaml").read_text("utf-8"), flags=re.MULTILINE
).replace("partitions: 6", "partitions: 24")
OWN_WORKLOAD = """name: ours
resolution: 5m
rerun_interval: 1h
historical: 1d
analysis: 1h
extended: null
threshold: {absolute: 0.001}
"""
RULES = """targets:
  chat: {kind: slack, webhook: {file: /run/smidgen/targets/webhook}}
rules:
  - {to: [chat]}
"""
SECURED: Object = {
    "broker": "kafka-1:9094,kafka-2:9094",
    "store": "https://smidgen@clickhouse:8443/smidgen?ca_cert=/run/smidgen/tls/ca.pem",
    "brokerSecurity": "sasl_ssl",
    "sasl": {"username": "smidgen-worker"},
    "tls": {"existingSecret": "authorities", "brokerCa": "ca.pem"},
    "secrets": {"store_password": PASSWORD, "sasl_password": PASSWORD + "k", "http_token": PASSWORD + "t"},
}
ALL: Object = {
    **SECURED,
    "image": {
        "repository": "registry.example/smidgen",
        "digest": "sha256:" + "0" * 64,
        "pullSecrets": [{"name": "pull"}],
    },
    "topics": OWN_TOPICS,
    "topicPrefix": "own.",
    "groupPrefix": "fleet-",
    "workloads": ["frontfaas-small", "ours.yaml"],
    "workloadFiles": {"ours.yaml": OWN_WORKLOAD},
    "settingFiles": {"quotas": "default: {names: 1000}\n"},
    "settings": {"batch_size": 200, "partition_idle": "10m", "log_level": "debug"},
    "metrics": {
        "enabled": True,
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboard": {"enabled": True},
    },
    "init": {"store": "https://smidgen_admin@clickhouse:8443/smidgen", "saslUsername": "smidgen-operator"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "batch", "operator": "Exists"}],
    "podLabels": {"team": "performance"},
    "podAnnotations": {"note": "yes"},
    "priorityClassName": "high",
    "serviceAccount": {"annotations": {"role": "none"}},
    "drainSeconds": 20,
}
EXISTING: Object = {
    **SMALLEST,
    "existingSecret": "ours",
    "existingSecretKeys": ["store_password", "http_token"],
    "metrics": {"enabled": True, "podMonitor": {"enabled": True}},
}
STABLE: Object = {**SMALLEST, "stableNames": True, "autoscaling": {"mode": "keda"}}
SETS: dict[str, Object] = {
    "smallest": SMALLEST,
    "secured": SECURED,
    "all": {**ALL, "autoscaling": {"mode": "keda"}},
    "existing secret": EXISTING,
    "external": {**SMALLEST, "autoscaling": {"mode": "external", "maxReplicas": 4, "minReplicas": 2}},
    "keda": {**SMALLEST, "autoscaling": {"mode": "keda"}},
    "stable names": STABLE,
    "alerts and dashboard": {
        **SECURED,
        "metrics": {"enabled": True, "podMonitor": {"enabled": True}},
        "alerts": {"enabled": True, "rules": RULES, "existingSecret": "chat"},
        "dashboard": {
            "enabled": True,
            "userHeader": "X-Forwarded-User",
            "trustedProxies": ["10.0.0.0/8", "fd00::/8"],
            "triage": ["*"],
            "diffUrl": "https://git.example/{service}/commit/{change}",
        },
    },
    "login at a provider": {
        **SECURED,
        "secrets": {**SECURED["secrets"], "oidc_secret": PASSWORD + "o"},
        "dashboard": {
            "enabled": True,
            "replicas": 2,
            "oidc": {
                "issuer": "https://login.example.org",
                "client": "smidgen",
                "publicUrl": "https://smidgen.example.org",
                "groupsClaim": "realm_access.roles",
                "triageGroups": ["perf, all"],
                "readGroups": ["staff"],
            },
        },
    },
    "a provider's secret alone": {**SMALLEST, "secrets": {"oidc_secret": PASSWORD}},
    "neither init nor budgets": {
        **SMALLEST,
        "init": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
    },
}


def rendered(values: Mapping[str, Any], name: str = "smidgen") -> dict[str, str]:
    """Return the files that the templates render for the values."""
    return dict(_rendered(json.dumps(values), name))


def objects(values: Mapping[str, Any], name: str = "smidgen") -> list[Object]:
    """Return the rendered objects; a caller may change them."""
    return deepcopy(_objects(json.dumps(values), name))


@cache
def _rendered(values: str, name: str) -> Mapping[str, str]:
    parsed = json.loads(values)
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(parsed)
        files: dict[str, str] = chart.render(parsed, name=name, namespace="monitoring")
    return files


@cache
def _objects(values: str, name: str) -> list[Object]:
    texts = [text for file, text in _rendered(values, name).items() if file.endswith(".yaml")]
    return [document for text in texts for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def of_kind(kind: str, values: Mapping[str, Any]) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in objects(values) if item["kind"] == kind}


def workers(values: Mapping[str, Any]) -> dict[str, Object]:
    """Return the workloads that run the stages."""
    workloads = of_kind("StatefulSet" if values.get("stableNames") else "Deployment", values)
    return {
        name: workload for name, workload in workloads.items() if name.removeprefix("smidgen-") not in PARTS
    }


def pod(workload: Object) -> Object:
    spec: Object = workload["spec"]["template"]["spec"]
    return spec


def settings_of(spec: Object, values: Mapping[str, Any], folder: Path) -> Settings:
    """Return the settings that a container of a pod would read, with its files laid out in a folder."""
    (container,) = spec["containers"]
    made = {(entry["kind"], entry["metadata"]["name"]): entry for entry in objects(values)}
    sources = {volume["name"]: volume for volume in spec["volumes"]}
    environ = {entry["name"]: entry["value"] for entry in container["env"]}
    for mount in container["volumeMounts"]:
        source = sources[mount["name"]]
        config = made.get(("ConfigMap", source.get("configMap", {}).get("name")), {"data": {}})
        secret = made.get(("Secret", source.get("secret", {}).get("secretName")), {"data": {}})
        keys = {item["key"] for item in source.get("secret", {}).get("items", ())}
        decoded = {
            name: base64.b64decode(text).decode() for name, text in secret["data"].items() if name in keys
        }
        files = {**config["data"], **decoded}
        inside = folder / mount["mountPath"].lstrip("/")
        inside.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (inside / name).write_text(text, encoding="utf-8")
        environ = {
            name: value if "://" in value else value.replace(mount["mountPath"], str(inside))
            for name, value in environ.items()
        }
    assert set(environ) <= {PREFIX + key.upper() for key in setting_fields()}
    return load_settings({}, environ=environ)
