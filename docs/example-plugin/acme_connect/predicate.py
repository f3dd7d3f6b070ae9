"""A predicate: a field of the value has a certain text."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import REQUIRED, ConfigDef, ConfigKey, ConfigType, Importance, Predicate, SinkRecord, SourceRecord, non_empty
from connect_py.data import Struct

FIELD, EQUALS = "field", "equals"


class FieldEquals(Predicate):
    """Records whose value has the field, and in it the text; numbers are compared as they are written."""

    java_name = "com.acme.connect.FieldEquals"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Properties."""
        return ConfigDef(
            [
                ConfigKey(FIELD, ConfigType.STRING, REQUIRED, Importance.HIGH, "Name of the field.", validator=non_empty),
                ConfigKey(EQUALS, ConfigType.STRING, REQUIRED, Importance.HIGH, "The text it must have."),
            ]
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties."""
        values = self.config_def().parse(config)
        self._field, self._text = values[FIELD], values[EQUALS]

    def test(self, record: SourceRecord | SinkRecord) -> bool:
        """Whether it has."""
        value = record.value
        if isinstance(value, Struct):
            found = value[self._field] if value.schema.field(self._field) else None
        else:
            found = value.get(self._field) if isinstance(value, dict) else None
        return found is not None and str(found) == self._text
