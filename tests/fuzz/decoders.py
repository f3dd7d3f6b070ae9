"""Each decoder of bytes that others write: valid seeds, how it is called, and the errors that it may raise.

What a call checks itself, in addition to the error's class: what is made of damaged bytes is JSON where it has to be, and what lives on
from call to call has not changed where an error was raised. The texts of numbers that PostgreSQL sends are the records' as they are, so
that rows made of damaged ones need not be JSON.
"""

from __future__ import annotations

import base64
import datetime
import functools
import json
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import bson
import orjson
from bson import Timestamp

from connect_py.api import JsonEncoding, Route
from connect_py.converters.json_converter import JsonConverter
from connect_py.errors import ConfigError, ConnectError, DataError
from connect_py.group.protocol import (
    Allocation,
    GroupAssignment,
    GroupProtocol,
    TaskId,
    WorkerDetails,
    WorkerState,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from connectors.engine.batches import PendingRows
from connectors.engine.java_object import decode_key
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.signal.records import parse_document
from connectors.engine.snapshot.incremental.offset import IncrementalOffset
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import parse_config
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.stream.stream import ChangeStream, EventStream, Fragments
from connectors.mongodb.values.bson_forms import Form, MalformedBsonError
from connectors.mongodb.values.bson_json import bson_json, decode_tree
from connectors.mongodb.values.documents import Documents, fields_of
from connectors.mysql.binlog.codes import EventType, MalformedEventError
from connectors.mysql.binlog.columns import Meaning
from connectors.mysql.binlog.events import KINDS, Rows, TransactionPayload, decode_event, inner_events
from connectors.mysql.binlog.rows import read_images, read_pairs, row_reader
from connectors.mysql.binlog.table_map import TableMap, described_columns
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statement_text import normalised, without_settings
from connectors.mysql.ddl.statements import apply, concerned_table
from connectors.mysql.model import Tables
from connectors.mysql.position.gtid import GtidSet, MariadbGtidSet
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.schema.history import HistoryFold
from connectors.mysql.server.binlog_client import unpack_transaction
from connectors.mysql.server.text_rows import MalformedRowError, rows_function, split_packets
from connectors.postgres import pgoutput
from connectors.postgres.position.offset import PostgresOffset
from offsets.config_store import ConfigFold
from offsets.keys import offset_key, offset_value, parse_offset_key, parse_offset_value
from offsets.status_store import StatusCache
from spark_sink.read.schemaless import describe, kind_of_value
from spark_sink.sql.record_schema import parse_head, read_schemas
from spark_sink.types.columns import TypeOptions
from tests.bson_documents import document
from tests.ddl_changes import actions
from tests.unit.connectors.engine.test_encode_reference import RECORDED, encoder, relation
from tests.unit.connectors.engine.test_java_object import VECTORS
from tests.unit.connectors.engine.test_signal_payloads import Source
from tests.unit.connectors.mysql.test_binlog import EVENTS, MEANINGS, events
from tests.unit.connectors.mysql.test_history import SCENARIOS, history

Decode = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Decoder:
    """One decoder.

    Attributes:
        make: returns seeds, and the function that reads one input.
        errors: that it may raise.
        is_json: whether the seeds are JSON.
    """

    make: Callable[[], tuple[list[bytes], Decode]]
    errors: tuple[type[Exception], ...]
    is_json: bool = False


# -- PostgreSQL ----------------------------------------------------------------------------------------------------------------------------

_MESSAGES: Mapping[bytes, Callable[[bytes, int], object]] = {
    b"B": pgoutput.decode_begin,
    b"C": pgoutput.decode_commit,
    b"R": pgoutput.decode_relation,
    b"T": pgoutput.decode_truncate,
    b"M": pgoutput.decode_message,
    b"O": pgoutput.decode_origin,
    b"S": pgoutput.decode_stream_start,
    b"A": pgoutput.decode_stream_abort,
    b"k": lambda data, _: pgoutput.decode_keepalive(data),
}


def _pgoutput() -> tuple[list[bytes], Decode]:
    pack = struct.pack
    seeds = [
        b"B" + pack(">qqI", 0x16B3748, 1_000_000, 790),
        b"C\0" + pack(">qqq", 100, 150, 0),
        b"T" + pack(">iBII", 2, 3, 7, 8),
        b"M\x01" + pack(">q", 99) + b"app\0" + pack(">i", 3) + b"\0\xff!",
        b"O" + pack(">q", 5) + b"other\0",
        b"S" + pack(">IB", 7, 1),
        b"A" + pack(">II", 7, 8),
        b"c" + pack(">IBqqq", 7, 0, 100, 150, 0),
        b"k" + pack(">qqB", 77, 0, 1),
        *(message for message in map(base64.b64decode, RECORDED["messages"]) if message[:1] == b"R"),
    ]

    def decode(data: bytes) -> object:
        if data[:1] == b"c":
            whole = b"w" + bytes(24) + data
            xid = pgoutput.decode_stream_commit(whole)
            begin = pgoutput.decode_begin(pgoutput.begin_of(whole, 5))
            assert begin.xid == xid
            return pgoutput.decode_commit(pgoutput.commit_of(whole))
        read = _MESSAGES.get(data[:1])
        return None if read is None else read(data, 0)

    return seeds, decode


_TAIL = b'"op":"c"}'


def _tuples() -> tuple[list[bytes], Decode]:
    encoders, seeds = {}, []
    for message in map(base64.b64decode, RECORDED["messages"]):
        if message[:1] == b"R":
            number, table, names = relation(message)
            encoders[struct.pack(">i", number)] = encoder(table, names)
        else:
            seeds.append(message)

    def decode(data: bytes) -> object:
        table = encoders.get(data[1:5])
        if table is None:
            return None
        match data[:1]:
            case b"I":
                made = table.insert(data, 5, b"{}", _TAIL)
            case b"D":
                made = table.delete(data, 5, b"{}", _TAIL)
            case b"U":
                key, value, old_key = table.update(data, 5, b"{}", _TAIL)
                if old_key is not None:
                    change = table.split(data, 5, b"{}", _TAIL, _TAIL)
                    assert isinstance(change.delete_value, bytes) and isinstance(change.create_value, bytes)
                made = key, value
            case _:
                return None
        assert isinstance(made[1], bytes)
        return made

    return seeds, decode


def _copy() -> tuple[list[bytes], Decode]:
    tables = [(encoder(name), Route("t", None, None), parts["copy"]) for name, parts in RECORDED["tables"].items()]
    seeds = [bytes([number]) + row.removesuffix("\n").encode() for number, (_, _, rows) in enumerate(tables) for row in rows]

    def decode(data: bytes) -> object:
        table, route, _ = tables[(data[0] if data else 0) % len(tables)]
        made = table.copy_rows([data[1:] + b"\n"], route, b"{}", _TAIL)
        for _, key, value in made:
            assert isinstance(key, bytes | None) and isinstance(value, bytes)
        return made

    return seeds, decode


def _check_json(*texts: bytes | None) -> None:
    for text in texts:
        if text:
            json.loads(text)


# -- MySQL ---------------------------------------------------------------------------------------------------------------------------------


def _binlog() -> tuple[list[bytes], Decode]:
    columns = next(body for body in events() if isinstance(body, TableMap)).columns
    reader_of = functools.lru_cache(100)(functools.partial(row_reader, columns, MEANINGS))

    def decode(data: bytes) -> object:
        _, body = decode_event(data, checksum=False)
        if isinstance(body, TransactionPayload):
            return list(inner_events(unpack_transaction(body)))
        if isinstance(body, Rows) and body.width == len(MEANINGS):
            if body.kind == "u":
                return read_pairs(reader_of(body.present), reader_of(body.present_after), body.body)
            return read_images(reader_of(body.present), body.body)
        if isinstance(body, TableMap):
            row_reader(body.columns, [Meaning()] * len(body.columns), b"\xff" * 100)
            return described_columns(body)
        return body

    return _whole_events(), decode


def _whole_events() -> list[bytes]:
    """All events, and those inside of compressed transactions; maps of tables and rows, of which most can go wrong, more often."""
    found = []
    for data in EVENTS:
        found.append(data[:9] + struct.pack("<I", len(data) - 4) + data[13:-4])
        _, body = decode_event(data, checksum=True)
        if isinstance(body, TransactionPayload):
            inner, at = unpack_transaction(body), 0
            while at < len(inner):
                length = struct.unpack_from("<I", inner, at + 9)[0]
                found.append(inner[at : at + length])
                at += length
    return found + [data for data in found if data[4] == EventType.TABLE_MAP or data[4] in KINDS] * 2


def _text_rows() -> tuple[list[bytes], Decode]:
    read = rows_function([True, False, True])
    rows = [b"\x011\x02ab\xfb", b"\xfb\xfb\xfb", b"\x00\x00\x03\xc3\xa4x", b"\xfc\x00\x01" + b"x" * 256 + b"\x01\xff\x01y"]
    packets = [struct.pack("<I", len(row) | number << 24) + row for number, row in enumerate(rows)]

    def decode(data: bytes) -> object:
        found: list[bytes] = []
        split_packets(data, 0, found.append, 100)
        texts = read(found)
        assert all(len(row) == 3 for row in texts)
        return texts

    return [*packets, b"".join(packets), b"".join(packets) + b"\x05\0\0\x09\xfe\0\0\x02\0"], decode


def _ddl() -> tuple[list[bytes], Decode]:
    chance = random.Random(1)
    statements = [
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) CHARACTER SET latin1 DEFAULT 'x''y', b DECIMAL(10,2) NOT NULL, "
        "c ENUM('p','q,r'), UNIQUE KEY u (a(3))) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='it''s'",
        "CREATE TABLE `d`.`y` LIKE t",
        "RENAME TABLE t TO o, d.y TO t",
        "DROP TABLE IF EXISTS t, `o` CASCADE",
        "TRUNCATE d.t",
        "ALTER DATABASE d CHARACTER SET = latin1 COLLATE latin1_bin",
        "CREATE UNIQUE INDEX i ON t (a DESC, b)",
        "SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD x INT /* no */ -- end",
        "/*!50100 ALTER */ TABLE t ADD COLUMN (g INT AS (a + 1) STORED, h INT CHECK (h > 0))",
        *(f"ALTER TABLE t {', '.join(actions(chance, ['id', 'a', 'b', 'c'], step))}" for step in range(60)),
        *(record["ddl"] for scenario in SCENARIOS[:8] for records in history(scenario) for record in records[:30]),
    ]
    known = Tables()
    for statement in statements[:1]:
        apply(statement, known, "d")

    def decode(data: bytes) -> object:
        sql = data.decode("utf-8", "replace")
        tables = Tables()
        tables.tables.update(known.tables)
        tables.charsets.update(known.charsets)
        concerned_table(sql, "d")
        text = normalised(without_settings(sql))
        for form, mode in ((text, 0), (sql, 4)):
            before = dict(tables.tables)
            try:
                apply(form, tables, "d", sql_mode=mode)
            except DdlError:
                assert tables.tables == before, "a statement that was refused has changed something"
                raise
        return tables

    return [statement.encode() for statement in statements], decode


