"""Read the source's side: rows of its tables as the connector would send them now, after the transforms of both connectors.

MongoDB's own change events are rows, too: the columns that the sink makes of them, from the events' texts. An `_id` is a text in the table:
an ObjectId's 24 digits, a text as it is, anything else in extended JSON, and so is a text that would read as one of these. Nothing of this
shares code with the sink.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from connect_py.api import SourceRecord
from connect_py.api.record import EncodedRow, Route
from connect_py.converters.json_read import parse_json, row_reader
from connect_py.data import Struct
from connect_py.data.schema import OPTIONAL_STRING, STRING, struct
from connect_py.errors import ConfigError, DataError
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import apply_step, close_steps, transform_steps

if TYPE_CHECKING:
    from connectors.engine.java_object import StoredKey
    from connectors.engine.snapshot.current_rows import TableScan


_KEY = struct([("_id", STRING)])
_ROW = struct([("document", OPTIONAL_STRING)])

_DIGITS = re.compile("[0-9a-f]{24}")


def id_of(key: Struct) -> Struct:
    """Return the key of a row, from that of an event, whose `id` is extended JSON."""
    return Struct(_KEY, [text_of_id(str(key.without_default("id")))])


def document_of(text: Any) -> Struct:
    """Return the row without the key."""
    return Struct(_ROW, [text])


def text_of_id(text: str) -> str:
    """Return an `_id` as a table has it, from extended JSON."""
    value = json.loads(text)
    if isinstance(value, dict) and list(value) == ["$oid"]:
        return str(value["$oid"])
    return value if isinstance(value, str) and not _reads_as_something_else(value) else text


def _reads_as_something_else(text: str) -> bool:
    return not text or text[0] in '-0123456789{["' or text in ("true", "false", "null") or bool(_DIGITS.fullmatch(text))


#: Rows of a range of keys: compared at once, and read again together.
RANGE_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Read rows of a table after `after` up to `until`."""

    table: str
    after: StoredKey | None
    until: StoredKey


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row: the record's key, and its value after the change."""

    topic: str
    key: Struct | None
    row: Struct


