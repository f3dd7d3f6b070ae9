"""Names of topics and fields in another style (`NamingStyleUtilsTest`, `{CollectionName,FieldName}TransformationTest` of Debezium)."""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.api import Header, SinkRecord
from connect_py.data import Schema, Struct
from connect_py.data.schema import INT32, INT64, OPTIONAL_STRING, STRING, struct
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.naming import CollectionNameTransformation, FieldNameTransformation, to_camel_case, to_snake_case

KEY = struct([("orderId", INT32)], name="shop.orders.Key")
NESTED = struct([("innerName", OPTIONAL_STRING)], optional=True)
ROW = struct([("orderId", INT32), ("customer_name", OPTIONAL_STRING), ("PartOf", NESTED)], name="shop.orders.Value", optional=True)
EVENT = struct([("before", ROW), ("after", ROW), ("source", STRING), ("ts_ms", INT64)], name="shop.orders.Envelope", version=2)
VALUES = [7, "Ann", Struct(NESTED, ["x"])]


def record(schema: Schema | None, value: Any, *, key: Any = None, key_schema: Schema | None = None, topic: str = "t") -> SinkRecord:
    return SinkRecord(topic, 0, 5, key_schema, key, schema, value, 1_700_000_000_000, [Header("h", "1", STRING)])


def fields(**config: str) -> FieldNameTransformation:
    transform = FieldNameTransformation()
    transform.configure({f"column.naming.{name}": value for name, value in config.items()})
    return transform


@pytest.mark.parametrize(
    ("name", "snake", "camel"),
    [
        ("camelCaseName", "camel_case_name", "camelcasename"),
        ("NameWith123Numbers", "name_with_123_numbers", "namewith123numbers"),
        ("123NumbersExample", "123_numbers_example", "123numbersexample"),
        ("server.inventory.order_Items", "server_inventory_order_items", "serverInventoryOrderItems"),
        ("HELLO_WORLD", "hello_world", "helloWorld"),
        ("hello__world..universe", "hello__world__universe", "helloWorldUniverse"),
        ("_a_b_", "_a_b_", "AB"),
        ("a1b", "a_1b", "a1b"),  # one border for each character
        ("aBC", "a_bc", "abc"),
        ("._", "__", ""),
        ("", "", ""),
    ],
)
def test_styles_are_those_of_debezium(name: str, snake: str, camel: str) -> None:
    assert (to_snake_case(name), to_camel_case(name)) == (snake, camel)


@pytest.mark.parametrize(
    ("config", "topic"),
    [
        ({}, "shop.orderItems"),
        ({"prefix": "p_", "suffix": "_s"}, "p_shop.orderItems_s"),
        ({"style": "UPPER_CASE", "prefix": "p_"}, "p_SHOP.ORDERITEMS"),
        ({"style": " lower_case "}, "shop.orderitems"),
        ({"style": "SNAKE_CASE"}, "shop_order_items"),
        ({"style": "camel_case", "suffix": ".all"}, "shopOrderitems.all"),
    ],
)
def test_a_topic_gets_its_style_and_then_prefix_and_suffix(config: dict[str, str], topic: str) -> None:
    transform = CollectionNameTransformation()
    transform.configure({f"collection.naming.{name}": value for name, value in config.items()})
    given = record(STRING, "v", topic="shop.orderItems")
    renamed = transform.apply(given)
    assert (renamed.topic, renamed.value, renamed.headers) == (topic, "v", given.headers)


@pytest.mark.parametrize("kind", [CollectionNameTransformation, FieldNameTransformation])
def test_a_style_that_is_not_known_fails_the_start_with_debeziums_words(kind: type[Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        kind().configure({f"{kind.GROUP}.naming.style": "kebab-case"})
    assert str(refused.value) == (
        "Invalid naming style: kebab-case. Allowed styles are: SNAKE_CASE, CAMEL_CASE, UPPER_CASE, LOWER_CASE, DEFAULT"
    )
    assert refused.value.java_name == "io.debezium.DebeziumException"


def test_rows_of_an_event_and_its_key_get_other_names_and_nothing_else_does() -> None:
    given = record(EVENT, Struct(EVENT, [None, Struct(ROW, VALUES), "s", 3]), key=Struct(KEY, [7]), key_schema=KEY)
    changed = fields(style="snake_case", suffix="_").apply(given)
    row = changed.value_schema.field("after").schema
    assert [field.name for field in row.fields] == ["order_id_", "customer_name_", "part_of_"]
    assert (row.name, row.optional, row.fields[2].schema) == (ROW.name, True, NESTED)
    assert [field.name for field in changed.value_schema.fields] == ["before", "after", "source", "ts_ms"]
    assert (changed.value_schema.name, changed.value_schema.version) == (EVENT.name, 2)
    assert changed.value.values == [None, Struct(row, VALUES), "s", 3]
    assert ([field.name for field in changed.key_schema.fields], changed.key.values) == (["order_id_"], [7])
    assert changed.headers == given.headers


def test_a_plain_row_gets_other_names_and_may_be_missing() -> None:
    transform = fields(style="camel_case", prefix="c_")
    changed = transform.apply(record(ROW, Struct(ROW, VALUES)))
    assert [field.name for field in changed.value_schema.fields] == ["c_orderid", "c_customerName", "c_partof"]
    assert changed.value == Struct(changed.value_schema, VALUES)
    assert transform.apply(record(ROW, None)).value is None


@pytest.mark.parametrize(
    "given",
    [
        record(None, None, key=Struct(KEY, [7]), key_schema=KEY),
        record(None, {"orderId": 7}),
        record(STRING, "orderId", key=Struct(KEY, [7]), key_schema=KEY),
    ],
    ids=["a tombstone", "no schema", "no struct"],
)
def test_what_is_no_struct_is_left_alone_with_its_key(given: SinkRecord) -> None:
    assert fields(style="upper_case").apply(given) is given


def test_two_fields_with_one_name_are_an_error() -> None:
    schema = struct([("aB", INT32), ("a_b", INT32)])
    with pytest.raises(DataError, match="Cannot create field because of field name duplication a_b"):
        fields(style="snake_case").apply(record(schema, Struct(schema, [1, 2])))


def test_an_event_whose_rows_are_texts_is_an_error() -> None:
    schema = struct([("after", OPTIONAL_STRING)], name="mongo.Envelope")
    with pytest.raises(DataError, match="Cannot list fields on non-struct type"):
        fields(style="snake_case").apply(record(schema, Struct(schema, ["{}"])))
