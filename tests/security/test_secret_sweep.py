"""A real worker with secrets planted everywhere a user may put one, and connectors that fail in every way that could repeat them: nothing
that leaves the worker holds one. Log (quiet and at TRACE), traces, answers to errors, metrics, status topic, API description are read.

What is allowed to show them is what its owner wrote: ``GET /connectors/{name}/config`` and its like, as in Kafka Connect.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, quote_plus

import psycopg
import pytest
from confluent_kafka import Producer

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.waiting import wait_until

pytestmark = pytest.mark.services

#: A transform of somebody else, which tells its passphrase to everybody: to the log, to standard output, in its errors.
LEAKY = """
import logging
from connect_py.api import ConfigDef, ConfigKey, ConfigType, Importance


class Leaky:
    java_name = "example.Leaky"
    version = "1"

    @classmethod
    def config_def(cls):
        return ConfigDef([ConfigKey("phrase", ConfigType.PASSWORD, "", Importance.HIGH, "Not to be told.")])

    def configure(self, config):
        self.phrase = config["phrase"]
        logging.getLogger("example").info("configured with %s", config)
        print("printed", self.phrase, flush=True)

    def apply(self, record):
        raise ValueError(f"cannot open the safe with {self.phrase!r}")

    def close(self):
        pass
"""


class Planted:
    """Secrets, each different from all others, and how they might appear."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def __call__(self, where: str) -> str:
        return self.values.setdefault(where, f"pl&nt%d {len(self.values)}-{uuid.uuid4().hex[:12]}")

    def plain(self, where: str) -> str:
        """One that may stand in an address as it is."""
        return self.values.setdefault(where, f"planted{len(self.values)}x{uuid.uuid4().hex[:12]}")

    def found_in(self, text: str) -> list[str]:
        found = []
        for where, secret in self.values.items():
            login = base64.b64encode(f"svc:{secret}".encode()).decode()
            for spelling in {secret, quote(secret), quote_plus(secret), quote(secret, safe=""), json.dumps(secret)[1:-1], login}:
                found += [f"{where}: …{text[max(0, at.start() - 150) : at.end() + 40]}…" for at in re.finditer(re.escape(spelling), text)]
        return found


