"""Decoders of MySQL's character sets beside the server's own conversion: codes of one and two bytes, and of three where there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from connectors.mysql.binlog.charsets import decoder, is_known

_TWO = {"big5", "gbk", "gb2312", "gb18030", "euckr", "ujis", "eucjpms", "sjis", "cp932", "ucs2", "utf16", "utf16le"}
#: Codes that the server reads as U+FFFD and Java as a character, which we follow; and newer assignments.
_READ_OTHERWISE = {
    "big5": {"a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce"},
    "gb18030": {"a8bc"},
}


@pytest.fixture(params=["mysql", pytest.param("mariadb", marks=pytest.mark.long)])
def cursor(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.getfixturevalue(request.param).connect() as connection:
        yield connection.cursor()


def test_every_character_of_every_set_is_read_as_the_server_reads_it(cursor: Any) -> None:
    cursor.execute("SELECT character_set_name FROM information_schema.character_sets")
    differing = {}
    for charset in sorted(name for (name,) in cursor.fetchall() if name not in ("binary", "utf8", "utf8mb3", "utf8mb4")):
        assert is_known(charset)
        decode = decoder(charset)
        known = _READ_OTHERWISE.get(charset, set())
        found = [code.hex() for code, text in _converted(cursor, charset) if decode(code) != text and code.hex() not in known]
        if found:
            differing[charset] = found[:40]
    assert differing == {}


def _converted(cursor: Any, charset: str) -> Iterator[tuple[bytes, str]]:
    """Codes that are characters, and those."""
    codes = list(_codes(charset))
    for first in range(0, len(codes), 5000):
        yield from _taken(cursor, charset, codes[first : first + 5000])


def _taken(cursor: Any, charset: str, codes: list[bytes]) -> Iterator[tuple[bytes, str]]:
    """What the server makes of some codes; where it refuses one, of each half."""
    rows = " UNION ALL ".join(f"SELECT CONVERT(x'{code.hex()}' USING {charset}) c" for code in codes)
    try:
        cursor.execute(f"SELECT HEX(c), HEX(CONVERT(c USING utf8mb4)) FROM ({rows}) t")
    except pymysql.Error:
        if len(codes) > 1:
            yield from _taken(cursor, charset, codes[: len(codes) // 2])
            yield from _taken(cursor, charset, codes[len(codes) // 2 :])
        return
    for stored, shown in cursor.fetchall():
        text = bytes.fromhex(shown or "").decode("utf-8", "surrogatepass")
        is_half = any("\ud800" <= character <= "\udfff" for character in text)
        if text and not is_half and ("?" not in text or int(stored, 16) == ord("?")):
            yield bytes.fromhex(stored), text


def _codes(charset: str) -> Iterator[bytes]:
    yield from (bytes([a]) for a in range(256))
    if charset in _TWO:
        yield from (bytes([a, b]) for a in range(256) for b in range(256))
    if charset in ("ujis", "eucjpms"):
        yield from (bytes([0x8F, a, b]) for a in range(0xA1, 0xFF) for b in range(0xA1, 0xFF))
