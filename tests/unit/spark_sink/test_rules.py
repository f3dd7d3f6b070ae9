"""The sink's pure rules: ranges, watermarks, routes, what schemas mean, evolution, statements, classes of errors."""

from __future__ import annotations

import contextlib
import datetime
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError, DataError, FatalTaskError, RetriableError
from spark_sink import routing
from spark_sink.config.sink_config import parse
from spark_sink.errors import classify, is_of_records, is_of_size
from spark_sink.read.formats import Fingerprint, SchemaPrefixes
from spark_sink.read.ranges import offsets_json, plan_ranges, start_position, waiting_ranges
from spark_sink.routing import TableName
from spark_sink.sql.evolve import Rules, adapt_schema, allows, in_order_of, plan_evolution, wider
from spark_sink.sql.merge import VERSION_COLUMNS, Shape, merge_sql, overwrite_sql
from spark_sink.sql.record_schema import MAX_DEPTH, Form, parse_head, read_schemas
from spark_sink.tables.base import evolution_sql
from spark_sink.tables.upkeep import MaintenancePolicy, MaintenanceSchedule
from spark_sink.tables.watermark import Watermark, newest_stored
from spark_sink.types.columns import TypeOptions, column_type, literal, quote
from spark_sink.types.trees import parse_type, type_text

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


# -- ranges -----------------------------------------------------------------------------------------------------------------------


@given(
    st.dictionaries(st.sampled_from([A0, A1, B0]), st.tuples(st.integers(0, 50), st.integers(0, 500), st.integers(0, 500)), min_size=1),
    st.integers(1, 300),
)
def test_ranges_start_at_the_position_stay_in_the_log_and_leave_nobody_out(parts: dict[TopicPartition, Any], bound: int) -> None:
    log = {tp: (first, first + ahead + waiting) for tp, (first, ahead, waiting) in parts.items()}
    positions = {tp: first + ahead for tp, (first, ahead, _) in parts.items()}
    ranges = plan_ranges(waiting_ranges(positions, log), bound)
    assert set(ranges) == {tp for tp in log if positions[tp] < log[tp][1]}
    assert all(start == positions[tp] and start < end <= log[tp][1] for tp, (start, end) in ranges.items())
    assert sum(end - start for start, end in ranges.values()) <= max(bound + len(ranges), 0)


def test_a_backlog_is_shared_in_proportion() -> None:
    assert plan_ranges({A0: (0, 900), B0: (0, 100)}, 100) == {A0: (0, 90), B0: (0, 10)}


@pytest.mark.parametrize(("position", "log", "goes_on"), [(5, (9, 12), (9, 12)), (20, (0, 12), (0, 12))], ids=["deleted", "cut off"])
def test_lost_offsets_are_an_error_unless_they_are_accepted(position: int, log: tuple[int, int], goes_on: tuple[int, int]) -> None:
    with pytest.raises(FatalTaskError, match=r"Topic a partition 0 .*lakehouse\.fail-on-data-loss=false"):
        waiting_ranges({A0: position}, {A0: log})
    assert waiting_ranges({A0: position}, {A0: log}, fail_on_data_loss=False) == {A0: goes_on}


@pytest.mark.parametrize(
    ("group", "applied", "fresh", "start"),
    [
        (None, [], 3, 3),
        (None, [None], 3, 3),
        (None, [7], 3, 7),
        (None, [1], 3, 1),
        (None, [7, None], 3, 3),
        (None, [7], 100, 7),
        (5, [], 3, 5),
        (5, [7], 3, 5),
        (5, [4, 7], 3, 4),
        (5, [None], 3, 3),
    ],
)
def test_a_task_starts_at_the_lowest_that_tables_and_group_say(
    group: int | None, applied: list[int | None], fresh: int, start: int
) -> None:
    assert start_position(group, applied, fresh) == start


def test_offsets_are_written_as_sparks_source_reads_them() -> None:
    assert json.loads(offsets_json([(A0, 1), (A1, 2), (B0, 3)])) == {"a": {"0": 1, "1": 2}, "b": {"0": 3}}


# -- watermarks ---------------------------------------------------------------------------------------------------------------------


@given(st.dictionaries(st.sampled_from([A0, A1, B0]), st.integers(0, 9)), st.dictionaries(st.sampled_from([A0, A1, B0]), st.integers(0, 9)))
def test_a_watermark_never_goes_back_and_survives_its_text(one: dict[TopicPartition, int], other: dict[TopicPartition, int]) -> None:
    advanced = Watermark(one).advanced(other)
    assert all(advanced.offsets[tp] >= offset for marks in (one, other) for tp, offset in marks.items())
    assert Watermark.parse(advanced.to_json()) == advanced


def test_only_rows_below_the_watermark_are_left_out() -> None:
    mark = Watermark({A0: 5, A1: 2})
    assert mark.condition({A0: (3, 9), A1: (2, 9), B0: (0, 1)}) == "NOT ((`topic` = 'a' AND `partition` = 0 AND `offset` < 5))"
    assert mark.condition({A0: (5, 9)}) is None
    assert mark.covers({A0: (0, 5), A1: (1, 2)})
    assert not mark.covers({A0: (0, 6)})
    assert not mark.covers({B0: (0, 1)})


def test_stored_offsets_that_cannot_be_read_stop_the_task() -> None:
    assert Watermark.parse(None) == Watermark()
    with pytest.raises(FatalTaskError, match="cannot be read"):
        Watermark.parse('{"a": 5}')


def snapshot(parent: int | None, mark: dict[TopicPartition, int] | None = None, generation: int = 0) -> tuple[int | None, dict[str, str]]:
    summary = {} if mark is None else {"kafka.connect.offsets.x": Watermark(mark).to_json(), "kafka.connect.generation": str(generation)}
    return parent, summary


