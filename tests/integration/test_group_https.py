"""Workers of one group whose listeners are https and ask for a client's certificate: requests that a follower passes on, by real TLS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from connect_py.app.services.process import free_port
from connect_py.app.services.worker import RefusedError, Worker
from tests.certificates import Identity
from tests.cluster import SETTINGS, last_leader_url
from tests.waiting import eventually

pytestmark = pytest.mark.services

PASSWORD = "store-pass"


class SecuredGroup:
    """Workers that advertise an https listener; tests ask them by another one, without TLS."""

    def __init__(self, make_worker: Callable[..., Worker], folder: Path) -> None:
        self._make, self._folder = make_worker, folder
        self._authority = Identity("authority")
        self._names: dict[str, str] = {}
        (folder / "trust.pem").write_text(self._authority.chain_pem)

    def add(self, tls: Mapping[str, str]) -> Worker:
        plain, secured = free_port(), free_port()
        worker = self._make(
            port=plain,
            properties={
                **SETTINGS,
                **self._names,
                "listeners": f"http://127.0.0.1:{plain},https://127.0.0.1:{secured}",
                "rest.advertised.listener": "https",
                "rest.advertised.port": str(secured),
                **tls,
            },
        )
        named = worker.properties
        self._names = {name: named[name] for name in named if name == "group.id" or name.endswith(".storage.topic")}
        return worker

    def pem(self, prefix: str, *, known: bool = True) -> dict[str, str]:
        """Settings with PEM files of a new identity; one that is not `known` has signed its certificate itself."""
        identity = Identity("worker", self._authority if known else None)
        store = self._folder / f"{identity.certificate.serial_number}.pem"
        store.write_text(identity.key_pem() + identity.chain_pem)
        return {
            f"{prefix}ssl.client.auth": "required",
            f"{prefix}ssl.keystore.type": "PEM",
            f"{prefix}ssl.keystore.location": str(store),
            f"{prefix}ssl.truststore.type": "PEM",
            f"{prefix}ssl.truststore.location": str(self._folder / "trust.pem"),
        }

    def pkcs12(self, prefix: str) -> dict[str, str]:
        """Settings with a PKCS #12 store of a new identity."""
        identity = Identity("worker", self._authority)
        store = self._folder / f"{identity.certificate.serial_number}.p12"
        store.write_bytes(identity.p12(PASSWORD))
        return {
            **self.pem(prefix),
            f"{prefix}ssl.keystore.type": "PKCS12",
            f"{prefix}ssl.keystore.location": str(store),
            f"{prefix}ssl.keystore.password": PASSWORD,
        }


@pytest.fixture
def secured(make_worker: Callable[..., Worker], tmp_path: Path) -> SecuredGroup:
    return SecuredGroup(make_worker, tmp_path)


def config(folder: Path, name: str) -> dict[str, str]:
    path = folder / f"{name}.txt"
    path.write_text("one\n")
    return {"connector.class": "FileStreamSource", "file": str(path), "topic": f"{folder.name}-{name}", "tasks.max": "1"}


@pytest.mark.parametrize("prefix", ["listeners.https.", pytest.param("", marks=pytest.mark.long)])
def test_a_follower_passes_requests_on_by_tls_with_its_certificate(secured: SecuredGroup, prefix: str, tmp_path: Path) -> None:
    leader, follower = secured.add(secured.pem(prefix)), secured.add(secured.pkcs12(prefix))
    its_url = f"https://127.0.0.1:{leader.properties['rest.advertised.port']}"
    eventually(lambda: last_leader_url(follower) == its_url, "the worker in its group")
    for name in "abcd":
        created = follower.request("POST", "/connectors", {"name": name, "config": config(tmp_path, name)})
        assert created["name"] == name
    for name in "abcd":
        follower.wait_for(name, "RUNNING")
        for worker in (leader, follower):  # one of the two owns it, and the other passes the request on
            worker.request("POST", f"/connectors/{name}/restart")
            worker.request("POST", f"/connectors/{name}/tasks/0/restart")
    with pytest.raises(RefusedError) as refused:
        follower.request("DELETE", "/connectors/none")
    assert (refused.value.status, refused.value.message) == (404, "Connector none not found")
    owners = {follower.wait_for(name, "RUNNING")["tasks"][0]["worker_id"] for name in "abcd"}
    assert owners == {f"127.0.0.1:{worker.properties['rest.advertised.port']}" for worker in (leader, follower)}
    assert PASSWORD not in leader.log.read_text() + follower.log.read_text()


def test_a_worker_with_a_certificate_that_the_leader_does_not_know_passes_nothing_on(secured: SecuredGroup, tmp_path: Path) -> None:
    leader = secured.add(secured.pem("listeners.https."))
    stranger = secured.add(secured.pem("listeners.https.", known=False))
    with pytest.raises(RefusedError) as refused:
        stranger.request("POST", "/connectors", {"name": "a", "config": config(tmp_path, "a")})
    assert refused.value.status == 500
    assert refused.value.message.startswith("IO Error trying to forward REST request: ")
    assert refused.value.message.endswith(" (the leader)")
    assert leader.request("GET", "/connectors") == []


def test_hosts_names_are_checked_unless_the_property_is_empty(secured: SecuredGroup, tmp_path: Path) -> None:
    named = {"rest.advertised.host.name": "localhost"}  # certificates are for 127.0.0.1
    leader = secured.add({**secured.pem("listeners.https."), **named})
    strict = secured.add({**secured.pem("listeners.https."), **named})
    lenient = secured.add({**secured.pem("listeners.https."), **named, "listeners.https.ssl.endpoint.identification.algorithm": ""})
    eventually(lambda: last_leader_url(lenient).startswith("https://localhost:"), "the worker in its group")
    with pytest.raises(RefusedError) as refused:
        strict.request("POST", "/connectors", {"name": "a", "config": config(tmp_path, "a")})
    assert refused.value.status == 500
    assert "Hostname mismatch, certificate is not valid for 'localhost'" in refused.value.message
    # stopped: the strict worker, if it is given the connector, could not hand its tasks to the leader
    stopped = {"name": "a", "config": config(tmp_path, "a"), "initial_state": "STOPPED"}
    assert lenient.request("POST", "/connectors", stopped)["name"] == "a"
    assert leader.request("GET", "/connectors") == ["a"]
