"""Read the history of a source connector from its database and its topics: the journal, the rows, the events, the stored offsets.

The connector runs meanwhile, and what is not there yet is waited for. Memory holds the whole history.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from connect_py.api.record import TopicPartition
from connect_py.app.verify.history.checks import check
from connect_py.app.verify.history.database import ParsedSource, parse_source, read_journal
from connect_py.app.verify.history.records import Event, Finding, History, PartitionEnd, Promise, Row, Rows, StoredOffset, shown
from connect_py.app.verify.history.topics import UNAVAILABLE, EventReader, position_of_offset
from connect_py.app.verify.source import SourceTables
from connect_py.data import Struct
from connect_py.errors import ConfigError, DataError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties
from connect_py.kafka.shared_log import KafkaLog, LogRecord
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import converter, converter_owner
from offsets.keys import parse_offset_key, parse_offset_value

#: Of a record's key or value: topic and bytes to a plain value; raises ValueError or DataError.
_Decode = Callable[[str, bytes | None], Any]

_JSON = "org.apache.kafka.connect.json.JsonConverter"

#: How long the reader of a topic may take.
_READ_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to read, and what may be expected of it.

    Attributes:
        config: the source connector's configuration.
        worker: the worker's properties, `bootstrap.servers` at least: how Kafka is reached, and converters of a connector that names none.
        journal: the journal's table or collection, with its schema (database) or without: then `public` in PostgreSQL, else the database of
            the captured tables.
        sequence: the column that counts a key's changes.
        digest: columns that digests are made of, by table.
        offsets_topic: where the worker stores offsets; None: they are not looked at.
        wait: seconds within which the connector must catch up.
    """

    config: Mapping[str, str]
    worker: Mapping[str, str]
    journal: str
    sequence: str
    digest: Mapping[str, Sequence[str]] = field(default_factory=dict)
    offsets_topic: str | None = None
    promise: Promise = field(default_factory=Promise)
    wait: float = 60.0


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it.

    Attributes:
        history: what was read last.
        findings: what is wrong with it.
        notes: what could not be tested, in sentences.
    """

    history: History
    findings: Sequence[Finding]
    notes: Sequence[str] = ()


def promise_of(config: Mapping[str, str], *, start: int | None, restarts: int | None, exactly_once: bool) -> Promise:
    """Return what may be expected of a connector by its configuration, and by what the caller knows of its run (see `Promise`).

    Raises:
        ConfigError: the configuration cannot be used.
    """
    from connectors.engine.snapshot.modes import StoredPosition

    source = parse_source(config)
    return Promise(
        start=start,
        restarts=restarts,
        exactly_once=exactly_once,
        snapshot=source.config.snapshot_mode.reads_data(StoredPosition.NONE),
        tombstones=source.config.flag("tombstones.on.delete"),
        initial_rows_lag=source.database == "mongodb",
    )


def verify_history(plan: Plan, sleep: Callable[[float], None] = time.sleep) -> Report:
    """Read and check, again and again until nothing is wrong or the time is up; return what came of the last time.

    Raises:
        ConfigError: the configuration cannot be used.
        DataError: a record or a line is none of a history.
        ConnectError: the database or Kafka cannot be read.
    """
    deadline = time.monotonic() + plan.wait
    source, decoders = parse_source(plan.config), _decoders(plan)
    tables = SourceTables(plan.config, {})
    try:
        while True:
            history, notes = _read(plan, source, tables, decoders)
            findings = check(history)
            left = deadline - time.monotonic()
            if not findings or left <= 0:
                return Report(history, findings, notes)
            sleep(min(2.0, left))
    finally:
        tables.close()


def _read(plan: Plan, source: ParsedSource, tables: SourceTables, decoders: tuple[_Decode, _Decode]) -> tuple[History, list[str]]:
    """Read the journal before the rows and the topics: what is committed meanwhile shows as a difference, and is read again."""
    captured = tables.names()
    if unknown := sorted(plan.digest.keys() - set(captured)):
        raise ConfigError(f"--digest {', '.join(unknown)}: there is no such captured table. There are {', '.join(captured) or 'none'}.")
    journal = read_journal(source, plan.journal, captured)
    noted = {change.table for change in journal.changes}
    names = [name for name in captured if name in noted]
    if not names:
        raise ConfigError(f"{plan.journal} has no line of a captured table. --prepare prints the statements that make its triggers.")
    unavailable = source.config.raw.get("unavailable.value.placeholder", UNAVAILABLE)
    rows: dict[str, Rows] = {}
    topics: set[str] = set()
    for name in names:
        rows[name], found = _rows(tables, name, EventReader(plan.sequence, plan.digest, unavailable=unavailable))
        topics |= found
    with contextlib.closing(KafkaAdmin(internal_properties(plan.worker, "verify"))) as admin:
        partitions = _partitions(admin, topics)
        promise, notes = _what_is_left(admin, topics, partitions, plan.promise)
        reader = EventReader(plan.sequence, plan.digest, unavailable=unavailable, keys_only=journal.keys_only)
        # a tombstone that nothing came before has the name of its topic in place of a table
        events = [
            event for event in _events(plan, admin, sorted(topics), reader, decoders) if event.table in rows or event.table == event.topic
        ]
        stored = list(_stored(plan, admin))
        ends = _ends(admin, partitions) if promise.exactly_once else []
    if left_out := [name for name in captured if name not in noted]:
        notes.append(f"the journal has no line of {', '.join(left_out)}, so this was not tested")
    history = History(
        changes=[change for change in journal.changes if change.table in rows],
        events=events,
        promise=promise,
        rows=rows,
        stored=stored,
        ends=ends,
    )
    return history, notes


def _rows(tables: SourceTables, name: str, reader: EventReader) -> tuple[Rows, set[str]]:
    """Return a table's rows, and the topics to which they would be sent; of an empty table the one that its name gives."""
    found: dict[str, Row] = {}
    topics: set[str] = set()
    for record in tables.events(name):
        event = reader.event(record.topic, 0, 0, plain(record.key), plain(record.value))
        if event is None or event.key is None:
            raise ConfigError(f"Table {name} has no key, so it has no history by key.")
        found[event.key] = Row(event.sequence, event.digest)
        topics.add(record.topic)
    return found, topics or {tables.topic(name)}


