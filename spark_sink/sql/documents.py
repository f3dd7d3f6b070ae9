"""MongoDB's own change events: a row is a document, one JSON text, and its id. Text of SQL, pure.

The id is text, since ids of one collection can be of several types. An ObjectId is its 24 digits and a text is itself; everything else,
and a text that looks like something else, is MongoDB's extended JSON, as Debezium writes it, so different ids never become the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_sink.types.columns import ColumnType, TypeOptions, literal, logical_type

ID = "_id"
DOCUMENT = "document"

_OBJECT_ID = r'^\{ ?"\$oid" ?: ?"([0-9a-f]{24})" ?\}$'

#: Texts that would be taken for an ObjectId, or for JSON of something else.
_LOOKS_OTHERWISE = r'(?s)^([0-9a-f]{24}|true|false|null|[-0-9{\["].*|)$'


def are_in(fields: Mapping[str, Any]) -> bool:
    """Whether an envelope of these fields holds documents."""
    return "collection" in {field["field"] for field in fields["source"].get("fields", ())} and fields["after"].get("type") == "string"


def id_type() -> ColumnType:
    """Of a key's `id`."""

    def convert(value: str) -> str:
        text = f"get_json_object(concat('{{\"id\":', {value}, '}}'), '$.id')"
        is_text = f"startswith({value}, '\"') AND NOT {text} RLIKE {literal(_LOOKS_OTHERWISE)}"
        object_id = f"regexp_extract({value}, {literal(_OBJECT_ID)}, 1)"
        return f"CASE WHEN {is_text} THEN {text} WHEN {object_id} <> '' THEN {object_id} ELSE {value} END"

    return ColumnType("string", "string", convert)


def document_type(options: TypeOptions) -> ColumnType:
    """Of a document."""
    found = logical_type("io.debezium.data.Json", options)
    assert found is not None
    return found
