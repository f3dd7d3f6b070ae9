"""Records as changes of rows: which key, which fields, which kind (`KafkaDebeziumSinkRecord.java`, `JdbcKafkaSinkRecord.java`). Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from connect_py.api import SinkRecord
from connect_py.data import INT32, INT64, STRING, Schema, Struct, Type
from connect_py.data.schema import struct
from connect_py.errors import DataError
from connectors.jdbc.config import SinkConfig

#: The key of ``primary.key.mode=kafka``.
KAFKA_KEY = struct([("__connect_topic", STRING), ("__connect_partition", INT32), ("__connect_offset", INT64)])
_SCHEMA_CHANGE = "SchemaChangeValue"
_MAX_SHAPES = 2000


class Column(NamedTuple):
    """A field that becomes a column."""

    name: str
    schema: Schema
    is_key: bool


@dataclass(frozen=True, eq=False)
class Shape:
    """What records of one pair of schemas have in common. Compared by identity: one shape a pair.

    Attributes:
        keys: the primary key's columns, in order.
        others: the other columns; none for a deletion of which only the key is known.
    """

    keys: tuple[Column, ...]
    others: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, the key's first."""
        return self.keys + self.others


class Kind(enum.Enum):
    """What happens to a row."""

    WRITE = "write"
    DELETE = "delete"
    TRUNCATE = "truncate"


class Change(NamedTuple):
    """A change of one row, or of a whole table.

    Attributes:
        event: the envelope, None for a record that is none.
        key: the key's values, in the shape's order; with `values` they are what the columns hold.
    """

    kind: Kind
    record: SinkRecord
    event: Struct | None
    shape: Shape
    key: tuple[Any, ...] = ()
    values: tuple[Any, ...] = ()


_NO_SHAPE = Shape((), ())


