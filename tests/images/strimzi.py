"""The image under Strimzi's command, with the property file that its operator writes for each way to log in.

Around it stand a broker with a listener for each way, an API server with TLS that wants the pod's token for Secrets, and an authorization
server for OAuth. The operator itself needs a cluster.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import free_port
from tests import strimzi
from tests.certificates import Identity
from tests.https_servers import api_server, token_server, write_account
from tests.images.containers import HARD, ask, image
from tests.images.engine import ImageTestError, command, log_of, remove, run, say, wait_until

_NAME = "connect-py-strimzi"
_PROTOCOLS = ("SSL", "SASL_SSL", "SASL_PLAINTEXT")
_USER, _PASSWORD, _SECRET = "u-strimzi", "s3cret", "oauth-secret"

#: A listener for each protocol. The broker accepts tokens without a signature, as Kafka does where OAuth is not set up further.
_BROKER = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},{listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},{listeners}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
ssl.keystore.type=PEM
ssl.keystore.key={key}
ssl.keystore.certificate.chain={certificate}
ssl.truststore.type=PEM
ssl.truststore.certificates={authority}
listener.name.ssl.ssl.client.auth={client_auth}
listener.name.sasl_plaintext.plain.sasl.jaas.config={module}.plain.PlainLoginModule required user_{user}="{password}";
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={module}.scram.ScramLoginModule required;
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config={module}.oauthbearer.OAuthBearerLoginModule required {claim};
"""


def check() -> None:
    """Start a worker by each way to log in. Raises ImageTestError."""
    with tempfile.TemporaryDirectory(prefix="connect-py-strimzi-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        cluster, users = Identity("cluster-ca"), Identity("clients-ca")
        user = Identity(_USER, users)
        secrets = {
            ("shop", "cluster-ca"): {"ca.crt": cluster.chain_pem, "ca.password": "no"},
            ("shop", "other-ca"): {"ca.crt": Identity("other").chain_pem},
            ("shop", "user"): {"user.crt": user.chain_pem, "user.key": user.key_pem()},
        }
        for name in ("api", "sso", "account", "certs/ca", "user"):
            (folder / name).mkdir(parents=True)
        api, sso = Identity("api-ca"), Identity("sso-ca")
        write_account(folder / "account", api, "shop")
        (folder / "certs" / "ca" / "ca.crt").write_text(sso.chain_pem)
        (folder / "user" / "password").write_text(_PASSWORD)
        with (
            api_server(api, folder / "api", secrets, {}) as environment,
            token_server(sso, folder / "sso", _USER, _SECRET) as endpoint,
        ):
            variables = {
                **environment,
                "KAFKA_CONNECT_JMX_EXPORTER_ENABLED": "false",
                "KAFKA_CONNECT_SASL_USERNAME": _USER,
                "KAFKA_CONNECT_OAUTH_CLIENT_SECRET": _SECRET,
                "KAFKA_CONNECT_OAUTH_CONFIG": f'oauth.client.id="{_USER}" oauth.token.endpoint.uri="{endpoint}"',
            }
            for client_auth, logins in {"required": ["mutual tls"], "none": [way for way in strimzi.LOGINS if way != "mutual tls"]}.items():
                broker, addresses = _broker(folder / client_auth, cluster, users, client_auth)
                try:
                    _add_user(broker)
                    for login in logins:
                        _start(folder, login, addresses, variables)
                finally:
                    broker.stop()


def _broker(folder: Path, cluster: Identity, users: Identity, client_auth: str) -> tuple[KafkaBroker, dict[str, str]]:
    """Start a broker; its addresses by protocol."""
    identity = Identity("broker", cluster)
    addresses = {protocol: f"127.0.0.1:{free_port()}" for protocol in _PROTOCOLS}
    more = _BROKER.format(
        listeners=",".join(f"{protocol}://{address}" for protocol, address in addresses.items()),
        key=identity.key_pem().replace("\n", "\\n"),
        certificate=identity.chain_pem.replace("\n", "\\n"),
        authority=users.chain_pem.replace("\n", "\\n"),
        client_auth=client_auth,
        module="org.apache.kafka.common.security",
        claim='unsecuredLoginStringClaim_sub="b"',
        user=_USER,
        password=_PASSWORD,
    )
    broker = KafkaBroker(folder, more=more)
    return broker, {"PLAINTEXT": broker.bootstrap, **addresses}


def _add_user(broker: KafkaBroker) -> None:
    """Give SCRAM a user."""
    login = UserScramCredentialUpsertion(_USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), _PASSWORD.encode())
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.alter_user_scram_credentials([login]).values():
        future.result(30)


def _start(folder: Path, login: str, addresses: dict[str, str], variables: dict[str, str]) -> None:
    """Start the image with a property file, and ask what the operator asks."""
    protocol, lines = strimzi.LOGINS[login]
    port = free_port()
    custom = folder / "custom-config"
    custom.mkdir(exist_ok=True)
    text = strimzi.property_file(addresses[protocol], "/opt/kafka", protocol, lines).replace("my-connect", f"my-connect-{port}")
    single = "".join(f"{topic}.storage.replication.factor=1\n" for topic in ("config", "offset", "status"))
    text += f"{single}offset.storage.partitions=1\nstatus.storage.partitions=1\nlisteners=http://:{port}\nrest.advertised.port={port}\n"
    text += "file.connectors.allowed.paths=/tmp\n"
    (custom / "kafka-connect.properties").write_text(text)
    mounts = {
        custom: "/opt/kafka/custom-config",
        folder / "user": "/opt/kafka/user",
        folder / "certs": "/opt/kafka/oauth-certs",
        folder / "account": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    options = [part for source, target in mounts.items() for part in ("-v", f"{source}:{target}:ro")]
    began = time.monotonic()
    run(_NAME, image("slim"), environment=variables, options=[*HARD, *options, "--entrypoint", "/opt/kafka/kafka_connect_run.sh"])
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        if command("podman", "inspect", "--format", "{{.State.Running}}", _NAME).stdout.strip() != "true":
            raise ImageTestError(f"With {login} the container has ended")
        return ask(f"{url}/health") is not None

    try:
        took = wait_until(answers, f"Strimzi's probe, {login}")
        if ask(f"{url}/connectors") != []:
            raise ImageTestError(f"With {login}, /connectors does not answer")
        created = ask(f"{url}/connectors", "POST", {"name": "files", "config": _FILES})
        if not isinstance(created, dict):
            raise ImageTestError(f"With {login} no connector can be created")
        wait_until(lambda: _runs(ask(f"{url}/connectors/files/status")), f"a task, {login}")
    except ImageTestError:
        print(log_of(_NAME)[-6000:])
        raise
    finally:
        remove(_NAME)
    say(
        f"slim under Strimzi's command, login {login} ({protocol}): /health answers on the REST API's port after {took:.1f} s, "
        f"a task runs after {time.monotonic() - began:.1f} s"
    )


#: A source whose producer logs in by the same properties.
_FILES = {"connector.class": "FileStreamSource", "file": "/tmp/lines", "topic": "lines", "tasks.max": "1"}


def _runs(status: object) -> bool:
    if not isinstance(status, dict) or not status["tasks"]:
        return False
    if status["tasks"][0]["state"] == "FAILED":
        raise ImageTestError(f"The task has failed: {status}")
    return bool(status["tasks"][0]["state"] == "RUNNING")