def _gtids() -> tuple[list[bytes], Decode]:
    seeds = [
        b"24bc7850-2c16-11e6-a073-0242ac110002:1-5:7:9-11,\n24bc7850-2c16-11e6-a073-0242ac110003:tag:1",
        b"24bc7850-2c16-11e6-a073-0242ac110002:tag:1-3",
        b"0-1-42,1-5-7",
    ]

    def decode(data: bytes) -> object:
        text = data.decode("utf-8", "replace")
        try:
            return str(MariadbGtidSet.parse(text))
        except DataError:
            return str(GtidSet.parse(text))

    return seeds, decode


def _history() -> tuple[list[bytes], Decode]:
    records = [record for scenario in SCENARIOS for records in history(scenario)[:2] for record in records[:6]]
    first = records[0]

    def decode(data: bytes) -> object:
        for until in (None, {**first["position"], "pos": 1 << 40}):
            fold = HistoryFold(first["source"], until, lambda _: True)
            fold.add(orjson.dumps(first))
            _add(fold, data)
        return None

    return [orjson.dumps(record | {"source": first["source"]}) for record in records], decode


def _add(fold: HistoryFold, data: bytes) -> None:
    try:
        fold.add(data)
    finally:
        fold.tables()


# -- MongoDB -------------------------------------------------------------------------------------------------------------------------------


