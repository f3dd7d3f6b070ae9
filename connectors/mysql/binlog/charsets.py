"""MySQL's character sets as Python decoders (mysql.md §13.2). Bytes that are no character become U+FFFD, as in Java."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from connectors.mysql.binlog.charset_tables import TABLES

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
    "big5": "big5",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "euckr": "cp949",
    "ujis": "euc-jp",
    "eucjpms": "euc-jp",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "tis620": "tis-620",
    "macroman": "mac-roman",
    "macce": "mac-latin2",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
#: Where Microsoft's reading of JIS X 0208, which eucjpms follows, differs from the codec's.
_EUC_MS = str.maketrans("〜‖−¢£¬", "～∥－￠￡￢")  # that is the point
#: Japanese sets in which the full-width backslash is a backslash.
_PLAIN_BACKSLASH = frozenset({"sjis", "ujis"})


def is_known(charset: str) -> bool:
    """Whether there is a decoder; others are read as UTF-8, and the caller warns."""
    return charset.lower() in _CODECS or charset.lower() in TABLES or charset.lower() == "latin1"


def decoder(charset: str) -> Callable[[bytes], str]:
    """From stored bytes to text; never fails."""
    name = charset.lower()
    table = _table(name)
    if table:
        return lambda data: data.decode("latin-1").translate(table)
    codec = _CODECS.get(name, "utf-8")
    if name == "eucjpms":
        return lambda data: data.decode(codec, "replace").translate(_EUC_MS)
    if name in _PLAIN_BACKSLASH:
        return lambda data: data.decode(codec, "replace").replace("\uff3c", "\\")
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