@pytest.fixture
def plugin_path(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins" / "leaky"
    info = folder / "leaky-1.dist-info"
    info.mkdir(parents=True)
    (folder / "leaky.py").write_text(LEAKY)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leaky\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[connect_py.plugins]\nexample.Leaky = leaky:Leaky\n")
    return folder


@contextmanager
def role(postgres: PostgresAddress, database: str, name: str, password: str) -> Iterator[None]:
    with postgres.connect() as admin:
        admin.execute(psycopg.sql.SQL("CREATE ROLE {} LOGIN SUPERUSER PASSWORD {}").format(psycopg.sql.Identifier(name), password))
    try:
        yield
    finally:
        with postgres.connect(database) as admin:
            for statement in ("DROP OWNED BY {} CASCADE", "DROP ROLE {}"):
                admin.execute(psycopg.sql.SQL(statement).format(psycopg.sql.Identifier(name)))


class Sweep:
    """Collects what a worker says."""

    def __init__(self, worker: Worker, kafka: Kafka) -> None:
        self.worker = worker
        self.kafka = kafka
        self.said: list[str] = []

    def call(self, method: str, path: str, body: object = None, *, is_shown: bool = False, **headers: str) -> str:
        """One request; its answer is kept, unless it is one that shows configurations."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.worker.url + path, data=data, method=method, headers={"Content-Type": "application/json", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text, refused = answer.read().decode(), False
        except urllib.error.HTTPError as error:
            text, refused = error.read().decode(), True
        if refused or not is_shown:
            self.said.append(f"{method} {path} answered {text}")
        return text

    def create(self, name: str, config: dict[str, str]) -> None:
        self.call("POST", "/connectors", {"name": name, "config": config}, is_shown=True)
        verdict = json.loads(self.call("PUT", "/connector-plugins/x/config/validate", {**config, "name": name}, is_shown=True))
        # the values are the sender's own; passwords and errors are not
        for entry in verdict.get("configs", []):
            self.said.append(f"validation says {entry['value']['name']}: {entry['value']['errors']}")
            if entry["definition"] and entry["definition"]["type"] == "PASSWORD":
                self.said.append(f"validation shows {entry['value']}")

    def topic(self, name: str) -> str:
        """A topic with one record in it."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap})
        producer.produce(name, b"one")
        assert producer.flush(20) == 0
        return name

    def everything(self) -> str:
        """All that the worker has said."""
        for path in (
            "/",
            "/connectors?expand=status",
            "/metrics",
            "/metrics?names=strimzi",
            "/openapi.json",
            "/connector-plugins",
            "/admin/loggers",
            "/ui/",
            "/ui/index.html",
            "/ui/api/state",
            "/ui/api/worker",
        ):
            self.call("GET", path)
        for name in json.loads(self.call("GET", "/connectors")):
            self.call("GET", f"/connectors/{name}/status")
            self.call("GET", f"/connectors/{name}/topics")
            self.call("GET", f"/connectors/{name}/offsets")
            self.call("PATCH", f"/connectors/{name}/offsets", {"offsets": []})
            for part in ("", "/history", "/log", "/verification", "/config"):
                self.call("GET", f"/ui/api/connectors/{name}{part}")
        for kind in ("status", "offset"):
            self.said += [
                f"the {kind} topic has {record.key()!r} {record.value()!r}" for record in self.kafka.read(self.worker.topic(kind))
            ]
        self.said.append(self.worker.log.read_text())
        return "\n".join(self.said)


@pytest.mark.parametrize("level", [pytest.param("INFO", marks=pytest.mark.long), "TRACE"])
def test_no_planted_secret_leaves_the_worker(
    level: str,
    make_worker: Callable[..., Worker],
    kafka: Kafka,
    postgres: PostgresAddress,
    database: str,
    plugin_path: Path,
    tmp_path: Path,
    tag: str,
) -> None:
    planted = Planted()
    file = tmp_path / "secrets.properties"
    file.write_text(f"db={planted.plain('a file that a config provider reads')}\n")
    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
    worker = make_worker(
        properties={
            "plugin.path": str(plugin_path),
            "connector.client.config.override.policy": "All",
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "producer.sasl.jaas.config": jaas(planted.plain("the worker's JAAS configuration")),
            "admin.ssl.key.password": planted.plain("the worker's key"),
        },
        env={"CONNECT_PY_LOG_LEVEL": level},
    )
    sweep = Sweep(worker, kafka)
    if level == "TRACE":
        sweep.call("PUT", "/admin/loggers/root", {"level": "TRACE"})

    source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": f"{tag}-lines"}
    good, bad = planted("the password of a role"), planted("a wrong password")
    user = f"r_{tag}"
    with role(postgres, database, user, good):
        sweep.create(f"{tag}-pg", postgres_source(postgres, database, tag) | {"database.user": user, "database.password": good})
        sweep.create(f"{tag}-wrong", postgres_source(postgres, database, tag) | {"database.user": user, "database.password": bad})
        sweep.create(
            f"{tag}-provided",
            postgres_source(postgres, database, tag) | {"database.user": user, "database.password": f"${{file:{file}:db}}"},
        )
        sweep.create(
            f"{tag}-provided-name", source | {"topic": f"${{file:{file}:db}}", "file": "/nonexistent/${file:" + str(file) + ":db}/x"}
        )
        sweep.create(
            f"{tag}-smt",
            source
            | {"transforms": "safe", "transforms.safe.type": "example.Leaky", "transforms.safe.phrase": planted("a transform's phrase")},
        )
        letters = f"{tag}-letters"
        sweep.create(
            f"{tag}-letters",
            {
                "connector.class": "FileStreamSink",
                "file": str(tmp_path / "out.txt"),
                "topics": sweep.topic(f"{tag}-unread"),
                "value.converter": "org.apache.kafka.connect.storage.StringConverter",
                "transforms": "safe",
                "transforms.safe.type": "example.Leaky",
                "transforms.safe.phrase": planted("the phrase of a sink's transform"),
                "errors.tolerance": "all",
                "errors.log.enable": "true",
                "errors.deadletterqueue.topic.name": letters,
                "errors.deadletterqueue.topic.replication.factor": "1",
                "errors.deadletterqueue.context.headers.enable": "true",
            },
        )
        sweep.create(
            f"{tag}-sasl",
            source
            | {
                "producer.override.bootstrap.servers": nobody,
                "producer.override.security.protocol": "SASL_PLAINTEXT",
                "producer.override.sasl.mechanism": "PLAIN",
                "producer.override.sasl.jaas.config": jaas(planted.plain("a connector's JAAS configuration")),
            },
        )
        sweep.create(
            f"{tag}-malformed-sasl",
            source | {"producer.override.security.protocol": "SASL_SSL", "producer.override.sasl.jaas.config": planted("broken JAAS")},
        )
        sweep.create(
            f"{tag}-bootstrap",
            source | {"producer.override.bootstrap.servers": f"PLAINTEXT://svc:{planted.plain('userinfo of a broker')}@{nobody}"},
        )
        sweep.create(
            f"{tag}-registry",
            source
            | {
                "value.converter": "io.confluent.connect.avro.AvroConverter",
                "value.converter.schema.registry.url": f"http://svc:{planted.plain('userinfo of a registry')}@{nobody}",
            },
        )
        sweep.create(
            f"{tag}-registry-login",
            source
            | {
                "value.converter": "io.confluent.connect.avro.AvroConverter",
                "value.converter.schema.registry.url": f"http://{nobody}",
                "value.converter.basic.auth.credentials.source": "USER_INFO",
                "value.converter.basic.auth.user.info": f"svc:{planted.plain('a login of a registry')}",
            },
        )
        sweep.create(
            f"{tag}-jdbc",
            {"connector.class": "example.Jdbc", "connection.url": f"jdbc:x://h/d?user=u&password={planted.plain('a JDBC address')}"},
        )
        sweep.call("POST", "/connectors", {"name": f"{tag}-none", "config": {"database.password": planted("a connector without class")}})
        sweep.call(
            "POST", "/connectors", b'{"name": "x", "config": {"database.password": "' + planted.plain("malformed JSON").encode() + b'"'
        )
        sweep.call("PUT", f"/connectors/{tag}-pg/config", {"database.password": ["x", planted("not a text")]}, is_shown=True)
        sweep.call("GET", "/connectors", Authorization="Basic " + base64.b64encode(f"svc:{planted.plain('a header')}".encode()).decode())
        sweep.call("PATCH", f"/connectors/{tag}-pg/config", {"plugin.name": "no", "database.password": planted("a patch")}, is_shown=True)

        running = {f"{tag}-pg": "RUNNING", f"{tag}-smt": "FAILED", f"{tag}-registry": "FAILED", f"{tag}-registry-login": "FAILED"}

        def settled() -> bool:
            states = json.loads(sweep.call("GET", "/connectors?expand=status"))
            return all(
                [task["state"] for task in states.get(name, {"status": {"tasks": []}})["status"]["tasks"]] == [state]
                for name, state in running.items()
            )

        wait_until(settled, 60, f"{running}")
        wait_until(lambda: f"{nobody}" in worker.log.read_text(), 30, "the clients of nobody's broker to complain")
        wait_until(lambda: kafka.count(letters) == 1, 30, "the dead letter")
        sweep.said += [f"the dead letter has {record.headers()}" for record in kafka.read(letters)]
        with psycopg.connect(postgres.dsn(database), autocommit=True) as session:
            session.execute("CREATE TABLE t (id int PRIMARY KEY)")
            session.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s", (f"slot_{tag}",))
        wait_until(lambda: "Trying again" in worker.log.read_text(), 30, "the source to notice that its connection was cut")
        said = sweep.everything()
        worker.stop()
    said += worker.log.read_text()
    assert planted.found_in(said) == []
    for sign in ("[hidden]", "cannot open the safe", "printed", "configured with"):
        assert sign in said, f"the sweep did not hear what it should have: {sign}"


def jaas(password: str) -> str:
    return f'org.apache.kafka.common.security.plain.PlainLoginModule required username="svc" password="{password}";'
