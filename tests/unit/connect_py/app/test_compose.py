"""`docker-compose.yaml`, the Dockerfile and what they refer to hang together; no Docker engine is needed.

`make test-images` builds the images and starts the servers.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from connect_py.config.environment import worker_properties
from connect_py.config.worker import WorkerConfig
from tests.paths import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
RUN_ONCE = {"mongodb-init"}
WORKERS = ("connect", "connect-2", "lakehouse")
PROFILES = {
    "mysql": {"mysql"},
    "mongodb": {"mongodb", "mongodb-init"},
    "cluster": {"connect-2"},
    "lakehouse": {"lakehouse"},
    "monitoring": {"prometheus", "grafana"},
}


def dependency_conditions(service: str) -> dict[str, str]:
    return {name: how["condition"] for name, how in SERVICES[service].get("depends_on", {}).items()}


def test_the_compose_file_follows_the_compose_specification() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_a_profile_there_are_kafka_postgres_and_a_worker_and_each_profile_adds_its_own() -> None:
    assert {name for name, service in SERVICES.items() if "profiles" not in service} == {"kafka", "postgres", "connect"}
    for profile, names in PROFILES.items():
        assert {name for name, service in SERVICES.items() if profile in service.get("profiles", ())} == names


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_what_a_profile_leaves_out_is_waited_for_only_where_it_is_there(service: str) -> None:
    own = set(SERVICES[service].get("profiles", ()))
    for name, how in SERVICES[service].get("depends_on", {}).items():
        needed = set(SERVICES[name].get("profiles", ()))
        assert how.get("required", True) == (needed <= own), name


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_every_service_has_a_memory_limit_and_comes_back_after_a_crash(service: str) -> None:
    assert re.fullmatch(r"\d+[mg]", SERVICES[service]["mem_limit"])
    assert SERVICES[service]["restart"] == ("no" if service in RUN_ONCE else "unless-stopped")


@pytest.mark.parametrize("service", sorted(set(SERVICES) - RUN_ONCE))
def test_no_health_check_starts_a_java_machine(service: str) -> None:
    assert not any("kafka-" in part or "java" in part for part in SERVICES[service]["healthcheck"]["test"])


@pytest.mark.parametrize("service", sorted(set(SERVICES) - RUN_ONCE))
def test_every_lasting_service_has_a_health_check(service: str) -> None:
    assert SERVICES[service]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_dependencies_exist_and_wait_for_a_state_that_they_can_reach(service: str) -> None:
    for name, condition in dependency_conditions(service).items():
        assert condition == ("service_completed_successfully" if name in RUN_ONCE else "service_healthy"), name
        assert name in SERVICES


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_starts_after_all_servers(worker: str) -> None:
    reached: set[str] = set()
    queue = [worker]
    while queue:
        for name in dependency_conditions(queue.pop()):
            if name not in reached:
                reached.add(name)
                queue.append(name)
    assert reached == {"kafka", "postgres", "mysql", "mongodb", "mongodb-init"}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_mounted_files_and_volumes_exist(service: str) -> None:
    for mount in SERVICES[service].get("volumes", []):
        source = mount.split(":")[0]
        if source.startswith("."):
            assert (ROOT / source).is_file(), mount
        else:
            assert source in COMPOSE["volumes"], mount


def test_every_volume_is_used() -> None:
    used = {mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    assert set(COMPOSE["volumes"]) <= used


def test_ports_are_variables_with_the_defaults_that_clients_expect_and_only_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    variables = {
        name: re.fullmatch(r"127\.0\.0\.1:\$\{([A-Z0-9_]+_PORT):-(\d+)\}:(\d+)", port)
        for name, ports in published.items()
        for port in ports
    }
    assert {name: found and (found[2], found[3]) for name, found in variables.items()} == {
        "kafka": ("29092", "29092"),
        "postgres": ("5432", "5432"),
        "mysql": ("3306", "3306"),
        "mongodb": ("27017", "27017"),
        "connect": ("8083", "8083"),
        "connect-2": ("8084", "8083"),
        "lakehouse": ("8087", "8083"),
        "prometheus": ("9090", "9090"),
        "grafana": ("3000", "3000"),
    }
    example = dict(line.split("=") for line in (ROOT / ".env.example").read_text().splitlines() if not line.startswith("#"))
    assert example == {found[1]: found[2] for found in variables.values() if found}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_images_are_pinned_to_a_version(service: str) -> None:
    tag = SERVICES[service]["image"].partition(":")[2]
    assert tag
    assert tag != "latest"


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_gets_complete_properties_from_its_environment(worker: str) -> None:
    found = worker_properties(SERVICES[worker]["environment"])
    listener = next(part for part in SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",") if "kafka:" in part)
    assert found["bootstrap.servers"] == listener.split("://")[1]
    assert found["listeners"] == "http://:8083"
    assert WorkerConfig.parse(found).worker_id() == f"{worker}:8083"


def test_the_workers_are_one_group_and_reach_each_other_under_names_of_their_own() -> None:
    pair = ("connect", "connect-2")
    first, second = (worker_properties(SERVICES[worker]["environment"]) for worker in pair)
    differing = {name for name in first | second if first.get(name) != second.get(name)}
    assert differing == {"rest.advertised.host.name"}
    for worker, properties in zip(pair, (first, second), strict=True):
        # the name by which the other containers of the network resolve it
        assert properties["rest.advertised.host.name"] == worker == SERVICES[worker]["hostname"]


def test_workers_with_spark_are_a_group_of_their_own_with_the_warehouse() -> None:
    light, spark = (worker_properties(SERVICES[worker]["environment"]) for worker in ("connect", "lakehouse"))
    for name in ("group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic"):
        assert light[name] != spark[name]
    assert "warehouse:/warehouse" in SERVICES["lakehouse"]["volumes"]
    assert {SERVICES[worker]["build"]["target"]: SERVICES[worker]["image"] for worker in WORKERS} == {
        "slim": "connect-py-worker:slim",
        "lakehouse": "connect-py-worker:lakehouse",
    }


def test_the_databases_are_set_up_as_change_capture_needs() -> None:
    assert "wal_level=logical" in SERVICES["postgres"]["command"]
    assert "--gtid-mode=ON" in SERVICES["mysql"]["command"]
    assert any(argument.startswith("--server-id=") for argument in SERVICES["mysql"]["command"])
    assert "--replSet" in SERVICES["mongodb"]["command"]


def test_what_the_dockerfile_copies_exists_and_is_not_ignored() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line]
    assert copied
    for source in [name for sources in copied for name in sources]:
        assert (ROOT / source).exists(), source
        assert source in let_in, source


def test_the_image_has_the_extras_of_all_plugins_and_the_licence_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    slim, lakehouse = (set(extras.split(",")) for extras in re.findall(r"whl\)\[([a-z,-]+)\]", DOCKERFILE))
    assert not any(name.startswith("spark") for name in slim)
    found = slim | lakehouse
    for name in set(found):
        for requirement in extras[name]:
            within = re.match(r"connect-py-worker\[([a-z,-]+)\]", requirement)
            found |= set(within[1].split(",")) if within else set()
    assert found == set(extras) - {"cli", "demo", "dev", "docs"}
    copied = {name for line in DOCKERFILE.splitlines() if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert set(project["license-files"]) <= copied


def test_the_image_runs_as_a_numeric_user_of_group_0_and_checks_its_health() -> None:
    assert re.findall(r"^USER (\d+)$", DOCKERFILE, re.M)[-1] == "1001"
    assert "useradd --uid 1001 --gid 0" in DOCKERFILE
    assert 'HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["connect-py", "health"]' in DOCKERFILE
    assert 'ENTRYPOINT ["connect-py", "distributed"]' in DOCKERFILE
    assert "connect-py spark-archive" in DOCKERFILE


def test_the_image_is_labelled_with_what_it_is() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', DOCKERFILE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels.keys() == {"title", "version", "description", "licenses"}
    assert (labels["title"], labels["version"], labels["licenses"]) == (project["name"], project["version"], project["license"])


def test_the_bill_of_materials_names_what_is_installed() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "docker/sbom.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    bill = json.loads(done.stdout)
    found = {component["name"]: component for component in bill["components"]}
    assert bill["bomFormat"] == "CycloneDX"
    assert len({component["bom-ref"] for component in bill["components"]}) == len(bill["components"])
    assert found["fastapi"]["purl"].startswith("pkg:pypi/fastapi@")


def test_the_image_reads_plugins_where_debezium_s_does_and_has_a_health_listener() -> None:
    stated = dict(re.findall(r"^ +(?:ENV )?([A-Z_]+)=(\S+?)(?: \\)?$", DOCKERFILE, re.M))
    found = worker_properties({**SERVICES["connect"]["environment"], **stated})
    assert (found["plugin.path"], found["health.listeners"]) == ("/kafka/connect", "http://:8085")


def test_the_image_installs_the_versions_of_the_constraints_and_nothing_else() -> None:
    path = ROOT / "docker" / "constraints.py"
    spec = importlib.util.spec_from_file_location("image_constraints", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {name: version for name, _, version in (line.partition("==") for line in lines)}
    assert all(pinned.values())
    # what builds the documentation's site stays in the stage of the wheel
    _, _, final_stages = DOCKERFILE.partition("AS packages")
    installed = re.findall(r"pip install (.*)", final_stages)
    assert len(installed) == 2
    assert all("--constraint /opt/connect/constraints.txt" in arguments for arguments in installed)
    needed = module.packages(module.image_extras())
    assert set(needed) <= set(pinned), "make constraints.txt again: docker/constraints.py"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [text for extra in module.image_extras() for text in project["optional-dependencies"][extra]]
    for requirement in map(Requirement, [*project["dependencies"], *extras]):
        name = module.normal(requirement.name)
        assert name == "connect-py-worker" or requirement.specifier.contains(pinned[name]), name
