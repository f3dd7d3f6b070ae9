"""The binlog decoder. `mysql_binlog_events.json` holds the events of a real server (MySQL 9.7): inserts, an update, deletes, a compressed
and a tagged transaction, DDL.
"""

import contextlib
import json
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.mysql.binlog.codes import ColumnType, MalformedEventError
from connectors.mysql.binlog.columns import Meaning
from connectors.mysql.binlog.events import Gtid, Query, Rows, RowsQuery, TransactionPayload, decode_event, inner_events
from connectors.mysql.binlog.json_text import json_double, json_text, opaque_text
from connectors.mysql.binlog.rows import read_images, read_pairs, row_reader
from connectors.mysql.binlog.table_map import StoredColumn, TableMap
from connectors.mysql.binlog.values import decimal_reader, stored_size
from connectors.mysql.server.binlog_client import unpack_transaction
from tests.paths import GOLDEN
from tests.stored_rows import stored_decimal

EVENTS = [bytes.fromhex(event) for event in json.loads((GOLDEN / "mysql_binlog_events.json").read_text())["events"]]
UTF8, PLAIN, UNSIGNED = Meaning(charset="utf8mb4"), Meaning(), Meaning(unsigned=True)
MEANINGS = [
    *(PLAIN, PLAIN, UNSIGNED, PLAIN, PLAIN, UNSIGNED, PLAIN, UNSIGNED),  # integers
    *[PLAIN] * 10,
    *(UTF8, UTF8, UTF8, PLAIN, PLAIN, Meaning(labels=("x", "y")), Meaning(labels=("p", "q", "r")), UTF8, PLAIN),
]
FIRST = [
    *("1", "-5", "250", "-3000", "-70000", "16000000", "-9223372036854775808", "18446744073709551615", "1.5", "1.0E100", "-12345.678900"),
    *("12345678901234567890123456789012345.123456789012345678901234567891", "\x02\x03", "1999", "2020-02-03", "2020-02-03 04:05:06.789"),
    *("2020-02-03 04:05:06.789123", "-12:34:56.78", "ab", "žluť", "text", "bl\0ob", "\0ÿ", "y", "p,r"),
    '{"a":[1,2.5,"x"],"b":{"c":null}}',
    "\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0ð?\0\0\0\0\0\0\0@",
]


def events():
    """Bodies in order, those of compressed transactions in place."""
    for data in EVENTS:
        _, body = decode_event(data, checksum=True)
        yield body
        if isinstance(body, TransactionPayload):
            yield from (inner for _, inner in inner_events(unpack_transaction(body)))


def changes():
    tables = {}
    for body in events():
        if isinstance(body, TableMap):
            tables[body.table_id] = body
        elif isinstance(body, Rows):
            columns = tables[body.table_id].columns
            before = row_reader(columns, MEANINGS, body.present)
            if body.kind == "u":
                yield "u", read_pairs(before, row_reader(columns, MEANINGS, body.present_after), body.body)
            else:
                yield body.kind, read_images(before, body.body)


def test_a_real_log_is_read_to_the_texts_of_the_server():
    found = list(changes())
    assert [kind for kind, _ in found] == ["c", "c", "c", "u", "d", "c", "d", "d"]
    assert found[0][1] == [FIRST]
    assert found[2][1] == [["3", *[None] * 26]]
    [(before, after)] = found[3][1]
    assert before == FIRST and after == [FIRST[0], "1", *FIRST[2:]]
    assert found[5][1][0][19] == "z" * 200


def test_transactions_have_names_with_tags_and_moments():
    gtids = [body for body in events() if isinstance(body, Gtid)]
    assert [gtid.number for gtid in gtids][-2:] == [1, 2]
    assert gtids[-1].source.endswith(":tagged")
    # the day on which the events were recorded
    assert all(1_795_305_600_000_000 < gtid.commit_micros < 1_795_392_000_000_000 for gtid in gtids)
    assert next(body.sql for body in events() if isinstance(body, RowsQuery)) == b"DELETE FROM a WHERE id=2"
    last = list(events())[-1]
    assert isinstance(last, Query) and last.sql.startswith(b"DROP TABLE `a`") and (last.schema, last.sql_mode) == ("fnd_t", 0)


def test_a_wrong_checksum_is_noticed():
    data = bytearray(EVENTS[3])
    data[30] ^= 1
    with pytest.raises(MalformedEventError, match="checksum"):
        decode_event(bytes(data), checksum=True)


