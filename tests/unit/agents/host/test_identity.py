"""What OpenTelemetry's variables and cgroups say of a process."""

from __future__ import annotations

import pytest

from agents.host.identity import container_id, pod_uid, resource_attributes

ID = "0123456789abcdef" * 4
POD = "1f2e3d4c-5b6a-7988-8796-a5b4c3d2e1f0"


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"OTEL_SERVICE_NAME": "shop"}, {"service": "shop"}, id="service"),
        pytest.param(
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,service.version=1.2, cloud.region = eu ,x=y"},
            {"service": "a", "release": "1.2", "region": "eu"},
            id="attributes",
        ),
        pytest.param(
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a", "OTEL_SERVICE_NAME": "b"},
            {"service": "b"},
            id="the variable of the service wins",
        ),
        pytest.param(
            {"OTEL_RESOURCE_ATTRIBUTES": "service.version=a%2Cb,k8s.pod.name=shop-7"},
            {"release": "a,b", "pod": "shop-7"},
            id="percent-decoded",
        ),
        pytest.param({"OTEL_RESOURCE_ATTRIBUTES": ",,=,service.name,service.name="}, {}, id="no pairs"),
        pytest.param(
            {"OTEL_RESOURCE_ATTRIBUTES": "cloud.region=a,deployment.region=b"},
            {"region": "a"},
            id="the first",
        ),
    ],
)
def test_variables_of_opentelemetry(environment: dict[str, str], found: dict[str, str]) -> None:
    assert resource_attributes(environment) == found


@pytest.mark.parametrize(
    ("cgroup", "pod", "container"),
    [
        pytest.param("0::/user.slice\n", "", "", id="none"),
        pytest.param(f"0::/system.slice/docker-{ID}.scope\n", "", ID, id="Docker by systemd"),
        pytest.param(f"12:cpu:/docker/{ID}\n11:memory:/docker/{ID}\n", "", ID, id="Docker by cgroupfs"),
        pytest.param(
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice"
            f"/cri-containerd-{ID}.scope\n",
            POD,
            ID,
            id="Kubernetes by systemd",
        ),
        pytest.param(f"4:cpu:/kubepods/besteffort/pod{POD}/{ID}\n", POD, ID, id="Kubernetes by cgroupfs"),
        pytest.param(
            f"0::/kubepods/pod{'ab' * 16}/crio-{ID}.scope/child\n", "ab" * 16, ID, id="a static pod, CRI-O"
        ),
        pytest.param(f"0::/ecs/{'0a' * 16}/{ID}\n", "", ID, id="ECS"),
        pytest.param("0::/lxc.payload.web/init.scope\n", "", "web", id="LXC"),
        pytest.param("0::/machine.slice/machine-web.scope\n", "", "web", id="systemd-nspawn"),
        pytest.param(f"0::/pods/podcast-{POD}\n", "", "", id="no pod"),
    ],
)
def test_pods_and_containers_of_cgroups(cgroup: str, pod: str, container: str) -> None:
    assert (pod_uid(cgroup), container_id(cgroup)) == (pod, container)