def _bson() -> tuple[list[bytes], Decode]:
    chance = random.Random(1)
    writers = [bson_json(Form.STRICT), bson_json(Form.CANONICAL), bson_json(Form.RELAXED), bson_json(Form.RELAXED, ", ")]

    def decode(data: bytes) -> object:
        decode_tree(data)
        for writer in writers:
            assert isinstance(writer.document(data), str)
        return None

    return [document(chance) for _ in range(300)], decode


_EVENT: dict[str, Any] = {
    "_id": {"_data": "82635019A0000000012B042C0100296E5A1004"},
    "clusterTime": Timestamp(1666193824, 1),
    "ns": {"db": "d", "coll": "c"},
    "documentKey": {"_id": 1},
}


class _Stream(ChangeStream):
    """Gives the bytes of one answer as the server's."""

    def __init__(self) -> None:
        self.next: list[bytes] = []
        self._fragments = Fragments()

    def read(self) -> Any:
        self._fragments = Fragments()
        return self._fragments.join([fields_of(data) for data in self.next])


def _changes() -> tuple[list[bytes], Decode]:
    whole = {"_id": 1, "a": [1, {"b": 2.5}], "c": "text"}
    description = {"updatedFields": {"a": "x"}, "removedFields": ["b"], "truncatedArrays": [{"field": "c", "newSize": 2}]}
    found = [
        {**_EVENT, "operationType": "insert", "fullDocument": whole},
        {**_EVENT, "operationType": "update", "fullDocument": whole, "updateDescription": description},
        {
            **_EVENT,
            "operationType": "replace",
            "fullDocument": whole,
            "fullDocumentBeforeChange": {"_id": 1},
            "wallTime": datetime.datetime(2026, 1, 2),
        },
        {**_EVENT, "operationType": "delete", "fullDocumentBeforeChange": whole, "lsid": {"id": b"1"}, "txnNumber": bson.Int64(5)},
        {**_EVENT, "operationType": "drop"},
        {**_EVENT, "operationType": "invalidate"},
        {**_EVENT, "operationType": "update", "splitEvent": {"fragment": 1, "of": 1}, "fullDocument": whole},
    ]
    stream, pending = _Stream(), PendingRows()
    config = parse_config({"topic.prefix": "m", "mongodb.connection.string": "mongodb://h/?replicaSet=a"})

    def decode(data: bytes) -> object:
        reading = EventStream(
            stream,
            config,
            MongoOffset(),
            factory,
            Documents("legacy"),
            pending=pending,
            signal=lambda _: None,
            monitor=None,
            metrics=StreamingMetrics("mongodb", "m"),
        )
        stream.next = [data]
        try:
            reading.read()
        finally:
            rows = pending.take()
        for _, key, value in rows:
            _check_json(key, value)
        return rows

    factory = CollectionFactory(config, JsonEncoding(), ())
    return [bson.encode(event) for event in found], decode


