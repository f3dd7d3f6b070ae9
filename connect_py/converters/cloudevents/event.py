"""CloudEvents made of change events: attributes, schemas and values (`CloudEventsMaker.java`, `RecordAndMetadata.java`).

Pure. `https://github.com/cloudevents/spec` has the names: id, source, specversion, type, time, datacontenttype, dataschema and data;
Debezium's extension attributes begin with `iodebezium`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from connect_py.data import BOOLEAN, BYTES, INT32, OPTIONAL_STRING, STRING, Schema, Struct, Type
from connect_py.data.schema import struct
from connect_py.errors import DataError

SPEC_VERSION = "1.0"
ENVELOPE_SUFFIX = "CloudEvents.Envelope"
REQUIRED = ("id", "source", "specversion", "type")

#: A transaction block's fields as extension attributes; 64 bits are texts, as CloudEvents has no such integers.
_TRANSACTION: Final = (
    ("id", OPTIONAL_STRING),
    ("total_order", OPTIONAL_STRING),
    ("data_collection_order", OPTIONAL_STRING),
)

#: Connector → the fields of its source block that make an id, by the names they have there, in order.
_IDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "postgresql": (("name", "name"), ("lsn", "lsn"), ("txId", "txId"), ("sequence", "sequence")),
    "mysql": (("name", "name"), ("file", "file"), ("pos", "pos")),
    "mariadb": (("name", "name"), ("file", "file"), ("pos", "pos")),
    "mongodb": (("name", "name"), ("ts", "ts_ms"), ("ord", "ord")),
}

#: Connector → the fields of the envelope that are data; none for all of them.
_DATA: Mapping[str, tuple[str, ...]] = {
    "postgresql": ("before", "after"),
    "mysql": ("before", "after"),
    "mariadb": (),
    "mongodb": ("before", "after", "updateDescription"),
}


class Metadata(Protocol):
    """What an event says of a record, wherever it is read from."""

    @property
    def source(self) -> Struct:
        """The source block."""

    @property
    def operation(self) -> Any:
        """c, u, d, r, t."""

    @property
    def transaction(self) -> Struct | None:
        """The transaction block."""

    @property
    def id(self) -> Any:
        """An id that is given, not made."""

    @property
    def type(self) -> Any:
        """A type that is given, not made."""

    @property
    def trace_parent(self) -> Any:
        """The span that the event belongs to. Raises DataError where there is no place for it."""

    @property
    def data_schema_name(self) -> Any:
        """The name of the data's schema."""

    @property
    def is_whole_record_data(self) -> bool:
        """Whether the record itself is the data, since the metadata are elsewhere."""


def connector_of(source: Struct) -> str:
    """Return the connector that an event comes from. Raises DataError for one whose events are not described here."""
    connector = source["connector"]
    if connector not in _IDS:
        raise DataError(f'No usable CloudEvents converters for connector type "{connector}"')
    return str(connector)


def generated_id(source: Struct) -> str:
    """`name:…;lsn:…;txId:…;sequence:…` for PostgreSQL; each connector has its own. Raises DataError for a missing field."""
    return ";".join(f"{label}:{_java_text(source[field])}" for label, field in _IDS[connector_of(source)])


def generated_type(source: Struct) -> str:
    """`io.debezium.connector.postgresql.DataChangeEvent`."""
    return f"io.debezium.connector.{connector_of(source)}.DataChangeEvent"


def generated_data_name(source: Struct) -> str:
    """Return the name of the data's schema where nothing else gives one."""
    return f"io.debezium.connector.{source['connector']}.Data"


def envelope_name(source: Struct) -> str:
    """Return the name of the envelope's schema where no property gives one."""
    return f"{_java_text(source['name'])}.{_java_text(source['db'])}.{ENVELOPE_SUFFIX}"


def time_text(millis: Any) -> str:
    """Return the event's time as RFC 3339 has it, in UTC. Raises DataError where there is none."""
    if not isinstance(millis, int):
        raise DataError("The source of the event has no ts_ms, so that the CloudEvent has no time")
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{millis % 1000:03}Z"


def extension_name(name: str) -> str:
    """Return an attribute's name: `iodebezium` and the alphanumeric characters of the field's name."""
    return "iodebezium" + "".join(c for c in name if c.isascii() and c.isalnum())


def data_schema(record: Schema, name: str, connector: str, *, is_whole: bool) -> Schema:
    """Return the schema of `data`. Raises DataError when the record has none of the fields that are data."""
    wanted = () if is_whole else _DATA[connector]
    fields = [(field, record.fields[record.index_of(field)].schema) for field in wanted] or [(f.name, f.schema) for f in record.fields]
    return struct(fields, name=name)


