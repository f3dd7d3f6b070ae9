"""MySQL's character sets as Python decoders (mysql.md §13.2). Bytes that are no character become U+FFFD, as in Java."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from functools import cache

from connectors.mysql.binlog.charset_tables import TABLES
from connectors.mysql.binlog.euc_jp import eucjpms, ujis

#: `latin1` is cp1252, whose five holes MySQL fills with the control characters of the same numbers.
_LATIN1 = "".join(chr(code) if code in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else bytes([code]).decode("cp1252") for code in range(256))
_CODECS = {
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ascii": "ascii",
    "binary": "latin-1",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "koi8r": "koi8-r",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "euckr": "cp949",
    "cp932": "cp932",
    "tis620": "tis-620",
    "macroman": "mac-roman",
    "macce": "mac-latin2",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}


def _of_eten(error: UnicodeError) -> tuple[str, int]:
    """Seven ideographs (F9D6 to F9DC) that big5 has in MySQL and Java, and cp950 in Python."""
    assert isinstance(error, UnicodeDecodeError)
    try:
        return error.object[error.start : error.start + 2].decode("cp950"), error.start + 2
    except UnicodeDecodeError:
        return "\ufffd", error.end


codecs.register_error("connect_py.big5", _of_eten)

#: Sets that need more than a codec.
_OTHERS: Mapping[str, Callable[[bytes], str]] = {
    "big5": lambda data: data.decode("big5", "connect_py.big5"),
    "ujis": ujis,
    "eucjpms": eucjpms,
    "sjis": lambda data: data.decode("shift_jis", "replace").replace("\uff3c", "\\"),  # its full-width backslash is a backslash
}


def is_known(charset: str) -> bool:
    """Whether there is a decoder; others are read as UTF-8, and the caller warns."""
    name = charset.lower()
    return name in _CODECS or name in _OTHERS or name in TABLES or name == "latin1"


@cache
def decoder(charset: str) -> Callable[[bytes], str]:
    """From stored bytes to text; never fails."""
    name = charset.lower()
    table = _table(name)
    if table:
        return lambda data: data.decode("latin-1").translate(table)
    if name in _OTHERS:
        return _OTHERS[name]
    codec = _CODECS.get(name, "utf-8")
    return lambda data: data.decode(codec, "replace")


@cache
def _table(name: str) -> str:
    """256 characters; empty for sets that a codec reads as it is."""
    if name == "latin1":
        return _LATIN1
    if name not in TABLES:
        return ""
    codec, runs = TABLES[name]
    found = [bytes([code]).decode(codec, "replace") for code in range(256)]
    for first, characters in runs.items():
        found[first : first + len(characters)] = characters
    return "".join(found)
