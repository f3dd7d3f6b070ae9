"""pgoutput's messages, from bytes that a PostgreSQL 15 server sent or that its manual describes."""

from struct import pack

import pytest

from connect_py.errors import DataError
from connectors.postgres import pgoutput
from connectors.postgres.encode.tuples import read_tuple


def test_begin_gives_the_commit_position_time_and_transaction() -> None:
    begin = pgoutput.decode_begin(b"B" + pack(">qqI", 0x16B3748, 1_000_000, 790), 0)
    assert begin == pgoutput.Begin(final_lsn=0x16B3748, commit_us=946_684_801_000_000, xid=790)


def test_commit_gives_both_positions() -> None:
    commit = pgoutput.decode_commit(b"C\0" + pack(">qqq", 100, 150, 0), 0)
    assert commit == pgoutput.Commit(commit_lsn=100, end_lsn=150, commit_us=946_684_800_000_000)


def test_relation_names_columns_and_types() -> None:
    columns = b"\x01id\0" + pack(">Ii", 23, -1) + b"\0name\0" + pack(">Ii", 1043, 24)
    relation = pgoutput.decode_relation(b"R" + pack(">I", 16390) + b"public\0t\0d" + pack(">h", 2) + columns, 0)
    assert relation == pgoutput.Relation(
        16390,
        "public",
        "t",
        (pgoutput.RelationColumn("id", 23, -1), pgoutput.RelationColumn("name", 1043, 24)),
    )


def test_relation_without_schema_is_of_the_catalog() -> None:
    assert pgoutput.decode_relation(b"R" + pack(">I", 1) + b"\0t\0f\0\0", 0).schema == "pg_catalog"


def test_truncate_names_every_table() -> None:
    assert pgoutput.decode_truncate(b"T" + pack(">iBII", 2, 3, 7, 8), 0) == pgoutput.Truncate((7, 8))


def test_logical_message_keeps_its_bytes() -> None:
    data = b"M\x01" + pack(">q", 99) + b"app\0" + pack(">i", 3) + b"\0\xff!"
    assert pgoutput.decode_message(data, 0) == pgoutput.LogicalMessage(True, 99, "app", b"\0\xff!")


def test_origin_is_named() -> None:
    assert pgoutput.decode_origin(b"O" + pack(">q", 5) + b"other\0", 0) == pgoutput.Origin(5, "other")


def test_keepalive_says_whether_an_answer_is_wanted() -> None:
    assert pgoutput.decode_keepalive(b"k" + pack(">qqB", 77, 0, 1)) == (77, True)
    assert pgoutput.decode_keepalive(b"k" + pack(">qqB", 77, 0, 0)) == (77, False)


def test_status_has_34_bytes_and_the_servers_clock() -> None:
    message = pgoutput.encode_status(10, 5, pgoutput.POSTGRES_EPOCH_US + 7)
    assert message == b"r" + pack(">qqqqB", 10, 5, 5, 7, 0)
    assert len(message) == 34


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (pgoutput.decode_begin, b"B" + pack(">qqI", 1, 2, 3)),
        (pgoutput.decode_commit, b"C\0" + pack(">qqq", 1, 2, 3)),
        (pgoutput.decode_relation, b"R" + pack(">I", 1) + b"s\0t\0d\0\x01\x01id\0" + pack(">Ii", 23, -1)),
        (pgoutput.decode_truncate, b"T" + pack(">iBII", 2, 3, 7, 8)),
        (pgoutput.decode_message, b"M\x01" + pack(">q", 99) + b"app\0" + pack(">i", 3) + b"\0\xff!"),
        (pgoutput.decode_origin, b"O" + pack(">q", 5) + b"other\0"),
        (pgoutput.decode_stream_start, b"S" + pack(">I", 7)),
        (pgoutput.decode_stream_abort, b"A" + pack(">II", 7, 8)),
        (pgoutput.decode_stream_commit, b"c" + pack(">I", 7)),
        (pgoutput.commit_of, b"c" + pack(">IBqqq", 7, 0, 1, 2, 3)),
        (lambda data, _: pgoutput.decode_keepalive(data), b"k" + pack(">qqB", 77, 0, 1)),
    ],
)
def test_a_message_that_is_cut_short_is_a_named_error(decode, message) -> None:
    decode(message, 0)
    for size in range(1, len(message)):
        with pytest.raises(DataError, match="cannot be read"):
            decode(message[:size], 0)


@pytest.mark.parametrize(
    "message", [b"T" + pack(">iBI", -1, 3, 7), b"R" + pack(">I", 1) + b"s\0t\0d\xff\xff", b"O" + pack(">q", 5) + b"\xff\0"]
)
def test_a_message_that_contradicts_itself_is_a_named_error(message) -> None:
    decode = {b"T": pgoutput.decode_truncate, b"R": pgoutput.decode_relation, b"O": pgoutput.decode_origin}[message[:1]]
    with pytest.raises(DataError, match="cannot be read"):
        decode(message, 0)


@pytest.mark.parametrize(
    "row",
    [
        b"\0\2t\0\0\0\1a",
        b"\0\2nt\0\0\0\5a",
        b"\0\2nt\0\0",
        b"\0\2t\xff\xff\xff\xffnn",
        b"\0\2t\xff\xff\xff\xf0nn",
        b"\0\2nt\0\0\0\1\xff",
        b"\0\2nb",
        b"\0\1n",
    ],
)
def test_a_row_that_is_none_is_a_named_error(row) -> None:
    with pytest.raises(DataError):
        read_tuple(row, 0, 2)
