"""Read the history of a source connector from its database and its topics: the journal, the rows, the events, the stored offsets.

The connector runs meanwhile, and what is not there yet is waited for. Memory holds the whole history.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from connect_py.app.verify.history.checks import check
from connect_py.app.verify.history.journal import changes_of, changes_of_documents, digest_of, key_text, mysql_query, postgres_query
from connect_py.app.verify.history.records import Change, Event, Finding, History, Position, Promise, Row, Rows, StoredOffset, shown
from connect_py.app.verify.history.topics import EventReader
from connect_py.app.verify.source import SourceTables
from connect_py.data import Struct
from connect_py.errors import ConfigError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.shared_log import KafkaLog, LogRecord
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import converter

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
_MYSQL = ("io.debezium.connector.mysql.MySqlConnector", "io.debezium.connector.mariadb.MariaDbConnector")

#: How long the reader of a topic may take.
_READ_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to read, and what may be expected of it.

    Attributes:
        config: the source connector's configuration.
        kafka: client properties of the worker, `bootstrap.servers` at least.
        journal: the name of the journal's table or collection; in MySQL and MongoDB that of its database, too: `shop.connect_py_journal`.
        sequence: the column that counts a key's changes.
        digest: columns of which digests are made, by table.
        offsets_topic: where the worker stores offsets; None: they are not looked at.
        wait: seconds within which the connector must catch up.
    """

    config: Mapping[str, str]
    kafka: Mapping[str, str]
    journal: str
    sequence: str
    digest: Mapping[str, Sequence[str]] = field(default_factory=dict)
    offsets_topic: str | None = None
    promise: Promise = field(default_factory=Promise)
    wait: float = 60.0


def verify_history(plan: Plan, sleep: Callable[[float], None] = time.sleep) -> tuple[History, list[Finding]]:
    """Read and check, again and again until nothing is wrong or the time is up; return the last history and what is wrong with it.

    Raises:
        ConfigError: the configuration cannot be used.
        DataError: a record or a line is none of a history.
        ConnectError: the database or Kafka cannot be read.
    """
    deadline = time.monotonic() + plan.wait
    tables = SourceTables(plan.config, {})
    try:
        while True:
            history = _read(plan, tables)
            found = check(history)
            left = deadline - time.monotonic()
            if not found or left <= 0:
                return history, found
            sleep(min(2.0, left))
    finally:
        tables.close()


def _read(plan: Plan, tables: SourceTables) -> History:
    """Read the journal before the rows and the topics: what is committed meanwhile shows as a difference, and is read again."""
    changes = read_journal(plan.config, plan.journal)
    names = [name for name in tables.names() if any(change.table == name for change in changes)]
    if not names:
        raise ConfigError(f"{plan.journal} has no line of a captured table. Its triggers are made by the statements that --prepare prints.")
    rows = {name: _rows(plan, tables, name) for name in names}
    with contextlib.closing(KafkaAdmin(plan.kafka)) as admin:
        events = list(_events(plan, admin, sorted({tables.topic(name) for name in names})))
        stored = list(_stored(plan, admin))
    captured = [change for change in changes if change.table in rows]
    return History(changes=captured, events=events, promise=plan.promise, rows=rows, stored=stored)


def read_journal(config: Mapping[str, str], journal: str) -> list[Change]:
    """Return the journal's lines. Raises ConnectError."""
    plugins = Plugins.discover()
    name = plugins.resolve(config.get("connector.class", "").strip())
    database, _, table = journal.rpartition(".")
    if name == _POSTGRES:
        from connectors.postgres.config import parse_config
        from connectors.postgres.preparation import open_general

        session = open_general(parse_config(config), lambda: False)
        try:
            return changes_of(map(_texts, session.query(postgres_query(table))))
        finally:
            session.close()
    if not database:
        raise ConfigError(f"--journal {journal} names no database: write it as DATABASE.{table}")
    if name in _MYSQL:
        from connectors.mysql.config.config import parse_config as parse_mysql
        from connectors.mysql.server.queries import open_connection

        connection = open_connection(parse_mysql(config, "mariadb" if "mariadb" in name else "mysql"))
        try:
            return changes_of(map(_texts, connection.query(mysql_query(database, table))))
        finally:
            connection.close()
    from connectors.mongodb.config import parse_config as parse_mongo
    from connectors.mongodb.server.connection import open_client

    client = open_client(parse_mongo(config))
    try:
        return changes_of_documents(client[database][table].find().sort("_id"))
    finally:
        client.close()


