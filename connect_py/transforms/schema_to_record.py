"""Put the table's columns into the event (`io.debezium.transforms.ExtractSchemaToNewRecord`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.data import Field, Schema, Struct
from connect_py.data.avro_names import ADJUSTMENTS
from connect_py.data.schema import OPTIONAL_STRING, STRING, SchemaCache, Type, array, struct
from connect_py.errors import DataError
from connect_py.transforms.base import AnyRecord
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, change_of, struct_of

_FIELD = "sourceSchema"
_PARAMETER = "__debezium.source.column."
_OPTIONAL_INT = Schema(Type.INT32, optional=True)


def _block(adjust: Any) -> tuple[Schema, Schema, Schema]:
    """Return the schemas of the block, its table and a column (`SchemaFactory#sourceSchemaBlockSchema`)."""
    parts = [("name", STRING), ("typeName", STRING), ("length", _OPTIONAL_INT), ("scale", _OPTIONAL_INT), ("comment", OPTIONAL_STRING)]
    column = struct(parts, name=adjust("io.debezium.connector.source.schema.Column", "."), version=1)
    table = struct([("columns", array(column))], name="io.debezium.connector.source.schema.Table", version=1)
    return struct([("id", STRING), ("table", table)], name=adjust("io.debezium.connector.source.Schema", "."), version=1), table, column


class _Plan(NamedTuple):
    schema: Schema
    columns: Struct


class ExtractSchemaToNewRecord(DebeziumTransform):
    """Adds a field `sourceSchema` with name, type, length, scale and comment of each column.

    The connector must put these into the schemas: `column.propagate.source.type` or `datatype.propagate.source.type` is `.*`.
    """

    java_name = f"{DEBEZIUM}ExtractSchemaToNewRecord"

    def configure(self, config: Any) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        mode = config.get("schema.name.adjustment.mode", "none").strip().lower()
        if mode not in ADJUSTMENTS:
            raise self.refused("schema.name.adjustment.mode", mode, f"Value must be one of {', '.join(ADJUSTMENTS)}")
        self._block, self._table, self._column = _block(ADJUSTMENTS[mode])
        self._plans: SchemaCache[_Plan] = SchemaCache(self._plan, 1024)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the field; a truncate, and what is no change event, is left alone.

        Raises:
            DataError: the schema of a column does not tell its name and type.
        """
        envelope = change_of(record)
        if envelope is None or (envelope["before"] is None and envelope["after"] is None):
            return record
        plan = self._plans(envelope.schema)
        source = struct_of(envelope, "source")
        block = Struct(self._block, [source["table"] if source is not None else None, plan.columns])
        values = [envelope[field.name] for field in envelope.schema.fields]
        return replace(record, value_schema=plan.schema, value=Struct(plan.schema, [*values, block]))

    def _plan(self, schema: Schema | None) -> _Plan:
        assert schema is not None
        after = schema.field("after")
        columns = [self._described(field.schema) for field in (after.schema.fields if after else ())]
        changed = replace(schema, fields=(*schema.fields, Field(_FIELD, self._block)), default=None)
        return _Plan(changed, Struct(self._table, [columns]))

    def _described(self, schema: Schema) -> Struct:
        told = dict(schema.parameters)
        name, type_ = told.get(f"{_PARAMETER}name"), told.get(f"{_PARAMETER}type")
        if name is None or type_ is None:
            raise DataError(
                'Ensure that enable configurations "column.propagate.source.type" or "datatype.propagate.source.type" and the value is set '
                'to ".*"'
            )
        numbers = [int(told[f"{_PARAMETER}{part}"]) if f"{_PARAMETER}{part}" in told else None for part in ("length", "scale")]
        return Struct(self._column, [name, type_, *numbers, told.get(f"{_PARAMETER}comment")])