# -- Kafka Connect's topics ----------------------------------------------------------------------------------------------------------------

_BEHIND_KEY = b"\x01\x02"

_CONFIGS = [
    (b"connector-c", b'{"properties":{"name":"c","connector.class":"X","tasks.max":"2"}}'),
    (b"task-c-0", b'{"properties":{"task.class":"X","a":"1"}}'),
    (b"task-c-1", b'{"properties":{"task.class":"X","a":"2"}}'),
    (b"commit-c", b'{"tasks":2}'),
    (b"target-state-c", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
    (b"restart-connector-c", b'{"include-tasks":true,"only-failed":false}'),
    (b"tasks-fencing-c", b'{"task-count":2}'),
    (b"session-key", b'{"algorithm":"HmacSHA256","creation-timestamp":1700000000000,"key":"AAAA"}'),
    (b"logger-cluster-org.apache", b'{"level":"DEBUG"}'),
]


def _parted(data: bytes) -> tuple[bytes, bytes | None]:
    key, behind, value = data.partition(_BEHIND_KEY)
    return key, value if behind else None


def _configs() -> tuple[list[bytes], Decode]:
    def decode(data: bytes) -> object:
        fold = ConfigFold()
        for offset, record in enumerate(_CONFIGS):
            fold.apply(*record, offset)
        key, value = _parted(data)
        try:
            fold.apply(key, value, 20)
        finally:
            fold.apply(b"commit-c", b'{"tasks":2}', 21)
            found = fold.snapshot()
            for name, config in found.connectors.items():
                assert all(isinstance(text, str | None) for text in config.values())
                found.target_state(name)
                assert all(isinstance(task, int) for task in found.tasks(name))
        return found

    return [key + _BEHIND_KEY + value for key, value in _CONFIGS], decode


def _statuses() -> tuple[list[bytes], Decode]:
    status = b'{"state":"RUNNING","trace":null,"worker_id":"w:1","generation":3,"version":"1"}'
    records = [
        (b"status-connector-c", status),
        (b"status-task-c-0", status),
        (b"status-task-a-b-12", b'{"state":"FAILED","trace":"why","worker_id":"w:1","generation":3}'),
        (b"status-topic-t:connector-c", b'{"topic":{"name":"t","connector":"c","task":0,"discoverTimestamp":1700000000000}}'),
    ]

    def decode(data: bytes) -> object:
        cache = StatusCache()
        for record in records:
            cache.apply(*record)
        return cache.apply(*_parted(data))

    return [key + _BEHIND_KEY + value for key, value in records], decode


_WANTED = (("id", "s.t"), ("additional_condition", None), ("surrogate_key", None))
_OFFSETS: list[tuple[Any, dict[str, Any]]] = [
    (PostgresOffset, {"lsn": 5, "lsn_proc": 5, "lsn_commit": 4, "txId": 7, "ts_usec": 1, "messageType": "INSERT", "snapshot": "INITIAL"}),
    (MySqlOffset, {"file": "b.000001", "pos": 4, "gtids": "24bc7850-2c16-11e6-a073-0242ac110002:1-5", "row": 1, "event": 2, "ts_sec": 1}),
    (MongoOffset, {"sec": 1, "ord": 2, "resume_token": base64.b64encode(bson.encode({"_data": "82"})).decode(), "transaction_id": None}),
    (
        IncrementalOffset,
        {
            "incremental_snapshot_collections": json.dumps([{f"incremental_snapshot_collections_{name}": text for name, text in _WANTED}]),
            "incremental_snapshot_maximum_key": VECTORS[2][1],
            "incremental_snapshot_primary_key": VECTORS[1][1],
            "incremental_snapshot_correlation_id": None,
        },
    ),
]


def _offsets() -> tuple[list[bytes], Decode]:
    seeds = [
        offset_key("c", {"server": str(number)}) + _BEHIND_KEY + (offset_value(offset) or b"")
        for number, (_, offset) in enumerate(_OFFSETS)
    ]

    def decode(data: bytes) -> object:
        key, value = _parted(data)
        found = parse_offset_key(key)
        if found is None or value is None:
            return None
        stored = parse_offset_value(value)
        loaded = None
        for kind, _ in _OFFSETS:
            try:
                loaded = kind.load(stored)
            except ConfigError:
                continue
            loaded.dump()
        return loaded

    return seeds, decode


def _offset_values() -> tuple[list[bytes], Decode]:
    """The values alone, as JSON that stays JSON."""
    _, whole = _offsets()
    key = offset_key("c", {"server": "s"}) + _BEHIND_KEY
    return [offset_value(offset) or b"" for _, offset in _OFFSETS], lambda data: whole(key + data)


def _java_keys() -> tuple[list[bytes], Decode]:
    def decode(data: bytes) -> object:
        return decode_key(data.hex())

    return [bytes.fromhex(text) for _, text in VECTORS], decode


# -- signals -------------------------------------------------------------------------------------------------------------------------------


def _signals() -> tuple[list[bytes], Decode]:
    documents = [
        {"id": "1", "type": "execute-snapshot", "data": {"data-collections": ["s.t"], "type": "incremental"}},
        {"id": "2", "type": "execute-snapshot", "data": {"data-collections": ["s.t", "s.u"], "type": "BLOCKING", "surrogate-key": "k"}},
        {
            "id": "3",
            "type": "execute-snapshot",
            "data": {"data-collections": ["s.t"], "additional-conditions": [{"data-collection": "s.t", "filter": "a = 1"}]},
        },
        {"id": "4", "type": "stop-snapshot", "data": {"data-collections": ["s.t"], "type": "INCREMENTAL"}},
        {"id": "5", "type": "pause-snapshot", "data": {"type": "incremental"}},
        {"id": "6", "type": "resume-snapshot", "data": {}},
        {"id": "7", "type": "log", "data": {"message": "at {}"}},
        {"id": "8", "type": "schema-changes", "data": {"database": "d", "schema": "s", "changes": [{"type": "ALTER", "id": '"t"'}]}},
        {"id": "9", "type": "set-binlog-position", "data": {"binlog_filename": "b.000001", "binlog_position": 4}},
    ]
    sources = [Source()]
    count = 0

    def decode(data: bytes) -> object:
        nonlocal count
        count += 1
        if count % 100 == 0:
            sources[0] = Source()
        signal = parse_document(data.decode("utf-8", "replace"), "file")
        sources[0].take(signal.type, signal.data, signal.id)
        sources[0].run.batch(1)
        orjson.dumps(dict(sources[0].run.snapshot.offset()))
        return signal

    return [json.dumps(each).encode() for each in documents], decode


# -- records that sinks read ---------------------------------------------------------------------------------------------------------------


def _connect_schema() -> dict[str, Any]:
    scalars = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")
    fields: list[dict[str, Any]] = [{"type": kind, "optional": True, "field": kind} for kind in scalars]
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1, "optional": True, "field": "decimal"}
    fields += [
        {**decimal, "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
        {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1, "optional": True, "field": "at", "default": 0},
        {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1, "optional": True, "field": "day"},
        {"type": "array", "items": {"type": "string", "optional": True}, "optional": True, "field": "tags"},
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "int64", "optional": True}, "optional": True, "field": "map"},
        {"type": "struct", "name": "p", "fields": [{"type": "double", "field": "x"}][:0], "optional": True, "field": "inner"},
    ]
    return {"type": "struct", "optional": False, "name": "s.Value", "fields": fields}