def property_of(mark: dict[TopicPartition, int], generation: int = 0, at: int | None = None) -> dict[str, str]:
    written_for = {} if at is None else {"kafka.connect.snapshot.x": str(at)}
    return {"kafka.connect.offsets.x": Watermark(mark).to_json(), "kafka.connect.generation.x": str(generation)} | written_for


@pytest.mark.parametrize(
    ("head", "snapshots", "properties", "counts"),
    [
        (None, {}, {}, {}),
        (3, {1: snapshot(None, {A0: 5}), 3: snapshot(1)}, {}, {A0: 5}),
        (3, {3: snapshot(1)}, property_of({A0: 5}, at=1), {A0: 5}),
        (3, {1: snapshot(None, {A0: 5}), 3: snapshot(1)}, property_of({A0: 9}, at=1), {A0: 9}),
        (2, {1: snapshot(None, {A0: 5}), 2: snapshot(1, {A0: 7})}, property_of({A0: 5, A1: 1}, at=1), {A0: 7, A1: 1}),
        (1, {1: snapshot(None, {A0: 5}), 2: snapshot(1, {A0: 7})}, property_of({A0: 7}, at=2), {A0: 5}),
        (2, {1: snapshot(None, {A0: 5}), 2: snapshot(1, {A0: 3}, 1)}, property_of({A0: 5}, at=1), {A0: 3}),
        (4, {4: snapshot(3, {B0: 1})}, {"kafka.connect.offsets.other": '{"a":{"0":8}}'}, {B0: 1}),
        (1, {1: snapshot(None), 2: snapshot(1, {A0: 7})}, property_of({A0: 7}, at=2), {}),
        (9, {2: snapshot(None, {A0: 7}), 9: snapshot(None)}, property_of({A0: 7}, at=2), {}),
        (None, {2: snapshot(None, {A0: 7})}, property_of({A0: 7}, at=2), {}),
        (None, {}, property_of({A0: 2}), {A0: 2}),
    ],
    ids=[
        "nothing",
        "below a compaction",
        "expired",
        "noted",
        "killed before the property",
        "rolled back",
        "altered",
        "of another",
        "rolled back to before the sink",
        "replaced",
        "replaced by an empty one",
        "set by hand",
    ],
)
def test_the_newest_watermark_counts_wherever_it_is(head: Any, snapshots: Any, properties: Any, counts: Any) -> None:
    assert newest_stored(head, snapshots, properties, "x").watermark == Watermark(counts)


# -- routes -----------------------------------------------------------------------------------------------------------------------


def config(**more: str) -> Any:
    return parse(
        {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
        | {"lakehouse.tables." + name.replace("_", "-"): value for name, value in more.items()}
    )


@pytest.mark.parametrize(
    ("more", "source", "table"),
    [
        ({}, {"db": "d", "schema": "Public", "table": "Orders"}, "public.orders"),
        ({}, {"db": "inventory", "table": "orders", "schema": None}, "inventory.orders"),
        ({"name_case": "keep", "prefix": "x_", "namespace": "lake.raw"}, {"schema": "S", "table": "T"}, "lake.raw.S.x_T"),
        ({"route_pattern": "{prefix}.{db}_{table}"}, {"name": "shop", "db": "d", "table": "t"}, "shop.d_t"),
    ],
)
def test_the_source_block_names_the_table(more: dict[str, str], source: dict[str, str | None], table: str) -> None:
    assert str(routing.resolve(routing.parts_of_source("any.topic", source), config(**more))) == table


def test_without_a_source_block_the_topic_names_the_table_or_nothing_does() -> None:
    assert str(routing.resolve(routing.parts_of_topic("my.shop.public.orders"), config())) == "public.orders"
    assert routing.resolve(routing.parts_of_topic("orders"), config()) is None
    dotted = routing.resolve(routing.parts_of_topic("a.b"), config(route_pattern="lake.{topic}"))
    assert dotted is not None
    assert dotted.parts == ("lake", "a.b")


def routed(more: dict[str, str], value: str | None = None, topic: str = "p.s.t") -> list[str] | None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    parsed = parse(base | {"lakehouse." + name: text for name, text in more.items()})
    found = routing.destinations(topic, routing.parts_of_topic(topic), value, parsed)
    return None if found is None else [str(name) for name in found]


REGEXES = {"tables": "a.x,a.y", "tables.route-field": "kind", "table.a.x.route-regex": "x|both", "table.a.y.route-regex": "y.*|both"}
DYNAMIC = {"tables.dynamic-enabled": "true", "tables.route-field": "kind"}


@pytest.mark.parametrize(
    ("more", "value", "tables"),
    [
        ({"tables": "a.x, a.Y"}, None, ["a.x", "a.Y"]),
        (REGEXES, "x", ["a.x"]),
        (REGEXES, "both", ["a.x", "a.y"]),
        (REGEXES, "xx", None),
        (REGEXES, None, None),
        (DYNAMIC, "Shop.Orders", ["shop.orders"]),
        (DYNAMIC | {"tables.name-case": "keep", "tables.prefix": "p_"}, "Shop.Orders", ["Shop.p_Orders"]),
        (DYNAMIC | {"tables.include.list": "shop[.].*", "tables.exclude.list": ".*_tmp"}, "shop.a", ["shop.a"]),
        (DYNAMIC | {"tables.include.list": "shop[.].*", "tables.exclude.list": ".*_tmp"}, "shop.a_tmp", []),
        (DYNAMIC | {"tables.include.list": "shop[.].*"}, "other.shop.a", []),
        (DYNAMIC, "", None),
        (DYNAMIC, None, None),
        ({"tables.dynamic-enabled": "true", "tables.route-field": "__topic"}, None, ["p.s.t"]),
        ({"tables.route-topic-regex": "p[.](.*)[.](.*)", "tables.route-pattern": "raw.{1}_{2}"}, None, ["raw.s_t"]),
        ({"tables.route-topic-regex": "q[.](.*)", "tables.route-pattern": "raw.{1}"}, None, None),
    ],
)
def test_a_record_goes_where_the_rules_say(more: dict[str, str], value: str | None, tables: list[str] | None) -> None:
    assert routed(more, value) == tables


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "../../x", "a\\b", "s3:", "a\0b", "a\nb", "\x1b[2J", "a\x85b"])
def test_no_record_names_a_table_outside_of_the_warehouse(part: str) -> None:
    sources: list[tuple[dict[str, str], dict[str, str | None]]] = [
        ({}, {"schema": part, "table": "t"}),
        ({"route_pattern": "{db}.{table}"}, {"db": "d", "table": part}),
    ]
    for more, source in sources if part else []:  # a placeholder without a text is none
        with pytest.raises(DataError, match="cannot be a part of a table's name"):
            routing.resolve(routing.parts_of_source("any.topic", source), config(**more))
    if part not in (".", ".."):  # of which the points separate
        with pytest.raises(DataError, match="cannot be a part of a table's name"):
            routed(DYNAMIC, f"a.{part}.b")
    by_topic = {"tables.route-topic-regex": "(?s)p[|](.*)[|]t", "tables.route-pattern": "raw.{1}"}
    with pytest.raises(DataError, match="cannot be a part of a table's name") if part else contextlib.nullcontext():
        routed(by_topic, topic=f"p|{part}|t")
    with pytest.raises(ConfigError, match="cannot be a table's name or namespace"):
        routed({"tables": f"a.{part}"})
    if part:
        with pytest.raises(ConfigError, match="cannot be a table's name or namespace"):
            routed({"tables.namespace": f"a.{part}"})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tables": "a", "tables.dynamic-enabled": "true", "tables.route-field": "k"}, "exclude each other"),
        ({"tables.dynamic-enabled": "true"}, "route-field is missing"),
        ({"tables.route-field": "k"}, "needs lakehouse.tables"),
        ({"tables": "a.b", "tables.route-field": "k"}, r"lakehouse\.table\.a\.b\.route-regex is missing"),
        ({"tables.include.list": "("}, "is not valid"),
        ({"table.a.b.unknown-setting": "1"}, "is not a setting of a table"),
        ({"table.a.b.write-mode": "sideways"}, r"lakehouse\.table\.a\.b\.write-mode"),
    ],
)
def test_routing_that_cannot_be_meant_is_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        routed(more)


