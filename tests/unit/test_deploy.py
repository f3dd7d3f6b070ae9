"""What `deploy/` describes: Kubernetes objects, the Helm chart, the systemd unit. No cluster is needed.

`make test-images` validates the objects against Kubernetes' schemas and compares the chart with kustomize.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from connect_py.config.worker import DISTRIBUTED, WorkerConfig, worker_warnings
from connect_py.data.java_properties import parse_properties
from tests.paths import ROOT

BASE = ROOT / "deploy" / "kubernetes" / "base"
CHART = ROOT / "deploy" / "helm" / "connect-py-worker"
UNIT = ROOT / "deploy" / "systemd" / "connect-py.service"

OBJECTS: list[dict[str, Any]] = [
    found for file in sorted(BASE.glob("*.yaml")) if file.name != "kustomization.yaml" for found in yaml.safe_load_all(file.read_text())
]
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((BASE / "kustomization.yaml").read_text())
LABELS: dict[str, str] = KUSTOMIZATION["labels"][0]["pairs"]
PROPERTIES = parse_properties((BASE / "worker.properties").read_text())


def named(kind: str) -> dict[str, Any]:
    return next(found for found in OBJECTS if found["kind"] == kind)


POD: dict[str, Any] = named("StatefulSet")["spec"]["template"]["spec"]
WORKER: dict[str, Any] = POD["containers"][0]


def test_every_file_of_the_folder_is_a_resource() -> None:
    files = {file.name for file in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(KUSTOMIZATION["resources"])


def test_selectors_name_the_workers_and_nothing_else() -> None:
    """kustomize adds labels to a selector that is there, and leaves an empty one empty, which would mean every pod."""
    assert [found["spec"]["selector"] for found in OBJECTS if found["kind"] == "Service"] == [LABELS, LABELS]
    for kind, key in (("StatefulSet", "selector"), ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        assert named(kind)["spec"][key] == {"matchLabels": LABELS}, kind
    assert KUSTOMIZATION["labels"][0] == {"pairs": LABELS, "includeTemplates": True}


def test_pods_fit_the_restricted_security_profile() -> None:
    """Pod Security Standards, restricted."""
    assert not {"hostNetwork", "hostPID", "hostIPC"} & POD.keys()
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "runAsUser" not in POD["securityContext"], "OpenShift chooses the user"
    for volume in POD["volumes"]:
        assert volume.keys() - {"name"} <= {"configMap", "emptyDir", "secret", "projected"}
    for container in POD["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert "privileged" not in context
        assert not any("hostPort" in port for port in container["ports"])


def test_the_properties_are_a_workers_and_nothing_in_them_is_unknown() -> None:
    (warning,) = worker_warnings(PROPERTIES, DISTRIBUTED)
    assert "Anybody who reaches http://:8083 may create connectors" in warning, "the NetworkPolicy is what stands in front"
    assert WorkerConfig.parse(PROPERTIES, DISTRIBUTED).group_id == "connect-py"


def test_the_pod_has_what_its_properties_name() -> None:
    ports = {port["name"]: port["containerPort"] for port in WORKER["ports"]}
    for name, port in (("listeners", "rest"), ("metrics.listeners", "metrics"), ("health.listeners", "health")):
        assert PROPERTIES[name] == f"http://:{ports[port]}"
    mounts = {mount["name"]: mount["mountPath"] for mount in WORKER["volumeMounts"]}
    assert PROPERTIES["config.providers.dir.param.allowed.paths"] == mounts["secrets"]
    assert WORKER["args"] == [f"{mounts['properties']}/worker.properties"]
    assert mounts["tmp"] == "/tmp"
    assert [variable["name"] for variable in WORKER["env"]] == [PROPERTIES["config.providers.env.param.allowlist.pattern"]]
    assert PROPERTIES["rest.advertised.host.name"] == f"${{env:POD_NAME}}.{named('StatefulSet')['spec']['serviceName']}"


def test_a_worker_has_time_to_hand_its_work_over_before_it_is_killed() -> None:
    stop = int(PROPERTIES["task.shutdown.graceful.timeout.ms"]) / 1000
    assert POD["terminationGracePeriodSeconds"] >= stop + 15
    assert named("StatefulSet")["spec"]["minReadySeconds"] >= 10
    headless = next(found for found in OBJECTS if found["metadata"]["name"] == named("StatefulSet")["spec"]["serviceName"])
    assert headless["spec"]["publishNotReadyAddresses"] is True


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_probes_ask_for_the_worker_and_never_for_a_connector(probe: str) -> None:
    assert WORKER[probe]["httpGet"] == {"path": "/health", "port": "health"}


def test_the_rest_api_is_open_to_labelled_pods_alone() -> None:
    rules = {rule["ports"][0]["port"]: rule.get("from") for rule in named("NetworkPolicy")["spec"]["ingress"]}
    assert rules.keys() == {"rest", "metrics", "health"}
    assert rules["rest"] == [{"podSelector": {"matchLabels": {"connect-py/client": "true"}}}, {"podSelector": {"matchLabels": LABELS}}]


def test_the_chart_has_the_same_properties() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()
    fixed = dict(re.findall(r'^ +"([a-z.]+)" "([^"]+)"', helpers, re.M))
    fixed["rest.advertised.host.name"] = "${env:POD_NAME}.connect-py-workers"
    assert {**fixed, **{name: str(value) for name, value in values["properties"].items()}} == PROPERTIES


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    assert chart["version"] == chart["appVersion"] == version[1]


def test_the_unit_waits_for_the_worker_and_leaves_it_time_to_stop() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert (service["Type"], service["KillMode"], service["Restart"]) == ("notify", "mixed", "on-failure")
    assert int(service["TimeoutStopSec"]) >= 25
    assert "MemoryDenyWriteExecute" not in service, "Java writes code as it runs"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "connect-py"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/connect-py/bin/connect-py", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    said = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.name in line]
    assert said == []
