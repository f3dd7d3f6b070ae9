"""Java's client properties become librdkafka's, and nothing else gets through."""

import logging
from pathlib import Path

import pytest
from confluent_kafka import Producer as Client
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificates

from connect_py.errors import ConfigError
from connect_py.kafka.client import (
    ClientKind,
    connector_admin_properties,
    internal_properties,
    librdkafka_config,
    sink_consumer_properties,
    source_producer_properties,
)
from connect_py.kafka.security import jaas_options
from connect_py.kafka.settings import refused_value, reset_seconds
from tests.certificates import Identity

WORKER = {
    "bootstrap.servers": "a:1",
    "group.id": "cluster",
    "security.protocol": "SSL",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "producer.linger.ms": "3",
    "producer.override.linger.ms": "4",
    "consumer.max.poll.records": "7",
    "admin.request.timeout.ms": "9000",
}


def producer(**properties: str) -> dict[str, object]:
    return librdkafka_config({name.replace("_", "."): value for name, value in properties.items()}, ClientKind.PRODUCER)


def test_a_source_producer_takes_its_base_then_the_workers_then_the_connectors_properties() -> None:
    composed = source_producer_properties(WORKER, "c", 2, {"producer.override.acks": "1", "producer.override.batch.size": "100"})
    assert composed["client.id"] == "connector-producer-c-2"
    assert (composed["bootstrap.servers"], composed["linger.ms"], composed["acks"], composed["batch.size"]) == ("a:1", "3", "1", "100")
    assert composed["delivery.timeout.ms"] == "2147483647"
    assert "security.protocol" not in composed, "top-level client properties are for the worker's own clients"


def test_a_sink_consumer_is_in_the_connectors_group_unless_overridden() -> None:
    assert sink_consumer_properties(WORKER, "c", 0)["group.id"] == "connect-c"
    composed = sink_consumer_properties(WORKER, "c", 0, {"consumer.override.group.id": "mine"})
    assert composed["group.id"] == "mine"
    assert (composed["client.id"], composed["enable.auto.commit"], composed["auto.offset.reset"]) == (
        "connector-consumer-c-0",
        "false",
        "earliest",
    )


def test_an_admin_client_starts_from_the_workers_top_level_properties() -> None:
    composed = connector_admin_properties(WORKER, "c", 1, {"admin.override.retry.backoff.ms": "5"})
    assert composed["security.protocol"] == "SSL"
    assert (composed["request.timeout.ms"], composed["retry.backoff.ms"]) == ("9000", "5")
    assert composed["client.id"] == "connector-adminclient-c-1"
    assert "key.converter" not in composed


@pytest.mark.parametrize(("client_id", "expected"), [("", "cluster-configs"), ("me", "cluster-me-configs")])
def test_clients_of_the_worker_are_named_after_its_group(client_id: str, expected: str) -> None:
    assert internal_properties({**WORKER, "client.id": client_id}, "configs")["client.id"] == expected


def test_producer_names_and_units_are_translated() -> None:
    found = producer(
        buffer_memory="33554432",
        max_request_size="2000000",
        linger_ms="5",
        batch_size="16384",
        compression_type="zstd",
        compression_zstd_level="7",
        compression_gzip_level="1",
        delivery_timeout_ms="2147483647",
        max_block_ms="9223372036854775807",
        metadata_max_age_ms="60000",
        request_timeout_ms="30000",
    )
    assert found["queue.buffering.max.kbytes"] == 32768
    assert found["message.max.bytes"] == 2000000
    assert (found["linger.ms"], found["batch.size"]) == (5, 16384)
    assert (found["compression.type"], found["compression.level"]) == ("zstd", 7)
    assert found["message.timeout.ms"] == 0, "Integer.MAX_VALUE means never, which librdkafka calls 0"
    assert (found["topic.metadata.refresh.interval.ms"], found["socket.timeout.ms"]) == (60000, 30000)
    assert found["partitioner"] == "murmur2_random"
    assert "max.block.ms" not in found


@pytest.mark.parametrize(
    ("properties", "milliseconds"),
    [({}, 30_000), ({"request_timeout_ms": "5000"}, 5000), ({"transactional_id": "t", "transaction_timeout_ms": "20000"}, 19_900)],
)
def test_answers_are_waited_for_as_long_as_by_java(properties: dict[str, str], milliseconds: int) -> None:
    found = producer(**properties)
    assert found["socket.timeout.ms"] == milliseconds
    Client({**found, "log_level": 0})  # librdkafka refuses one that is longer than a transaction


