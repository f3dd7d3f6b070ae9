"""What connectors may override of their clients' settings, and what validation answers to it."""

from __future__ import annotations

import re

import pytest

from connect_py.config.client_overrides import ALLOWLIST, HARMLESS, POLICY, clients_of, override_policy, require_allowed
from connect_py.errors import ConfigError
from connect_py.herder.validation import override_entries
from connect_py.kafka.settings import ClientKind, client_definitions
from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector
from spark_sink.connector import SparkLakehouseSink

_CLASSES = "org.apache.kafka.connect.connector.policy."
WORKER = {"group.id": "g"}
DANGEROUS = [
    "bootstrap.servers",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "security.protocol",
    "ssl.keystore.location",
    "ssl.engine.factory.class",
    "interceptor.classes",
    "metric.reporters",
    "partitioner.class",
    "transactional.id",
    "enable.auto.commit",
    "config.providers",
    "plugin.library.paths",
    "key.serializer",
]


def refused(worker: dict[str, str], setting: str) -> bool:
    return override_policy(worker).refusal(setting) is not None


@pytest.mark.parametrize("setting", DANGEROUS)
def test_the_default_lets_nothing_through_that_names_an_address_a_login_a_file_or_a_class(setting: str) -> None:
    assert refused({}, setting)
    with pytest.raises(ConfigError, match=re.escape(f"does not allow '{setting}' to be overridden")):
        require_allowed({}, {f"producer.override.{setting}": "x"}, [ClientKind.PRODUCER])


def test_every_setting_that_the_default_allows_is_one_of_kafkas_and_holds_no_class_or_secret() -> None:
    known = {name: key for kind in ClientKind for name, key in client_definitions(kind).items()}
    assert set(known) >= HARMLESS
    assert {known[name].type.value for name in HARMLESS} <= {"STRING", "INT", "LONG", "BOOLEAN", "DOUBLE", "LIST"}
    assert not [name for name in HARMLESS if name.startswith(("ssl.", "sasl.", "security."))]


@pytest.mark.parametrize("setting", ["compression.type", "batch.size", "linger.ms", "max.poll.records", "group.id", "auto.offset.reset"])
def test_the_default_allows_what_tunes(setting: str) -> None:
    assert not refused({}, setting)


def test_the_default_says_how_to_allow_everything() -> None:
    assert "connector.client.config.override.policy=All" in (override_policy({}).refusal("bootstrap.servers") or "")


@pytest.mark.parametrize("name", ["All", f"{_CLASSES}AllConnectorClientConfigOverridePolicy", "AllConnectorClientConfigOverridePolicy"])
def test_all_allows_everything_by_alias_and_class(name: str) -> None:
    assert not any(refused({POLICY: name}, setting) for setting in [*DANGEROUS, "acks"])


def test_none_principal_and_allowlist_are_kafkas() -> None:
    assert (
        override_policy({POLICY: "None"}).refusal("acks")
        == "The 'None' policy does not allow 'acks' to be overridden in the connector configuration."
    )
    principal = {POLICY: f"{_CLASSES}PrincipalConnectorClientConfigOverridePolicy"}
    assert [refused(principal, name) for name in ("sasl.jaas.config", "sasl.mechanism", "security.protocol", "acks")] == [False] * 3 + [
        True
    ]
    assert [refused({POLICY: "Allowlist", ALLOWLIST: "acks, linger.ms"}, name) for name in ("acks", "linger.ms", "retries")] == [
        False,
        False,
        True,
    ]
    assert refused({POLICY: "Allowlist"}, "acks")
    assert [refused({ALLOWLIST: "acks"}, name) for name in ("acks", "linger.ms")] == [False, True]


