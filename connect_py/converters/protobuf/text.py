"""A Protobuf file as text, printed as Confluent's serializers do, since a registry finds an id by the text (`ProtobufSchemaUtils.java`).

Only for the files that `from_connect` makes, and for Google's wrappers, which plain values are put into.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf import descriptor_pb2

from connect_py.converters.protobuf.known import FILES, WRAPPERS, parameters_of

_Field: TypeAlias = descriptor_pb2.FieldDescriptorProto


def proto_text(file: descriptor_pb2.FileDescriptorProto) -> str:
    """The file's text."""
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
    """Google's file of wrappers."""
    head = (
        'syntax = "proto3";\npackage google.protobuf;\n\noption java_package = "com.google.protobuf";\n'
        'option java_outer_classname = "WrappersProto";\noption java_multiple_files = true;\n'
        'option go_package = "google.golang.org/protobuf/types/known/wrapperspb";\noption cc_enable_arenas = true;\n'
        'option objc_class_prefix = "GPB";\noption csharp_namespace = "Google.Protobuf.WellKnownTypes";\n\n'
    )
    names = [name.rpartition(".")[2] for name in WRAPPERS]
    return head + "".join(f'message {n} {{\n  {n.removesuffix("Value").lower()} value = 1 [json_name = "value"];\n}}\n' for n in names)
