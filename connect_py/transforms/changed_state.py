"""Name the columns that a change touched (`io.debezium.transforms.ExtractChangedRecordState`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Header, Importance, Width
from connect_py.data.schema import OPTIONAL_STRING, Schema, array
from connect_py.transforms.base import AnyRecord, require_struct
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, SharedHeaders, change_of, option


class ExtractChangedRecordState(DebeziumTransform):
    """Adds headers with the names of the changed and the unchanged columns; both are empty lists but for updates with the row before."""

    java_name = f"{DEBEZIUM}ExtractChangedRecordState"
    KEYS = (
        option(
            "header.changed.name",
            ConfigType.STRING,
            None,
            Importance.LOW,
            Width.LONG,
            "Header change name.",
            "The header for the names of changed columns; none without it.",
        ),
        option(
            "header.unchanged.name",
            ConfigType.STRING,
            None,
            Importance.LOW,
            Width.LONG,
            "Header unchanged name.",
            "The header for the names of columns that are as before; none without it.",
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._changed = _named(config["header.changed.name"])
        self._unchanged = _named(config["header.unchanged.name"])
        self._shared = SharedHeaders()

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the headers, a tombstone with those of its delete; one that is no change event is left alone."""
        envelope = change_of(record)
        if envelope is None:
            inherited = self._shared.before(record)
            return replace(record, headers=[*record.headers, *inherited]) if inherited else record
        before, after = envelope["before"], envelope["after"]
        changed: list[str] = []
        unchanged: list[str] = []
        if before is not None and after is not None:
            old = require_struct(before, "Before value should be struct.")
            new = require_struct(after, "After value should be struct.")
            for field, value in zip(new.schema.fields, new.values, strict=True):
                (unchanged if _same(value, old.without_default(field.name)) else changed).append(field.name)
        found = ((self._changed, changed), (self._unchanged, unchanged))
        added = [Header(schema.name, names, schema) for schema, names in found if schema is not None and schema.name is not None]
        self._shared.remember(record, envelope["op"], added)
        return replace(record, headers=[*record.headers, *added]) if added else record


def _named(name: str | None) -> Schema | None:
    return array(OPTIONAL_STRING, optional=True, name=name) if name and name.strip() else None


def _same(one: Any, other: Any) -> bool:
    """Equality as Java's `equals`: NaN is NaN."""
    return bool(one == other or (one != one and other != other))
