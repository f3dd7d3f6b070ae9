"""Which characters MongoDB's Java driver escapes in JSON (`org.bson.json.StrictCharacterStreamJsonWriter.writeStringHelper`)."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

#: The categories written as they are. All others are escaped, modifier letters and combining marks too; characters beyond the BMP
#: reach the writer as two surrogates and are escaped.
_WRITTEN_AS_IS = frozenset(
    ("Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"),
)


def escaped(text: str) -> str:
    """JSON text in which the characters that Java's writer escapes are ``\\uXXXX``; quotes and controls below U+0020 are so already."""
    if text.isascii():
        return text.replace("\x7f", "\\u007f") if "\x7f" in text else text
    return _unprinted().sub(_escape, text)


@functools.cache
def _unprinted() -> re.Pattern[str]:
    """The characters to escape, among those of the BMP; by the tables of this Python's Unicode, as Java goes by its runtime's."""
    ranges: list[list[int]] = []
    for code in range(0x7F, 0x10000):
        if unicodedata.category(chr(code)) in _WRITTEN_AS_IS:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    ranges.append([0x10000, sys.maxunicode])
    return re.compile("[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]")


def _escape(found: re.Match[str]) -> str:
    return _escape_one(found[0])


@functools.lru_cache(maxsize=4096)
def _escape_one(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
