"""Records of JSON without schemas: their columns and types, from the table, from what was configured, else from the records themselves.

What the table has decides. Of the rest the batch does: whole numbers are BIGINT, other numbers DOUBLE, and what is sometimes one kind and
sometimes another is STRING. A field that is always null, or an array that is always empty, has no column yet. Decimals in base64 and
times as numbers look like texts and numbers: the table's type, or `lakehouse.table.<name>.column-types`, says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connect_py.errors import DataError
from spark_sink.sql.record_schema import Column, Form, RecordSchema, is_added
from spark_sink.types.columns import (
    LOGICAL,
    ColumnType,
    TypeOptions,
    array_type,
    as_is,
    column_name,
    column_type,
    logical_type,
    scaled_decimal,
    struct_type,
    timestamp_of_millis,
    variant,
)
from spark_sink.types.trees import Array, Struct, Type, parse_type, type_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Topics whose records describe the stream; without a schema only the name shows that.
_NOT_ROWS = re.compile(r"__debezium-heartbeat\..*|__debezium\..*-heartbeat\..*")

#: A type of the batch: a name as Spark writes it, or the fields of an object, or what is in an array.
ValueKind = Any

_NUMBERS = ("BIGINT", "DOUBLE", "FLOAT", "DECIMAL", "INT", "SMALLINT", "TINYINT")


def describe(topic: str, payload: Any) -> RecordSchema:
    """Describe a record's value as far as that is possible before its batch is known.

    Raises:
        DataError: it is not an object, and so has no columns.
    """
    if not isinstance(payload, dict):
        raise DataError("the value has no schema and is no JSON object, so it has no columns")
    if _NOT_ROWS.fullmatch(topic):
        return RecordSchema(Form.IGNORED)
    source = payload.get("source")
    if "op" in payload and isinstance(source, dict) and ("after" in payload or "before" in payload):
        return RecordSchema(Form.ENVELOPE, source_fields=frozenset(source), extras=frozenset(payload), untyped=frozenset({"value"}))
    extras = frozenset(filter(is_added, payload))
    return RecordSchema(Form.FLAT, extras=extras, untyped=frozenset({"value"}))


def kind_of_value(value: Any) -> str:
    """Return a text that differs for values without a schema that must not share a `RecordSchema`."""
    if not isinstance(value, dict):
        return ""
    source = value.get("source")
    if "op" in value and isinstance(source, dict):
        return "\x01".join(str(source.get(name)) for name in ("db", "schema", "table", "collection"))
    return "\x01".join(sorted(name for name in value if isinstance(name, str) and is_added(name)))


def typed(
    schema: RecordSchema, records: DataFrame, table: Mapping[str, str], chosen: Mapping[str, str], options: TypeOptions
) -> RecordSchema:
    """Return the schema with columns, after reading the kinds of the batch's values.

    Args:
        records: with the columns key and value, JSON texts.
        table: types by column of the table; empty while there is none.
        chosen: types by column, from the configuration.
    """
    if not schema.untyped:
        return schema
    keys, columns = schema.keys, schema.columns
    seen = _seen(schema, records)
    if "key" in schema.untyped:
        keys = tuple(replace(column, of_key=True) for column in _columns(seen["key"], table, chosen, options))
    if "value" in schema.untyped:
        fields = {name: kind for name, kind in seen["value"].items() if schema.form is Form.ENVELOPE or not is_added(name)}
        by_name = {column.name: column for column in keys}
        found = _columns(fields, table, chosen, options)
        names = {column.name for column in found}
        columns = tuple(by_name.get(column.name, column) for column in found) + tuple(key for key in keys if key.name not in names)
    elif schema.form is Form.TOMBSTONE:
        columns = keys
    return replace(schema, keys=keys, columns=columns, untyped=frozenset())


def _seen(schema: RecordSchema, records: DataFrame) -> dict[str, dict[str, ValueKind]]:
    aggregates = {"key": "try_parse_json(key)"}
    if schema.form is Form.ENVELOPE:
        aggregates |= {side: f"try_variant_get(try_parse_json(value), '$.{side}', 'variant')" for side in ("after", "before")}
    elif schema.form is Form.FLAT:
        aggregates["value"] = "try_parse_json(value)"
    row = records.selectExpr(*(f"schema_of_variant_agg({parsed}) {name}" for name, parsed in aggregates.items())).collect()[0]
    kinds = {name: parse_kind(row[name]) for name in aggregates}
    fields = {name: kind if isinstance(kind, dict) else {} for name, kind in kinds.items()}
    value = fields.get("value") or _both(fields.get("before", {}), fields.get("after", {}))
    return {"key": fields["key"], "value": value}


def _both(one: Mapping[str, ValueKind], other: Mapping[str, ValueKind]) -> dict[str, ValueKind]:
    """Merge fields of rows before and after a change, in the order of those after."""
    merged = {name: kind if kind != "VOID" else one.get(name, kind) for name, kind in other.items()}
    return merged | {name: kind for name, kind in one.items() if name not in merged}


def _columns(fields: Mapping[str, ValueKind], table: Mapping[str, str], chosen: Mapping[str, str], options: TypeOptions) -> list[Column]:
    found: list[Column] = []
    for field, kind in fields.items():
        name = column_name(field)
        wanted = chosen.get(name) or table.get(name)
        if wanted is not None:
            found.append(Column(name, field, of_known_type(wanted, kind, options)))
        elif (schema := _as_schema(kind)) is not None:
            found.append(Column(name, field, column_type(schema, options)))
    return found


def of_known_type(wanted: str, kind: ValueKind, options: TypeOptions, depth: int = 0) -> ColumnType:
    """Return how JSON values are read for a column whose type is known. The batch decides the type of further fields of objects.

    Args:
        wanted: Spark's name of a type, or a logical type by the name of its Connect schema (``io.debezium.time.MicroTimestamp``,
            ``org.apache.kafka.connect.data.Decimal(10,2)``).
        kind: what the batch has there.
        depth: nesting of arrays around the value.
    """
    if (logical := logical_type(wanted, options)) is not None:
        return logical
    if wanted.startswith(("struct<", "array<")):
        return _of_parts(parse_type(wanted), kind, options, depth)
    is_number = isinstance(kind, str) and kind.startswith(_NUMBERS)
    plain = wanted.replace(" ", "").lower()
    if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", plain):
        if is_number:
            return ColumnType("string", plain, lambda value: f"CAST({value} AS {plain})")
        return ColumnType("binary", plain, lambda value: scaled_decimal(value, int(found[1]), int(found[2])))
    if plain == "date":
        return LOGICAL["io.debezium.time.Date" if is_number else "io.debezium.time.IsoDate"](options)
    if plain in ("timestamp", "timestamp_ntz"):
        text = "io.debezium.time.ZonedTimestamp" if plain == "timestamp" else "io.debezium.time.IsoTimestamp"
        return timestamp_of_millis(plain, options) if is_number else LOGICAL[text](options)
    if plain == "variant":
        return variant(options)
    return column_type({"type": "string"}, options) if plain == "string" else ColumnType(wanted, wanted, as_is)


def _of_parts(wanted: Type, kind: ValueKind, options: TypeOptions, depth: int) -> ColumnType:
    match wanted, kind:
        case Struct(), dict():
            fields = {name: of_known_type(type_text(part), kind.get(name, "VOID"), options, depth) for name, part in wanted.fields.items()}
            schemas = {name: _as_schema(part) for name, part in kind.items() if name not in fields}
            return struct_type(
                fields | {name: column_type(schema, options, depth) for name, schema in schemas.items() if schema is not None}
            )
        case Array(), list():
            return array_type(of_known_type(type_text(wanted.element), kind[0], options, depth + 1), depth)
        case _:
            return ColumnType(type_text(wanted), type_text(wanted), as_is)


def _as_schema(kind: ValueKind) -> dict[str, Any] | None:
    """Return a Connect schema for what a batch has; None for nothing."""
    if isinstance(kind, dict):
        fields = [{**schema, "field": name} for name, part in kind.items() if (schema := _as_schema(part)) is not None]
        return {"type": "struct", "fields": fields, "optional": True} if fields else None
    if isinstance(kind, list):
        items = _as_schema(kind[0])
        return {"type": "array", "items": items, "optional": True} if items is not None else None
    if kind == "VOID":
        return None
    if kind == "BOOLEAN":
        return {"type": "boolean", "optional": True}
    if kind in ("BIGINT", "INT", "SMALLINT", "TINYINT"):
        return {"type": "int64", "optional": True}
    return {"type": "double" if kind.startswith(_NUMBERS) else "string", "optional": True}


def parse_kind(text: str | None) -> ValueKind:
    """Parse the result of `schema_of_variant_agg`, as ``OBJECT<a: BIGINT, b: ARRAY<STRING>>``: a name, a dict of fields, a list of one."""
    if text is None:
        return "VOID"
    kind, rest = _parse(text)
    assert not rest, text
    return kind


def _parse(text: str) -> tuple[ValueKind, str]:
    if text.startswith("OBJECT<"):
        fields: dict[str, ValueKind] = {}
        rest = text[len("OBJECT<") :]
        while not rest.startswith(">"):
            name, rest = _name(rest.removeprefix(", "))
            fields[name], rest = _parse(rest)
        return fields, rest[1:]
    if text.startswith("ARRAY<"):
        inner, rest = _parse(text[len("ARRAY<") :])
        return [inner], rest[1:]
    found = re.match(r"\w+(?: \w+)*(?:\(\d+,\s?\d+\))?", text)
    assert found, text
    return found[0], text[found.end() :]


def _name(text: str) -> tuple[str, str]:
    """Split off a field's name, which is quoted where it is no identifier, and its colon."""
    if text.startswith("`"):
        found = re.match(r"`((?:[^`]|``)*)`: ", text)
        assert found, text
        return found[1].replace("``", "`"), text[found.end() :]
    name, _, rest = text.partition(": ")
    return name, rest
