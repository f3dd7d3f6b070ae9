"""`docker-compose.yaml`, the Dockerfile and what they refer to hang together; no Docker engine is needed.

The servers and the image themselves are not started here; the README says what was run in their place.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

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
WORKERS = ("connect", "connect-2")


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


def test_every_server_that_the_tutorial_needs_is_there() -> None:
    assert set(SERVICES) == {"kafka", "postgres", "mysql", "mongodb", "mongodb-init", *WORKERS}


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
    assert reached == set(SERVICES) - set(WORKERS)


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


def test_ports_are_those_that_clients_expect_and_only_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {
        "kafka": ["127.0.0.1:29092:29092"],
        "postgres": ["127.0.0.1:5432:5432"],
        "mysql": ["127.0.0.1:3306:3306"],
        "mongodb": ["127.0.0.1:27017:27017"],
        "connect": ["127.0.0.1:8083:8083"],
        "connect-2": ["127.0.0.1:8084:8083"],
    }


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
    first, second = (worker_properties(SERVICES[worker]["environment"]) for worker in WORKERS)
    differing = {name for name in first | second if first.get(name) != second.get(name)}
    assert differing == {"rest.advertised.host.name"}
    for worker, properties in zip(WORKERS, (first, second), strict=True):
        # the name by which the other containers of the network resolve it
        assert properties["rest.advertised.host.name"] == worker == SERVICES[worker]["hostname"]
    assert SERVICES[WORKERS[0]]["volumes"] == SERVICES[WORKERS[1]]["volumes"], "a sink's warehouse must be there wherever its task runs"


def test_the_second_worker_comes_only_when_it_is_asked_for() -> None:
    assert {name for name, service in SERVICES.items() if "profiles" in service} == {"connect-2"}
    assert SERVICES["connect-2"]["profiles"] == ["cluster"]


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
    installed = re.search(r"whl\)\[([a-z,-]+)\]", DOCKERFILE)
    assert installed
    found = set(installed[1].split(","))
    for name in set(found):
        for requirement in extras[name]:
            within = re.match(r"connect-py-worker\[([a-z,-]+)\]", requirement)
            found |= set(within[1].split(",")) if within else set()
    assert found == set(extras) - {"demo", "dev"}
    copied = {name for line in DOCKERFILE.splitlines() if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert set(project["license-files"]) <= copied


def test_the_image_runs_as_its_own_user_and_checks_its_health() -> None:
    assert re.search(r"^USER connect$", DOCKERFILE, re.M)
    assert "HEALTHCHECK" in DOCKERFILE
    assert 'ENTRYPOINT ["connect-py", "distributed"]' in DOCKERFILE


class Answering(BaseHTTPRequestHandler):
    status: ClassVar[int] = 200
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b'{"status":"starting","message":"reading topics"}')

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(("status", "exit_code"), [(200, 0), (503, 1), (500, 1)])
def test_the_health_check_follows_the_workers_answer(status: int, exit_code: int) -> None:
    handler = type("Handler", (Answering,), {"status": status, "asked": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        done = run_health_check(server.server_port)
        thread.join()
    assert handler.asked == ["/health"]
    assert done.returncode == exit_code
    assert status == 200 or "reading topics" in done.stderr


def test_the_health_check_fails_when_nobody_listens() -> None:
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        port = server.server_port
    done = run_health_check(port)
    assert done.returncode == 1
    assert "No answer from" in done.stderr


def run_health_check(port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "docker/healthcheck.py"],
        env={**os.environ, "REST_PORT": str(port)},
        capture_output=True,
        text=True,
        timeout=30,
    )


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
    assert "--constraint constraints.txt" in DOCKERFILE
    assert "constraints.txt" in next(line for line in DOCKERFILE.splitlines() if line.startswith("COPY pyproject.toml"))
    needed = module.packages(module.image_extras())
    assert set(needed) <= set(pinned), "make constraints.txt again: docker/constraints.py"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [text for extra in module.image_extras() for text in project["optional-dependencies"][extra]]
    for requirement in map(Requirement, [*project["dependencies"], *extras]):
        name = module.normal(requirement.name)
        assert name == "connect-py-worker" or requirement.specifier.contains(pinned[name]), name