def test_what_is_set_for_one_table_wins_for_it_alone() -> None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    parsed = parse(base | {"lakehouse.table.public.log.write-mode": "append", "lakehouse.tables.write-mode": "upsert"})
    assert parsed.of_table("public.log")["tables.write-mode"] == "append"
    assert parsed.of_table("public.other")["tables.write-mode"] == "upsert"


@pytest.mark.parametrize(
    ("case", "table", "mode"),
    [
        ("lower", "shop.orders", "append"),
        ("upper", "SHOP.ORDERS", "append"),
        ("keep", "shop.orders", "upsert"),
        ("keep", "shop.Orders", "append"),
        ("lower", "shop.other", "upsert"),
    ],
)
def test_settings_name_a_table_in_any_case_where_names_are_made_one(case: str, table: str, mode: str) -> None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    parsed = parse(base | {"lakehouse.table.shop.Orders.write-mode": "append", "lakehouse.tables.name-case": case})
    assert parsed.of_table(table)["tables.write-mode"] == mode


def test_settings_of_one_table_that_name_it_in_several_cases_all_apply() -> None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    of_capitals = {"lakehouse.table.shop.Orders.write-mode": "append", "lakehouse.table.shop.Orders.no-key": "fail"}
    found = parse(base | of_capitals | {"lakehouse.table.shop.orders.no-key": "dlq"}).of_table("shop.orders")
    assert (found["tables.write-mode"], found["tables.no-key"]) == ("append", "dlq"), "the name as it is wins"


@pytest.mark.parametrize(
    ("case", "lists", "table", "is_chosen"),
    [
        ("lower", {"tables.include.list": r"Shop\.Orders"}, "Shop.Orders", True),
        ("lower", {"tables.include.list": r"Shop\.Orders"}, "shop.other", False),
        ("lower", {"tables.exclude.list": r"Shop\.Orders"}, "shop.orders", False),
        ("lower", {"tables.include.list": r"[^A-Z]+"}, "Shop.Orders", True),
        ("upper", {"tables.exclude.list": r"shop\.orders"}, "shop.Orders", False),
        ("keep", {"tables.include.list": r"Shop\.Orders"}, "shop.orders", False),
        ("keep", {"tables.include.list": r"Shop\.Orders"}, "Shop.Orders", True),
    ],
)
def test_lists_name_tables_in_any_case_where_names_are_made_one(case: str, lists: dict[str, str], table: str, is_chosen: bool) -> None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w", "lakehouse.tables.name-case": case}
    chosen = parse(base | {f"lakehouse.{name}": value for name, value in lists.items()})
    assert bool(routing.destinations("t", dict(zip(("schema", "table"), table.split("."), strict=True)), None, chosen)) == is_chosen


def test_a_named_tables_regex_names_it_in_any_case_where_names_are_made_one() -> None:
    static = {"tables": "Shop.Orders", "tables.route-field": "kind", "table.shop.orders.route-regex": "order"}
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    given = base | {f"lakehouse.{name}": value for name, value in static.items()}
    assert [str(table) for table in routing.destinations("t", {}, "order", parse(given)) or ()] == ["Shop.Orders"]
    with pytest.raises(ConfigError, match="route-regex is missing"):
        parse(given | {"lakehouse.tables.name-case": "keep"})


