"""Names of topics and schemas."""

import pytest

from connect_py.errors import ConfigError
from connectors.engine.topic_naming import TopicNaming, sanitized


def test_a_data_topic_joins_prefix_schema_and_table():
    assert TopicNaming("shop").data_topic("public", "orders") == "shop.public.orders"


def test_blank_parts_are_left_out():
    assert TopicNaming("shop").data_topic("", "orders") == "shop.orders"


def test_characters_that_kafka_refuses_become_underscores():
    assert TopicNaming("shop").data_topic("Odd Schema", "Täble") == "shop.Odd_Schema.T_ble"
    assert sanitized("x" * 300) == "x" * 249
    assert sanitized("..") == "__"


def test_heartbeats_and_transactions_have_topics_of_their_own():
    naming = TopicNaming("shop", delimiter="-")
    assert (naming.heartbeat_topic(), naming.transaction_topic()) == ("__debezium-heartbeat-shop", "shop-transaction")
    assert TopicNaming("shop", heartbeat_name="beats").heartbeat_topic() == "beats"


def test_avro_adjustment_keeps_dots_in_schema_names_and_not_in_fields():
    naming = TopicNaming.from_config(
        {"topic.prefix": "1-shop", "schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}
    )
    assert naming.schema_name("1-shop.public.a b") == "_1_shop.public.a_b"
    assert naming.field_name("a.b-c") == "a_b_c"


def test_the_old_name_of_the_prefix_is_taken():
    assert TopicNaming.from_config({"database.server.name": "old"}).prefix == "old"


@pytest.mark.parametrize(
    "config", [{}, {"topic.prefix": "a", "topic.naming.strategy": "x.Y"}, {"topic.prefix": "a", "schema.name.adjustment.mode": "odd"}]
)
def test_what_is_not_supported_is_refused(config):
    with pytest.raises(ConfigError):
        TopicNaming.from_config(config)