def data_value(schema: Schema, record: Struct) -> Struct:
    """Return the value of `data`."""
    return Struct(schema, [record[field.name] for field in schema.fields])


def event_schema(
    name: str, source: Schema, data: Schema | None, *, has_dataschema: bool, has_tracing: bool, has_extensions: bool
) -> Schema:
    """Return the schema of the envelope.

    Args:
        name: its name.
        source: the source block's schema, whose fields are extension attributes.
        data: the schema of `data`; None for bytes.
        has_dataschema: whether `dataschema` says where the schema of `data` is.

    Raises:
        DataError: the source block has a field that no extension attribute can hold.
    """
    fields = [(each, STRING) for each in ("id", "source", "specversion", "type", "time", "datacontenttype")]
    fields += [("dataschema", STRING)] * has_dataschema + [("traceparent", STRING)] * has_tracing
    if has_extensions:
        fields.append((extension_name("op"), STRING))
        fields += [(extension_name(field.name), _extension_schema(field.schema)) for field in source.fields]
        fields += [(extension_name(f"tx{field}"), schema) for field, schema in _TRANSACTION]
    return struct([*fields, ("data", BYTES if data is None else data)], name=name)


def _extension_schema(schema: Schema) -> Schema:
    if schema.type is Type.BOOLEAN:
        found = BOOLEAN
    elif schema.type in (Type.INT8, Type.INT16, Type.INT32):
        found = INT32
    elif schema.type in (Type.STRING, Type.INT64):
        found = STRING
    else:
        error = DataError(f"Source field of type {schema.type.name} cannot be converted into CloudEvents extension attribute.")
        error.java_name = "java.lang.IllegalArgumentException"
        raise error
    return found.as_optional() if schema.optional else found


def extension_values(metadata: Metadata) -> list[Any]:
    """Return the values of `event_schema`'s extension attributes, in order."""
    source, transaction = metadata.source, metadata.transaction
    values = [metadata.operation, *(_extension_value(source[field.name], field.schema) for field in source.schema.fields)]
    if transaction is None:
        return [*values, None, None, None]
    return [*values, *(_as_text(transaction[name]) for name, _ in _TRANSACTION)]


def _extension_value(value: Any, schema: Schema) -> Any:
    return str(value) if schema.type is Type.INT64 and value is not None else value


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)


def _java_text(value: Any) -> str:
    return "null" if value is None else str(value)


class RecordMetadata:
    """Metadata of a change event, and headers for what is to come from there (`RecordAndMetadataHeaderImpl`).

    Args:
        record: the value.
        header: reads a header by its name, and whether it may be missing; raises DataError.
        from_headers: which of `everything`, `id`, `type`, `traceparent` and `dataSchemaName` are read from headers.
    """

    def __init__(self, record: Struct, header: Callable[[str, bool], Any], from_headers: Sequence[str]) -> None:
        self._record = record
        self._header = header
        self._from_headers = from_headers
        self.is_whole_record_data = "everything" in from_headers

    @property
    def source(self) -> Struct:
        """The source block. Raises DataError when it is no struct."""
        found = self._header("source", False) if self.is_whole_record_data else self._record["source"]
        if not isinstance(found, Struct):
            raise DataError("The event has no source block, of which a CloudEvent is made")
        return found

    @property
    def operation(self) -> Any:
        """c, u, d, r, t."""
        return self._header("op", False) if self.is_whole_record_data else self._record["op"]

    @property
    def transaction(self) -> Struct | None:
        """The transaction block, None without one."""
        if self.is_whole_record_data:
            found = self._header("transaction", True)
        else:
            found = self._record["transaction"] if self._record.schema.field("transaction") else None
        return found if isinstance(found, Struct) else None

    @property
    def id(self) -> Any:
        """A given id; None, which no envelope holds, where only the value could give one."""
        return self._header("id", False) if "id" in self._from_headers else None

    @property
    def type(self) -> Any:
        """A given type; as with `id`."""
        return self._header("type", False) if "type" in self._from_headers else None

    @property
    def trace_parent(self) -> Any:
        """The header `traceparent`. Raises DataError where it is asked of the value."""
        if "traceparent" in self._from_headers:
            return self._header("traceparent", True)
        raise DataError(
            "Value for `traceparent` CloudEvents field currently can't be obtained from a record value and can only be obtained from a "
            "record header"
        )

    @property
    def data_schema_name(self) -> Any:
        """The header `dataSchemaName`, or a name made of the connector's."""
        return self._header("dataSchemaName", False) if "dataSchemaName" in self._from_headers else generated_data_name(self.source)
