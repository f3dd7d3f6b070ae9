"""Put one field in place of the whole (`org.apache.kafka.connect.transforms.ExtractField`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED, one_of_ignoring_case
from connect_py.api.transform import RowChange
from connect_py.data import Schema, Struct
from connect_py.data.json_rows import fields_reader
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    OneSide,
    key,
    require_fields,
    require_map,
    require_struct,
    require_struct_schema,
)

_NESTED = "nested field access"


class ExtractField(OneSide):
    """Replaces a struct or map by one of its fields; of a null it leaves a null with the field's schema."""

    PURPOSE = "field extraction"
    KEYS = (
        key("field", ConfigType.STRING, REQUIRED, Importance.MEDIUM, "Field name to extract."),
        REPLACE_NULL,
        key(
            "field.syntax.version",
            ConfigType.STRING,
            "V1",
            Importance.HIGH,
            "Defines the version of the syntax to access fields. If set to <code>V1</code>, then the field paths are limited to access "
            "the elements at the root level of the struct or map. If set to <code>V2</code>, the syntax will support accessing nested "
            "elements. To access nested elements, dotted notation is used. If dots are already included in the field name, then backtick "
            "pairs can be used to wrap field names containing dots. E.g. to access the subfield <code>baz</code> from a field named "
            '"foo.bar" in a struct/map the following format can be used to access its elements: "<code>foo.bar</code>.baz".',
            one_of_ignoring_case("V1", "V2"),
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._path: str = config["field"]
        self._steps = parse_path(self._path) if config["field.syntax.version"].upper() == "V2" else [self._path]
        self._with_default: bool = config["replace.null.with.default"]

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the field alone.

        Raises:
            DataError: there is no such field in the schema, or the value is neither a struct nor a map. A map may lack the field.
        """
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            return self.changed(record, None, None if value is None else self._from_map(value))
        if value is not None:
            require_struct(value, self.PURPOSE, schema)
        field_schema = self._field_schema(schema)
        return self.changed(record, field_schema, None if value is None else self._from_struct(value))

    @property
    def handles_rows(self) -> bool:
        """Whether the field is one of the row itself, and no null that rows show as a default is to be left of it."""
        return len(self._steps) == 1 and self._with_default

    def row_change(self, route: Route) -> RowChange:
        """Return what leaves rows the field alone. Raises DataError and NeedsRecord where only `apply` can tell."""
        schema = self.schema_in(route)
        if schema is None:
            return lambda key, value: (route, key, value)
        at = require_struct_schema(schema, self.PURPOSE).index_of(self._steps[0])
        read = fields_reader(schema, [at])

        def extract(row: bytes) -> bytes:
            return read(row)[0]  # a null with a schema fails here: what it becomes depends on the field's default

        return self.changing(route, schema.fields[at].schema, extract, passes_null=False)

    def _field_schema(self, schema: Schema) -> Schema:
        current = require_fields(schema, "look up")
        for step in self._steps:
            field = require_fields(current, "look up").field(step)
            if field is None:
                unknown = DataError(f"Unknown field: {self._path}")
                unknown.java_name = "java.lang.IllegalArgumentException"
                raise unknown
            current = field.schema
        return current

    def _from_struct(self, value: Struct) -> Any:
        current = value
        for step in self._steps[:-1]:
            below = current[step]
            if below is None:
                return None
            current = require_struct(below, _NESTED)
        last = self._steps[-1]
        return current[last] if self._with_default else current.without_default(last)

    def _from_map(self, value: Any) -> Any:
        current = require_map(value, self.PURPOSE)
        for step in self._steps[:-1]:
            below = current.get(step)
            if below is None:
                return None
            current = require_map(below, _NESTED)
        return current.get(self._steps[-1])


class ExtractFieldKey(ExtractField):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}ExtractField$Key", True


class ExtractFieldValue(ExtractField):
    """Work on the record's value."""

    java_name = f"{KAFKA}ExtractField$Value"


def parse_path(path: str) -> list[str]:
    """The steps of a path with dots (KIP-821). Backticks around a name keep its dots; a backtick within such a name that stands before a
    dot is escaped by a backslash.

    Raises:
        ConfigError: a pair of backticks is not closed.
    """
    steps: list[str] = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _quoted_step(path, at)
            steps.append(step)
        else:
            end = path.find(".", at)
            if end < 0:
                steps.append(path[at:])
                break
            steps.append(path[at:end])
            at = end + 1
    if path.endswith(".") or not path:
        steps.append("")
    return steps


def _quoted_step(path: str, opening: int) -> tuple[str, int]:
    """Return the name that begins at a backtick, and the position after its dot."""
    name = ""
    start = at = opening + 1
    while True:
        at = path.find("`", at)
        escaped = at > 0 and path[at - 1] == "\\"
        is_last = at == len(path) - 1
        if at < 0 or (is_last and escaped):
            raise ConfigError(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick "
                f"at position {opening} to escape it"
            )
        if is_last or (path[at + 1] == "." and not escaped):
            return name + path[start:at], at + (1 if is_last else 2)
        if path[at + 1] == "." and escaped:
            name += path[start : at - 1] + "`"
            start = at + 1
        at += 1
