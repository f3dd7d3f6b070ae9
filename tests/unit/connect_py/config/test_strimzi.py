"""Properties as the Strimzi operator writes them reach Kafka's client here; `make test-images` starts the image with each of them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from connect_py.api.provider import ConfigData
from connect_py.config.worker import DISTRIBUTED, WorkerConfig, worker_warnings
from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError
from connect_py.kafka.client import internal_properties
from connect_py.kafka.security import security_settings
from connect_py.plugins.registry import Plugins
from connect_py.providers.kubernetes import KubernetesSecretConfigProvider
from connect_py.providers.resolver import resolve_worker_properties
from tests.strimzi import LOGINS, property_file

SECRETS = {
    "shop/cluster-ca": {"*.crt": "CLUSTER"},
    "shop/other-ca": {"*.crt": "OTHER"},
    "shop/user": {"user.crt": "CERTIFICATE", "user.key": "KEY"},
}


class Secrets(KubernetesSecretConfigProvider):
    """The provider of Secrets with the API server's answers at hand; test_kubernetes.py has the server."""

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        return ConfigData({key: SECRETS[path][key] for key in keys})


def load(name: str) -> type:
    return Secrets if name == Secrets.java_name else PLUGINS.load(name)


PLUGINS = Plugins.discover(())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "password").write_text("s3cret")
    for name, value in {
        "ADVERTISED_HOSTNAME": "my-connect-0.my-connect.shop.svc",
        "KAFKA_CONNECT_SASL_USERNAME": "u-strimzi",
        "KAFKA_CONNECT_OAUTH_CLIENT_SECRET": "oauth-secret",
        "KAFKA_CONNECT_OAUTH_CONFIG": 'oauth.client.id="u-strimzi" oauth.token.endpoint.uri="https://sso/token"',
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def resolved(folder: Path, protocol: str, lines: tuple[str, ...]) -> dict[str, str]:
    text = property_file("kafka-bootstrap:9093", folder, protocol, lines)
    return resolve_worker_properties(parse_properties(text), load, shown=DISTRIBUTED.keys)


@pytest.mark.parametrize(
    ("login", "wanted"),
    [
        ("none", {}),
        ("tls", {"ssl.ca.pem": "CLUSTER\nOTHER"}),
        ("mutual tls", {"ssl.certificate.pem": "CERTIFICATE", "ssl.key.pem": "KEY"}),
        (
            "scram",
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u-strimzi", "sasl.password": "s3cret", "ssl.ca.pem": "CLUSTER\nOTHER"},
        ),
        ("plain", {"sasl.mechanism": "PLAIN", "sasl.username": "u-strimzi", "sasl.password": "s3cret"}),
        (
            "oauth",
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "u-strimzi",
                "sasl.oauthbearer.client.secret": "oauth-secret",
                "sasl.oauthbearer.token.endpoint.url": "https://sso/token",
                "https.ca.location": "/opt/kafka/oauth-certs/ca/ca.crt",
            },
        ),
    ],
    ids=LOGINS,
)
def test_each_way_to_log_in_reaches_kafkas_client(folder: Path, login: str, wanted: dict[str, str]) -> None:
    properties = resolved(folder, *LOGINS[login])
    assert WorkerConfig.parse(properties).worker_id() == "my-connect-0.my-connect.shop.svc:8083"
    assert not [warning for warning in worker_warnings(properties, DISTRIBUTED) if "not known" in warning]
    assert security_settings(internal_properties(properties, "configs")).items() >= wanted.items()
    assert not [value for value in properties.values() if "${strimzi" in value]


def test_an_oauth_login_of_another_kind_is_refused_with_what_to_do(folder: Path) -> None:
    line = 'sasl.jaas.config=M required oauth.token.endpoint.uri="u" oauth.refresh.token="r3fresh";'
    with pytest.raises(ConfigError, match=r"oauth\.refresh\.token .* client id and a client secret") as caught:
        security_settings(internal_properties(resolved(folder, "SASL_SSL", ("sasl.mechanism=OAUTHBEARER", line)), "configs"))
    assert "r3fresh" not in str(caught.value)
