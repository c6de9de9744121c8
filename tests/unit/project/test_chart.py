"""deploy/helm/smidgen, rendered by Helm's own engine, against the schemas of Kubernetes and against the code.

The engine is the package helm-python-sdk, which holds Helm's library; the schemas are those of
kubernetes-validate. No cluster takes part. Objects of KEDA and of Prometheus' operator have no schema here:
their fields are compared.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from pipeline import __version__
from pipeline.alerts import load_rules
from pipeline.config import PREFIX, SECRETS, Settings, load_settings, setting_fields
from pipeline.runtime.worker.health import health_address
from pipeline.runtime.worker.service import CLOSE_S
from pipeline.stages.factory import STAGES
from pipeline.topics import load_topics
from pipeline.workloads import load_workloads
from tests.support.command_lines import trouble
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
    "neither init nor budgets": {
        **SMALLEST,
        "init": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
    },
}


def rendered(values: Mapping[str, Any], name: str = "smidgen") -> dict[str, str]:
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(dict(values))
        found: dict[str, str] = chart.render(dict(values), name=name, namespace="monitoring")
    return found


def objects(values: Mapping[str, Any], name: str = "smidgen") -> list[Object]:
    texts = [text for file, text in rendered(values, name).items() if file.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def of_kind(kind: str, values: Mapping[str, Any]) -> dict[str, Object]:
    return {one["metadata"]["name"]: one for one in objects(values) if one["kind"] == kind}


def workers(values: Mapping[str, Any]) -> dict[str, Object]:
    """Return what runs the stages."""
    found = of_kind("StatefulSet" if values.get("stableNames") else "Deployment", values)
    return {name: one for name, one in found.items() if name.removeprefix("smidgen-") not in PARTS}


def pod(workload: Object) -> Object:
    found: Object = workload["spec"]["template"]["spec"]
    return found


def settings_of(spec: Object, values: Mapping[str, Any], folder: Path) -> Settings:
    """Return what a container of a pod would read, its files laid out in a folder."""
    (container,) = spec["containers"]
    made = {(one["kind"], one["metadata"]["name"]): one for one in objects(values)}
    sources = {volume["name"]: volume for volume in spec["volumes"]}
    environ = {one["name"]: one["value"] for one in container["env"]}
    for mount in container["volumeMounts"]:
        source = sources[mount["name"]]
        config = made.get(("ConfigMap", source.get("configMap", {}).get("name")), {"data": {}})
        secret = made.get(("Secret", source.get("secret", {}).get("secretName")), {"data": {}})
        decoded = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_kubernetes_takes_every_object(values: Object, version: str) -> None:
    found = objects(values)
    own = [one for one in found if not one["apiVersion"].startswith(("keda.sh/", "monitoring.coreos.com/"))]
    for one in own:
        kubernetes_validate.validate(one, version, strict=True)
    assert len(
        {(one["kind"], one["metadata"]["name"], one["metadata"].get("annotations") is None) for one in found}
    )
    assert len(own) >= len(STAGES)


@pytest.mark.parametrize(
    "mistake", [{"replicas": "two"}, {"replica": 2}, {"strategy": {"rollingUpdate": []}}]
)
def test_the_schemas_see_mistakes(mistake: Object) -> None:
    deployment = of_kind("Deployment", SMALLEST)["smidgen-detect"]
    broken = {**deployment, "spec": {**deployment["spec"], **mistake}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_helm_has_nothing_against_it(values: Object) -> None:
    report = helm.lint(str(CHART), dict(values), strict=True, kube_version="v1.30.0")
    assert [one for one in report["messages"] if one["severity"] > 1] == []
    assert report["errors"] == []


@pytest.mark.parametrize(
    ("mistake", "names"),
    [
        pytest.param({"broker": ""}, "broker", id="no broker"),
        pytest.param({"store": "http://smidgen:secret@clickhouse:8123/x"}, "store", id="password in the DSN"),
        pytest.param({"store": "chdb:///data"}, "store", id="no server"),
        pytest.param({"stags": {}}, "stags", id="unknown key"),
        pytest.param({"stages": {"detct": {}}}, "stages", id="unknown stage"),
        pytest.param({"secrets": {"password": "x"}}, "'password'", id="unknown secret"),
        pytest.param({"settings": {"sasl_password": "x"}}, "'sasl_password'", id="secret among settings"),
        pytest.param({"settings": {"instance": "a"}}, "'instance'", id="one name for all pods"),
        pytest.param({"settings": {"store": "x"}}, "'store'", id="setting that has a value of its own"),
        pytest.param({"autoscaling": {"mode": "lag"}}, "autoscaling", id="unknown mode"),
        pytest.param({"image": {"digest": "sha256:abc"}}, "digest", id="half a digest"),
        pytest.param({"metrics": {"enabled": True}}, "http_token", id="metrics without a token"),
        pytest.param(
            {"metrics": {"podMonitor": {"enabled": True}}}, "metrics.enabled", id="monitor without metrics"
        ),
        pytest.param(
            {"autoscaling": {"mode": "keda"}, "stages": {"detect": {"maxReplicas": 7}}},
            "6 partitions",
            id="more pods than partitions",
        ),
        pytest.param(
            {"autoscaling": {"mode": "keda", "minReplicas": 7}}, "minReplicas", id="fewest above the most"
        ),
        pytest.param({"topics": "profiles: {name: p, partitions: 1}\n"}, "topics", id="topics are missing"),
        pytest.param({"alerts": {"enabled": True}}, "alerts.rules", id="alerts without rules"),
        pytest.param({"dashboard": {"enabled": True}}, "dashboard.userHeader", id="dashboard for everybody"),
        pytest.param(
            {"dashboard": {"enabled": True, "userHeader": "X-User"}}, "trustedProxies", id="no trusted proxy"
        ),
    ],
)
def test_a_mistake_is_refused_by_name(mistake: Object, names: str) -> None:
    with pytest.raises(helm.HelmError, match=re.escape(names)):
        rendered({**SMALLEST, **mistake})


def test_it_is_of_this_version_and_its_links_lead_to_the_files_of_deploy() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["appVersion"] == chart["version"] == __version__
    for link, original in {
        "alerts.yaml": "deploy/prometheus/alerts.yaml",
        "smidgen.json": "deploy/grafana/smidgen.json",
        "topics.yaml": "topics.yaml",
    }.items():
        assert (CHART / "files" / link).resolve() == (ROOT / original).resolve()


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_every_stage_has_a_deployment_that_runs_it(values: Object) -> None:
    deployments = workers(values)
    assert set(deployments) == {f"smidgen-{stage}" for stage in STAGES}
    for stage in STAGES:
        (container,) = pod(deployments[f"smidgen-{stage}"])["containers"]
        assert container["args"] == ["worker", stage]
        scaled = values.get("autoscaling", {}).get("mode", "none") != "none"
        assert ("replicas" in deployments[f"smidgen-{stage}"]["spec"]) != scaled


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_selectors_find_the_pods_of_one_stage_and_no_others(values: Object) -> None:
    deployments = workers(values)
    budgets = of_kind("PodDisruptionBudget", values)
    labels = {name: one["spec"]["template"]["metadata"]["labels"] for name, one in deployments.items()}
    for job in of_kind("Job", values).values():
        labels["init"] = job["spec"]["template"]["metadata"]["labels"]
    for selecting in (deployments, budgets):
        for name, one in selecting.items():
            wanted = one["spec"]["selector"]["matchLabels"].items()
            assert [other for other, given in labels.items() if wanted <= given.items()] == [name]
    assert set(budgets) in ({}.keys(), deployments.keys())
    for monitor in of_kind("PodMonitor", values).values():
        selector = monitor["spec"]["selector"]
        (expression,) = selector["matchExpressions"]
        assert sorted(expression["values"]) == sorted((*STAGES, "alerts"))
        assert all(selector["matchLabels"].items() <= given.items() for given in labels.values())


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_nothing_runs_as_root_writes_or_has_rights(values: Object) -> None:
    user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert user
    for workload in [*workers(values).values(), *of_kind("Job", values).values()]:
        spec = pod(workload)
        assert spec["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": int(user[1]),
            "runAsGroup": int(user[2]),
            "fsGroup": int(user[2]),
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        writable = [mount for mount in container["volumeMounts"] if not mount.get("readOnly")]
        assert [mount["mountPath"] for mount in writable] == ["/tmp"]


@pytest.mark.parametrize("name", ["smallest", "secured", "all", "keda", "external"])
def test_workers_and_init_read_what_was_given(name: str, tmp_path: Path) -> None:
    values = SETS[name]
    workloads = [*workers(values).values(), *of_kind("Job", values).values()]
    assert len(workloads) == len(STAGES) + 1
    secrets: Object = values.get("secrets", {})
    for workload in workloads:
        is_job = workload["kind"] == "Job"
        settings = settings_of(pod(workload), values, tmp_path / workload["metadata"]["name"])
        given = values.get("init", {}).get("store", values["store"]) if is_job else values["store"]
        if "store_password" in secrets:
            assert settings.store_password
            assert settings.store_password.get_secret_value() == secrets["store_password"]
            assert settings.store.partition("@")[2] == given.partition("@")[2]
        else:
            assert settings.store == given
        assert settings.broker == values["broker"]
        assert settings.broker_security == values.get("brokerSecurity", "plaintext")
        user = values.get("sasl", {}).get("username", "")
        assert settings.sasl_username == (
            values.get("init", {}).get("saslUsername", user) if is_job else user
        )
        if "sasl_password" in secrets:
            assert settings.sasl_password
            assert settings.sasl_password.get_secret_value() == secrets["sasl_password"]
        assert settings.log_format == "json"
        topics = settings.read_topics()
        assert topics["windows"].name == ("own.fleet.windows" if "topicPrefix" in values else "windows")
        assert topics.group("detect") == ("fleet-detect" if "groupPrefix" in values else "smidgen-detect")
        assert topics["windows"].partitions == (24 if "topics" in values else 6)
        assert load_workloads(settings.workloads)
        if not is_job:
            assert settings.drain_s == values.get("drainSeconds", 5)
            host, port = health_address(settings.health, settings.token)
            is_open = values.get("metrics", {}).get("enabled", False)
            assert (host, port) == ("0.0.0.0" if is_open else "127.0.0.1", 9464)
    if name == "all":
        assert (settings.batch_size, settings.partition_idle_s, settings.log_level) == (200, 600.0, "debug")
        assert settings.quotas is not None
        assert settings.broker_ca is not None
        assert [one.name for one in load_workloads(settings.workloads)] == ["frontfaas-small", "ours"]


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_secrets_stand_in_secrets_alone(values: Object) -> None:
    forms = {form for text in values.get("secrets", {}).values() for form in _forms(text)}
    for one in objects(values):
        if one["kind"] != "Secret":
            assert [form for form in forms if form in json.dumps(one, ensure_ascii=False)] == []
    assert [form for form in forms if form in rendered(values)["smidgen/templates/NOTES.txt"]] == []


def _forms(secret: str) -> list[str]:
    return [secret, json.dumps(secret)[1:-1], base64.b64encode(secret.encode()).decode()]


def test_an_existing_secret_is_used_and_none_is_made() -> None:
    assert of_kind("Secret", EXISTING) == {}
    for deployment in of_kind("Deployment", EXISTING).values():
        (volume,) = [one for one in pod(deployment)["volumes"] if one["name"] == "secrets"]
        assert volume["secret"]["secretName"] == "ours"
        environ = {one["name"]: one["value"] for one in pod(deployment)["containers"][0]["env"]}
        assert environ["SMIDGEN_STORE_PASSWORD_FILE"] == "/run/smidgen/secrets/store_password"
    (monitor,) = of_kind("PodMonitor", EXISTING).values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "ours", "key": "http_token"}


@pytest.mark.parametrize("values", [SMALLEST, ALL], ids=["smallest", "all"])
def test_probes_ask_the_endpoint_that_the_worker_opens(values: Object) -> None:
    for deployment in workers(values).values():
        (container,) = pod(deployment)["containers"]
        commands = {
            name: container[f"{name}Probe"]["exec"]["command"]
            for name in ("startup", "liveness", "readiness")
        }
        probe = ["python", "-m", "pipeline.probe"]
        assert commands == {
            "startup": [*probe, "live"],
            "liveness": [*probe, "live"],
            "readiness": [*probe, "ready"],
        }
        assert (
            container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] >= 300
        )
        done = subprocess.run(
            [sys.executable, *commands["liveness"][1:]],
            env={"SMIDGEN_HEALTH": "127.0.0.1:1", "PYTHONPATH": str(ROOT)},
            capture_output=True,
        )
        assert done.returncode == 1, "nothing listens there, and the call is understood"


@pytest.mark.parametrize("values", [SMALLEST, ALL], ids=["smallest", "all"])
def test_a_pod_has_longer_to_stop_than_its_worker_takes(values: Object) -> None:
    for deployment in workers(values).values():
        drain_s = values.get("drainSeconds", 5)
        assert pod(deployment)["terminationGracePeriodSeconds"] > drain_s + 4 * CLOSE_S
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


@pytest.mark.parametrize("values", [SMALLEST, SECURED, ALL], ids=["smallest", "secured", "all"])
def test_the_job_runs_before_all_else_and_finds_what_it_mounts(values: Object) -> None:
    found = objects(values)
    (job,) = [one for one in found if one["kind"] == "Job"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert pod(job)["containers"][0]["command"][-1] == "smidgen topics apply && smidgen store migrate"
    early = {
        one["metadata"]["name"]: int(one["metadata"]["annotations"]["helm.sh/hook-weight"])
        for one in found
        if one["kind"] in ("ConfigMap", "Secret") and "helm.sh/hook" in one["metadata"].get("annotations", {})
    }
    own = {
        volume.get("configMap", {}).get("name") or volume.get("secret", {}).get("secretName")
        for volume in pod(job)["volumes"]
        if volume["name"] in ("config", "secrets")
    }
    assert own == set(early)
    assert all(
        weight < int(job["metadata"]["annotations"]["helm.sh/hook-weight"]) for weight in early.values()
    )
    assert "serviceAccountName" not in pod(job), "that of the release is not there yet"
    lasting = {
        (one["kind"], one["metadata"]["name"]) for one in found if "annotations" not in one["metadata"]
    }
    assert not {("Secret", name) for name in early} & lasting


def test_an_external_metric_scales_each_stage_by_its_lag() -> None:
    scalers = of_kind("HorizontalPodAutoscaler", SETS["external"])
    assert set(scalers) == {f"smidgen-{stage}" for stage in STAGES}
    for stage in STAGES:
        spec = scalers[f"smidgen-{stage}"]["spec"]
        assert spec["scaleTargetRef"]["name"] == f"smidgen-{stage}"
        assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 4)
        (metric,) = spec["metrics"]
        assert metric["external"]["metric"] == {
            "name": "smidgen_lag_messages",
            "selector": {"matchLabels": {"stage": stage}},
        }


def test_pods_with_stable_names_are_static_members() -> None:
    """A name stands for one pod of a stage, whatever scales it."""
    assert of_kind("Deployment", STABLE) == {}
    assert of_kind("StatefulSet", SMALLEST) == {}
    sets = of_kind("StatefulSet", STABLE)
    assert set(sets) == {f"smidgen-{stage}" for stage in STAGES}
    for workload in sets.values():
        (container,) = pod(workload)["containers"]
        assert [one for one in container["env"] if "value" not in one] == [
            {"name": "SMIDGEN_INSTANCE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
        ]
    for name, scaler in of_kind("ScaledObject", STABLE).items():
        assert scaler["spec"]["scaleTargetRef"] == {"kind": "StatefulSet", "name": name}
    by_metric = {**STABLE, "autoscaling": {"mode": "external"}}
    for name, scaler in of_kind("HorizontalPodAutoscaler", by_metric).items():
        target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}
        assert scaler["spec"]["scaleTargetRef"] == target


def test_partitions_of_shards_bound_the_pods_too() -> None:
    own = (ROOT / "topics.yaml").read_text("utf-8") + "\nshards: {checkout: 4, search: 2}\n"
    scalers = of_kind("ScaledObject", {**SMALLEST, "autoscaling": {"mode": "keda"}, "topics": own})
    most = {name: scaler["spec"]["maxReplicaCount"] for name, scaler in scalers.items()}
    assert most == {f"smidgen-{stage}": 18 if stage == "aggregate" else 8 for stage in STAGES}


@pytest.mark.parametrize(
    ("values", "partitions"),
    [
        (SETS["keda"], 6),
        (SETS["all"], 24),
        ({**SETS["keda"], "topicPrefix": "blue."}, 6),
        ({**SETS["keda"], "topicPrefix": "blue.", "groupPrefix": "b-"}, 6),
    ],
    ids=["packaged", "own", "one of two fleets", "with groups of its own"],
)
def test_keda_asks_for_the_lag_of_the_stages_group_on_its_topics(values: Object, partitions: int) -> None:
    topics = {
        name: f"fleet.{topic.name}" if "topics" in values else topic.name for name, topic in TOPICS.items()
    }
    own = TOPICS.of_fleet(values.get("topicPrefix", ""), values.get("groupPrefix", ""))
    topics = {name: values.get("topicPrefix", "") + topic for name, topic in topics.items()}
    scalers = of_kind("ScaledObject", values)
    for stage in STAGES:
        spec = scalers[f"smidgen-{stage}"]["spec"]
        assert spec["scaleTargetRef"] == {"name": f"smidgen-{stage}"}
        assert spec["maxReplicaCount"] == (12 if stage == "aggregate" else partitions)
        triggers = [trigger["metadata"] for trigger in spec["triggers"]]
        assert {one["topic"] for one in triggers} == {topics[name] for name in TOPICS.inputs(stage)}
        assert {one["consumerGroup"] for one in triggers} == {own.group(stage)}
        assert {one["bootstrapServers"] for one in triggers} == {values["broker"]}
        assert all(isinstance(value, str) for one in triggers for value in one.values())


def test_keda_logs_in_as_the_workers_do() -> None:
    (authentication,) = of_kind("TriggerAuthentication", SETS["all"]).values()
    found = {one["parameter"]: (one["name"], one["key"]) for one in authentication["spec"]["secretTargetRef"]}
    assert found == {
        "username": ("smidgen", "sasl_username"),
        "password": ("smidgen", "sasl_password"),
        "ca": ("authorities", "ca.pem"),
    }
    data = of_kind("Secret", SETS["all"])["smidgen"]["data"]
    assert base64.b64decode(data["sasl_username"]).decode() == "smidgen-worker"
    for scaler in of_kind("ScaledObject", SETS["all"]).values():
        for trigger in scaler["spec"]["triggers"]:
            assert trigger["authenticationRef"] == {"name": authentication["metadata"]["name"]}
            assert (trigger["metadata"]["sasl"], trigger["metadata"]["tls"]) == ("scram_sha512", "enable")


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


def test_a_changed_file_restarts_the_workers() -> None:
    before = of_kind("Deployment", ALL)["smidgen-detect"]["spec"]["template"]["metadata"]["annotations"]
    changed = {**ALL, "settingFiles": {"quotas": "default: {names: 1001}\n"}}
    after = of_kind("Deployment", changed)["smidgen-detect"]["spec"]["template"]["metadata"]["annotations"]
    assert before != after


def test_a_release_has_names_of_its_own_that_fit() -> None:
    for name in ("staging", "a" * 53):
        found = objects({**ALL, "autoscaling": {"mode": "keda"}}, name)
        for one in found:
            assert len(one["metadata"]["name"]) <= 63
            assert name[:40] in one["metadata"]["name"]
    assert (
        len({one["metadata"]["name"] for one in objects(SMALLEST, "b" * 53) if one["kind"] == "Deployment"})
        == 5
    )


def test_values_are_the_settings_that_there_are() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))["properties"]
    # A pod that had the key could sign receipts: it is `smidgen dlq` that needs it.
    assert set(schema["secrets"]["propertyNames"]["enum"]) == set(SECRETS) - {"receipt_key", "oidc_secret"}
    refused = set(schema["settings"]["propertyNames"]["not"]["enum"])
    assert set(SECRETS) <= refused
    assert refused <= set(setting_fields())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    assert set(defaults) | {"global"} == set(schema)
    assert set(defaults["stages"]) == set(defaults["autoscaling"]["lagPerReplica"]) == set(STAGES)


def test_the_page_explains_every_value() -> None:
    page = (ROOT / "docs/kubernetes.md").read_text("utf-8")
    defaults = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    assert [key for key in defaults if f"`{key}" not in page] == []
    for block in re.findall(r"^```yaml\n# values\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        assert objects({**SMALLEST, **yaml.safe_load(block)})
