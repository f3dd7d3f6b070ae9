"""What ProtobufConverter does, in the module that needs Google's library."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from connect_py.converters.protobuf.from_connect import FromConnect, wrapper_of
from connect_py.converters.protobuf.known import WRAPPERS, file_of, link, message_at, message_class, wrappers_file
from connect_py.converters.protobuf.options import ProtobufOptions
from connect_py.converters.protobuf.text import proto_text, wrappers_text
from connect_py.converters.protobuf.to_connect import ToConnect
from connect_py.converters.protobuf.write import encoder
from connect_py.converters.registry.client import Registry, RegistrySchema
from connect_py.converters.registry.converter import Encode, Readable, Written
from connect_py.converters.registry.wire import message_indexes, read_message_indexes
from connect_py.data import Schema
from connect_py.errors import DataError

#: (topic, registered schema, its name) → the version that the registry gave it.
VersionInRegistry = Callable[[str, RegistrySchema, str | None], int | None]


class ProtobufFormat:
    """Schemas and values of one converter."""

    def __init__(self, options: ProtobufOptions, registry: Registry, version_in_registry: VersionInRegistry) -> None:
        self._options = options
        self._registry = registry
        self._version_in_registry = version_in_registry

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def written(self, schema: Schema | None) -> Written:
        """The Protobuf file of a Connect schema, and the function that writes its values."""
        if schema is None:
            raise DataError("ProtobufConverter writes values that have a schema, and this one has none")
        wrapper = wrapper_of(schema)
        if wrapper is not None:
            file, name, text = wrappers_file(), wrapper, wrappers_text()
        else:
            made, name = FromConnect(self._options)(schema)
            file, text = link(made), proto_text(made)
        return Written(name, RegistrySchema("PROTOBUF", text), encoder(schema, _named(file, name), self._options))

    def encoder_for(self, schema: Schema | None, registered: RegistrySchema) -> Encode:
        """The function that writes values with the subject's latest schema."""
        assert schema is not None
        file = self._linked(registered)
        return encoder(schema, _named(file, self.written(schema).name), self._options)

    def prefix(self, schema: RegistrySchema, written: Written) -> bytes:
        """The path to the message's type."""
        if written.name is not None and written.name in WRAPPERS:
            return message_indexes([list(WRAPPERS).index(written.name)])
        if schema.text == written.schema.text:
            return message_indexes([0])
        file = self._linked(schema)
        return message_indexes([list(file.message_types_by_name.values()).index(_named(file, written.name))])

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def readable(self, topic: str, registered: RegistrySchema, selector: bytes) -> Readable:
        """The Connect schema of a message type, and the function that reads its messages."""
        descriptor = message_at(self._linked(registered), read_message_indexes(selector, 0)[0])
        version = self._version_in_registry(topic, registered, descriptor.full_name)
        schema, read = ToConnect(self._options)(descriptor, version)
        parse = message_class(descriptor).FromString

        def decode(data: bytes, at: int) -> Any:
            try:
                return read(parse(data[at:]))
            except DecodeError as error:
                raise DataError(f"The bytes are no Protobuf message {descriptor.full_name}: {error}") from None

        return Readable(schema, decode)

    def _linked(self, registered: RegistrySchema) -> Any:
        used = {name: _file(text) for name, text in self._registry.referenced_descriptors(registered).items()}
        return link(_file(self._registry.descriptor_of(registered)), used)


def _named(file: Any, name: str | None) -> Any:
    """The message type of a full name at the top of a file, else the first."""
    types = file.message_types_by_name
    found = types.get((name or "").rpartition(".")[2])
    if found is None and not types:
        raise DataError("The Protobuf schema has no message type")
    return found if found is not None else next(iter(types.values()))


def _file(text: str) -> Any:
    try:
        return file_of(base64.b64decode(text, validate=True))
    except binascii.Error:
        raise DataError(
            "The registry does not give Protobuf schemas as descriptors (format=serialized), which reading them needs"
        ) from None