# -- schemas ----------------------------------------------------------------------------------------------------------------------


def schema(type_: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "optional": True, **more}


def named(name: str, type_: str, **parameters: str) -> dict[str, Any]:
    return schema(type_, name=name, parameters=parameters)


@pytest.mark.parametrize(
    ("given_schema", "spark"),
    [
        (schema("int8"), "int"),
        (schema("int16"), "int"),
        (schema("int64"), "bigint"),
        (schema("float"), "float"),
        (schema("bytes"), "binary"),
        (schema("array", items=schema("int16")), "array<int>"),
        (schema("map", keys=schema("string"), values=named("io.debezium.time.Date", "int32")), "map<string,date>"),
        (schema("struct", fields=[{**schema("string"), "field": "odd `name`"}]), "struct<`odd ``name```:string>"),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2", **{"connect.decimal.precision": "12"}), "decimal(12,2)"),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="5", **{"connect.decimal.precision": "3"}), "decimal(5,5)"),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="-2", **{"connect.decimal.precision": "5"}), "decimal(7,0)"),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="3"), "decimal(38,3)"),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="3", **{"connect.decimal.precision": "65"}), "string"),
        (named("org.apache.kafka.connect.data.Timestamp", "int64"), "timestamp"),
        (named("io.debezium.time.Timestamp", "int64"), "timestamp_ntz"),
        (named("io.debezium.time.NanoTimestamp", "int64"), "timestamp_ntz"),
        (named("io.debezium.time.ZonedTimestamp", "string"), "timestamp"),
        (named("io.debezium.time.MicroTime", "int64"), "string"),
        (named("io.debezium.time.Year", "int32"), "int"),
        (named("io.debezium.data.VariableScaleDecimal", "struct"), "string"),
        (named("io.debezium.data.Uuid", "string"), "string"),
    ],
)
def test_a_connect_schema_has_one_spark_type(given_schema: dict[str, Any], spark: str) -> None:
    assert column_type(given_schema, TypeOptions()).spark == spark


def test_options_choose_types() -> None:
    options = TypeOptions("micros", "timestamp_ntz", decimals_numeric=True)
    assert column_type(named("io.debezium.time.Time", "int32"), options).spark == "bigint"
    assert column_type(named("org.apache.kafka.connect.data.Timestamp", "int64"), options).spark == "timestamp_ntz"
    number = named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2", **{"connect.decimal.precision": "9"})
    assert column_type(number, options).read == "decimal(9,2)"


def parsed(text: str) -> Any:
    return read_schemas(None, parse_head('{"schema":' + text), tombstone=False, options=TypeOptions())


def of_column(text: str) -> Any:
    return parsed('{"type":"struct","fields":[' + text + "]}")


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"struct"}',
        '{"type":"struct","fields":{}}',
        '{"type":"struct","fields":[5]}',
        '{"type":"struct","fields":[{"type":"int32","field":5}]}',
        '{"type":"struct","fields":[{"type":"int32","field":""}]}',
        '{"type":"struct","fields":[{"type":"int32"}]}',
        '{"type":["struct"],"fields":[]}',
        '{"type":"struct","name":{},"fields":[]}',
        "5",
        '{"type":"struct","fields":[{"type":"string","field":"op"},{"type":"int32","field":"after"},{"type":"int32","field":"source"}]}',
        '{"type":"struct","fields":[{"type":"string","field":"op"},{"type":"int32","field":"after"},'
        '{"type":"struct","fields":[],"field":"source"}]}',
    ],
)
def test_a_schema_that_is_none_makes_a_bad_record(text: str) -> None:
    with pytest.raises(DataError):
        parsed(text)


@pytest.mark.parametrize(
    "column",
    [
        '{"type":"array","field":"a"}',
        '{"type":"map","keys":{"type":"string"},"field":"a"}',
        '{"type":"array","items":[],"field":"a"}',
        '{"type":"int32","doc":5,"field":"a"}',
        '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"x"},"field":"a"}',
        '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":[],"field":"a"}',
        '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":{}},"field":"a"}',
        '{"type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"x"},"field":"a"}',
    ],
)
def test_a_column_whose_schema_is_none_makes_a_bad_record(column: str) -> None:
    with pytest.raises(DataError):
        read_schemas(
            None,
            parse_head('{"schema":{"type":"struct","fields":[' + column + "]}"),
            tombstone=False,
            options=TypeOptions(bits="bigint"),
        )


def test_schemas_are_nested_only_so_deep_as_spark_reads_them() -> None:
    nested = {"type": "string"}
    for _ in range(MAX_DEPTH - 1):
        nested = {"type": "array", "items": nested}
    assert len(of_column(json.dumps(nested | {"field": "a"})).columns) == 1
    with pytest.raises(DataError, match="nested more than 32 deep"):
        of_column(json.dumps({"type": "array", "items": nested, "field": "a"}))
    with pytest.raises(DataError, match="nested more than 32 deep"):
        of_column('{"field":"a","type":"array","items":' * 2000 + '{"type":"string"}' + "}" * 2000)


@pytest.mark.parametrize(
    ("precision", "scale"),
    [("-200000000", "-200000010"), ("5", "-2000000000"), ("5", "2000000000"), ("0", "0"), ("200000", "0"), ("9" * 5000, "0")],
)
def test_decimals_have_bounds_in_which_no_value_fills_the_memory(precision: str, scale: str) -> None:
    with pytest.raises(DataError):
        column_type(
            named("org.apache.kafka.connect.data.Decimal", "bytes", scale=scale, **{"connect.decimal.precision": precision}), TypeOptions()
        )


def test_what_has_no_rule_is_refused_with_its_column() -> None:
    value = schema("struct", fields=[{**schema("map", keys=schema("int32"), values=schema("string")), "field": "m"}])
    with pytest.raises(DataError, match="column m: Maps whose keys are int32"):
        read_schemas(None, value, tombstone=False, options=TypeOptions())


