"""Properties as the Strimzi operator writes them for a Connect pod (`KafkaConnectConfigurationBuilder`) reach Kafka's client here.

One file for each way to log in. Variables stand where the operator puts them: environment, mounted files, Secrets by the API server.
"""

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

#: What every file has.
COMMON = """\
bootstrap.servers=kafka-bootstrap:9093
config.providers=strimzienv,strimzifile,strimzidir,strimzisecrets
config.providers.strimzienv.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.strimzienv.param.allowlist.pattern=.*
config.providers.strimzifile.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.strimzidir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
config.providers.strimzidir.param.allowed.paths={folder}
config.providers.strimzisecrets.class=io.strimzi.kafka.KubernetesSecretConfigProvider
group.id=my-connect
offset.storage.topic=my-connect-offsets
config.storage.topic=my-connect-configs
status.storage.topic=my-connect-status
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
rest.advertised.host.name=${{strimzienv:ADVERTISED_HOSTNAME}}
rest.advertised.port=8083
plugin.path=/opt/kafka/plugins
"""

TLS = (
    "ssl.truststore.certificates=${strimzisecrets:shop/cluster-ca:*.crt}\\n${strimzisecrets:shop/other-ca:*.crt}",
    "ssl.truststore.type=PEM",
)
MUTUAL = (
    "ssl.keystore.certificate.chain=${strimzisecrets:shop/user:user.crt}",
    "ssl.keystore.key=${strimzisecrets:shop/user:user.key}",
    "ssl.keystore.type=PEM",
)
SCRAM_LINE = (
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
    "username=${strimzienv:KAFKA_CONNECT_SASL_USERNAME} password=${strimzidir:%s/user:password};"
)
OAUTH_LINE = (
    "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    "${strimzienv:KAFKA_CONNECT_OAUTH_CONFIG} oauth.client.secret=${strimzienv:KAFKA_CONNECT_OAUTH_CLIENT_SECRET} "
    'oauth.ssl.truststore.location="/opt/kafka/oauth-certs/ca/ca.crt" oauth.ssl.truststore.type="PEM";'
)

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


def resolved(folder: Path, protocol: str, *lines: str) -> dict[str, str]:
    """A worker's properties; each line stands once for the worker and once for each kind of client, as the operator writes them."""
    every = [f"security.protocol={protocol}", *lines]
    text = COMMON.format(folder=folder) + "\n".join(prefix + line for line in every for prefix in ("", "producer.", "consumer.", "admin."))
    return resolve_worker_properties(parse_properties(text), load, shown=DISTRIBUTED.keys)


@pytest.mark.parametrize(
    ("protocol", "lines", "wanted"),
    [
        ("PLAINTEXT", (), {}),
        ("SSL", TLS, {"ssl.ca.pem": "CLUSTER\nOTHER"}),
        ("SSL", TLS + MUTUAL, {"ssl.certificate.pem": "CERTIFICATE", "ssl.key.pem": "KEY"}),
        (
            "SASL_SSL",
            (*TLS, "sasl.mechanism=SCRAM-SHA-512", SCRAM_LINE),
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u-strimzi", "sasl.password": "s3cret", "ssl.ca.pem": "CLUSTER\nOTHER"},
        ),
        (
            "SASL_PLAINTEXT",
            ("sasl.mechanism=PLAIN", SCRAM_LINE.replace("scram.Scram", "plain.Plain")),
            {"sasl.mechanism": "PLAIN", "sasl.username": "u-strimzi", "sasl.password": "s3cret"},
        ),
        (
            "SASL_PLAINTEXT",
            (
                "sasl.mechanism=OAUTHBEARER",
                OAUTH_LINE,
                "sasl.login.callback.handler.class=io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
            ),
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "u-strimzi",
                "sasl.oauthbearer.client.secret": "oauth-secret",
                "sasl.oauthbearer.token.endpoint.url": "https://sso/token",
                "https.ca.location": "/opt/kafka/oauth-certs/ca/ca.crt",
            },
        ),
    ],
    ids=["none", "tls", "mutual tls", "scram", "plain", "oauth"],
)
def test_each_way_to_log_in_reaches_kafkas_client(folder: Path, protocol: str, lines: tuple[str, ...], wanted: dict[str, str]) -> None:
    properties = resolved(folder, protocol, *(line % folder if "%s" in line else line for line in lines))
    assert WorkerConfig.parse(properties).worker_id() == "my-connect-0.my-connect.shop.svc:8083"
    assert not [warning for warning in worker_warnings(properties, DISTRIBUTED) if "not known" in warning]
    assert security_settings(internal_properties(properties, "configs")).items() >= wanted.items()
    assert not [value for value in properties.values() if "${strimzi" in value]


def test_an_oauth_login_of_another_kind_is_refused_with_what_to_do(folder: Path) -> None:
    line = 'sasl.jaas.config=M required oauth.token.endpoint.uri="u" oauth.refresh.token="r3fresh";'
    with pytest.raises(ConfigError, match=r"oauth\.refresh\.token .* client id and a client secret") as caught:
        security_settings(internal_properties(resolved(folder, "SASL_SSL", "sasl.mechanism=OAUTHBEARER", line), "configs"))
    assert "r3fresh" not in str(caught.value)