def _texts(row: Sequence[Any]) -> list[str | None]:
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in row]


def _rows(plan: Plan, tables: SourceTables, name: str) -> Rows:
    found: dict[str, Row] = {}
    columns = plan.digest.get(name)
    for _, rows in tables.ranges(name):
        for row in rows:
            if row.key is None:
                raise ConfigError(f"Table {name} has no key, so it has no history by key.")
            values = plain(row.row)
            hashed = digest_of(values.get(column) for column in columns) if columns else None
            found[key_text(plain(row.key).values())] = Row(values.get(plan.sequence), hashed)
    return found


def _events(plan: Plan, admin: KafkaAdmin, topics: Iterable[str]) -> Iterator[Event]:
    plugins = Plugins.discover()
    read_key, read_value = (_values(plugins, plan.config, side) for side in ("key", "value"))
    reader = EventReader(plan.sequence, plan.digest)
    for topic in topics:
        for record in read_topic(plan.kafka, admin, topic, committed=plan.promise.exactly_once):
            key, value = read_key(topic, record.key), read_value(topic, record.value)
            event = reader.event(topic, record.partition, record.offset, key, value)
            if event is not None:
                yield event


def _values(plugins: Plugins, config: Mapping[str, str], side: str) -> Callable[[str, bytes | None], Any]:
    """Return what makes plain values of a record's bytes."""
    name = config.get(f"{side}.converter", "").strip() or _JSON
    if plugins.resolve(name) == _JSON:  # no schema is needed for plain values, and without one it is several times faster
        has_schemas = config.get(f"{side}.converter.schemas.enable", "true").strip().lower() == "true"

        def read(_topic: str, data: bytes | None) -> Any:
            found = None if data is None else orjson.loads(data)
            return found.get("payload") if has_schemas and isinstance(found, dict) and found.keys() == {"schema", "payload"} else found

        return read
    made = converter(plugins, {}, config, f"{side}.converter")
    return lambda topic, data: None if data is None else plain(made.to_connect_data(topic, data)[1])


def _stored(plan: Plan, admin: KafkaAdmin) -> Iterator[StoredOffset]:
    if plan.offsets_topic is None:
        return
    for record in read_topic(plan.kafka, admin, plan.offsets_topic):
        connector, *partition = json.loads(record.key or b"[null]")
        if connector == plan.config.get("name"):
            offset = json.loads(record.value) if record.value else None
            position = None if offset is None else position_of_offset(offset)
            if offset is None or position is not None:
                yield StoredOffset(json.dumps(partition), position)


def position_of_offset(offset: Mapping[str, Any]) -> Position | None:
    """Return the place in the log of a stored source offset; None: it has none with an order."""
    if "lsn" in offset:
        return (offset["lsn"],)
    if "file" in offset:
        return offset["file"], offset["pos"], offset.get("event", 0), offset.get("row", 0)
    return None


def read_topic(kafka: Mapping[str, str], admin: KafkaAdmin, topic: str, *, committed: bool = False) -> list[LogRecord]:
    """Return a topic's records, by partition and offset; of one that does not exist, none."""
    if topic not in admin.describe_topics([topic]):
        return []
    found: list[LogRecord] = []
    log = KafkaLog(topic, kafka, admin, found.append, read_committed=committed)
    log.start(timeout=_READ_SECONDS)
    log.stop()
    return sorted(found, key=lambda record: (record.partition, record.offset))


def plain(value: Any) -> Any:
    """Return structs as dictionaries."""
    if isinstance(value, Struct):
        return {each.name: plain(value.without_default(each.name)) for each in value.schema.fields}
    return value


def as_text(history: History, findings: Sequence[Finding], limit: int = 20) -> str:
    """Return a line on what was read, and one on each finding that is shown."""
    head = f"{len(history.changes)} changes of {_keys(history)} keys in the journal, {len(history.events)} records in the topics: "
    lines = [head + (f"{len(findings)} WRONG" if findings else "all as promised"), *(f"  {finding}" for finding in findings[:limit])]
    return "\n".join([*lines, f"  … and {len(findings) - limit} more"] if len(findings) > limit else lines)


def as_json(history: History, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the same, with all findings, as values of JSON."""
    return {
        "changes": len(history.changes),
        "keys": _keys(history),
        "records": len(history.events),
        "findings": [
            {"finding": str(found.invariant), "table": found.table, "key": found.key and shown(found.key), "evidence": found.evidence}
            for found in findings
        ],
    }


def _keys(history: History) -> int:
    return len({(change.table, change.key) for change in history.changes})
