"""Rules of the lakehouse sink for records without schemas, partitions, key columns and positions. No Spark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.errors import ConfigError, DataError, FatalTaskError
from spark_sink.config.layout import Layout, Partition, parse_partitions, partition_sql
from spark_sink.config.sink_config import parse, parse_column_types
from spark_sink.read import schemaless
from spark_sink.sql import decode
from spark_sink.sql.record_schema import Form, read_schemas
from spark_sink.types.columns import TypeOptions
from spark_sink.write import batches

BASE = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}


def config(**more: str) -> Any:
    return parse(BASE | {"lakehouse." + name.replace("__", "-").replace("_", "."): value for name, value in more.items()})


# -- records without schemas --------------------------------------------------------------------------------------------------------


def shown(kind: Any) -> str:
    """A kind as Spark's schema_of_variant_agg writes it."""
    match kind:
        case dict():
            names = {name: name if name.isidentifier() else "`" + name.replace("`", "``") + "`" for name in kind}
            return "OBJECT<" + ", ".join(f"{names[name]}: {shown(part)}" for name, part in kind.items()) + ">"
        case [inner]:
            return f"ARRAY<{shown(inner)}>"
    return str(kind)


KINDS = st.recursive(
    st.sampled_from(["BIGINT", "DOUBLE", "STRING", "VOID", "BOOLEAN", "VARIANT", "DECIMAL(10,2)"]),
    lambda inner: st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=3) | st.lists(inner, min_size=1, max_size=1),
    max_leaves=8,
)


@given(kind=KINDS)
def test_what_spark_says_of_a_batch_is_understood_whatever_the_names(kind: Any) -> None:
    assert schemaless.parse_kind(shown(kind)) == kind


@pytest.mark.parametrize(
    ("wanted", "kind", "read", "spark"),
    [
        ("bigint", "STRING", "bigint", "bigint"),
        ("string", "BIGINT", "string", "string"),
        ("decimal(10,2)", "DECIMAL(3,1)", "string", "decimal(10,2)"),
        ("decimal(10, 2)", "STRING", "binary", "decimal(10,2)"),
        ("date", "BIGINT", "int", "date"),
        ("date", "STRING", "string", "date"),
        ("timestamp_ntz", "BIGINT", "bigint", "timestamp_ntz"),
        ("timestamp", "VOID", "string", "timestamp"),
        ("io.debezium.time.MicroTimestamp", "BIGINT", "bigint", "timestamp_ntz"),
        ("org.apache.kafka.connect.data.Decimal(38, 4)", "STRING", "binary", "decimal(38,4)"),
    ],
)
def test_a_known_type_decides_how_values_without_a_schema_are_read(wanted: str, kind: str, read: str, spark: str) -> None:
    found = schemaless.of_known_type(wanted, kind, TypeOptions())
    assert (found.read, found.spark) == (read, spark)


def test_values_without_a_schema_are_told_apart_by_form_and_source_table() -> None:
    envelope = {"op": "c", "after": {"id": 1}, "source": {"db": "d", "table": "t", "lsn": 5}}
    assert schemaless.describe("x", envelope).form is Form.ENVELOPE
    assert "lsn" in schemaless.describe("x", envelope).source_fields
    flat = schemaless.describe("x", {"id": 1, "__v": 0, "__deleted": "true"})
    assert (flat.form, flat.extras, flat.untyped) == (Form.FLAT, {"__deleted"}, {"value"})
    assert schemaless.describe("__debezium-heartbeat.p", {"ts_ms": 1}).form is Form.IGNORED
    with pytest.raises(DataError, match="no JSON object"):
        schemaless.describe("x", [1])
    others = [envelope, {**envelope, "source": {"db": "d", "table": "u"}}, {"id": 1}, {"id": 1, "__deleted": "true"}]
    assert len({schemaless.kind_of_value(value) for value in others}) == 4
    assert schemaless.kind_of_value(envelope) == schemaless.kind_of_value({**envelope, "op": "u", "after": {"id": 2}})


def test_types_of_columns_are_pairs_and_commas_within_parentheses_do_not_separate() -> None:
    assert parse_column_types("price:decimal(10,2), at: timestamp, o:struct<a:int,b:array<int>>") == {
        "price": "decimal(10,2)",
        "at": "timestamp",
        "o": "struct<a:int,b:array<int>>",
    }
    assert config(table_public_t_column__types="a:int").of_table("public.t").column_types == {"a": "int"}
    with pytest.raises(ConfigError, match="pairs of a column and its type"):
        config(table_public_t_column__types="price")


# -- layout and keys ----------------------------------------------------------------------------------------------------------------


