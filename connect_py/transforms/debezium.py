"""Share what Debezium's transforms have: how their properties are checked, what a change event is, and typed access to its parts.

Debezium lists its properties without their rules, so `validate` and POST only find values of the wrong type; the rules are applied when
the task starts (`io.debezium.transforms.SmtManager#validate`). The same here, so that answers are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from connect_py.api import ConfigKey, ConfigType, Header, Importance, SinkRecord, SourceRecord, Width
from connect_py.api.config import text_of
from connect_py.data import Schema, Struct, Type
from connect_py.data.java_regex import compile_java_regex, java_replacement
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import Plugin, java_split

DEBEZIUM = "io.debezium.transforms."

#: A property's text (None when it is not given and has no default) → what is wrong with it, or None.
Rule = Callable[[str | None], str | None]

_SCHEMA_CHANGES = (".SchemaChangeValue", ".SchemaChangeKey")


def option(
    name: str,
    type_: ConfigType,
    default: Any,
    importance: Importance,
    width: Width,
    title: str,
    text: str,
    *,
    group: str | None = None,
    order: int = 1,
) -> ConfigKey:
    """Return a property as Debezium's `Field` describes it. One without default counts as required only when the task starts."""
    return ConfigKey(name, type_, default, importance, text, group, order, width, title)


class DebeziumTransform(Plugin):
    """A transform of Debezium.

    Class attributes:
        RULES: what is checked when the task starts, in this order; the first complaint ends it.
    """

    version: ClassVar[str] = "3.6.1.Final"
    RULES: ClassVar[Sequence[tuple[str, Rule]]] = ()

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        definition = self.config_def()
        parsed = definition.parse(config)
        for name, rule in self.RULES:
            key = definition.keys.get(name)
            text = config[name] if name in config else text_of(key.default, key.type) if key else None
            complaint = rule(text)
            if complaint:
                raise self.refused(name, text, complaint)
        self.use(parsed)

    def refused(self, name: str, text: str | None, complaint: str) -> ConfigError:
        """Return the error of a broken rule."""
        shown = "null" if text is None else text
        return ConfigError(f"Invalid value {shown} for configuration {name}: The '{name}' value is invalid: {complaint}")


# -- rules -------------------------------------------------------------------------------------------------------------------------


def required(text: str | None) -> str | None:
    """Something that is not blank."""
    return None if text and text.strip() else "A value is required"


def regex(text: str | None) -> str | None:
    """Accept a Java regex, if anything."""
    if text is not None:
        try:
            compile_java_regex(text)
        except ConfigError as error:
            return f"A valid regular expressions is expected, but {error}"
    return None


def list_of_regex(text: str | None) -> str | None:
    """Java regexes with commas between them, if anything."""
    for item in (text or "").split(","):
        try:
            compile_java_regex(item.strip())
        except ConfigError as error:
            return f"A comma-separated list of valid regular expressions is expected, but {error}"
    return None


def one_of(*choices: str) -> Rule:
    """Accept one of the texts, in any case."""

    def check(text: str | None) -> str | None:
        if text is not None and text.strip().lower() in choices:
            return None
        return f"Value must be one of {', '.join(choices)}"

    return check


def positive(text: str | None) -> str | None:
    """Accept a whole number above zero, if anything."""
    return None if text is None or (text.strip().isdecimal() and int(text) > 0) else "A positive, non-zero integer value is expected"


def without_empty_items(text: str | None) -> str | None:
    """No two commas in a row."""
    return "Empty string element(s) not permitted" if text is not None and "" in listed(text) else None


def without_spaces(text: str | None) -> str | None:
    """No blank inside an item."""
    return "Element(s) containing space not permitted" if text is not None and any(" " in item for item in listed(text)) else None


def listed(text: str | None) -> list[str]:
    """Return the items of `Configuration.getList`: none of no text, and one that is empty of an empty text."""
    return [] if text is None else [item.strip() for item in java_split(text, ",")]


# -- topics ------------------------------------------------------------------------------------------------------------------------

#: The new name of a topic, None for one that is left alone.
Rename = Callable[[str], str | None]


def renaming(pattern: str, replacement: str) -> Rename:
    """Return a function of topics: the new name of one that the pattern matches as a whole.

    A replacement that names a group that is not there raises DataError at the first such topic, as in Java. Raises ConfigError for a
    malformed pattern.
    """
    compiled = compile_java_regex(pattern)
    try:
        replaced = java_replacement(compiled, replacement)
    except ConfigError as error:
        reason = str(error)

        def replaced(match: re.Match[str]) -> str:
            raise DataError(reason)

    return lambda topic: compiled.sub(replaced, topic, count=1) if compiled.fullmatch(topic) else None


# -- records -----------------------------------------------------------------------------------------------------------------------


def is_envelope(schema: Schema | None) -> bool:
    """Return whether values of the schema are change events (`SmtManager#isValidEnvelope`)."""
    return schema is not None and schema.name is not None and schema.name.endswith(".Envelope")


def is_schema_change(schema: Schema | None) -> bool:
    """Return whether values of the schema are events of a schema change topic."""
    return schema is not None and schema.name is not None and schema.name.endswith(_SCHEMA_CHANGES)


def change_of(record: SourceRecord | SinkRecord) -> Struct | None:
    """Return the change event of a record; None for a tombstone and for anything else."""
    return record.value if is_envelope(record.value_schema) and isinstance(record.value, Struct) else None


class SharedHeaders:
    """Headers that a transform gave a delete, for the tombstone that follows.

    Debezium's connectors give a delete and its tombstone one object of headers, and its transforms add to that object: what a delete
    gets, its tombstone has. A sink's records share nothing.
    """

    def __init__(self) -> None:
        self._delete: tuple[str, object] | None = None
        self._added: list[Header] = []

    def before(self, record: SourceRecord | SinkRecord) -> list[Header]:
        """Return what a tombstone has before the transform sees it; nothing for other records."""
        if record.value is not None or self._delete is None:
            return []
        return self._added if self._delete == (record.topic, record.key) else []

    def remember(self, record: SourceRecord | SinkRecord, operation: str | None, added: list[Header]) -> None:
        """Take note of what a change got; only that of the last one counts."""
        is_delete = operation == "d" and isinstance(record, SourceRecord)
        self._delete, self._added = ((record.topic, record.key), added) if is_delete else (None, [])


def typed(struct: Struct, name: str, type_: Type) -> Any:
    """Return a field's value as it was put (`Struct.getString` and its siblings).

    Raises:
        DataError: there is no such field, or it has another type.
    """
    index = struct.schema.index_of(name)
    if struct.schema.fields[index].schema.type is not type_:
        raise DataError(f"Field '{name}' is not of type {type_.name}")
    return struct.values[index]


def struct_of(struct: Struct, name: str) -> Struct | None:
    """Return a struct inside a struct, None where the field is missing, empty or no struct."""
    field = struct.schema.field(name)
    if field is None or field.schema.type is not Type.STRUCT:
        return None
    found = struct.without_default(name)
    return found if isinstance(found, Struct) else None
