"""deploy/helm/smidgen against the schemas of Kubernetes and against the code.

The schemas are those of kubernetes-validate. No cluster takes part. Objects of KEDA and of Prometheus'
operator have no schema here: their fields are compared.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate.utils import schema_contents

from pipeline import __version__
from pipeline.settings.config import SECRETS, setting_fields
from pipeline.settings.workloads import load_workloads
from pipeline.stages.factory import STAGES
from pipeline.worker.health import health_address
from pipeline.worker.service import CLOSE_S
from tests.support.chart import (
    ALL,
    CHART,
    EXISTING,
    SECURED,
    SETS,
    SMALLEST,
    VERSIONS,
    Object,
    helm,
    objects,
    of_kind,
    pod,
    rendered,
    settings_of,
    workers,
)
from tests.support.paths import ROOT


@pytest.fixture(scope="module", autouse=True)
def _schemas_read_once() -> Iterator[None]:
    """Keep the schemas: the library reads all of a version's definitions for each object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubernetes_validate.utils, "schema_contents", cache(schema_contents))
        yield


@pytest.mark.slow
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
        pytest.param(
            {"dashboard": {"enabled": True, "oidc": {"issuer": "https://a.b"}}}, "oidc.client", id="no client"
        ),
        pytest.param(
            {"dashboard": {"enabled": True, "userHeader": "X", "oidc": {"issuer": "https://a.b"}}},
            "dashboard.userHeader",
            id="two logins",
        ),
        pytest.param(
            {"dashboard": {**SETS["login at a provider"]["dashboard"], "replicas": 3}},
            "oidc_secret",
            id="sessions of one of several",
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
def test_probes_ask_the_endpoint_that_the_worker_opens_and_pods_have_time_to_stop(values: Object) -> None:
    probe = ["python", "-m", "pipeline.http.probe"]
    for deployment in workers(values).values():
        (container,) = pod(deployment)["containers"]
        for name, question in (("startup", "live"), ("liveness", "live"), ("readiness", "ready")):
            assert container[f"{name}Probe"]["exec"]["command"] == [*probe, question]
        startup = container["startupProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= 300
        drain_s = values.get("drainSeconds", 5)
        assert pod(deployment)["terminationGracePeriodSeconds"] > drain_s + 4 * CLOSE_S
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    done = subprocess.run(
        [sys.executable, *probe[1:], "live"],
        env={"SMIDGEN_HEALTH": "127.0.0.1:1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
    )
    assert done.returncode == 1, "nothing listens there, and the call is understood"


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
    assert len(
        {one["metadata"]["name"] for one in objects(SMALLEST, "b" * 53) if one["kind"] == "Deployment"}
    ) == len(STAGES)


def test_values_are_the_settings_that_there_are() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))["properties"]
    # A pod that had the key could sign receipts: it is `smidgen dlq` that needs it.
    assert set(schema["secrets"]["propertyNames"]["enum"]) == set(SECRETS) - {"receipt_key"}
    keys = schema["existingSecretKeys"]["items"]["enum"]
    assert keys == schema["secrets"]["propertyNames"]["enum"]
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