def envelope(name: str = "shop.public.t.Envelope", **extra: Any) -> dict[str, Any]:
    row = schema("struct", fields=[{**schema("int32"), "field": "id"}, {**schema("string"), "field": "_pos"}])
    source = schema("struct", fields=[{**schema("string"), "field": "table"}])
    fields = [{**row, "field": "before"}, {**row, "field": "after"}, {**source, "field": "source"}, {**schema("string"), "field": "op"}]
    return schema("struct", name=name, fields=[*fields, *({**schema("string"), "field": field} for field in extra)])


KEY = schema("struct", fields=[{"type": "int32", "optional": False, "field": "id"}])


def test_an_envelope_has_the_rows_columns_and_the_record_keys_wins() -> None:
    read = read_schemas(KEY, envelope(), tombstone=False, options=TypeOptions())
    assert read.form is Form.ENVELOPE
    assert [(column.name, column.field, column.required) for column in read.columns] == [("id", "id", True), ("_pos_", "_pos", False)]
    assert read.keys == (read.columns[0],)


@pytest.mark.parametrize(
    ("type_", "default", "sql"),
    [
        ("int64", 3, "3"),
        ("double", 1.5, "1.5D"),
        ("string", "it's", r"'it\'s'"),
        ("boolean", False, "false"),
        ("bytes", "AA==", "try_to_binary('AA==', 'base64')"),
        ("int32", None, None),
        ("int64", 10**50, None),
        ("int64", "3", None),
        ("string", {"a": 1}, None),
    ],
)
def test_a_default_is_known_where_it_is_a_value_of_the_columns_type(type_: str, default: Any, sql: str | None) -> None:
    schema = {"type": "struct", "fields": [{"type": type_, "field": "c", "default": default}]}
    assert read_schemas(None, schema, tombstone=False, options=TypeOptions()).columns[0].default == sql


def test_a_flattened_record_keeps_what_debezium_added_apart() -> None:
    value = schema("struct", fields=[{**schema("int32"), "field": "id"}, {**schema("string"), "field": "__deleted"}])
    read = read_schemas(KEY, value, tombstone=False, options=TypeOptions())
    assert (read.form, [column.name for column in read.columns], read.extras) == (Form.FLAT, ["id"], {"__deleted"})


def test_a_flattened_records_own_fields_are_columns_whatever_they_begin_with() -> None:
    added = ["__op", "__deleted", "__table", "__source_ts_ns", "__lsn", "__transaction_id"]
    own = ["__v", "__typename", "__source_system"]
    value = schema("struct", fields=[{**schema("string"), "field": name} for name in ("id", *added, *own)])
    read = read_schemas(KEY, value, tombstone=False, options=TypeOptions())
    assert ([column.name for column in read.columns], read.extras) == (["id", *own], set(added))


@pytest.mark.parametrize(
    "name",
    [
        "io.debezium.connector.common.Heartbeat",
        "io.debezium.connector.common.TransactionMetadataValue",
        "io.debezium.connector.mysql.SchemaChangeValue",
        "io.debezium.connector.postgresql.MessageValue",
    ],
)
def test_records_about_the_stream_are_no_rows(name: str) -> None:
    assert read_schemas(None, envelope(name), tombstone=False, options=TypeOptions()).form is Form.IGNORED


def test_a_key_or_value_without_columns_is_refused() -> None:
    for key, value, why in (
        (schema("string"), schema("struct", fields=[{**schema("int32"), "field": "id"}]), "the key is string"),
        (KEY, schema("string"), "the value is string"),
        (KEY, None, "no schema"),
        (
            None,
            schema("struct", fields=[{**schema("int32"), "field": "a"}, {**schema("int32"), "field": "A"}]),
            "differ in case only cannot be told apart: a",
        ),
        (KEY, envelope(updateDescription=True), "full documents"),
    ):
        with pytest.raises(DataError, match=why):
            read_schemas(key, value, tombstone=False, options=TypeOptions())


def test_a_head_is_the_text_before_the_payload() -> None:
    assert parse_head('{"schema":{"type":"int32"}') == {"type": "int32"}
    assert parse_head('{"schema":null') is None
    assert parse_head(None) is None
    for head in ("hello", '{"id":1}', '{"schema":5', "[1"):
        with pytest.raises(DataError):
            parse_head(head)


# -- evolution --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("int", "bigint", "bigint"),
        ("double", "float", "double"),
        ("decimal(5,2)", "decimal(9,2)", "decimal(9,2)"),
        ("decimal(9,2)", "decimal(9,3)", None),
        ("int", "double", None),
        ("date", "timestamp_ntz", None),
        ("struct<`a`:int>", "struct<a:int>", "struct<`a`:int>"),
        ("array<struct<a:int,b:float>>", "array<struct<a:bigint,b:double>>", "array<struct<`a`:bigint,`b`:double>>"),
        ("map<string,int>", "map<string,bigint>", "map<string,bigint>"),
        ("map<string,int>", "map<int,int>", None),
        ("struct<a:int>", "struct<a:string>", None),
        ("struct<a:int>", "int", None),
    ],
)
def test_only_changes_without_loss_are_made(one: str, other: str, both: str | None) -> None:
    assert wider(one, other) == wider(other, one) == both


def test_evolution_adds_and_widens_and_keeps_what_events_no_longer_have() -> None:
    has = {"id": "bigint", "n": "int", "gone": "string"}
    plan = plan_evolution("t", has, {"id": "int", "n": "bigint", "more": "date"}, enabled=True)
    assert (plan.added, plan.widened) == ({("more",): "date"}, {("n",): "bigint"})
    assert not plan_evolution("t", has, {"id": "int"}, enabled=False)


