"""What a worker says about properties that do nothing."""

from __future__ import annotations

import pytest

from connect_py.config.worker import DISTRIBUTED, STANDALONE, worker_warnings

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {
    "bootstrap.servers": "b:9092",
    "group.id": "g",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "key.converter": JSON,
    "key.converter.schemas.enable": "false",
    "value.converter": JSON,
    "config.storage.replication.factor": "1",
    "offset.storage.segment.bytes": "1000000",
    "status.storage.min.insync.replicas": "2",
    "listeners": "https://:8443",
    "listeners.https.ssl.keystore.location": "/k",
    "plugin.path": "/plugins",
    "producer.compression.type": "lz4",
    "consumer.max.poll.records": "10",
    "admin.retries": "3",
    "security.protocol": "SASL_SSL",
    "sasl.jaas.config": "x",
    "ssl.truststore.location": "/t",
    "metrics.context.team": "a",
    "metrics.listeners": "http://:9404",
    "health.listeners": "http://:8085",
    "task.restart.policy": "on-failure",
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.file.param.allowed.paths": "/run",
}


@pytest.mark.parametrize("definition", [DISTRIBUTED, STANDALONE])
def test_a_usual_file_of_connect_gets_no_warning_in_either_mode(definition: object) -> None:
    assert worker_warnings(WORKER, definition) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "offset.flush.intervall.ms",
            "The worker's property 'offset.flush.intervall.ms' is not known. Did you mean 'offset.flush.interval.ms'?",
        ),
        ("bootstrap.server", "The worker's property 'bootstrap.server' is not known. Did you mean 'bootstrap.servers'?"),
        ("request.timeout.m", "The worker's property 'request.timeout.m' is not known. Did you mean 'request.timeout.ms'?"),
        ("colour", "The worker's property 'colour' is not known and probably has no effect."),
        ("config.storage.topci", "The worker's property 'config.storage.topci' is not known. Did you mean 'config.storage.topic'?"),
        ("producer.lingr.ms", "The producer setting of producer.*, 'lingr.ms' is not known. Did you mean 'linger.ms'?"),
        (
            "config.providers.env.class",
            "The worker's property 'config.providers.env.class' has no effect: config.providers does not list 'env'.",
        ),
        ("rest.port", "The worker's property 'rest.port' has no effect: Kafka 3.0 removed it; set listeners."),
        (
            "consumer.interceptor.classes",
            "The worker's property 'consumer.interceptor.classes' has no effect: it names a Java class, and this worker loads none.",
        ),
    ],
)
def test_what_has_no_effect_is_said_with_the_reason_or_the_name_that_was_meant(name: str, sentence: str) -> None:
    assert worker_warnings({**WORKER, name: "secret value"}, DISTRIBUTED) == [sentence]


def test_the_policy_that_kafka_has_deprecated_is_said_to_be() -> None:
    (sentence,) = worker_warnings({**WORKER, "connector.client.config.override.policy": "Principal"}, DISTRIBUTED)
    assert "connector.client.config.override.allowlist=sasl.jaas.config,sasl.mechanism,security.protocol" in sentence


LOCAL = {**WORKER, "listeners": "http://127.0.0.1:8083"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"listeners": "http://:8083"}, "Anybody who reaches http://:8083 may create connectors"),
        ({"listeners": ""}, "Anybody who reaches http://:8083 may create connectors"),
        ({"listeners": "https://:8443,http://0.0.0.0:8083"}, "Anybody who reaches http://0.0.0.0:8083 may create connectors"),
        (
            {"admin.listeners": "http://[::]:9999", "rest.basic.auth.file": "/users"},
            "Anybody who reaches http://[::]:9999 may change log levels",
        ),
        ({"config.providers.file.param.allowed.paths": ""}, "Set config.providers.file.param.allowed.paths to limit it"),
        (
            {"config.providers": "env", "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider"},
            "Any connector may read every environment variable of the worker by the config provider 'env'",
        ),
    ],
)
def test_a_door_that_is_open_is_said_to_be(change: dict[str, str], words: str) -> None:
    assert any(words in warning for warning in worker_warnings({**LOCAL, **change}, DISTRIBUTED))


@pytest.mark.parametrize(
    "change", [{}, {"listeners": "http://:8083", "rest.basic.auth.file": "/users"}, {"listeners": "http://10.0.0.1:8083"}]
)
def test_a_door_that_is_shut_is_passed_over(change: dict[str, str]) -> None:
    assert worker_warnings({**LOCAL, **change}, DISTRIBUTED) == []
