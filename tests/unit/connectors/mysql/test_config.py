"""What the MySQL connector makes of its properties, and keys by which it cuts chunks."""

from __future__ import annotations

import logging

import pytest

from connect_py.errors import ConfigError, DataError
from connectors.engine.java_object import JavaValue
from connectors.engine.relational.tables import TableId
from connectors.engine.topic_naming import TopicNaming
from connectors.mysql.config.config import parse_config
from connectors.mysql.model import MyColumn
from connectors.mysql.position.offset import BinlogPosition
from connectors.mysql.types.keys import chunk_key

CONFIG = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.hostname": "localhost",
    "database.user": "u",
    "database.server.id": "7",
    "topic.prefix": "p",
    "schema.history.internal.kafka.bootstrap.servers": "localhost:9092",
    "schema.history.internal.kafka.topic": "h",
}

OLD = {
    "database.server.name": ("topic.prefix", "old"),
    "database.history.kafka.topic": ("schema.history.internal.kafka.topic", "old-history"),
    "database.history.kafka.bootstrap.servers": ("schema.history.internal.kafka.bootstrap.servers", "localhost:9099"),
    "database.history.skip.unparseable.ddl": ("schema.history.internal.skip.unparseable.ddl", "true"),
    "database.whitelist": ("database.include.list", "inventory"),
    "database.blacklist": ("database.exclude.list", "other"),
    "table.whitelist": ("table.include.list", "inventory.a"),
    "table.blacklist": ("table.exclude.list", "inventory.b"),
    "column.blacklist": ("column.exclude.list", "inventory.a.x"),
}


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_is_taken_with_a_warning_that_names_the_new_one(old: str, caplog: pytest.LogCaptureFixture) -> None:
    new, text = OLD[old]
    given = {name: value for name, value in CONFIG.items() if name != new} | {old: text}
    with caplog.at_level(logging.WARNING):
        config = parse_config(given)
    assert config.raw[new] == text
    assert any(old in record.getMessage() and new in record.getMessage() for record in caplog.records)


def test_the_new_name_counts_where_both_are_given(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert parse_config({**CONFIG, "database.server.name": "old"}).topic_prefix == "p"
    assert "left out" in caplog.text


@pytest.mark.parametrize("name", ["snapshot.query.mode", "snapshot.locking.mode"])
def test_what_needs_a_class_of_java_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="custom needs a Java class"):
        parse_config({**CONFIG, name: "custom"})


def test_a_mode_of_no_installed_package_is_refused() -> None:
    with pytest.raises(ConfigError, match="Unable to find nobody snapshotter"):
        parse_config({**CONFIG, "snapshot.mode": "custom", "snapshot.mode.custom.name": "nobody"})


def test_properties_of_connections_are_read() -> None:
    more = {"binlog.net.write.timeout": "120", "database.ssl.keystore": "k.pem", "database.ssl.keystore.password": "secret"}
    config = parse_config({**CONFIG, **more})
    assert config.log_timeouts == {"net_write_timeout": 120}
    assert config.connection.ssl_cert_password is not None
    assert "secret" not in repr(config.connection)
    assert parse_config(CONFIG).log_timeouts == {}


def test_the_signal_table_is_captured_and_named() -> None:
    config = parse_config({**CONFIG, "signal.data.collection": "db.signals", "table.include.list": "db.t"})
    assert config.signal_table == TableId("db", "signals")
    assert config.filters.is_captured(TableId("db", "signals"))


LITERALS = [
    (MyColumn("k", "BIGINT UNSIGNED", -5), "18446744073709551615", "18446744073709551615", "java.math.BigDecimal"),
    (MyColumn("k", "INT", 4), "-5", "-5", "java.lang.Integer"),
    (MyColumn("k", "INT UNSIGNED", 4), "4294967295", "4294967295", "java.lang.Long"),
    (MyColumn("k", "DECIMAL", 3, length=10, scale=2), "1.50", "1.50", "java.math.BigDecimal"),
    (MyColumn("k", "DOUBLE", 8), "1e-7", "1e-7", "java.lang.Double"),
    (MyColumn("k", "VARCHAR", 12, charset="utf8mb4"), "a'\\é", "_utf8mb4 x'61275cc3a9'", "java.lang.String"),
    (MyColumn("k", "VARBINARY", -3), "00FF", "x'00ff'", "[B"),
    (MyColumn("k", "ENUM", 1, labels=("z", "a")), "a", "2", "java.lang.String"),
    (MyColumn("k", "SET", 1, labels=("z", "a", "m")), "a,m", "6", "java.lang.String"),
    (MyColumn("k", "DATE", 91), "2020-02-29", "'2020-02-29'", "java.time.LocalDate"),
    (MyColumn("k", "DATE", 91), "0000-00-00", "'0000-00-00'", "java.lang.String"),
    (MyColumn("k", "TIME", 92), "-838:59:59.5", "'-838:59:59.5'", "java.time.Duration"),
]


@pytest.mark.parametrize(("column", "text", "literal", "java_class"), LITERALS)
def test_a_boundary_is_compared_as_the_column_is_sorted(column: MyColumn, text: str, literal: str, java_class: str) -> None:
    key = chunk_key(column)
    assert key is not None
    assert key.literal(text) == literal
    assert key.stored(text) == JavaValue(java_class, text)


@pytest.mark.parametrize(("kind", "text"), [("INT", "1 OR 1=1"), ("DATE", "2020-01-01' OR '1'='1"), ("DOUBLE", "nan"), ("DECIMAL", "")])
def test_a_boundary_of_an_offset_that_is_none_is_no_sql(kind: str, text: str) -> None:
    key = chunk_key(MyColumn("k", kind, 4))
    assert key is not None
    with pytest.raises(DataError):
        key.literal(text)


@pytest.mark.parametrize("kind", ["JSON", "GEOMETRY", "POINT", "VECTOR"])
def test_types_without_an_order_cut_no_chunks(kind: str) -> None:
    assert chunk_key(MyColumn("k", kind, 1111)) is None


def test_places_of_a_log_are_in_the_order_of_its_files_numbers() -> None:
    places = [BinlogPosition("b.000009", 900), BinlogPosition("b.000010", 4), BinlogPosition("b.1000000", 4)]
    assert places[0] < places[1] < places[2]
    assert not places[0] < BinlogPosition("b.000009", 900)


def test_topics_are_named_by_database_and_table_unless_a_strategy_says_otherwise() -> None:
    def topic(**more: str) -> str:
        raw = parse_config({**CONFIG, **more}).raw
        # as a process that reads a snapshot takes it, too
        return TopicNaming.from_config(parse_config(raw).raw, "default").data_topic("d", "t")

    assert topic() == f"{CONFIG['topic.prefix']}.d.t"
    assert topic(**{"topic.naming.strategy": "io.debezium.schema.SchemaTopicNamingStrategy"}) == f"{CONFIG['topic.prefix']}.t"