def test_evolution_reaches_into_structs_arrays_and_maps() -> None:
    has = {"doc": "struct<`a`:int,`list`:array<struct<`x`:int>>,`by name`:map<string,int>>"}
    wanted = {"doc": "struct<`list`:array<struct<`x`:bigint,`y, z`:string>>,`by name`:map<string,bigint>,`new`:struct<`b`:int>>"}
    plan = plan_evolution("t", has, wanted, enabled=True)
    assert plan.added == {("doc", "list", "element", "y, z"): "string", ("doc", "new"): "struct<`b`:int>"}
    assert plan.widened == {("doc", "list", "element", "x"): "bigint", ("doc", "by name", "value"): "bigint"}
    assert list(evolution_sql("t", plan)) == [
        "ALTER TABLE t ADD COLUMNS (`doc`.`list`.`element`.`y, z` string, `doc`.`new` struct<`b`:int>)",
        "ALTER TABLE t ALTER COLUMN `doc`.`list`.`element`.`x` TYPE bigint",
        "ALTER TABLE t ALTER COLUMN `doc`.`by name`.`value` TYPE bigint",
    ]
    with pytest.raises(FatalTaskError, match=r"Column doc\.a of table t is int and the records now have string"):
        plan_evolution("t", has, {"doc": "struct<a:string>"}, enabled=True)
    with pytest.raises(FatalTaskError, match=r"add doc\.b int.*evolve-schema-enabled=true"):
        plan_evolution("t", has, {"doc": "struct<a:int,b:int>"}, enabled=False)


def test_a_column_that_may_be_null_from_now_on_loses_its_not_null_only_where_the_table_may_change() -> None:
    has = {"id": "int", "n": "int"}
    plan = plan_evolution("t", has, {"id": "int"}, enabled=True, nulls=frozenset({"n"}))
    assert list(evolution_sql("t", plan)) == ["ALTER TABLE t ALTER COLUMN `n` DROP NOT NULL"]
    assert not plan_evolution("t", has, {"id": "int"}, enabled=False, nulls=frozenset({"n"}))


def test_rows_are_written_in_the_order_of_the_tables_fields() -> None:
    written = in_order_of({"s": "struct<`a`:int,`gone`:date>", "n": "bigint"}, {"s": "struct<`b`:int,`a`:bigint>", "n": "int"})
    assert written == {"s": "struct<`a`:bigint,`gone`:date,`b`:int>", "n": "int"}


def test_every_type_is_read_and_written_back() -> None:
    for text in (
        "decimal(10,2)",
        "timestamp_ntz",
        "struct<>",
        "struct<`a b`:int,`c``d`:array<map<string,decimal(3,1)>>,`e>`:struct<`f`:variant>>",
    ):
        assert type_text(parse_type(text)) == text
    assert type_text(parse_type("STRUCT<a: INT, b: DECIMAL(10, 2)>")) == "struct<`a`:int,`b`:decimal(10,2)>"
    for broken in ("", "struct<int>", "array<int", "map<int>", "int>", "struct<a:int"):
        with pytest.raises(ValueError):
            parse_type(broken)


def test_a_column_that_differs_in_case_only_is_refused() -> None:
    with pytest.raises(FatalTaskError, match="differ in case only"):
        plan_evolution("t", {"Name": "string"}, {"name": "string"}, enabled=True)


# -- statements and errors --------------------------------------------------------------------------------------------------------


def test_a_merge_names_its_columns_matches_null_safe_and_keeps_unknown_values() -> None:
    shape = Shape(("a", "b"), {"a": "int", "b": "int", "c": "string", "d": "int"}, unknown=("c",))
    assert merge_sql("cat.t", "v", shape) == (
        "MERGE INTO cat.t t USING v s ON t.`a` <=> s.`a` AND t.`b` <=> s.`b` WHEN MATCHED AND s.`$op` = 'd' THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET t.`c` = CASE WHEN s.`$unknown:c` THEN t.`c` ELSE s.`c` END, t.`d` = s.`d`"
        " WHEN NOT MATCHED AND s.`$op` <> 'd' THEN INSERT (`a`, `b`, `c`, `d`) VALUES (s.`a`, s.`b`, s.`c`, s.`d`)"
    )


def test_a_key_that_is_never_null_is_matched_by_plain_equality() -> None:
    shape = Shape(("a", "b"), {"a": "int", "b": "int", "c": "string"}, required_keys=frozenset({"b"}))
    assert "ON t.`a` <=> s.`a` AND t.`b` = s.`b` WHEN" in merge_sql("t", "v", shape)


def test_a_soft_delete_is_an_update() -> None:
    statement = merge_sql("t", "v", Shape(("a",), {"a": "int", "c": "string"}, unknown=("c",), soft=True))
    assert "DELETE" not in statement
    assert "WHEN MATCHED THEN UPDATE" in statement
    assert "WHEN NOT MATCHED AND s.`$op` IS NOT NULL THEN INSERT" in statement  # which uses `$op`, and so the checks behind it


def test_names_and_texts_are_quoted() -> None:
    assert quote("a`b") == "`a``b`"
    assert literal("it's \\ it") == "'it\\'s \\\\ it'"