def test_the_queue_holds_at_least_one_record_of_the_largest_size() -> None:
    assert producer(buffer_memory="1000000", max_request_size="20000000")["queue.buffering.max.kbytes"] == 19532


@pytest.mark.parametrize(
    ("properties", "idempotent"),
    [
        ({}, True),
        ({"acks": "all"}, True),
        ({"acks": "-1"}, True),
        ({"acks": "1"}, False),
        ({"retries": "0"}, False),
        ({"max_in_flight_requests_per_connection": "6"}, False),
        ({"enable_idempotence": "false"}, False),
    ],
)
def test_a_producer_is_idempotent_unless_a_setting_rules_it_out(properties: dict[str, str], idempotent: bool) -> None:
    assert producer(**properties)["enable.idempotence"] is idempotent


def test_an_idempotent_producer_with_weaker_acks_is_refused() -> None:
    with pytest.raises(ConfigError, match="Must set acks to all"):
        producer(enable_idempotence="true", acks="1")


def test_consumers_read_uncommitted_records_unless_told_otherwise() -> None:
    assert librdkafka_config({}, ClientKind.CONSUMER)["isolation.level"] == "read_uncommitted"
    assert librdkafka_config({"isolation.level": "read_committed"}, ClientKind.CONSUMER)["isolation.level"] == "read_committed"


