"""MySQL's character sets as Python decoders (mysql.md §13.2). Bytes that are no character become U+FFFD, as in Java."""

from __future__ import annotations

from collections.abc import Callable

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
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "keybcs2": "cp852",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "big5": "big5",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "euckr": "euc-kr",
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
_LIKE_LATIN1 = frozenset({"latin1", "swe7", "dec8", "hp8", "armscii8", "geostd8"})


def is_known(charset: str) -> bool:
    """Whether there is a decoder; others are read as UTF-8, and the caller warns."""
    return charset.lower() in _CODECS or charset.lower() in _LIKE_LATIN1


def decoder(charset: str) -> Callable[[bytes], str]:
    """From stored bytes to text; never fails."""
    name = charset.lower()
    if name in _LIKE_LATIN1:
        return lambda data: data.decode("latin-1").translate(_LATIN1)
    codec = _CODECS.get(name, "utf-8")
    return lambda data: data.decode(codec, "replace")
