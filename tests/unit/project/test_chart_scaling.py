"""The chart's pods by lag, and those with names that stay."""

from __future__ import annotations

import base64

import pytest

from pipeline.stages.factory import STAGES
from tests.support.chart import SETS, SMALLEST, STABLE, TOPICS, Object, of_kind, pod
from tests.support.paths import ROOT


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
    own_width = {"aggregate": 18, "judge": 6}
    assert most == {f"smidgen-{stage}": own_width.get(stage, 8) for stage in STAGES}


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