_ROW: dict[str, Any] = {
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float": 1.5,
    "double": 2.5,
    "boolean": True,
    "string": "text",
    "bytes": "AQI=",
    "decimal": "J3E=",
    "at": 5,
    "day": 6,
    "tags": ["a", None],
    "map": {"k": 7},
    "inner": {},
}


def _record_texts() -> list[bytes]:
    row = _connect_schema()
    optional = {**row, "optional": True}
    source = {"type": "struct", "optional": False, "field": "source", "fields": [{"type": "string", "optional": True, "field": "db"}]}
    envelope = {
        "type": "struct",
        "name": "s.Envelope",
        "fields": [{**optional, "field": "before"}, {**optional, "field": "after"}, source, {"type": "string", "field": "op"}],
    }
    records = [
        {"schema": row, "payload": _ROW},
        {"schema": envelope, "payload": {"before": None, "after": _ROW, "source": {"db": "d"}, "op": "c"}},
        {"schema": {"type": "string", "optional": True}, "payload": "text"},
        {"schema": None, "payload": {"op": "u", "after": {"a": 1}, "source": {"db": "d", "table": "t"}, "__op": "u"}},
        {"schema": {"type": "struct", "fields": [{"type": "int64", "field": "id"}]}, "payload": {"id": 1}},
    ]
    return [json.dumps(record, separators=(",", ":")).encode() for record in records]


