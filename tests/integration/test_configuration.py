"""Configuration on a running worker: values from providers that show nowhere, and what connectors may override."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from confluent_kafka import Producer

from connect_py.app.services.worker import RefusedError, Worker
from tests.fix_kafka import Kafka
from tests.waiting import wait_until

pytestmark = pytest.mark.services

INSERT = "org.apache.kafka.connect.transforms.InsertField$Value"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
FILE_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"


def stamped_lines(path: Path, topic: str, stamp: str) -> dict[str, str]:
    """A file source whose records carry a value of the configuration, which shows what its task was given."""
    return {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(path),
        "topic": topic,
        "transforms": "hoist,insert",
        "transforms.hoist.type": HOIST,
        "transforms.hoist.field": "line",
        "transforms.insert.type": INSERT,
        "transforms.insert.static.field": "stamp",
        "transforms.insert.static.value": stamp,
    }


def stamps(kafka: Kafka, topic: str) -> list[str]:
    return [json.loads(message.value())["payload"]["stamp"] for message in kafka.read(topic)]


def append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def everything_shown(worker: Worker, kafka: Kafka, name: str) -> str:
    """All that a client, a reader of the internal topics or a reader of the log sees of a connector."""
    answers = [worker.request("GET", f"/connectors/{name}{part}") for part in ("", "/config", "/status", "/tasks")]
    config = worker.request("GET", f"/connectors/{name}/config")
    answers.append(worker.request("PUT", "/connector-plugins/FileStreamSource/config/validate", config))
    records = [(message.key(), message.value()) for kind in ("config", "offset", "status") for message in kafka.read(worker.topic(kind))]
    return json.dumps(answers) + repr(records) + worker.log.read_text()


def test_a_provided_value_reaches_the_task_and_shows_nowhere(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    lines, secrets = tmp_path / "lines.txt", tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "db.properties").write_text("password=first-s3cr3t")
    append(lines, "one")
    worker = make_worker(
        properties={
            "config.providers": "file",
            "config.providers.file.class": FILE_PROVIDER,
            "config.providers.file.param.allowed.paths": str(secrets),
        }
    )
    variable = f"${{file:{secrets}/db.properties:password}}"
    worker.create(tag, stamped_lines(lines, tag, variable))
    wait_until(lambda: kafka.count(tag) == 1, 60, "the first line")
    (secrets / "db.properties").write_text("password=second-s3cr3t")
    worker.request("POST", f"/connectors/{tag}/restart?includeTasks=true")
    append(lines, "two")
    wait_until(lambda: kafka.count(tag) == 2, 60, "the second line")
    assert stamps(kafka, tag) == ["first-s3cr3t", "second-s3cr3t"]
    shown = everything_shown(worker, kafka, tag)
    assert variable in shown
    assert "s3cr3t" not in shown

    (secrets / "db.properties").unlink()
    with pytest.raises(RefusedError, match=f"Could not read properties from file {secrets}/db.properties"):
        worker.request("PUT", f"/connectors/{tag}/config", stamped_lines(lines, tag, variable))
    worker.request("POST", f"/connectors/{tag}/tasks/0/restart")
    trace = worker.wait_for(tag, "FAILED")["tasks"][0]["trace"]
    assert f"Could not read properties from file {secrets}/db.properties" in trace


def test_a_connector_sees_new_values_when_the_old_ones_expire(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugins" / "vault"
    (plugin / "vault-1.0.dist-info").mkdir(parents=True)
    (plugin / "vault-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: vault\nVersion: 1.0\n")
    (plugin / "vault-1.0.dist-info" / "entry_points.txt").write_text("[connect_py.plugins]\ncom.acme.Vault = acme_vault:Vault\n")
    (plugin / "acme_vault.py").write_text(
        dedent(
            """
            from pathlib import Path

            from connect_py.api.provider import ConfigData, ConfigProvider


            class Vault(ConfigProvider):
                java_name = "com.acme.Vault"

                def configure(self, parameters):
                    self._file = Path(parameters["file"])

                def get(self, path, keys):
                    return ConfigData({key: self._file.read_text() for key in keys}, ttl_ms=4000)
            """
        )
    )
    lines, lease = tmp_path / "lines.txt", tmp_path / "lease"
    lease.write_text("lease-1")
    append(lines, "one")
    worker = make_worker(
        properties={
            "plugin.path": str(tmp_path / "plugins"),
            "config.providers": "vault",
            "config.providers.vault.class": "com.acme.Vault",
            "config.providers.vault.param.file": str(lease),
        }
    )
    worker.create(tag, stamped_lines(lines, tag, "${vault:db:password}"))
    wait_until(lambda: kafka.count(tag) == 1, 60, "the first line")
    lease.write_text("lease-2")
    wait_until(lambda: worker.log.read_text().count("values from a config provider have expired") >= 1, 30, "a restart")
    append(lines, "two")
    wait_until(lambda: kafka.count(tag) == 2, 60, "the second line")
    assert stamps(kafka, tag) == ["lease-1", "lease-2"]


def test_a_stored_override_that_the_policy_does_not_allow_any_more_fails_its_task(
    make_worker: Callable[..., Worker], tag: str, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    append(lines, "one")
    everything = make_worker(properties={"connector.client.config.override.policy": "All"})
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(lines), "topic": tag}
    everything.create(tag, {**config, "producer.override.security.protocol": "PLAINTEXT"})
    everything.stop()
    same = {name: value for name, value in everything.properties.items() if name.endswith(("group.id", ".storage.topic"))}
    cautious = make_worker(properties=same)
    trace = cautious.wait_for(tag, "FAILED")["tasks"][0]["trace"]
    assert "Client Config Overrides not allowed: The 'Allowlist' policy does not allow 'security.protocol' to be overridden" in trace
    with pytest.raises(RefusedError, match=r"does not allow 'bootstrap.servers' to be overridden"):
        cautious.request("PUT", f"/connectors/{tag}/config", {**config, "producer.override.bootstrap.servers": "elsewhere:9092"})
    cautious.request("PUT", f"/connectors/{tag}/config", {**config, "producer.override.compression.type": "lz4"})
    cautious.wait_for(tag, "RUNNING")


@pytest.mark.parametrize("tracks", ["true", "false"])
def test_topics_are_written_down_only_where_they_are_tracked(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, tmp_path: Path, tracks: str
) -> None:
    lines = tmp_path / "lines.txt"
    append(lines, "one")
    worker = make_worker(properties={"topic.tracking.enable": tracks})
    worker.create(tag, {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(lines), "topic": tag})
    wait_until(lambda: kafka.count(tag) == 1, 60, "the line")
    worker.request("DELETE", f"/connectors/{tag}")
    status_topic = worker.properties["status.storage.topic"]
    wait_until(lambda: any(message.value() is None for message in kafka.read(status_topic)), 30, "what a deletion leaves")
    keys = [(message.key() or b"").decode() for message in kafka.read(status_topic)]
    assert any(key == f"status-topic-{tag}:connector-{tag}" for key in keys) is (tracks == "true")


def test_a_sink_may_begin_some_time_ago(make_worker: Callable[..., Worker], kafka: Kafka, tag: str, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    now = int(time.time() * 1000)
    for days, text in ((9, "old"), (3, "newer"), (0, "new")):
        producer.produce(tag, text, partition=0, timestamp=now - days * 86_400_000)
        producer.flush(20)
    out = tmp_path / "out.txt"
    config = {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(out), "topics": tag}
    config["value.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    config["consumer.override.auto.offset.reset"] = "by_duration:P7D"
    worker = make_worker()
    worker.create(tag, config)
    wait_until(lambda: out.exists() and out.read_text() == "newer\nnew\n", 60, "the lines of a week")
    worker.request("PUT", f"/connectors/{tag}/config", {**config, "consumer.override.auto.offset.reset": "by_duration:week"})
    assert "Unable to parse duration string" in worker.wait_for(tag, "FAILED")["tasks"][0]["trace"]
