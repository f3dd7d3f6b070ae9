"""Route several tables into one topic (`io.debezium.transforms.ByLogicalTableRouter`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Route, Width
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct
from connect_py.data.avro_names import ADJUSTMENTS
from connect_py.data.json_rows import appendix, label, quoted
from connect_py.data.schema import STRING, SchemaCache
from connect_py.errors import DataError
from connect_py.transforms.base import AnyRecord, require_struct, require_struct_schema
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, Rename, change_of, is_envelope, option, regex, renaming, required

_KEY_FIELD = "__dbz__physicalTableIdentifier"
_PURPOSE = "Updating schema"


class ByLogicalTableRouter(DebeziumTransform):
    """Changes topics by a regex; names of schemas follow the topic, and keys get a field that names the table."""

    java_name = f"{DEBEZIUM}ByLogicalTableRouter"
    handles_rows = True
    KEYS = (
        option(
            "topic.regex",
            ConfigType.STRING,
            None,
            Importance.LOW,
            Width.LONG,
            "Topic regex",
            "Required. Topics that match it as a whole get a new name.",
        ),
        option(
            "topic.replacement",
            ConfigType.STRING,
            None,
            Importance.LOW,
            Width.LONG,
            "Topic replacement",
            "Required. The new name; $1 and ${name} stand for groups of topic.regex.",
        ),
        option(
            "key.enforce.uniqueness",
            ConfigType.BOOLEAN,
            True,
            Importance.LOW,
            Width.SHORT,
            "Add source topic name into key",
            "Whether keys get a field that says which table the row is of. Without it, equal keys of two tables are one key.",
        ),
        option(
            "key.field.regex",
            ConfigType.STRING,
            None,
            Importance.LOW,
            Width.LONG,
            "Key field regex",
            "The added field holds the old topic, or what key.field.replacement makes of one that matches this regex as a whole.",
        ),
        option(
            "key.field.replacement",
            ConfigType.STRING,
            None,
            Importance.LOW,
            Width.LONG,
            "Key field replacement",
            "What the added field holds, with $1 and ${name} for groups of key.field.regex.",
        ),
        option(
            "logical.table.cache.size",
            ConfigType.INT,
            16,
            Importance.LOW,
            Width.LONG,
            "Logical table cache size",
            "How many changed schemas are remembered.",
        ),
    )
    RULES = (("topic.regex", required), ("topic.regex", regex), ("topic.replacement", required), ("key.field.regex", regex))

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped; two are understood that Debezium does not list. Raises ConfigError."""
        self._mode = config.get("schema.name.adjustment.mode", "none").strip().lower()
        self._field_name = config.get("key.field.name", _KEY_FIELD)
        if self._mode not in ADJUSTMENTS:
            raise self.refused("schema.name.adjustment.mode", self._mode, f"Value must be one of {', '.join(ADJUSTMENTS)}")
        super().configure(config)

    def use(self, config: Mapping[str, Any]) -> None:
        key_regex, key_replacement = config["key.field.regex"], config["key.field.replacement"]
        if key_regex and not key_replacement:
            raise self.refused(
                "key.field.replacement", key_replacement, "key.field.replacement must be non-empty if key.field.regex is set."
            )
        self._new_topic = renaming(config["topic.regex"], config["topic.replacement"])
        self._table: Rename = renaming(key_regex, key_replacement) if key_regex else lambda topic: topic
        self._marks_keys: bool = config["key.enforce.uniqueness"]
        self._size: int = config["logical.table.cache.size"]
        self._topics: dict[str, tuple[str, str] | None] = {}
        self._keys: dict[str, SchemaCache[Schema]] = {}
        self._envelopes: dict[str, SchemaCache[Schema]] = {}

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record in its new topic; one whose topic does not match, or would get an empty name, is left alone.

        Raises:
            DataError: the key is not a struct, or has a field of the added one's name.
        """
        found = self._found(record.topic)
        if found is None:
            return record
        topic, table = found
        key_schema, key = (None, None) if record.key is None else self._marked(require_struct(record.key, _PURPOSE), topic, table)
        envelope = change_of(record)
        if envelope is None:
            return replace(record, topic=topic, key_schema=key_schema, key=key)
        value = self._renamed(envelope, topic)
        return replace(record, topic=topic, key_schema=key_schema, key=key, value_schema=value.schema, value=value)

    def row_change(self, route: Route) -> RowChange:
        """Return what gives rows their topic, schemas and key. Raises DataError and NeedsRecord where only `apply` can tell."""
        found = self._found(route.topic)
        if found is None:
            return lambda key, value: (route, key, value)
        topic, table = found
        key_schema, value_schema = route.key_schema, route.value_schema
        mark = b""
        if key_schema is not None:
            if self._marks_keys:
                mark = appendix([label(self._field_name) + quoted(table)], is_first=not key_schema.fields)
            key_schema = self._cached(self._keys, topic, self._key_schema)(require_struct_schema(key_schema, _PURPOSE))
        if is_envelope(value_schema):
            for field in value_schema.fields:
                if field.name in ("before", "after"):
                    require_struct_schema(field.schema, _PURPOSE)
            value_schema = self._cached(self._envelopes, topic, self._envelope_schema)(value_schema)
        to = replace(route, topic=topic, key_schema=key_schema, value_schema=value_schema)
        if not mark:
            return lambda key, value: (to, key, value)
        return lambda key, value: (to, key and key[:-1] + mark, value)

    def _found(self, topic: str) -> tuple[str, str] | None:
        """Return a topic's new name and what marks its keys; None for one that is left alone."""
        if topic not in self._topics:
            if len(self._topics) >= self._size:
                self._topics.clear()
            new = self._new_topic(topic)
            self._topics[topic] = (new, self._table(topic) or topic) if new else None
        return self._topics[topic]

    def _marked(self, key: Struct, topic: str, table: str) -> tuple[Schema, Struct]:
        schema = self._cached(self._keys, topic, self._key_schema)(key.schema)
        return schema, Struct(schema, [*key.values, table] if self._marks_keys else key.values)

    def _renamed(self, envelope: Struct, topic: str) -> Struct:
        schema = self._cached(self._envelopes, topic, self._envelope_schema)(envelope.schema)
        values = []
        for field, value in zip(schema.fields, envelope.values, strict=True):
            is_row = field.name in ("before", "after") and value is not None
            values.append(Struct(field.schema, require_struct(value, _PURPOSE).values) if is_row else value)
        return Struct(schema, values)

    def _cached(
        self, caches: dict[str, SchemaCache[Schema]], topic: str, compute: Callable[[Schema | None, str], Schema]
    ) -> SchemaCache[Schema]:
        found = caches.get(topic)
        if found is None:
            if len(caches) >= self._size:
                caches.clear()
            found = caches[topic] = SchemaCache(lambda schema: compute(schema, topic), self._size)
        return found

    def _key_schema(self, schema: Schema | None, topic: str) -> Schema:
        assert schema is not None
        if self._marks_keys and schema.field(self._field_name):
            raise DataError(f"Cannot create field because of field name duplication {self._field_name}")
        added = (Field(self._field_name, STRING),) if self._marks_keys else ()
        return replace(schema, name=self._adjusted(f"{topic}.Key"), fields=(*schema.fields, *added), default=None)

    def _envelope_schema(self, schema: Schema | None, topic: str) -> Schema:
        assert schema is not None
        before = schema.field("before")
        if before is None:
            raise DataError("A change event without a field before cannot be routed: its schema is that of no table")
        row = replace(before.schema, name=self._adjusted(f"{topic}.Value"), default=None)
        fields = tuple(replace(field, schema=row) if field.name in ("before", "after") else field for field in schema.fields)
        return replace(schema, name=self._adjusted(f"{topic}.Envelope"), fields=fields, default=None)

    def _adjusted(self, name: str) -> str:
        return ADJUSTMENTS[self._mode](name, ".")
