"""The encoder's bytes are those that the reference wrote for the same rows (encode_reference.json holds both)."""

import base64
import json
import struct

import pytest

from connect_py.api import JsonEncoding, Route
from connectors.engine.envelope import tail
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.types.columns import BaseType, PgColumn, ValueOptions, column_plan
from tests.paths import GOLDEN

RECORDED = json.loads((GOLDEN / "encode_reference.json").read_text())
TABLES = RECORDED["tables"]
KEYS = {"composite": ["d", "c", "b", "a"], "required": ["pk2", "pk"]}
#: What the reference writes and we do not, on purpose: a snapshot loses the era of a date, and a required `name` is streamed as "".
DELIBERATE = [('"da":-703383', '"da":-735160'), ('"nm":"","opt":null},"source"', '"nm":"nm","opt":null},"source"')]


def record_bytes(part) -> bytes | None:
    if part is None:
        return None
    schema, payload = part
    for theirs, ours in DELIBERATE:
        payload = payload.replace(theirs, ours)
    return f'{{"schema":{RECORDED["schemas"][schema]},"payload":{payload}}}'.encode()


def encoder(table: str, names: list[str] | None = None) -> PostgresEncoder:
    plans, key = [], []
    for name, oid, type_name, typmod, nullable, default, category, labels, in_key, base_oid, base, base_typmod, base_category in TABLES[
        table
    ]["columns"]:
        if names is not None and name not in names:
            continue
        chain = (BaseType(base_oid, base, base_typmod, base_category),) if base else ()
        column = PgColumn(name, oid, type_name, typmod, nullable, default, category, tuple(labels or ()), chain)
        plans.append(column_plan(column, ValueOptions()))
        key += [name] if in_key else []
    return PostgresEncoder(f"d1_rows.public.{table}", plans, KEYS.get(table, key), SOURCE_SCHEMA, JsonEncoding())


class Volatile:
    """The parts of a recorded value that come from elsewhere: its source block and its end."""

    def __init__(self, part) -> None:
        payload = json.loads(part[1])
        source = payload["source"]
        block = SourceBlock(source["version"], source["name"], source["db"], source["schema"], source["table"])
        before, _ = json.loads(source["sequence"])
        if source["snapshot"] == "false":
            self.source = block.transaction(source["ts_us"], source["txId"], before and int(before))(source["lsn"])
        else:
            self.source = block.snapshot(source["snapshot"], source["ts_us"], source["txId"], source["lsn"])
        self.end = tail(payload["op"], payload["ts_ns"])


@pytest.mark.parametrize("table", TABLES)
def test_snapshot_rows_are_the_references_bytes(table):
    table_encoder = encoder(table)
    route = Route("t", table_encoder.key_schema, table_encoder.value_schema)
    rows = [row.encode() for row in TABLES[table]["copy"]]
    volatile = [Volatile(record[1]) for record in TABLES[table]["records"][: len(rows)]]
    expected = [tuple(map(record_bytes, record[:2])) for record in TABLES[table]["records"][: len(rows)]]
    assert [table_encoder.copy_row(row, v.source, v.end) for row, v in zip(rows, volatile, strict=True)] == expected
    # a batch shares its source block and end: those of its first row
    batch = table_encoder.copy_rows(rows, route, volatile[0].source, volatile[0].end)
    assert batch == [(route, *table_encoder.copy_row(row, volatile[0].source, volatile[0].end)) for row in rows]


def relation(message: bytes) -> tuple[int, str, list[str]]:
    number, at = struct.unpack(">i", message[1:5])[0], 5
    texts = []
    for _ in range(2):
        end = message.index(b"\0", at)
        texts.append(message[at:end].decode())
        at = end + 1
    count, at, names = struct.unpack(">h", message[at + 1 : at + 3])[0], at + 3, []
    for _ in range(count):
        end = message.index(b"\0", at + 1)
        names.append(message[at + 1 : end].decode())
        at = end + 9
    return number, texts[1], names


def test_streamed_changes_are_the_references_bytes():
    encoders, left = {}, {table: iter(parts["records"][len(parts["copy"]) :]) for table, parts in TABLES.items()}
    seen = {"I": 0, "U": 0, "D": 0, "split": 0}
    for message in map(base64.b64decode, RECORDED["messages"]):
        kind = chr(message[0])
        if kind == "R":
            number, table, names = relation(message)
            encoders[number] = table, encoder(table, names)
            continue
        table, table_encoder = encoders[struct.unpack(">i", message[1:5])[0]]
        seen[kind] += 1
        key, value, headers = next(left[table])
        expected, volatile = (record_bytes(key), record_bytes(value)), Volatile(value)
        if kind == "I":
            assert table_encoder.insert(message, 5, volatile.source, volatile.end) == expected
        elif kind == "D":
            assert table_encoder.delete(message, 5, volatile.source, volatile.end) == expected
            assert next(left[table])[1] is None
        elif "__debezium.newkey" not in headers:
            assert table_encoder.update(message, 5, volatile.source, volatile.end) == (*expected, None)
        else:
            assert next(left[table])[1] is None
            new_key, new_value, new_headers = next(left[table])
            created = Volatile(new_value)
            assert table_encoder.update(message, 5, volatile.source, volatile.end)[::2] == (record_bytes(new_key), expected[0])
            change = table_encoder.split(message, 5, volatile.source, volatile.end, created.end)
            assert (change.old_key, change.delete_value) == expected
            assert (change.new_key, change.create_value) == (record_bytes(new_key), record_bytes(new_value))
            assert headers == {"__debezium.newkey": change.new_key_text}
            assert new_headers == {"__debezium.oldkey": change.old_key_text}
            seen["split"] += 1
    assert all(not list(records) for records in left.values())
    assert seen == {"I": 14, "U": 13, "D": 14, "split": 5}