def test_partitions_are_columns_and_transforms_of_them() -> None:
    found = parse_partitions("region, days(created_at), bucket(id, 16), truncate( name ,4), year(d)")
    assert found == (
        Partition("region"),
        Partition("created_at", "days"),
        Partition("id", "bucket", 16),
        Partition("name", "truncate", 4),
        Partition("d", "years"),
    )
    assert [partition_sql(each) for each in found] == [
        "`region`",
        "days(`created_at`)",
        "bucket(16, `id`)",
        "truncate(4, `name`)",
        "years(`d`)",
    ]
    for wrong in ("days(a", "bucket(a)", "bucket(a, 0)", "days(a, 3)", "cube(a)", "days()"):
        with pytest.raises(ValueError, match="is none of a column"):
            parse_partitions(wrong)
    with pytest.raises(FatalTaskError, match="by gone, which the records do not have"):
        Layout(parse_partitions("gone")).check("public.t", {"id": "int"})


@pytest.mark.parametrize(
    "more",
    [{"partition-by": "days(a)"}, {"partition-by": "a", "cluster-by": "b"}, {"commit-branch": "b"}],
)
def test_what_delta_has_not_is_refused_for_one_table_too(more: dict[str, str]) -> None:
    delta = {"topics": "t", "lakehouse.format": "delta", "lakehouse.delta.root": "/d"}
    with pytest.raises(ConfigError, match="Delta"):
        parse(delta | {f"lakehouse.table.public.t.{name}": value for name, value in more.items()})


def record_schema(*, tombstone: bool = False) -> Any:
    of_row = {"type": "struct", "optional": True, "fields": [{"type": "int32", "field": name} for name in ("id", "a", "b")]}
    key = {"type": "struct", "fields": [{"type": "int32", "field": "id"}]}
    source = {"type": "struct", "fields": [{"type": "string", "field": "db"}], "field": "source"}
    envelope = {
        "type": "struct",
        "fields": [{**of_row, "field": "before"}, {**of_row, "field": "after"}, source, {"type": "string", "field": "op"}],
    }
    return read_schemas(key, None if tombstone else envelope, tombstone=tombstone, options=TypeOptions())


def test_chosen_columns_identify_rows_and_excluded_ones_are_gone() -> None:
    chosen = config(tables_default__id__columns="a,id", tables_exclude__columns="b")
    found = batches.table_schema(record_schema(), "t", chosen)
    assert found is not None
    assert [column.name for column in found.keys] == ["a", "id"]
    assert [column.name for column in found.columns] == ["id", "a"]
    assert not found.has_whole_keys, "a delete must be found by the row before it"
    assert batches.table_schema(record_schema(tombstone=True), "t", chosen) is None
    with pytest.raises(FatalTaskError, match="identified by gone, and the records have id, a, b"):
        batches.table_schema(record_schema(), "t", config(tables_default__id__columns="gone"))
    with pytest.raises(FatalTaskError, match="cannot be excluded"):
        batches.table_schema(record_schema(), "t", config(tables_exclude__columns="id"))


def test_fields_of_a_flattened_record_give_way_to_the_tables_own_columns() -> None:
    key = {"type": "struct", "fields": [{"type": "int32", "field": "id"}]}
    fields = [{"type": "string", "field": name} for name in ("id", "__v", "__topic", "__valid_from")]
    flat = read_schemas(key, {"type": "struct", "fields": fields}, tombstone=False, options=TypeOptions())
    for more, left in (
        ({}, ["id", "__v", "__topic", "__valid_from"]),
        ({"tables_write__mode": "append"}, ["id", "__v", "__valid_from"]),
        ({"tables_write__mode": "scd2"}, ["id", "__v", "__topic"]),
    ):
        found = batches.table_schema(flat, "t", config(**more))
        assert found is not None and [column.name for column in found.columns] == left


# -- order --------------------------------------------------------------------------------------------------------------------------


def test_the_orderings_name_a_column_and_only_upserts_have_one() -> None:
    assert decode.order_of(config()) is None
    assert decode.order_of(config(tables_ordering="source")) == "__position"
    assert decode.order_of(config(tables_ordering="column:changed_at")) == "changed_at"
    assert decode.order_of(config(tables_ordering="source", tables_write__mode="append")) is None


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ("file pos row gtid ts_ms", ("file", "pos", "row")),
        ("lsn sequence xmin ts_ms", ("sequence", "lsn")),
        ("commit_lsn change_lsn event_serial_no", ("commit_lsn", "change_lsn", "event_serial_no")),
        ("scn commit_scn", ("commit_scn", "scn")),
        ("ord collection ts_ms", ("ts_ms", "ord")),
        ("ts_ms ts_us ts_ns", ("ts_ns",)),
        ("db", ()),
    ],
)
def test_the_source_block_tells_whose_positions_it_has(fields: str, wanted: tuple[str, ...]) -> None:
    source = {"type": "struct", "field": "source", "fields": [{"type": "int64", "field": name} for name in fields.split()]}
    row = {"type": "struct", "optional": True, "fields": [{"type": "int32", "field": "id"}]}
    envelope = {"type": "struct", "fields": [{**row, "field": "after"}, source, {"type": "string", "field": "op"}]}
    found = read_schemas(None, envelope, tombstone=False, options=TypeOptions())
    assert decode.source_fields(found) == wanted