class ChangeReader:
    """Makes changes of records. The task's thread owns it."""

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._shapes: dict[tuple[Any, ...], tuple[Shape, Any]] = {}
        self._by_value: dict[tuple[Any, ...], Shape] = {}
        self._primitive: tuple[Schema, Schema] | None = None

    def read(self, record: SinkRecord) -> Change | None:
        """Return the change; None for a record about a change of a source's schema.

        Raises:
            DataError: the record has no schema, no struct, or not the key that ``primary.key.mode`` asks for.
        """
        schema = record.value_schema
        if schema is not None and _SCHEMA_CHANGE in (schema.name or ""):
            return None
        value = self._value(record)
        if value is None:
            return self._deletion(record, None, None)
        if not _is_event(value.schema):
            return self._row(record, None, value)
        op = value["op"]
        if op == "t":
            return Change(Kind.TRUNCATE, record, value, _NO_SHAPE)
        row = value["before" if op == "d" else "after"]
        if row is not None and not isinstance(row, Struct):
            raise DataError("The rows of a change event must be structs to be written into a table")
        if op == "d":
            return self._deletion(record, value, row)
        if row is None:
            raise DataError(f"A change event of kind {op} has no row")
        return self._row(record, value, row)

    def _value(self, record: SinkRecord) -> Struct | None:
        value, schema = record.value, record.value_schema
        if value is None:
            return None
        if schema is None:
            raise DataError(
                "A record without a schema cannot be written into a table: nothing says which columns it has. Use a converter that keeps "
                "schemas, such as JsonConverter with schemas.enable=true."
            )
        if isinstance(value, Struct) and schema.name is not None and self._config.event_pattern.fullmatch(schema.name):
            value = value["data"]
        if not isinstance(value, Struct):
            raise DataError(f"A record must be a struct to be written into a table, and its value is of type {schema.type.name}")
        return value

    def _row(self, record: SinkRecord, event: Struct | None, row: Struct) -> Change:
        key = self._key(record, row)
        shape = self._shape(record.topic, key, row.schema)
        values = (*_values(key, shape.keys), *_values(row, shape.others))
        return Change(Kind.WRITE, record, event, shape, values[: len(shape.keys)], values)

    def _deletion(self, record: SinkRecord, event: Struct | None, row: Struct | None) -> Change:
        if not self._config.deletes:
            return Change(Kind.DELETE, record, event, _NO_SHAPE)
        key = self._key(record, row)
        shape = self._shape(record.topic, key, None if row is None else row.schema)
        return Change(Kind.DELETE, record, event, shape, _values(key, shape.keys))

    # -- keys ----------------------------------------------------------------------------------------------------------------------

    def _key(self, record: SinkRecord, row: Struct | None) -> Struct | None:
        mode = self._config.key_mode
        if mode == "none":
            return None
        if mode == "kafka":
            return Struct(KAFKA_KEY, [record.topic, record.partition, record.offset])
        if mode == "record_value":
            if row is None:
                raise DataError("No struct-based primary key defined for record value")
            return row
        if mode == "record_header":
            return _header_key(record)
        return self._record_key(record)

    def _record_key(self, record: SinkRecord) -> Struct:
        schema, key = record.key_schema, record.key
        if schema is None:
            raise DataError("Configured primary key mode 'record_key' cannot have null schema")
        if schema.type.is_primitive():
            names = self._config.key_fields
            if len(names) != 1:
                raise DataError("A key that is no struct needs one name in primary.key.fields, which its column then has")
            if self._primitive is None or self._primitive[0] is not schema:
                self._primitive = (schema, struct([(names[0], schema)]))
            return Struct(self._primitive[1], [key])
        if schema.type is not Type.STRUCT:
            raise DataError(f"An unsupported record key schema type detected: {schema.type.name}")
        if not isinstance(key, Struct):
            raise DataError("The record's key is null, and primary.key.mode=record_key takes the primary key from it")
        return key

    def _shape(self, topic: str, key: Struct | None, row: Schema | None) -> Shape:
        key_schema = None if key is None else key.schema
        cached = (topic, _identity(key_schema), _identity(row))
        found = self._shapes.get(cached)
        if found is None:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
                self._by_value.clear()
            found = self._shapes[cached] = (self._interned(topic, self._new_shape(topic, key_schema, row)), (key_schema, row))
        return found[0]

    def _interned(self, topic: str, shape: Shape) -> Shape:
        """Return the known shape that equals this one, so that equal schemas of several objects share statements and batches."""
        try:
            return self._by_value.setdefault((topic, shape.keys, shape.others), shape)
        except TypeError:  # a default that has no hash
            return shape

    def _new_shape(self, topic: str, key: Schema | None, row: Schema | None) -> Shape:
        config = self._config
        keys: list[Column] = []
        for field in key.fields if key is not None else ():
            is_given = config.key_mode in ("kafka", "record_header") or (
                field.name in config.key_fields if config.key_fields else config.is_field_written(topic, field.name)
            )
            if is_given:
                keys.append(Column(field.name, field.schema, True))
        # names of several topics' keys may be given; without any an update would change all rows
        if config.key_fields and not keys and config.insert_mode != "insert" and config.key_mode in ("record_key", "record_value"):
            raise DataError(
                f"primary.key.fields names {', '.join(config.key_fields)}, and records of {topic} have none of these in their key"
            )
        names = {column.name for column in keys}
        others = [
            Column(field.name, field.schema, False)
            for field in (row.fields if row is not None else ())
            if field.name not in names and config.is_field_written(topic, field.name)
        ]
        return Shape(tuple(keys), tuple(others))


def _identity(schema: Schema | None) -> Any:
    """Compare schemas of headers by value: they are made again for each record, and small."""
    return None if schema is None else schema if schema.name == _HEADERS else id(schema)


_HEADERS = "$__kafka_headers"


def _header_key(record: SinkRecord) -> Struct:
    if not record.headers:
        raise DataError("Configured primary key mode 'record_header' cannot have empty message headers")
    found = {header.name: header for header in record.headers}
    fields = []
    for header in found.values():
        if header.schema is None:
            raise DataError(f"The header {header.name} has no schema, and primary.key.mode=record_header makes a column of it")
        fields.append((header.name, header.schema))
    return Struct(struct(fields, name=_HEADERS), [header.value for header in found.values()])


def _is_event(schema: Schema) -> bool:
    """Return whether a struct is Debezium's envelope."""
    return schema.name.endswith(".Envelope") if schema.name is not None else schema.field("op") is not None


def _values(source: Struct | None, columns: Sequence[Column]) -> tuple[Any, ...]:
    """Return the columns' values: a null stays one where the schema allows it, else the default is written."""
    if source is None:
        return ()
    return tuple(source.without_default(c.name) if c.schema.optional else source[c.name] for c in columns)