# -- Kafka


def _partitions(admin: KafkaAdmin, topics: Iterable[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, count in admin.describe_topics(topics).items() for number in range(count)]


def _what_is_left(
    admin: KafkaAdmin, topics: Iterable[str], partitions: Sequence[TopicPartition], promise: Promise
) -> tuple[Promise, list[str]]:
    """Return the promise without what topics can no longer show, and a note on each of these."""
    there = {partition.topic for partition in partitions}
    notes = [f"the topic {topic} does not exist" for topic in sorted(topics) if topic not in there]
    settings = admin.settings_of_topics(sorted(there))
    begins = admin.begin_offsets(partitions) if partitions else {}
    for topic in sorted(there):
        if "compact" in settings[topic].get("cleanup.policy", ""):
            what = "is compacted"
        elif any(begins[partition] for partition in partitions if partition.topic == topic):
            what = "does not have its oldest records any more"
        else:
            continue
        notes.append(f"the topic {topic} {what}, so no topic was tested for changes that are lost and for missing tombstones")
        promise = replace(promise, compacted=True)
    return promise, notes


def _ends(admin: KafkaAdmin, partitions: Sequence[TopicPartition]) -> list[PartitionEnd]:
    if not partitions:
        return []
    ends = admin.end_offsets(partitions)
    stable = admin.end_offsets(partitions, committed=True)
    return [PartitionEnd(each.topic, each.partition, ends[each], stable[each]) for each in partitions]


def _events(
    plan: Plan, admin: KafkaAdmin, topics: Iterable[str], reader: EventReader, decoders: tuple[_Decode, _Decode]
) -> Iterator[Event]:
    read_key, read_value = decoders
    for topic in topics:
        for record in read_topic(plan.worker, admin, topic, committed=plan.promise.exactly_once):
            try:
                key, value = read_key(topic, record.key), read_value(topic, record.value)
            except (ValueError, DataError) as error:
                where = f"{topic}-{record.partition}@{record.offset}"
                raise DataError(f"{where} is not what the connector's converters write: {error}") from error
            event = reader.event(topic, record.partition, record.offset, key, value)
            if event is not None:
                yield event


def _decoders(plan: Plan) -> tuple[_Decode, _Decode]:
    """Return those of keys and values. Raises ConfigError: a converter is not installed, or cannot be configured."""
    plugins = Plugins.discover()
    return _decoder(plugins, plan, "key.converter"), _decoder(plugins, plan, "value.converter")


def _decoder(plugins: Plugins, plan: Plan, name: str) -> _Decode:
    owner = converter_owner(plan.worker, plan.config, name)
    if not owner.get(name):
        owner = {name: _JSON}
    if plugins.resolve(owner[name].strip()) == _JSON:  # no schema is needed for plain values, and without one it is several times faster
        # a worker that is known by its address alone may have either form
        has_schemas = owner.get(f"{name}.schemas.enable", "true").strip().lower() == "true"

        def read(_topic: str, data: bytes | None) -> Any:
            found = None if data is None else orjson.loads(data)
            return found.get("payload") if has_schemas and isinstance(found, dict) and found.keys() == {"schema", "payload"} else found

        return read
    made = converter(plugins, {}, owner, name)
    return lambda topic, data: None if data is None else plain(made.to_connect_data(topic, data)[1])


def _stored(plan: Plan, admin: KafkaAdmin) -> Iterator[StoredOffset]:
    if plan.offsets_topic is None:
        return
    # what a transaction that was given up has stored is not what a task begins with
    for record in read_topic(plan.worker, admin, plan.offsets_topic, committed=True):
        key = parse_offset_key(record.key)
        if key is None or key[0] != plan.config.get("name"):
            continue
        offset = parse_offset_value(record.value) if record.value else None
        position = None if offset is None else position_of_offset(offset)
        if offset is None or position is not None:
            yield StoredOffset(json.dumps(key[1]), position)


def read_topic(worker: Mapping[str, str], admin: KafkaAdmin, topic: str, *, committed: bool = False) -> list[LogRecord]:
    """Return a topic's records, by partition and offset; of one that does not exist, none."""
    if topic not in admin.describe_topics([topic]):
        return []
    found: list[LogRecord] = []
    log = KafkaLog(topic, internal_properties(worker, "verify"), admin, found.append, read_committed=committed)
    try:
        log.start(timeout=_READ_SECONDS)
    finally:
        log.stop()
    return sorted(found, key=lambda record: (record.partition, record.offset))


def plain(value: Any) -> Any:
    """Return structs as dictionaries."""
    if isinstance(value, Struct):
        return {each.name: plain(value.without_default(each.name)) for each in value.schema.fields}
    return value


# -- what to print


def as_text(report: Report, limit: int = 20) -> str:
    """Return a line on what was read, one on each finding that is shown, and one on each note."""
    history, findings = report.history, report.findings
    head = f"{len(history.changes)} changes of {_keys(history)} keys in the journal, {len(history.events)} records in the topics: "
    lines = [head + (f"{len(findings)} WRONG" if findings else "all as promised"), *(f"  {finding}" for finding in findings[:limit])]
    if len(findings) > limit:
        lines.append(f"  … and {len(findings) - limit} more")
    return "\n".join([*lines, *(f"  note: {note}" for note in report.notes)])


def as_json(report: Report) -> dict[str, Any]:
    """Return the same, with all findings, as values of JSON."""
    history = report.history
    return {
        "tables": sorted(history.rows or ()),
        "changes": len(history.changes),
        "keys": _keys(history),
        "records": len(history.events),
        "as_promised": not report.findings,
        "findings": [
            {
                "finding": str(found.invariant),
                "table": found.table,
                "key": None if found.key is None else shown(found.key),
                "evidence": found.evidence,
            }
            for found in report.findings
        ],
        "notes": list(report.notes),
    }


def _keys(history: History) -> int:
    return len({(change.table, change.key) for change in history.changes if change.key is not None})
