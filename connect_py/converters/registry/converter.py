"""The flow of a record through a converter with a registry; the subclasses know one format each.

What is known of a schema is kept with it: its text, the function that writes values, and the bytes that go before them on each topic. So
the registry is asked once for a schema and topic, and a record costs a look-up and a call. The task's thread owns a converter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from connect_py.api.config import ConfigDef, ConfigKey
from connect_py.converters.base import RowWriter
from connect_py.converters.registry.client import Registry, RegistrySchema
from connect_py.converters.registry.config import KEYS, WriteSettings, write_settings
from connect_py.converters.registry.wire import HEADER_SIZE, frame, schema_id_of
from connect_py.data import Schema
from connect_py.data.json_rows import NULL, NeedsRecord
from connect_py.data.schema import SchemaCache
from connect_py.errors import DataError

#: A value of a known schema to bytes; raises DataError.
Encode = Callable[[Any], bytes]
#: Bytes from an offset on to a value of a known schema; raises DataError.
Decode = Callable[[bytes, int], Any]


@dataclass
class Written:
    """How values of one Connect schema are written.

    Attributes:
        name: the schema's full name, for subject names.
        schema: what is registered.
        encode: what follows the frame.
        by_topic: the frame and the function for each topic that was written to.
        rows_by_topic: the functions of rows of JSON.
    """

    name: str | None
    schema: RegistrySchema
    encode: Encode
    by_topic: dict[str, tuple[bytes, Encode]] = field(default_factory=dict)
    rows_by_topic: dict[str, RowWriter] = field(default_factory=dict)


@dataclass(frozen=True)
class Readable:
    """How values of one registered schema are read."""

    schema: Schema | None
    decode: Decode


class RegistryConverter:
    """Converts keys and values.

    Class attributes:
        java_name: the class name that configurations use.
        kind: AVRO, PROTOBUF or JSON.
        keys: what the format has besides `config.KEYS`.
        writes_nulls: whether a null that has a schema is data; else it is a tombstone.
    """

    java_name: ClassVar[str]
    version: ClassVar[str] = "8.5.0"
    kind: ClassVar[str]
    keys: ClassVar[tuple[ConfigKey, ...]] = ()
    writes_nulls: ClassVar[bool] = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the registry's keys and the format's own."""
        return ConfigDef((*KEYS, *cls.keys))

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        values = self.config_def().parse({**config, "converter.type": "key" if is_key else "value"})
        self.is_key = is_key
        self._settings: WriteSettings = write_settings(values, is_key=is_key)
        self._size = max(values["schemas.cache.config"], 1)
        self._registry = Registry(values)
        self.use(values)
        self._written: SchemaCache[Written] = SchemaCache(self.written, self._size)
        self._readable: dict[tuple[str, int, bytes], Readable] = {}

    # -- what a format does --------------------------------------------------------------------------------------------------------

    def use(self, values: Mapping[str, Any]) -> None:
        """Take the format's own properties, parsed."""
        raise NotImplementedError

    def written(self, schema: Schema | None) -> Written:
        """Return how values of a Connect schema are written. Raises DataError for a schema that the format cannot have."""
        raise NotImplementedError

    def encoder_for(self, schema: Schema | None, registered: RegistrySchema) -> Encode:
        """Return how values of a Connect schema are written with a schema that somebody else registered. Raises DataError."""
        raise NotImplementedError

    def readable(self, topic: str, registered: RegistrySchema, selector: bytes) -> Readable:
        """Return how values of a registered schema are read; `selector` is what `selector` gave. Raises DataError."""
        raise NotImplementedError

    def selector(self, data: bytes) -> tuple[bytes, int]:
        """Return what stands between frame and data and says more of the schema, and where the data begins."""
        return b"", HEADER_SIZE

    def prefix(self, schema: RegistrySchema, written: Written) -> bytes:
        """Return what is written between frame and data."""
        return b""

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Framed bytes; None for null.

        Raises:
            DataError: the value is not what the schema says, the format cannot hold it, or the registry refuses the schema.
            RetriableError: the registry does not answer.
        """
        if value is None:
            if schema is None:
                return None
            if not self.writes_nulls:
                if not schema.optional:
                    raise DataError("Found null value for non-optional schema")
                return None
            if not schema.optional and schema.default is None:
                return None
        written = self._written(schema)
        known = written.by_topic.get(topic)
        if known is None:
            known = written.by_topic[topic] = self._on_topic(topic, schema, written)
        before, encode = known
        return before + encode(value)

    def _on_topic(self, topic: str, schema: Schema | None, written: Written) -> tuple[bytes, Encode]:
        schema_id, registered = self._registered(topic, written)
        encode = written.encode if registered is written.schema else self.encoder_for(schema, registered)
        return frame(schema_id) + self.prefix(registered, written), encode

    def rows_of(self, topic: str, schema: Schema, write: Callable[[RegistrySchema | None], Callable[[bytes], bytes]]) -> RowWriter:
        """Return the function that writes rows of JSON as `from_connect_data` does, made once a topic and schema.

        Args:
            write: returns what makes the data of a row, with a schema that somebody else registered, or with the rows' own.

        Raises:
            DataError: the registry or the format refuses the schema.
            RetriableError: the registry does not answer.
        """
        written = self._written(schema)
        found = written.rows_by_topic.get(topic)
        if found is None:
            schema_id, registered = self._registered(topic, written)
            before = frame(schema_id) + self.prefix(registered, written)
            data_of = write(None if registered is written.schema else registered)

            def write_row(row: bytes) -> bytes | None:
                if row != NULL:
                    return before + data_of(row)
                if not schema.optional:
                    raise NeedsRecord("A null without a place")
                return None

            found = written.rows_by_topic[topic] = write_row
        return found

    def _registered(self, topic: str, written: Written) -> tuple[int, RegistrySchema]:
        """Return the id and schema with which values are written on a topic."""
        subject = self._settings.strategy(topic, self.is_key, written.name)
        if self._settings.use_latest and not self._settings.auto_register:
            return self._registry.latest(subject)
        return self._registry.id_of(subject, written.schema, self._settings), written.schema

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return schema and value; (None, None) for no bytes.

        Raises:
            DataError: the bytes are not framed, or not of the schema that the frame names.
            RetriableError: the registry does not answer.
        """
        if data is None:
            return None, None
        schema_id = schema_id_of(data)
        selector, start = self.selector(data)
        readable = self._readable.get((topic, schema_id, selector))
        if readable is None:
            readable = self._learn(topic, schema_id, selector)
        return readable.schema, readable.decode(data, start)

    def _learn(self, topic: str, schema_id: int, selector: bytes) -> Readable:
        registered = self._registry.by_id(schema_id)
        if registered.kind != self.kind:
            raise DataError(f"Schema {schema_id} on topic '{topic}' is {registered.kind}, and {self.java_name} reads {self.kind}")
        readable = self.readable(topic, registered, selector)
        if len(self._readable) >= self._size:
            self._readable.clear()
        self._readable[(topic, schema_id, selector)] = readable
        return readable

    def version_in_registry(self, topic: str, registered: RegistrySchema, name: str | None) -> int | None:
        """Return the version that the registry gave a schema. Raises RetriableError."""
        return self._registry.version_of(self._settings.strategy(topic, self.is_key, name), registered)
