"""Drop some kinds of schema changes (`io.debezium.transforms.SchemaChangeEventFilter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api import ConfigType, Importance, Width
from connect_py.data import Struct
from connect_py.errors import ConfigError
from connect_py.transforms.base import AnyRecord, java_split
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, is_schema_change, option, required

_EXCLUDED = "schema.change.event.exclude.list"
#: `SchemaChangeEvent.SchemaChangeEventType`.
_KINDS = ("CREATE", "ALTER", "DROP", "TRUNCATE", "DATABASE")


class SchemaChangeEventFilter(DebeziumTransform):
    """Drops records of a schema change topic by what the statement did; one that changes no table counts as DATABASE."""

    java_name = f"{DEBEZIUM}SchemaChangeEventFilter"
    KEYS = (
        option(
            _EXCLUDED,
            ConfigType.STRING,
            None,
            Importance.HIGH,
            Width.SHORT,
            "Schema change event exclude list",
            f"Required. What is dropped, of {', '.join(_KINDS)}.",
        ),
    )
    RULES = ((_EXCLUDED, required),)

    def use(self, config: Mapping[str, Any]) -> None:
        self._excluded = {item.strip() for item in java_split(config[_EXCLUDED], ",")}
        for kind in self._excluded:
            if kind not in _KINDS:
                raise ConfigError(
                    f"No enum constant io.debezium.schema.SchemaChangeEvent.SchemaChangeEventType.{kind}; "
                    f"{_EXCLUDED} takes {', '.join(_KINDS)}"
                )

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Return the record, or None when it is excluded or says nothing of tables; what is no schema change is left alone."""
        if not is_schema_change(record.value_schema) or not isinstance(record.value, Struct):
            return record
        changes = record.value["tableChanges"]
        if changes is None:
            return None
        return None if (changes[0]["type"] if changes else "DATABASE") in self._excluded else record
