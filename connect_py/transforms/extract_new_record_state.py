"""Turn change events into plain rows (`io.debezium.transforms.ExtractNewRecordState`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.api import ConfigKey, ConfigType, Header, Importance, Route, Width
from connect_py.api.config import invalid, parse_value
from connect_py.api.record import EncodedRow
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct
from connect_py.data.json_events import event_reader, rest_reader
from connect_py.data.json_rows import NULL, adder, label
from connect_py.data.schema import OPTIONAL_STRING, STRING, SchemaCache
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import AnyRecord, Plugin, field_values, java_split, like, require_schema, require_struct, with_value
from connect_py.transforms.debezium import SharedHeaders, is_envelope
from connect_py.transforms.replace_field import ReplaceField, ReplaceFieldKey, ReplaceFieldValue

_MODES = ("drop", "tombstone", "rewrite-with-tombstone", "rewrite", "delete-to-tombstone")
_PURPOSE = "source field insertion"
_ENVELOPE_FIELDS = ("op", "ts_ms", "ts_us", "ts_ns")
#: Where added fields come from whose JSON can be taken over.
_PLAIN_BLOCKS = (None, "source", "transaction")
_TRANSACTION_FIELDS = ("id", "data_collection_order", "total_order")
#: A chain sees few combinations of dropped fields; more than these are forgotten together.
_MAX_DROPPERS = 64


def _one_of_modes(name: str, value: Any) -> None:
    if value is None or value.lower() not in _MODES:
        raise invalid(name, value, f"Value must be one of {', '.join(_MODES)}")


def _key(
    name: str,
    type_: ConfigType,
    default: Any,
    width: Width,
    title: str,
    text: str,
    importance: Importance = Importance.LOW,
) -> ConfigKey:
    validator = _one_of_modes if name == "delete.tombstone.handling.mode" else None
    return ConfigKey(name, type_, default, importance, text, None, 1, width, title, validator)


_ADDED = (
    "Names from the envelope (op, ts_ms), its transaction (id), or its source (version); struct.field names one elsewhere, and "
    "field:NAME gives it another name. Each gets the prefix; with struct.field also the name of the struct."
)


class Reference(NamedTuple):
    """A field of the envelope that is added to rows or headers.

    Attributes:
        struct: the struct that has it, None for the envelope itself.
        name: what it is called in the result, with its prefix.
    """

    struct: str | None
    field: str
    name: str

    def schema(self, envelope: Schema) -> Schema | None:
        """Return its schema, always optional; None when neither the struct nor the envelope has the field."""
        found = self._parent(envelope).field(self.field) or envelope.field(self.field)
        return replace(found.schema, optional=True, default=None) if found else None

    def value(self, envelope: Struct) -> Any:
        """Return its value as it was put, None when its struct is missing."""
        parent = envelope.without_default(self.struct) if self.struct and envelope.schema.field(self.struct) else envelope
        if parent is None:
            return None
        return (parent if parent.schema.field(self.field) else envelope).without_default(self.field)

    def _parent(self, envelope: Schema) -> Schema:
        found = envelope.field(self.struct) if self.struct else None
        return found.schema if found else envelope


def parse_references(prefix: str, items: Sequence[str]) -> list[Reference]:
    """References of `field`, `struct.field` and `field:NAME` items. Raises ConfigError."""
    references = []
    for item in items:
        parts = java_split(item, ":")
        if len(parts) > 2:
            raise ConfigError(f"Unexpected field name: {item}")
        steps = java_split(parts[0], ".")
        struct = steps[0] if len(steps) > 1 else _home_of(steps[0])
        field = steps[1] if len(steps) > 1 else steps[0]
        default_name = f"{struct}_{field}" if len(steps) > 1 else field
        references.append(Reference(struct, field, prefix + (parts[1] if len(parts) == 2 else default_name)))
    return references


def added_names(references: Sequence[Reference], *, rewrites: bool) -> frozenset[str]:
    """Return the names of fields that rows get in addition to their own."""
    return frozenset((*(reference.name for reference in references), *(["__deleted"] if rewrites else [])))


def _home_of(field: str) -> str | None:
    if field in _ENVELOPE_FIELDS:
        return None
    if field in _TRANSACTION_FIELDS:
        return "transaction"
    return "updateDescription" if field == "updateDescription" else "source"


#: Key, row and the rest of an event to what becomes of them.
_RowMaker = Callable[[bytes | None, bytes, bytes], EncodedRow | None]


class _Plan(NamedTuple):
    """What becomes of events of one envelope schema: the position of the row, its new schema, and what is added to it."""

    at: int
    row: Schema
    added: list[Reference]
    is_bare: bool


class ExtractNewRecordState(Plugin):
    """Leaves the row after a change; what is left of a delete is a matter of configuration. Records that are no change events pass."""

    java_name = "io.debezium.transforms.ExtractNewRecordState"
    version = "3.6.1.Final"
    KEYS = (
        _key(
            "delete.tombstone.handling.mode",
            ConfigType.STRING,
            "tombstone",
            Width.MEDIUM,
            "Handle delete and tombstone records",
            "What is left of a delete: drop - nothing. tombstone (default) - one tombstone. rewrite - the row before, with a field "
            "`__deleted` that is `true`. rewrite-with-tombstone - the same and its tombstone. delete-to-tombstone - one tombstone without "
            "a schema.",
            Importance.MEDIUM,
        ),
        _key(
            "route.by.field",
            ConfigType.STRING,
            "",
            Width.LONG,
            "Route by field name",
            "The column whose value becomes the name of the topic.",
        ),
        _key(
            "add.fields.prefix",
            ConfigType.STRING,
            "__",
            Width.SHORT,
            "Field prefix to be added to each field.",
            "What the names of added fields begin with.",
        ),
        _key("add.fields", ConfigType.LIST, "", Width.LONG, "Adds the specified field(s) to the message if they exist.", _ADDED),
        _key(
            "add.headers.prefix",
            ConfigType.STRING,
            "__",
            Width.SHORT,
            "Header prefix to be added to each header.",
            "What the names of added headers begin with.",
        ),
        _key("add.headers", ConfigType.LIST, "", Width.LONG, "Adds the specified fields to the header if they exist.", _ADDED),
        _key(
            "drop.fields.header.name",
            ConfigType.STRING,
            None,
            Width.SHORT,
            "Specifies a header that contains a list of field names to be removed",
            "The name of a header with a list of the fields that are to be removed from the value.",
        ),
        _key(
            "drop.fields.from.key",
            ConfigType.BOOLEAN,
            False,
            Width.SHORT,
            "Specifies whether the fields to be dropped should also be omitted from the key",
            "Whether these fields are removed from the key too.",
        ),
        _key(
            "drop.fields.keep.schema.compatible",
            ConfigType.BOOLEAN,
            True,
            Width.SHORT,
            "Specifies if fields are dropped, will the event's schemas be compatible",
            "Whether only optional fields are removed, so that consumers of the old schema can read the new one.",
        ),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        super().configure(config)
        name = "replace.null.with.default"  # understood, though Debezium does not list it
        self._with_defaults = bool(parse_value(name, config.get(name, "true"), ConfigType.BOOLEAN))

    def use(self, config: Mapping[str, Any]) -> None:
        self._mode: str = config["delete.tombstone.handling.mode"].lower()
        self._rewrites = self._mode in ("rewrite", "rewrite-with-tombstone")
        self._route: str = config["route.by.field"]
        self._fields = parse_references(config["add.fields.prefix"], config["add.fields"])
        self._headers = parse_references(config["add.headers.prefix"], config["add.headers"])
        self._shared = SharedHeaders()
        self._drop_header: str = config["drop.fields.header.name"] or ""
        self._drops_from_key: bool = config["drop.fields.from.key"]
        self._keeps_compatible: bool = config["drop.fields.keep.schema.compatible"]
        self._live: SchemaCache[_Plan] = SchemaCache(lambda schema: self._plan(schema, "after"), 64)
        self._dead: SchemaCache[_Plan] = SchemaCache(lambda schema: self._plan(schema, "before"), 64)
        self._droppers: dict[tuple[type[ReplaceField], tuple[str, ...]], ReplaceField] = {}

    @property
    def added_fields(self) -> frozenset[str]:
        """Names of the fields that rows get in addition to their own."""
        return added_names(self._fields, rewrites=self._rewrites)

    @property
    def drops_deletes(self) -> bool:
        """Whether nothing is left of a delete."""
        return self._mode == "drop"

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Return the row, what is left of a delete, or None.

        Raises:
            DataError: a row is not a struct, has a field of an added name already, or lacks the field that routes.
        """
        schema = record.value_schema
        if record.value is None:
            if self._mode != "rewrite-with-tombstone":
                return None
            added = self._shared.before(record) + [Header(item.name, "d", STRING) for item in self._headers if item.field == "op"]
            return replace(record, headers=[*record.headers, *added]) if added else record
        if not is_envelope(schema):
            return record
        envelope = require_struct(record.value, _PURPOSE, schema)
        if self._headers:
            made = self._made_headers(envelope)
            self._shared.remember(record, envelope["op"] if envelope.schema.field("op") else None, made)
            record = replace(record, headers=[*record.headers, *made])
        after = envelope["after"]
        if after is not None:
            if self._route:
                record = self._routed(record, after)
            changed = self._row(record, envelope, "after", "false")
            return self._dropped(changed) if self._drop_header else changed
        if envelope["before"] is None:
            return None  # a truncate, or a delete of a row of which nothing is known
        return self._deleted(record, envelope)

    @property
    def handles_rows(self) -> bool:
        """Whether the envelope alone decides what a row gets, and nothing where it goes.

        Of the envelope's plain fields one has a default, a source's `snapshot`: rows that stay JSON show it in a null's place, where
        `apply` adds the null.
        """
        plain = all(item.struct in _PLAIN_BLOCKS and item.field != "snapshot" for item in self._fields)
        return plain and not (self._headers or self._route or self._drop_header)

    def row_change(self, route: Route) -> RowChange:
        """Return what `apply` does, for rows that stay JSON. Raises DataError and NeedsRecord where each record has its own error."""
        envelope, keeps_tombstones = route.value_schema, self._mode == "rewrite-with-tombstone"
        if not is_envelope(envelope):
            return lambda key, value: (route, key, value) if keeps_tombstones or value not in (None, NULL) else None
        read = event_reader(envelope)
        of_live = self._row_maker(route, self._live, b'"false"')
        of_dead = self._row_maker(route, self._dead, b'"true"') if self._rewrites else self._left_of_deletes(route)

        def change(key: bytes | None, value: bytes | None) -> EncodedRow | None:
            if value is None:
                return (route, key, None) if keeps_tombstones else None
            before, after, rest = read(value)
            if after is not None:
                return of_live(key, after, rest)
            return None if before is None else of_dead(key, before, rest)

        return change

    def _left_of_deletes(self, route: Route) -> _RowMaker:
        if self._mode == "drop":
            return lambda key, row, rest: None
        to = replace(route, value_schema=route.value_schema.fields[1].schema)
        left = None if self._mode == "delete-to-tombstone" else NULL
        return lambda key, row, rest: (to, key, left)

    def _row_maker(self, route: Route, plans: SchemaCache[_Plan], deleted: bytes) -> _RowMaker:
        plan = plans(route.value_schema)
        to = replace(route, value_schema=plan.row)
        if plan.is_bare:
            return lambda key, row, rest: (to, key, row)
        constant = [label("__deleted") + deleted] if self._rewrites else []
        read = rest_reader(route.value_schema, [(item.struct, item.field) for item in plan.added])
        is_first = len(plan.row.fields) == len(constant) + len(plan.added)
        add = adder(constant, [item.name for item in plan.added], read, is_first=is_first)
        return lambda key, row, rest: (to, key, add(row, rest))

    def _deleted(self, record: AnyRecord, envelope: Struct) -> AnyRecord | None:
        if self._mode == "drop":
            return None
        record = self._routed(record, envelope["before"])
        if self._rewrites:
            return self._dropped(self._row(record, envelope, "before", "true"))
        after = envelope.schema.field("after")
        left = None if self._mode == "delete-to-tombstone" or after is None else after.schema
        return self._dropped(replace(record, value_schema=left, value=None))

    def _row(self, record: AnyRecord, envelope: Struct, side: str, deleted: str) -> AnyRecord:
        plan = (self._live if side == "after" else self._dead)(envelope.schema)
        row = require_struct(envelope.values[plan.at], _PURPOSE)
        if plan.is_bare:
            return with_value(record, plan.row, Struct(plan.row, row.values))
        values = field_values(row, self._with_defaults and self._rewrites)
        if self._rewrites:
            values.append(deleted)
        values += [reference.value(envelope) for reference in plan.added]
        return with_value(record, plan.row, Struct(plan.row, values))

    def _plan(self, schema: Schema | None, side: str) -> _Plan:
        envelope = require_schema(schema, _PURPOSE)
        found = envelope.field(side)
        if found is None:
            raise DataError(f"Unknown field: {side}")
        fields = list(found.schema.fields)
        if self._rewrites:
            fields.append(Field("__deleted", OPTIONAL_STRING))
        added = []
        for reference in self._fields:
            wanted = reference.schema(envelope)
            if wanted is not None:
                fields.append(Field(reference.name, wanted))
                added.append(reference)
        return _Plan(envelope.index_of(side), like(found.schema, fields), added, not self._rewrites and not added)

    def _made_headers(self, envelope: Struct) -> list[Header]:
        schemas = ((reference, reference.schema(envelope.schema)) for reference in self._headers)
        return [Header(reference.name, reference.value(envelope), schema) for reference, schema in schemas if schema is not None]

    def _routed(self, record: AnyRecord, row: Struct) -> AnyRecord:
        if not self._route:
            return record
        topic = row.without_default(self._route)
        if topic is not None and not isinstance(topic, str):
            raise DataError(f"Field '{self._route}' is not of type STRING")
        return replace(record, topic=topic) if topic and topic.strip() else record

    def _dropped(self, record: AnyRecord) -> AnyRecord:
        """Return the record without the fields that its header names."""
        header = next((h for h in record.headers if h.name == self._drop_header), None) if self._drop_header else None
        if header is None or not header.value:
            return record
        if not isinstance(header.value, list):
            raise DataError(f"The header {self._drop_header} must hold a list of names of fields")
        if self._drops_from_key and record.key is not None:
            record = self._without(record, ReplaceFieldKey, record.key_schema, header.value)
        return self._without(record, ReplaceFieldValue, record.value_schema, header.value)

    def _without(self, record: AnyRecord, side: type[ReplaceField], schema: Schema | None, names: list[str]) -> AnyRecord:
        if schema is not None and self._keeps_compatible:
            names = [field.name for field in schema.fields if field.schema.optional and field.name in names]
        if not names:
            return record
        known = (side, tuple(names))
        if known not in self._droppers:
            if len(self._droppers) >= _MAX_DROPPERS:
                self._droppers.clear()
            dropper = self._droppers[known] = side()
            dropper.use({"exclude": names, "include": [], "renames": [], "replace.null.with.default": True})
        return self._droppers[known].apply(record)
