"""Values that the source did not send (PostgreSQL's TOAST): the placeholder in each form that Debezium gives it by the column's type.

Texts have it as it is, bytes as its UTF-8, arrays and maps as their only element, arrays of numbers as the numbers of its bytes, arrays of
UUIDs as the UUID that is made of its name (`UnchangedToastedPlaceholder.java`).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import replace

from spark_sink.config.sink_config import SinkConfig
from spark_sink.read.reader import Batch, Group
from spark_sink.sql.record_schema import Column, Form
from spark_sink.types.columns import literal, quote

#: Types in which it does not look like its text or its base64, by which a batch is searched (`spark_sink.read.summary`).
_DISGUISED = ("array<int>", "array<bigint>", "array<string>")


def conditions(group: Group, placeholder: str) -> dict[str, str]:
    """SQL by column that is true where a group's decoded row has the placeholder; of columns that cannot have it there is none."""
    found = {column.name: condition(column, placeholder) for column in group.schema.columns} if group.placeholder else {}
    return {name: sql for name, sql in found.items() if sql is not None}


def condition(column: Column, placeholder: str) -> str | None:
    """As `conditions`, for one column."""
    name, read, text = quote(column.name), column.type.read, literal(placeholder)
    if column.type.spark == "variant":
        return f"coalesce(CAST({name} AS STRING) = {text}, false)" if read == "string" else None
    if read == "map<string,string>":
        return f"coalesce(map_keys({name}) = array({text}), false)"
    forms = _forms(read, placeholder)
    if not column.type.same:
        # Other conversions would raise for it.
        forms = [column.type.convert(form) for form in forms] if read in ("array<int>", "array<bigint>") else []
    return f"coalesce({' OR '.join(f'{name} = {form}' for form in forms)}, false)" if forms else None


def marked(group: Group, batch: Batch, config: SinkConfig) -> Group:
    """The group, with the placeholder noted that only those see who know the columns' types."""
    if group.placeholder or group.schema.form not in (Form.ENVELOPE, Form.FLAT):
        return group
    if not any(column.type.read in _DISGUISED for column in group.schema.columns):
        return group
    numbers = [str(number) for number in config["unavailable.value.placeholder"].encode()]
    texts = (",".join(numbers), ", ".join(numbers), _uuid(config["unavailable.value.placeholder"]))
    has_one = " OR ".join(f"contains(value, {literal(text)})" for text in texts)
    return replace(group, placeholder=bool(batch.records(group, None, config).where(has_one).limit(1).collect()))


def _forms(read: str, placeholder: str) -> list[str]:
    text, numbers = literal(placeholder), list(placeholder.encode())
    forms: Mapping[str, list[str]] = {
        "string": [text],
        "binary": [f"CAST({text} AS BINARY)"],
        "array<string>": [f"array({text})", f"array({literal(_uuid(placeholder))})"],
        "array<binary>": [f"array(CAST({text} AS BINARY))"],
        "array<int>": [f"array({', '.join(map(str, numbers))})"],
        "array<bigint>": [f"array({', '.join(f'{number}L' for number in numbers)})"],
    }
    return forms.get(read, [])


def _uuid(name: str) -> str:
    """Java's `UUID.nameUUIDFromBytes`."""
    return str(uuid.UUID(bytes=hashlib.md5(name.encode(), usedforsecurity=False).digest(), version=3))