def _lakehouse() -> tuple[list[bytes], Decode]:
    options = TypeOptions()

    def decode(data: bytes) -> object:
        text = data.decode("utf-8", "replace")
        head = parse_head(text.partition(',"payload":')[0])
        try:
            payload = json.loads(text).get("payload")
        except (ValueError, RecursionError, AttributeError):
            payload = None
        kind_of_value(payload)
        if head is None:
            return describe("topic", payload)
        found = read_schemas(head, head, tombstone=False, options=options)
        read_schemas(head, None, tombstone=True, options=options)
        return found

    return _record_texts(), decode


def _json_converter() -> tuple[list[bytes], Decode]:
    converter, plain = JsonConverter(), JsonConverter()
    converter.configure({"schemas.enable": "true"})
    plain.configure({"schemas.enable": "false"})

    def decode(data: bytes) -> object:
        schema, value = converter.to_connect_data("t", data)
        again = converter.from_connect_data("t", schema, value)
        _check_json(again)
        return plain.to_connect_data("t", data)

    return _record_texts(), decode


# -- the group -----------------------------------------------------------------------------------------------------------------------------


def _group() -> tuple[list[bytes], Decode]:
    work = Allocation.of(["a", TaskId("a", 0), TaskId("a", 1), "größe", TaskId("b", 3)])
    assignment = GroupAssignment(0, "member-1", "http://worker:8083/", 7, work, Allocation.of([TaskId("c", 0)]), 60_000)
    state = WorkerState("http://worker:8083/", 7, work, assignment, WorkerDetails(True, "1.0", "host"))
    seeds = [b"s" + encode_metadata(each, protocol) for each in (state, replace(state, details=None)) for protocol in GroupProtocol]
    seeds += [b"a" + encode_assignment(assignment, protocol) for protocol in GroupProtocol]

    def decode(data: bytes) -> object:
        if data[:1] == b"a":
            given = decode_assignment(data[1:])
            return decode_assignment(encode_assignment(given, GroupProtocol.SESSIONED))
        found = decode_metadata(data[1:])
        again = decode_metadata(encode_metadata(found, GroupProtocol.SESSIONED)).allocation
        assert sorted(again.tasks) == sorted(found.allocation.tasks)
        assert sorted(again.connectors) == sorted(found.allocation.connectors)
        return found

    return seeds, decode