class SourceTables:
    """The tables of a source connector's configuration; used by one thread, and closed by its owner.

    Args:
        sink: the sink's configuration, whose transforms follow the source's.

    Raises:
        ConfigError: there is no way to read the tables of such a connector.
        ConnectError: the database cannot be asked.
    """

    def __init__(self, config: Mapping[str, str], sink: Mapping[str, str]) -> None:
        plugins = Plugins.discover()
        self._steps = [*transform_steps(plugins, config), *transform_steps(plugins, sink)]
        self._tables = _open(config, plugins)
        #: Fields that transforms add to rows and that tell of the event, not of the row.
        self.added_fields: frozenset[str] = frozenset().union(*(getattr(step.transform, "added_fields", ()) for step in self._steps))
        #: Whether transforms of the source leave nothing of a delete.
        self.drops_deletes = any(getattr(step.transform, "drops_deletes", False) for step in self._steps)
        #: Whether rows of one table have different columns, as documents do.
        self.columns_vary = "mongodb" in config.get("connector.class", "").lower()
        self._readers: dict[Route, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
        #: JsonConverter, unless configured otherwise, writes a column's default where the column is null.
        self.fills_nulls = config.get("value.converter.replace.null.with.default", "true").strip().lower() == "true"

    def names(self) -> list[str]:
        """Return the captured tables."""
        return list(self._tables.names())

    def topic(self, name: str) -> str:
        """Return the topic of a table's events; a transform may choose another one for its records."""
        return self._tables.topic(name)

    def source(self, name: str) -> Mapping[str, str]:
        """Return what the events' source block says of a table."""
        return self._tables.source(name)

    def is_keyless(self, name: str) -> bool:
        """Return whether a table has no key that its rows could be read by."""
        from connectors.engine.snapshot.incremental.contract import NoKeyError

        try:
            self._tables.maximum(name)
        except NoKeyError:
            return True
        return False

    def first(self, name: str) -> SourceRow | None:
        """Any row; None of an empty table."""
        if self.is_keyless(name):
            with contextlib.closing(self.whole(name)) as parts:
                return next((row for rows in parts for row in rows), None)
        end = self._tables.maximum(name)
        rows = [] if end is None else self._tables.read(name, None, end, 1)[0]
        return next(self._decoded(rows), None)

    def whole(self, name: str) -> Generator[list[SourceRow]]:
        """Read all rows of one consistent snapshot, in no order, some at a time; needs no key. Close it if you do not read to the end."""
        with contextlib.closing(self._tables.scan(name)) as parts:
            for rows in parts:
                yield list(self._decoded(rows))

    def ranges(self, name: str) -> Iterator[tuple[KeyRange, list[SourceRow]]]:
        """Yield all rows, a range of keys at a time."""
        for range_, rows in self._ranges(name):
            yield range_, list(self._decoded(rows))

    def events(self, name: str) -> Iterator[SourceRecord]:
        """Yield all rows as the records that a snapshot would send, after the transforms."""
        for _, rows in self._ranges(name):
            yield from self._records(rows)

    def _ranges(self, name: str) -> Iterator[tuple[KeyRange, list[EncodedRow]]]:
        end, after = self._tables.maximum(name), None
        while end is not None:
            rows, last = self._tables.read(name, after, end, RANGE_ROWS)
            if last is None:
                return
            yield KeyRange(name, after, last), rows
            if len(rows) < RANGE_ROWS:
                return
            after = last

    def again(self, range_: KeyRange) -> Iterator[SourceRow]:
        """Yield the rows that a range has now."""
        after = range_.after
        while True:
            rows, last = self._tables.read(range_.table, after, range_.until, RANGE_ROWS)
            yield from self._decoded(rows)
            # the first range has no lower bound, and then no upper one either: what lies beyond is of the next range
            if last is None or len(rows) < RANGE_ROWS or after is None:
                return
            after = last

    def close(self) -> None:
        """Close connections and transforms."""
        self._tables.close()
        close_steps(self._steps)

    def _decoded(self, rows: list[EncodedRow]) -> Iterator[SourceRow]:
        return map(_row, self._records(rows))

    def _records(self, rows: list[EncodedRow]) -> Iterator[SourceRecord]:
        for route, key, value in rows:
            record: SourceRecord | None = self._record(route, key, value)
            for step in self._steps:
                if record is not None:
                    record = apply_step(step, record)
            if record is not None and record.value is not None:
                yield record

    def _record(self, route: Route, key: bytes | None, value: bytes | None) -> SourceRecord:
        readers = self._readers.get(route)
        if readers is None:
            readers = self._readers[route] = row_reader(route.key_schema), row_reader(route.value_schema)
        read_key, read_value = readers
        return SourceRecord(
            {},
            {},
            route.topic,
            None if key is None else route.key_schema,
            None if key is None else read_key(parse_json(key)),
            route.value_schema,
            None if value is None else read_value(parse_json(value)),
        )


def _row(record: SourceRecord) -> SourceRow:
    """Return the row within a change event, or a record that is one."""
    key = record.key if isinstance(record.key, Struct) else None
    value = record.value
    if not isinstance(value, Struct):
        raise DataError(f"Records of {record.topic} are no structs after the transforms, so they have no columns.")
    names = {field.name for field in value.schema.fields}
    if not {"op", "after", "source"} <= names:
        return SourceRow(record.topic, key, value)
    after = value.without_default("after")
    if isinstance(after, Struct):
        return SourceRow(record.topic, key, after)
    # a document of MongoDB is a text
    return SourceRow(record.topic, None if key is None else id_of(key), document_of(after))


Database = Literal["postgres", "mysql", "mariadb", "mongodb"]

_DATABASES: Mapping[str, Database] = {
    "io.debezium.connector.postgresql.PostgresConnector": "postgres",
    "io.debezium.connector.mysql.MySqlConnector": "mysql",
    "io.debezium.connector.mariadb.MariaDbConnector": "mariadb",
    "io.debezium.connector.mongodb.MongoDbConnector": "mongodb",
}


def database_of(config: Mapping[str, str], plugins: Plugins) -> Database | None:
    """Return which database a connector reads; None: it is no source whose tables can be read here."""
    return _DATABASES.get(plugins.resolve(config.get("connector.class", "").strip()) or "")


def require_database(config: Mapping[str, str], plugins: Plugins) -> Database:
    """Return which database a connector reads. Raises ConfigError: it is none that is known here."""
    if (found := database_of(config, plugins)) is None:
        given = config.get("connector.class")
        raise ConfigError(f"connector.class={given}: verify reads tables of PostgreSQL, MySQL, MariaDB and MongoDB.")
    return found


def _open(config: Mapping[str, str], plugins: Plugins) -> TableScan:
    match require_database(config, plugins):
        case "postgres":
            from connectors.postgres.snapshot.current import PostgresTableScan

            return PostgresTableScan(config)
        case "mongodb":
            from connectors.mongodb.snapshot.current import MongoTableScan

            return MongoTableScan(config)
        case kind:
            from connectors.mysql.snapshot.current import MySqlTableScan

            return MySqlTableScan(config, kind)