# -- decimals ------------------------------------------------------------------------------------------------------------------------


@given(st.data())
def test_decimals_of_every_size(data):
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(30, precision)))
    unscaled = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    value = Decimal(f"{unscaled}E-{scale}")
    octets = stored_decimal(unscaled, precision, scale)
    assert len(octets) == stored_size(precision, scale)
    text = decimal_reader(precision, scale)(octets)
    assert text == f"{value:f}"


# -- JSON ----------------------------------------------------------------------------------------------------------------------------


def stored_json(value) -> tuple[int, bytes]:
    """Type and bytes of a value, containers in their large form."""
    if value is None or isinstance(value, bool):
        return 4, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, int):
        return 9, struct.pack("<q", value)
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, str):
        data = value.encode()
        size, length = len(data), b""
        while True:
            length += bytes([size & 127 | (128 if size > 127 else 0)])
            size >>= 7
            if not size:
                return 12, length + data
    keys = [key.encode() for key in value] if isinstance(value, dict) else []
    items = [stored_json(item) for item in (value.values() if isinstance(value, dict) else value)]
    head = 8 + 6 * len(keys) + 5 * len(items)
    body, key_entries, value_entries = b"", b"", b""
    for key in keys:
        key_entries += struct.pack("<IH", head + len(body), len(key))
        body += key
    for kind, data in items:
        if kind == 4:
            value_entries += bytes([kind]) + data.ljust(4, b"\0")
        else:
            value_entries += bytes([kind]) + struct.pack("<I", head + len(body))
            body += data
    return (1 if isinstance(value, dict) else 3), struct.pack("<II", len(items), head + len(body)) + key_entries + value_entries + body


LEAVES = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
DOCUMENTS = st.recursive(
    LEAVES | TEXTS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5), max_leaves=20
)


@given(DOCUMENTS)
def test_json_documents(document):
    kind, data = stored_json(document)
    assert json.loads(json_text(bytes([kind]) + data)) == document


@given(st.binary(max_size=60))
def test_any_bytes_as_json_give_a_text_or_the_one_error(data):
    with contextlib.suppress(MalformedEventError):
        json_text(data)


def test_a_json_document_that_contains_itself_ends():
    # a large array of 40 entries that all point back to the array
    count = 40
    head = struct.pack("<II", count, 8 + 5 * count)
    data = bytes([3]) + head + (bytes([3]) + struct.pack("<I", 0)) * count
    with pytest.raises(MalformedEventError, match="contradicts itself"):
        json_text(data)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1.0, "1.0"), (-0.0, "-0.0"), (-3e10, "-30000000000"), (1.2345678901234568e29, "123456789012345677877719597056")],
)
def test_json_doubles_have_no_exponent(value, text):
    assert json_double(value) == text


def test_sql_values_inside_json():
    day = (((1999 * 13 + 12) << 5 | 31) << 17) << 24
    moment = ((((1999 * 13 + 12) << 5 | 31) << 17 | 23 << 12 | 59 << 6 | 59) << 24) + 123_456
    time = (12 << 12 | 34 << 6 | 56) << 24 | 789_000
    assert opaque_text(ColumnType.DATE, struct.pack("<q", day)) == '"1999-12-31"'
    assert opaque_text(ColumnType.DATETIME, struct.pack("<q", moment)) == '"1999-12-31 23:59:59.123456"'
    assert opaque_text(ColumnType.TIME, struct.pack("<q", time)) == '"12:34:56.789"'
    assert opaque_text(ColumnType.TIME, struct.pack("<q", -time)) == '"-12:34:56.789"'
    assert opaque_text(ColumnType.NEWDECIMAL, bytes([10, 3]) + stored_decimal(12340, 10, 3)) == "12.340"
    assert opaque_text(ColumnType.VAR_STRING, b"ab") == '"YWI="'


def test_columns_that_an_image_lacks_are_unchanged():
    columns = [StoredColumn(ColumnType.LONG), StoredColumn(ColumnType.BLOB, 2), StoredColumn(ColumnType.TINY)]
    read = row_reader(columns, [PLAIN, UTF8, PLAIN], bytes([0b101]))
    [row] = read_images(read, bytes([0]) + struct.pack("<ib", 7, -1))
    assert row[0] == "7" and repr(row[1]) == "UNCHANGED" and row[2] == "-1"