DECODERS: Mapping[str, Decoder] = {
    "pgoutput: messages": Decoder(_pgoutput, (DataError,)),
    "pgoutput: rows": Decoder(_tuples, (DataError,)),
    "PostgreSQL: COPY rows": Decoder(_copy, (DataError,)),
    "MySQL: binlog": Decoder(_binlog, (MalformedEventError,)),
    "MySQL: rows of a snapshot": Decoder(_text_rows, (MalformedRowError,)),
    "MySQL: DDL": Decoder(_ddl, (DdlError,)),
    "MySQL: GTID sets": Decoder(_gtids, (DataError,)),
    "MySQL: schema history": Decoder(_history, (DataError,), is_json=True),
    "MongoDB: BSON": Decoder(_bson, (MalformedBsonError,)),
    "MongoDB: change streams": Decoder(_changes, (ConnectError,)),
    "Connect: configurations": Decoder(_configs, (DataError,)),
    "Connect: statuses": Decoder(_statuses, (DataError,)),
    "Connect: offsets": Decoder(_offsets, (DataError,)),
    "Connect: values of offsets": Decoder(_offset_values, (DataError,), is_json=True),
    "Connect: keys of incremental snapshots": Decoder(_java_keys, (ConfigError,)),
    "signals": Decoder(_signals, (ValueError,), is_json=True),
    "sinks: schemas of records": Decoder(_lakehouse, (DataError,), is_json=True),
    "sinks: JSON records": Decoder(_json_converter, (DataError,), is_json=True),
    "group of workers": Decoder(_group, (DataError,)),
}