def test_unknown_properties_are_dropped_with_one_warning_and_jvm_ones_silently(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    properties = {"plugin.library.paths": "/tmp/evil.so", "key.serializer": "x.Y", "interceptor.classes": "a.B"}
    for _ in range(2):
        found = librdkafka_config(properties, ClientKind.PRODUCER)
        assert not set(found) & set(properties)
    assert [record.getMessage() for record in caplog.records] == [
        "Client property 'plugin.library.paths' (of a Kafka producer client) is not known and has no effect"
    ]


def test_a_number_that_is_none_names_its_property() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value soon for configuration linger\.ms: Not a number of type INT"):
        producer(linger_ms="soon")


def test_a_jaas_line_gives_user_and_password_with_its_escapes() -> None:
    line = 'org.apache.kafka.common.security.scram.ScramLoginModule required\n username="al\\"ice" password=\'s3=;cret\';'
    assert jaas_options(line) == (
        "org.apache.kafka.common.security.scram.ScramLoginModule",
        {"username": 'al"ice', "password": "s3=;cret"},
    )
    found = producer(security_protocol="sasl_ssl", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=line)
    assert (found["security.protocol"], found["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (found["sasl.username"], found["sasl.password"]) == ('al"ice', "s3=;cret")


@pytest.mark.parametrize("line", ["x", "x required user;", 'x required username "a";', 'x required password="s3cret" username;'])
def test_a_jaas_line_that_cannot_be_read_is_refused_without_repeating_it(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        jaas_options(line)
    assert "s3cret" not in str(caught.value)


def test_oauth_takes_its_endpoint_and_client_from_properties_or_the_jaas_line() -> None:
    found = producer(
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url="https://id/token",
        sasl_jaas_config='org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="x";',
    )
    assert found["sasl.oauthbearer.method"] == "oidc"
    assert (found["sasl.oauthbearer.client.id"], found["sasl.oauthbearer.client.secret"]) == ("me", "x")


def test_pem_stores_are_used_and_java_key_stores_refused_with_a_way_out() -> None:
    found = producer(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_certificates="CA",
        ssl_keystore_type="PEM",
        ssl_keystore_key="KEY",
        ssl_keystore_certificate_chain="CHAIN",
        ssl_key_password="pw",
        ssl_endpoint_identification_algorithm="",
    )
    assert (found["ssl.ca.pem"], found["ssl.key.pem"], found["ssl.certificate.pem"]) == ("CA", "KEY", "CHAIN")
    assert (found["ssl.key.password"], found["ssl.endpoint.identification.algorithm"]) == ("pw", "none")
    with pytest.raises(ConfigError, match=r"set ssl\.truststore\.type=PEM"):
        producer(security_protocol="SSL", ssl_truststore_location="/etc/trust.jks", ssl_truststore_password="pw")


def test_pkcs12_stores_are_read_whatever_their_type_is_said_to_be(tmp_path: Path) -> None:
    authority = Identity("authority")
    certificates = load_pem_x509_certificates(authority.chain_pem.encode())
    trust = tmp_path / "trust.p12"
    trust.write_bytes(serialize_key_and_certificates(None, None, None, certificates, BestAvailableEncryption(b"of-trust")))
    for kind in ({"ssl_truststore_type": "PKCS12"}, {}):
        found = producer(security_protocol="SSL", ssl_truststore_location=str(trust), ssl_truststore_password="of-trust", **kind)
        assert Path(str(found["ssl.ca.location"])).read_text().strip() == authority.chain_pem.strip()
    found = producer(security_protocol="SSL", ssl_keystore_location=str(trust), ssl_keystore_password="of-trust")
    assert (found["ssl.keystore.location"], found["ssl.keystore.password"]) == (str(trust), "of-trust")
    with pytest.raises(ConfigError, match="that its password opens") as caught:
        producer(security_protocol="SSL", ssl_truststore_location=str(trust), ssl_truststore_password="another")
    assert "another" not in str(caught.value)
    trust.write_bytes(b"\xfe\xed\xfe\xed....")
    with pytest.raises(ConfigError, match=r"set ssl\.truststore\.type=PEM"):
        producer(security_protocol="SSL", ssl_truststore_location=str(trust), ssl_truststore_password="pw")


@pytest.mark.parametrize(
    ("text", "seconds"), [("P7D", 604_800), ("pt1h30m", 5400), ("PT0.5S", 0.5), ("P1DT2H3M4.25S", 93_784.25), ("PT0S", 0)]
)
def test_groups_may_begin_some_time_ago(text: str, seconds: float) -> None:
    assert reset_seconds(f"by_duration:{text}") == seconds
    found = librdkafka_config({"bootstrap.servers": "h:1", "auto.offset.reset": f"by_duration:{text}"}, ClientKind.CONSUMER)
    assert found["auto.offset.reset"] == "earliest"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("by_duration", "<:duration> part is missing in by_duration auto offset reset strategy."),
        ("by_duration:", "<:duration> part is missing in by_duration auto offset reset strategy."),
        ("by_duration:soon", "Unable to parse duration string in by_duration offset reset strategy."),
        ("by_duration:P", "Unable to parse duration string in by_duration offset reset strategy."),
        ("by_duration:P1DT", "Unable to parse duration string in by_duration offset reset strategy."),
        ("by_duration:-PT1S", "Negative duration is not supported in by_duration offset reset strategy."),
    ],
)
def test_what_is_no_duration_is_refused_in_kafkas_words(text: str, problem: str) -> None:
    assert refused_value("consumer", "auto.offset.reset", text) == f"Invalid value {text} for configuration auto.offset.reset: {problem}"
    assert refused_value("consumer", "auto.offset.reset", "earliest") is None


def test_tls_settings_are_left_alone_on_a_plain_connection() -> None:
    assert "ssl.ca.pem" not in producer(ssl_truststore_type="PEM", ssl_truststore_certificates="CA")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("acks", "7", "String must be one of: all, -1, 0, 1"),
        ("acks", "", "String must be one of: all, -1, 0, 1"),
        ("compression.type", "foo", "String must be one of: none, gzip, snappy, lz4, zstd"),
        ("linger.ms", "-5", "Value must be at least 0"),
        ("max.block.ms", "-1", "Value must be at least 0"),
        ("max.in.flight.requests.per.connection", "0", "Value must be at least 1"),
    ],
)
def test_a_value_that_javas_producer_refuses_is_refused_in_its_words(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        librdkafka_config({name: value}, ClientKind.PRODUCER)
    assert str(caught.value) == f"Invalid value {value} for configuration {name}: {reason}"


def test_values_at_the_bounds_are_taken() -> None:
    librdkafka_config({"acks": " -1 ", "linger.ms": "0", "send.buffer.bytes": "-1", "retries": "0"}, ClientKind.PRODUCER)
    librdkafka_config({"acks": "7"}, ClientKind.ADMIN)


@pytest.mark.parametrize("server", ["nobrokerrunningatthisaddress", "a:1,b", "a:b", "a:1:", "http//a"])
def test_a_broker_without_a_port_is_refused_in_javas_words(server: str) -> None:
    with pytest.raises(ConfigError, match="Invalid url in bootstrap"):
        librdkafka_config({"bootstrap.servers": server}, ClientKind.ADMIN)
    with pytest.raises(ConfigError, match="No bootstrap urls given in bootstrap"):
        librdkafka_config({"bootstrap.servers": " , "}, ClientKind.ADMIN)


def test_brokers_may_have_a_protocol_and_stand_in_brackets() -> None:
    given = "a:1, PLAINTEXT://b-1.c:9092,[::1]:9092"
    assert librdkafka_config({"bootstrap.servers": given}, ClientKind.CONSUMER)["bootstrap.servers"] == given.replace(" ", "")