def test_the_causes_of_an_error_that_is_its_own_cause_come_to_an_end():
    error = RetriableError("the table is another one")
    error.__cause__ = ValueError("in between")
    error.__cause__.__cause__ = error
    assert not is_of_size(error)
    assert not is_of_records(error)
    error.__cause__ = TimeoutError("timed out")
    assert is_of_size(error)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Job aborted\n [USER_RAISED_EXCEPTION] Bad record at topic t partition 0 offset 5: broken SQLSTATE: P0001\n at x", FatalTaskError),
        ("[USER_RAISED_EXCEPTION] infinity fits no column; see lakehouse.temporal.infinity", FatalTaskError),
        ("[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast", FatalTaskError),
        ("[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] too large", FatalTaskError),
        ("Timeout of 60000ms expired before the position for partition could be determined", RetriableError),
        ("org.apache.iceberg.exceptions.CommitFailedException: stale metadata", RetriableError),
    ],
)
def test_bad_values_are_final_and_everything_else_is_tried_again(text: str, kind: type[Exception]) -> None:
    error = classify(RuntimeError(text), "writing table x from t-0 [0, 9)")
    assert type(error) is kind
    assert "writing table x from t-0 [0, 9)" in str(error)
    assert "SQLSTATE" not in str(error)


# -- changes of the schema ------------------------------------------------------------------------------------------------------------


def of_columns(**types: str) -> Any:
    fields = [{"field": name, "type": type_, "optional": True} for name, type_ in {"id": "int32", **types}.items()]
    key = {"type": "struct", "fields": fields[:1]}
    return read_schemas(key, {"type": "struct", "fields": fields}, tombstone=False, options=TypeOptions())


@pytest.mark.parametrize(
    ("rules", "given_type", "adapted"),
    [
        (Rules("lenient"), "string", {"id": "int", "v__string": "string"}),
        (Rules("evolve"), "string", {"id": "int", "v": "string"}),
        (Rules("try_evolve"), "string", {"id": "int", "v": "int"}),
        (Rules("ignore"), "string", {"id": "int", "v": "int"}),
        (Rules("exception"), "string", {"id": "int", "v": "string"}),
        (Rules("lenient"), "int64", {"id": "int", "v": "bigint"}),
        (Rules("ignore"), "int64", {"id": "int", "v": "int"}),
        (Rules("lenient", widens=False), "int64", {"id": "int", "v": "int"}),
        (Rules("lenient", adds=False), "string", {"id": "int", "v": "string"}),
        (Rules("ignore"), "int16", {"id": "int", "v": "int"}),
    ],
)
def test_a_type_that_differs_is_taken_as_the_behavior_says(rules: Rules, given_type: str, adapted: dict[str, str]) -> None:
    table = {"id": "int", "v": "int"}
    found = adapt_schema(of_columns(v=given_type), table, dict(table), rules)
    assert {column.name: column.type.spark for column in found.columns} == adapted


@pytest.mark.parametrize(
    ("rules", "adapted", "value"),
    [
        (Rules("lenient"), "struct<`a__string`:string,`new`:int>", "named_struct('a__string', v.`a`, 'new', v.`new`)"),
        (Rules("lenient", adds=False), "struct<`a`:string,`new`:int>", None),
        (Rules("evolve"), "struct<`a`:string,`new`:int>", None),
        (Rules("exception"), "struct<`a`:string,`new`:int>", None),
        (Rules("try_evolve"), "struct<`a`:int,`new`:int>", "named_struct('a', CAST(v.`a` AS int), 'new', v.`new`)"),
        (Rules("ignore"), "struct<`a`:int>", "named_struct('a', CAST(v.`a` AS int))"),
    ],
)
def test_fields_of_a_struct_are_taken_as_columns_are(rules: Rules, adapted: str, value: str | None) -> None:
    fields = [{"field": "a", "type": "string"}, {"field": "new", "type": "int32"}]
    given = of_columns(v="int32")
    struct = column_type({"type": "struct", "fields": fields}, TypeOptions())
    given = replace(given, columns=(*given.columns[:1], replace(given.columns[1], type=struct)))
    table = {"id": "int", "v": "struct<a:int>"}
    found = {column.name: column.type for column in adapt_schema(given, table, dict(table), rules).columns}
    if rules == Rules("lenient", adds=False):
        assert found["v"].same, "nothing can be done, and the plan says so"
        return
    assert found["v"].spark == adapted
    assert found["v"].convert("v") == ("v" if value is None else f"IF(v IS NULL, NULL, {value})")


@pytest.mark.parametrize(
    ("rules", "there"), [(Rules("lenient"), True), (Rules("evolve"), True), (Rules("ignore"), False), (Rules("lenient", adds=False), False)]
)
def test_a_new_column_is_added_or_left_out(rules: Rules, there: bool) -> None:
    table = {"id": "int"}
    assert ("w" in {column.name for column in adapt_schema(of_columns(w="string"), table, dict(table), rules).columns}) == there
    assert "w" in {column.name for column in adapt_schema(of_columns(w="string"), {}, {}, rules).columns}, (
        "a table that is made has every column"
    )


def test_types_that_differ_within_a_batch_are_adapted_to_the_first_and_a_key_never_is() -> None:
    seen: dict[str, str] = {}
    adapt_schema(of_columns(v="int32"), {}, seen, Rules())
    assert [column.name for column in adapt_schema(of_columns(v="string"), {}, seen, Rules()).columns] == ["id", "v__string"]
    assert adapt_schema(of_columns(), {"id": "string"}, {"id": "string"}, Rules()).columns == of_columns().columns[:0] + of_columns().keys


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        ({}, {"create.table", "add.column", "alter.column.type"}),
        ({"include.schema.changes": "add.column"}, {"add.column"}),
        ({"exclude.schema.changes": "create.table,alter.column.type"}, {"add.column"}),
        ({"include.schema.changes": "add.column", "exclude.schema.changes": "add.column"}, set()),
    ],
)
def test_kinds_of_changes_are_listed(more: dict[str, str], kinds: set[str]) -> None:
    parsed = config(**{name.replace("-", "_"): value for name, value in more.items()})
    assert {kind for kind in ("create.table", "add.column", "alter.column.type") if allows(parsed, kind)} == kinds


def test_a_change_that_this_sink_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"drop\.column for configuration lakehouse\.tables\.include\.schema\.changes"):
        config(**{"include.schema.changes": "drop.column"})