def test_a_login_module_that_kafka_does_not_allow_is_refused_under_every_policy() -> None:
    line = "com.sun.security.auth.module.JndiLoginModule required user.provider.url=\"ldap://x\" password='s3cr3t';"
    with pytest.raises(ConfigError, match=r"com\.sun\.security\.auth\.module\.JndiLoginModule is not allowed") as caught:
        require_allowed({POLICY: "All"}, {"consumer.override.sasl.jaas.config": line}, [ClientKind.CONSUMER])
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["lakehouse.kafka.", "iceberg.kafka."])
def test_the_policy_holds_for_clients_that_a_connectors_jvm_makes(prefix: str) -> None:
    config = {
        f"{prefix}bootstrap.servers": "evil:9092",
        f"{prefix}sasl.oauthbearer.token.endpoint.url": "http://169.254.169.254/latest/meta-data",
        f"{prefix}max.poll.records": "10",
    }
    found = {value.name: value.errors for _, value in override_entries(SparkLakehouseSink, WORKER, config)}
    assert {name.removeprefix(prefix): bool(errors) for name, errors in found.items()} == {
        "bootstrap.servers": True,
        "sasl.oauthbearer.token.endpoint.url": True,
        "max.poll.records": False,
    }
    with pytest.raises(ConfigError, match=r"does not allow 'bootstrap\.servers' to be overridden"):
        require_allowed({}, config, [], SparkLakehouseSink.client_prefixes)
    require_allowed({POLICY: "All"}, config, [], SparkLakehouseSink.client_prefixes)


def test_overrides_of_clients_that_a_connector_does_not_use_are_not_looked_at() -> None:
    config = {"producer.override.bootstrap.servers": "x", "consumer.override.group.id": "g2"}
    assert clients_of(FileStreamSinkConnector, WORKER, config) == [ClientKind.CONSUMER]
    require_allowed({}, config, clients_of(FileStreamSinkConnector, WORKER, config))
    with_queue = {**config, "errors.deadletterqueue.topic.name": "d"}
    assert clients_of(FileStreamSinkConnector, WORKER, with_queue) == list(ClientKind)


def test_a_source_uses_a_producer_and_for_topics_and_offsets_of_its_own_other_clients() -> None:
    assert clients_of(FileStreamSourceConnector, WORKER, {}) == [ClientKind.PRODUCER]
    assert clients_of(FileStreamSourceConnector, WORKER, {"topic.creation.groups": "a"}) == [ClientKind.PRODUCER, ClientKind.ADMIN]
    assert clients_of(FileStreamSourceConnector, WORKER, {"offsets.storage.topic": "o"}) == list(ClientKind)
    assert clients_of(FileStreamSourceConnector, {}, {"offsets.storage.topic": "o"}) == [ClientKind.PRODUCER]


def test_entries_have_kafkas_definitions_and_hide_secrets() -> None:
    config = {
        "producer.override.linger.ms": "soon",
        "producer.override.sasl.jaas.config": "a s3cr3t line",
        "producer.override.our.password": "s3cr3t",
        "producer.override.retries": " 5 ",
    }
    entries = {value.name: (key, value) for key, value in override_entries(FileStreamSourceConnector, {POLICY: "All"}, config)}
    key, value = entries["producer.override.linger.ms"]
    assert key is not None
    assert (key.name, key.display_name, key.type.value, key.default) == ("producer.override.linger.ms", "linger.ms", "LONG", "5")
    assert value.errors == ["Invalid value soon for configuration linger.ms: Not a number of type LONG"]
    assert entries["producer.override.retries"][1].value == 5
    assert entries["producer.override.our.password"][0] is None
    assert "s3cr3t" not in repr([value for _, value in entries.values()])


def test_entries_stand_in_the_order_of_javas_maps() -> None:
    names = ["acks", "linger.ms", "batch.size", "foo", "sasl.jaas.config", "bootstrap.servers", "internal.x"]
    config = {f"producer.override.{name}": "1" for name in names} | {"name": "x", "topic": "t"}
    shown = [
        value.name.removeprefix("producer.override.") for _, value in override_entries(FileStreamSourceConnector, {POLICY: "All"}, config)
    ]
    assert sorted(shown) == sorted(names)
    assert shown.index("foo") < shown.index("sasl.jaas.config") < shown.index("bootstrap.servers") < shown.index("linger.ms")
