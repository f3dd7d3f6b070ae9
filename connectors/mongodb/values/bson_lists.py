"""Lists of scalars of one type as JSON, all elements at once: most lists of a collection hold numbers, texts or ids and nothing else.

An expression takes the elements apart; then one call each joins, unpacks and writes them, whatever their number. The names of elements are
not looked at, as in `bson_json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import unpack

from orjson import dumps

from connectors.mongodb.values.bson_forms import ScalarTexts

#: The JSON, in UTF-8, of the list whose elements these bytes are. Raises ValueError where a text is no UTF-8.
ListText = Callable[[bytes], bytes]

#: Texts of more bytes are in no list here. Each length is an alternative of the expression, which takes 30 µs to make.
LONGEST_TEXT = 40
NAME = rb"[^\0]*+\0"

_TEXT, _DOUBLE, _OBJECT_ID = 0x02, 0x01, 0x07
#: Types whose values are numbers for `struct`.
_CODES = {0x10: ("i", 4), 0x12: ("q", 8), 0x09: ("q", 8), _DOUBLE: ("d", 8)}


def short_texts(longest: int, first: bytes, other: bytes) -> bytes:
    """Return the expression of a text: its length, which counts the zero at the end, the first character, all others, and the zero.

    Args:
        longest: the greatest length. There is an alternative for each; one that does not match takes a ns.
        first, other: sets of bytes.
    """
    longer = (re.escape(bytes([size])) + rb"\0\0\0%b%b{%d}\0" % (first, other, size - 2) for size in range(2, longest + 1))
    return b"|".join((rb"\x01\0\0\0\0", *longer))


#: Expressions of one element, by type. A text with a zero inside is none.
_ELEMENTS = {
    _TEXT: rb"\x02%b(?:%b)" % (NAME, short_texts(LONGEST_TEXT, rb"[^\0]", rb"[^\0]")),
    _OBJECT_ID: rb"\x07%b............" % NAME,
    **{kind: re.escape(bytes([kind])) + NAME + b"." * size for kind, (_, size) in _CODES.items()},
}
#: Expressions, with the flag DOTALL, of the elements of a list of one type, which may be none.
LISTS = {kind: rb"(?:%b)*+" % element for kind, element in _ELEMENTS.items()}

_texts_of = re.compile(rb"(?s)\x02%b....([^\0]*+)\0" % NAME).findall
_ids_of = re.compile(rb"(?s)\x07%b(............)" % NAME).findall


def list_texts(texts: ScalarTexts, comma: str) -> dict[int, ListText]:
    """Return the functions that write lists, by the type of their elements; each takes what the expression in `LISTS` matches."""
    separator = comma.encode()
    oid_start, oid_end = b'{"$oid": "', b'"}'
    between_oids = (oid_end + separator + oid_start).decode()

    def of_texts(elements: bytes) -> bytes:
        shown = dumps(list(map(bytes.decode, _texts_of(elements))))
        # quotes inside of texts have a backslash in front
        return shown if comma == "," else shown.replace(b'","', b'"%b"' % separator)

    def of_ids(elements: bytes) -> bytes:
        found = b"".join(_ids_of(elements))
        return b"[%b%b%b]" % (oid_start, found.hex(",", 12).replace(",", between_oids).encode(), oid_end) if found else b"[]"

    return {
        _TEXT: of_texts,
        _OBJECT_ID: of_ids,
        _DOUBLE: _of_doubles(texts.double, separator),
        0x10: _of_integers(0x10, texts.int32, separator),
        0x12: _of_integers(0x12, texts.int64, separator),
        0x09: _of_integers(0x09, texts.date, separator),
    }


def _numbers_of(kind: int) -> Callable[[bytes], tuple[float, ...]]:
    code, size = _CODES[kind]
    values_of = re.compile(rb"(?s)%b%b(%b)" % (re.escape(bytes([kind])), NAME, b"." * size)).findall

    def numbers(elements: bytes) -> tuple[float, ...]:
        found = values_of(elements)
        return unpack(f"<{len(found)}{code}", b"".join(found))

    return numbers


def _of_integers(kind: int, text: Callable[[int], str], separator: bytes) -> ListText:
    numbers = _numbers_of(kind)
    start, number, end = text(7).encode().partition(b"7")
    if number and b"7" not in end and not end.endswith(b'Z"}'):  # not a date like 1970-01-01T00:00:00.007Z
        between = end + separator + start

        def with_plain_numbers(elements: bytes) -> bytes:
            shown = dumps(numbers(elements))[1:-1]
            return b"[%b%b%b]" % (start, shown.replace(b",", between), end) if shown else b"[]"

        return with_plain_numbers

    def one_by_one(elements: bytes) -> bytes:
        return b"[%b]" % separator.join([text(int(value)).encode() for value in numbers(elements)])

    return one_by_one


def _of_doubles(text: Callable[[float], str], separator: bytes) -> ListText:
    numbers = _numbers_of(_DOUBLE)
    is_plain = text(7.5) == "7.5"

    def doubles(elements: bytes) -> bytes:
        values = numbers(elements)
        sizes = list(filter(None, map(abs, values)))
        total = sum(sizes)  # NaN if one is
        # in these limits Java's layout is plain, as orjson's is; the digits of both are the shortest
        if is_plain and (not sizes or (min(sizes) >= 0.001 and (total < 1e7 or (total == total and max(sizes) < 1e7)))):
            shown = dumps(values)
            return shown if separator == b"," else shown.replace(b",", separator)
        return b"[%b]" % separator.join([text(value).encode() for value in values])

    return doubles
