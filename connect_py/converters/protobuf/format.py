"""Do what ProtobufConverter does, in the module that needs Google's library.

A Protobuf file is printed as Confluent's serializers do, since a registry finds an id by the text (`ProtobufSchemaUtils.java`): only the
files that `schemas` makes, and Google's wrappers, which plain values are put into.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from connect_py.converters.protobuf.known import FILES, WRAPPERS, file_of, link, message_at, message_class, parameters_of, wrappers_file
from connect_py.converters.protobuf.options import ProtobufOptions
from connect_py.converters.protobuf.schemas import FromConnect, ToConnect, wrapper_of
from connect_py.converters.protobuf.write import encoder
from connect_py.converters.registry.client import Registry, RegistrySchema
from connect_py.converters.registry.converter import Encode, Readable, Written
from connect_py.converters.registry.wire import message_indexes, read_message_indexes
from connect_py.data import Schema
from connect_py.errors import DataError

_Field: TypeAlias = descriptor_pb2.FieldDescriptorProto


def proto_text(file: descriptor_pb2.FileDescriptorProto) -> str:
    """Return the file's text."""
    parts = ['syntax = "proto3";']
    if file.package:
        parts.append(f"package {file.package};")
    if file.dependency:
        parts += ["", *(f'import "{name}";' for name in file.dependency)]
    parts.append("")
    for message in file.message_type:
        parts += _message(message)
    return "\n".join(parts) + "\n"


def _message(message: descriptor_pb2.DescriptorProto) -> list[str]:
    """The gaps of a message's own level are empty lines; those of the levels below are indented like their lines."""
    plain = [field for field in message.field if not field.HasField("oneof_index") or field.proto3_optional]
    lines = ["", *_deeper(line for field in plain for line in _field(field))] if plain else []
    oneofs = [
        (decl.name, [f for f in message.field if f.HasField("oneof_index") and f.oneof_index == at and not f.proto3_optional])
        for at, decl in enumerate(message.oneof_decl)
    ]
    real = [(name, fields) for name, fields in oneofs if fields]
    if real:
        lines.append("")
        for name, fields in real:
            members = _deeper(line for field in fields for line in _field(field))
            lines += _deeper([f"oneof {name} {{", *members, "}"])
    nested = [_message(inner) for inner in message.nested_type] + [_enum(enum) for enum in message.enum_type]
    if nested:
        lines += ["", *_deeper(line for inner in nested for line in inner)]
    return [f"message {message.name} {{", *lines[1:], "}"] if lines else [f"message {message.name} {{}}"]


def _deeper(lines: Iterable[str]) -> list[str]:
    return ["  " + line for line in lines]


def _enum(enum: descriptor_pb2.EnumDescriptorProto) -> list[str]:
    return [f"enum {enum.name} {{", *(f"  {value.name} = {value.number};" for value in enum.value), "}"]


def _field(field: _Field) -> list[str]:
    label = "repeated " if field.label == _Field.LABEL_REPEATED else "optional " if field.proto3_optional else ""
    start = f"{label}{_type(field)} {field.name} = {field.number}"
    parameters = parameters_of(field)
    if not parameters:
        return [f"{start};"]
    lines = [f"{start} [(confluent.field_meta) = {{", "  params: ["]
    entries = list(parameters.items())
    for at, (key, value) in enumerate(entries):
        pair = [f'key: "{key}"', f'value: "{value}"']
        if key in ("precision", "scale"):
            pair.reverse()
        lines += ["    {", f"      {pair[0]},", f"      {pair[1]}", "    }" + ("," if at + 1 < len(entries) else "")]
    return [*lines, "  ]", "}];"]


def _type(field: _Field) -> str:
    if field.type not in (_Field.TYPE_MESSAGE, _Field.TYPE_ENUM):
        return _Field.Type.Name(field.type).removeprefix("TYPE_").lower()
    full = field.type_name.removeprefix(".")
    return full if full in FILES else full.rpartition(".")[2]


def wrappers_text() -> str:
    """Return Google's file of wrappers."""
    head = (
        'syntax = "proto3";\npackage google.protobuf;\n\noption java_package = "com.google.protobuf";\n'
        'option java_outer_classname = "WrappersProto";\noption java_multiple_files = true;\n'
        'option go_package = "google.golang.org/protobuf/types/known/wrapperspb";\noption cc_enable_arenas = true;\n'
        'option objc_class_prefix = "GPB";\noption csharp_namespace = "Google.Protobuf.WellKnownTypes";\n\n'
    )
    names = [name.rpartition(".")[2] for name in WRAPPERS]
    return head + "".join(f'message {n} {{\n  {n.removesuffix("Value").lower()} value = 1 [json_name = "value"];\n}}\n' for n in names)


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
        """Return the Protobuf file of a Connect schema, and the function that writes its values."""
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
        """Return the function that writes values with the subject's latest schema."""
        assert schema is not None
        file = self._linked(registered)
        return encoder(schema, _named(file, self.written(schema).name), self._options)

    def prefix(self, schema: RegistrySchema, written: Written) -> bytes:
        """Return the path to the message's type."""
        if written.name is not None and written.name in WRAPPERS:
            return message_indexes([list(WRAPPERS).index(written.name)])
        if schema.text == written.schema.text:
            return message_indexes([0])
        file = self._linked(schema)
        return message_indexes([list(file.message_types_by_name.values()).index(_named(file, written.name))])

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def readable(self, topic: str, registered: RegistrySchema, selector: bytes) -> Readable:
        """Return the Connect schema of a message type, and the function that reads its messages."""
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
    """Return the message type of a full name at the top of a file, else the first."""
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
