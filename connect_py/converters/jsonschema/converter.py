"""Records as JSON with a JSON Schema in a registry (`io.confluent.connect.json.JsonSchemaConverter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.converters.json_read import has_decimals, parse_json
from connect_py.converters.jsonschema.schemas import ToConnect, is_union, json_schema
from connect_py.converters.jsonschema.values import KEYS, JsonSchemaOptions, reader, writer
from connect_py.converters.registry.client import RegistrySchema
from connect_py.converters.registry.converter import Encode, Readable, RegistryConverter, Written
from connect_py.data import Schema
from connect_py.errors import DataError


class JsonSchemaConverter(RegistryConverter):
    """Converts keys and values. One thread uses an instance."""

    java_name = "io.confluent.connect.json.JsonSchemaConverter"
    kind = "JSON"
    keys = KEYS
    writes_nulls = True

    def use(self, values: Mapping[str, Any]) -> None:
        """Take the format's own properties."""
        self._options = JsonSchemaOptions.of(values)

    def written(self, schema: Schema | None) -> Written:
        """Return the JSON Schema of a Connect schema, and the function that writes its values."""
        if schema is None:
            raise DataError(
                "JsonSchemaConverter writes values that have a schema, and this one has none; use JsonConverter with schemas.enable=false"
            )
        name = None if schema.optional or is_union(schema) else schema.name
        return Written(name, RegistrySchema("JSON", json_schema(schema, self._options)), self._encode(schema))

    def encoder_for(self, schema: Schema | None, registered: RegistrySchema) -> Encode:
        """The JSON does not depend on who registered the schema."""
        return self._encode(schema)

    def _encode(self, schema: Schema | None) -> Encode:
        assert schema is not None
        write = writer(schema, self._options)
        return lambda value: write(value).encode()

    def readable(self, topic: str, registered: RegistrySchema, selector: bytes) -> Readable:
        """Return the Connect schema of a registered schema, and the function that reads its values."""
        used = {name: schema.text for name, schema in self._registry.referenced(registered).items()}
        make = ToConnect(self._options, registered.text, used)
        schema = make(self.version_in_registry(topic, registered, make.title))
        read, exact = reader(schema, self._options), has_decimals(schema)
        return Readable(schema, lambda data, at: read(parse_json(data[at:], exact=exact)))
