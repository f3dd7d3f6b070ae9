"""Statements in the log (`Query_event`), with what of the session's state is needed to understand them."""

from __future__ import annotations

from functools import lru_cache

from connectors.mysql.binlog.bodies import Query
from connectors.mysql.binlog.compression import unpacked
from connectors.mysql.binlog.cursor import Cursor

_STATUS_SIZES = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 18: 2, 19: 1, 20: 1, 21: 1, 128: 3, 129: 8}


def read_query(cursor: Cursor, *, compressed: bool) -> Query:
    """A statement's body."""
    thread_id = cursor.number(4)
    cursor.take(4)
    schema_length = cursor.number(1)
    cursor.take(2)
    sql_mode, charset = _status(cursor.take(cursor.number(2)))
    schema = cursor.text(schema_length)
    cursor.take(1)
    sql = unpacked(cursor) if compressed else cursor.rest()
    return Query(thread_id, schema, sql, sql_mode, charset)


@lru_cache(maxsize=64)
def _status(octets: bytes) -> tuple[int | None, tuple[int, int, int] | None]:
    """Status variables (Query_event_post_header); those behind one of unknown size are left. A session's are always the same."""
    cursor = Cursor(octets)
    sql_mode, charset = None, None
    while cursor.at < cursor.end:
        code = cursor.number(1)
        if code == 1:
            sql_mode = cursor.number(8)
        elif code == 4:
            charset = (cursor.number(2), cursor.number(2), cursor.number(2))
        elif code == 2:
            cursor.take(cursor.number(1) + 1)
        elif code in (5, 6):
            cursor.take(cursor.number(1))
        elif code == 11:
            cursor.take(cursor.number(1))
            cursor.take(cursor.number(1))
        elif code == 12:
            count = cursor.number(1)
            for _ in range(count if count < 254 else 0):
                while cursor.take(1) != b"\0":
                    pass
        elif code in _STATUS_SIZES:
            cursor.take(_STATUS_SIZES[code])
        else:
            break
    return sql_mode, charset
