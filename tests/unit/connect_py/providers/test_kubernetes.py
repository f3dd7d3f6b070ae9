"""Secrets and ConfigMaps from a Kubernetes API server: a real HTTPS server that wants the pod's token."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from connect_py.errors import ConfigError
from connect_py.providers.kubernetes import KubernetesConfigMapConfigProvider, KubernetesSecretConfigProvider
from tests.certificates import Identity

TOKEN = "token-of-the-pod"
SECRETS = {
    ("shop", "database"): {"password": "s3cret", "user": "debezium"},
    ("connect", "cluster-ca"): {"b.crt": "SECOND\n", "a.crt": "FIRST\n", "ca.password": "no"},
}
MAPS = {("connect", "places"): {"host": "db.example"}}


class ApiServer(BaseHTTPRequestHandler):
    """What the API server says to a service account that may read everything but the namespace `forbidden`."""

    token = TOKEN

    def do_GET(self) -> None:
        _, _, _, _, namespace, resource, name = self.path.split("/")
        if self.headers["Authorization"] != f"Bearer {self.token}":
            self.answer(401, {"kind": "Status"})
        elif namespace == "forbidden":
            self.answer(403, {"kind": "Status"})
        elif resource == "secrets" and (namespace, name) in SECRETS:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in SECRETS[namespace, name].items()}
            self.answer(200, {"kind": "Secret", "data": {**encoded, "binary": base64.b64encode(b"\xff\xfe").decode()}})
        elif resource == "configmaps" and (namespace, name) in MAPS:
            self.answer(200, {"kind": "ConfigMap", "data": MAPS[namespace, name]})
        else:
            self.answer(404, {"kind": "Status"})

    def answer(self, status: int, body: dict[str, object]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority() -> Identity:
    return Identity("cluster")


@pytest.fixture(scope="module")
def environ(authority: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
    identity, file = Identity("api", authority), tmp_path_factory.mktemp("api") / "server.pem"
    file.write_text(identity.key_pem() + identity.chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.server_port)}
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def account(tmp_path: Path, authority: Identity) -> Path:
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "namespace").write_text("connect")
    (tmp_path / "ca.crt").write_text(authority.chain_pem)
    return tmp_path


def test_a_secret_of_a_namespace_gives_the_keys_that_are_asked_for(account: Path, environ: dict[str, str]) -> None:
    found = KubernetesSecretConfigProvider(account, environ).get("shop/database", {"password", "none"})
    assert found.values == {"password": "s3cret"}


def test_a_pattern_gives_all_certificates_of_a_secret_in_the_pods_own_namespace(account: Path, environ: dict[str, str]) -> None:
    assert KubernetesSecretConfigProvider(account, environ).get("cluster-ca", {"*.crt"}).values == {"*.crt": "FIRST\nSECOND"}


def test_a_config_map_gives_its_values_as_they_are(account: Path, environ: dict[str, str]) -> None:
    assert KubernetesConfigMapConfigProvider(account, environ).get("places", {"host"}).values == {"host": "db.example"}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("shop/none", "The Secret none in the namespace shop cannot be read: there is none."),
        ("forbidden/database", "give the account a Role with the verb get"),
        ("shop/../database", "Invalid path"),
        ("shop/database?x", "Invalid path"),
        ("", "Invalid path"),
    ],
)
def test_what_cannot_be_read_is_said_and_no_value_is(account: Path, environ: dict[str, str], path: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KubernetesSecretConfigProvider(account, environ).get(path, {"password"})
    assert why in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_token_that_kubernetes_has_replaced_is_read_again(account: Path, environ: dict[str, str]) -> None:
    provider = KubernetesSecretConfigProvider(account, environ)
    (account / "token").write_text("expired")
    with pytest.raises(ConfigError, match="does not accept the pod's token"):
        provider.get("shop/database", {"password"})
    (account / "token").write_text(TOKEN)
    assert provider.get("shop/database", {"user"}).values == {"user": "debezium"}


def test_a_server_that_another_authority_signed_gets_no_token(account: Path, environ: dict[str, str]) -> None:
    (account / "ca.crt").write_text(Identity("another").chain_pem)
    with pytest.raises(ConfigError, match=r"does not answer .*certificate verify failed"):
        KubernetesSecretConfigProvider(account, environ).get("shop/database", {"password"})


def test_outside_of_a_pod_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="works in pods of a Kubernetes cluster only"):
        KubernetesSecretConfigProvider(tmp_path, {}).get("shop/database", {"password"})
    with pytest.raises(ConfigError, match="Does the worker run in a pod"):
        KubernetesSecretConfigProvider(tmp_path, {"KUBERNETES_SERVICE_HOST": "h"}).get("shop/database", {"password"})