# -- known beginnings -------------------------------------------------------------------------------------------------------------------


def test_the_beginnings_that_a_batch_had_most_of_are_looked_for_first_and_no_more_than_a_dozen() -> None:
    heads = SchemaPrefixes()
    for number in range(20):
        text = f'{{"schema":{{"n":{number}}}'
        record: Any = {"khead": None, "key": None, "vhead": text, "value": f'{text},"payload":1}}'.encode()}
        heads.learn(Fingerprint("t", None, number), record)
    heads.counted({Fingerprint("t", None, number): number + 1 for number in range(20)} | {Fingerprint("t", None, 99): 1000})
    cases = heads.split()[0][7]
    assert cases.count("startswith") == 12
    assert cases.index(" 19L ") < cases.index(" 18L ") < cases.index(" 8L ")
    assert "99L" not in cases, "a text without the seam has no beginning"
    heads.counted({Fingerprint("t", None, 0): 5})
    cases = heads.split()[0][7]
    assert cases.index(" 0L ") < cases.index(" 19L ")
    assert cases.count("startswith") == 12


def test_before_anything_is_known_every_text_is_searched() -> None:
    assert not any("startswith" in expression for step in SchemaPrefixes().split() for expression in step)


# -- maintenance ------------------------------------------------------------------------------------------------------------------------


def noon(hour: int = 12) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, hour, 30, tzinfo=datetime.UTC)


def scheduled(**more: str) -> MaintenanceSchedule:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    return MaintenanceSchedule(parse(base | {"lakehouse.maintenance." + name.replace("_", "-"): value for name, value in more.items()}))


def test_a_tables_turn_comes_after_its_commits_and_then_it_counts_anew() -> None:
    schedule = scheduled(**{"compact.every_commits": "2", "max_lag": "10"})
    a, b = TableName(("a",)), TableName(("b",))
    for table in (a, b, b, b, a):
        schedule.committed(table)
    assert schedule.due(11, noon()) is None, "it waits while the sink is behind"
    assert [schedule.due(10, noon()) for _ in range(3)] == [b, a, None]
    schedule.committed(a)
    assert schedule.due(0, noon()) is None


@pytest.mark.parametrize(
    ("window", "hours"), [("11:00-12:31", {11, 12}), ("22:00-01:00", {22, 23, 0}), ("12:31-13:00", set()), ("05:00-05:00", set(range(24)))]
)
def test_a_window_may_pass_midnight(window: str, hours: set[int]) -> None:
    def in_it(hour: int) -> bool:
        schedule = scheduled(**{"compact.every_commits": "1", "window": window})
        schedule.committed(TableName(("a",)))
        return schedule.due(0, noon(hour)) is not None

    assert {hour for hour in range(24) if in_it(hour)} == hours


def test_maintenance_can_be_off_and_a_window_that_is_none_is_refused() -> None:
    schedule = scheduled(**{"compact.every_commits": "1", "enabled": "false"})
    schedule.committed(TableName(("a",)))
    assert schedule.due(0, noon()) is None
    with pytest.raises(ConfigError, match="two times of day are expected"):
        scheduled(window="at night")


# -- statements ------------------------------------------------------------------


def test_a_merge_after_a_truncate_leaves_nothing_of_what_the_table_had() -> None:
    shape = Shape(("id",), {"id": "int", "body": "string"}, unknown=("body",))
    after = merge_sql("t", "s", shape, "apply")
    assert after.endswith("WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert "t.`body` = s.`body`" in after, "an unknown value must not be what the emptied table had"
    assert "NOT MATCHED BY SOURCE" not in merge_sql("t", "s", shape)
    assert merge_sql("t", "s", shape, "soft").endswith("THEN UPDATE SET t.`__deleted` = true")


def test_rows_without_a_key_replace_what_the_table_had_or_follow_it_marked() -> None:
    assert overwrite_sql("t", "s", ["a"], []).startswith("INSERT OVERWRITE t (`a`) SELECT IF(`$op` IS NULL, NULL, `a`)")
    kept = overwrite_sql("t", "s", ["a"], ["a", "old", "__deleted"])
    assert "SELECT `a`, `old`, true `__deleted` FROM t UNION ALL SELECT `a`, NULL `old`, NULL `__deleted` FROM" in kept


def test_versions_are_closed_and_opened_by_one_statement() -> None:
    shape = Shape(("id",), {"id": "int", "n": "int", **VERSION_COLUMNS}, versions=True)
    merged = merge_sql("t", "s", shape)
    assert (
        "ON t.`id` <=> s.`id` AND s.`$closes` AND t.`__is_current` WHEN MATCHED THEN UPDATE SET t.`__valid_to` = s.`__valid_from`" in merged
    )
    assert "WHEN NOT MATCHED AND NOT s.`$closes` THEN INSERT (`id`, `n`, `__valid_from`, `__valid_to`, `__is_current`)" in merged


@pytest.mark.parametrize(
    ("properties", "number"),
    [
        ({}, None),
        ({"control.commit.interval-ms": "59999"}, 2000),
        ({"maintenance.expire-snapshots.retain-at-most": "7"}, 7),
        ({"control.commit.interval-ms": "0", "maintenance.expire-snapshots.retain-at-most": "7"}, 7),
    ],
)
def test_tables_that_commit_often_keep_a_number_of_snapshots(properties: dict[str, str], number: int | None) -> None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    parsed = parse(base | {f"lakehouse.{name}": value for name, value in properties.items()})
    assert MaintenancePolicy.of(parsed).retain_at_most == number


def test_no_table_keeps_no_snapshot() -> None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    with pytest.raises(ConfigError, match="at least 1"):
        parse(base | {"lakehouse.maintenance.expire-snapshots.retain-at-most": "0"})
