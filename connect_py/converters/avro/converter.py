"""Records as Avro with a schema registry (`io.confluent.connect.avro.AvroConverter`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connect_py.converters.avro.binary import ANYTHING
from connect_py.converters.avro.options import KEYS, AvroOptions
from connect_py.converters.avro.read import decoder
from connect_py.converters.avro.rows import row_writer
from connect_py.converters.avro.schema import AvroSchema, avro_text, parse_avro
from connect_py.converters.avro.schemas import FromConnect, ToConnect, record_name
from connect_py.converters.avro.write import encoder
from connect_py.converters.base import RowWriter
from connect_py.converters.registry.client import RegistrySchema
from connect_py.converters.registry.converter import Encode, Readable, RegistryConverter, Written
from connect_py.data import Schema, Type


class AvroConverter(RegistryConverter):
    """Converts keys and values. One thread uses an instance."""

    java_name = "io.confluent.connect.avro.AvroConverter"
    kind = "AVRO"
    keys = KEYS

    def use(self, values: Mapping[str, Any]) -> None:
        """Take the format's own properties."""
        self._options = AvroOptions.of(values)

    def written(self, schema: Schema | None) -> Written:
        """Return the Avro schema of a Connect schema, and the function that writes its values."""
        avro = FromConnect(self._options)(schema)
        return Written(record_name(avro), RegistrySchema("AVRO", avro_text(avro)), self._encode(schema, avro))

    def encoder_for(self, schema: Schema | None, registered: RegistrySchema) -> Encode:
        """Return the function that writes values with the subject's latest schema."""
        return self._encode(schema, self._parsed(registered))

    def _encode(self, schema: Schema | None, avro: AvroSchema) -> Encode:
        if avro.type == "bytes" and schema is not None and schema.type is Type.BYTES:
            write = encoder(schema, avro, self._options)
            return lambda value: _without_length(write(value))
        return encoder(schema, avro, self._options)

    @property
    def handles_rows(self) -> bool:
        """Whether nulls that have a default are written as that, as they are in rows."""
        return not self._options.ignore_default_for_nullables

    @property
    def numeric_decimals(self) -> bool:
        """Rows have decimals in base64, whose bytes are Avro's."""
        return False

    def row_writer(self, topic: str, schema: Schema) -> RowWriter:
        """Return the function that writes rows of JSON as `from_connect_data` does. Raises what that does; see `RowConverter`."""

        def write(registered: RegistrySchema | None) -> Callable[[bytes], bytes]:
            avro = FromConnect(self._options)(schema) if registered is None else self._parsed(registered)
            return row_writer(schema, avro, self._options)

        return self.rows_of(topic, schema, write)

    def readable(self, topic: str, registered: RegistrySchema, selector: bytes) -> Readable:
        """Return the Connect schema of a registered schema, and the function that reads its values."""
        avro = self._parsed(registered)
        version = self.version_in_registry(topic, registered, record_name(avro))
        schema = None if avro.full_name == ANYTHING.full_name else ToConnect(self._options)(avro, version)
        return Readable(schema, decoder(schema, avro, self._options))

    def _parsed(self, registered: RegistrySchema) -> AvroSchema:
        used = {name: schema.text for name, schema in self._registry.referenced(registered).items()}
        return parse_avro(registered.text, used)


def _without_length(data: bytes) -> bytes:
    """Cut the length off: the registry's serializer writes none where the whole value is bytes (`AbstractKafkaAvroSerializer`)."""
    at = 0
    while data[at] > 127:
        at += 1
    return data[at + 1 :]
