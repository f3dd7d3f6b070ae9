"""Random BSON documents of every type, as bytes: drivers no longer write some types that old collections still hold.

Only `Random.random` and `Random.randrange` decide, so a seed gives the same bytes everywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

NAMES = (
    "_id",
    "name",
    "a",
    "b",
    "price",
    "größe",
    "with space",
    'quo"te',
    "back\\slash",
    "$set",
    "a.b",
    "tags",
    "0",
    "x" * 40,
    "日本",
    "ctl\x01\n",
    "",
)
TEXTS = (
    "",
    "plain",
    'quo"te',
    "back\\slash/",
    "tab\tnew\nline\r\b\f\x00\x01\x1f",
    "\x7f\x80\x9f\xa0\xad",
    "Ärger ñ ß",
    "日本語テキスト",
    "emoji 😀 𝒳",
    "ʰʲ modifier",
    "e\u0301 combining \u0bbe\u20dd",
    "\u2028\u2029\u200b\ufeff\u00ad",
    "\ue000 private \u0378 unassigned \ufffe",
    "€£¥ ± × ÷ « » ‘ ’ … —",
    "x" * 300,
)
INTS = (0, 1, -1, 7, 42, 127, 128, 65536, 2**31 - 1, -(2**31))
LONGS = (*INTS, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**15)
DATES = (
    0,
    1,
    -1,
    999,
    1000,
    1783101585729,
    1783101585720,
    1783101585700,
    253402300799999,
    253402300800000,
    2**63 - 1,
    -(2**63),
    951782400000,
)
DOUBLES = (
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1e-3,
    9.99e-4,
    1e7,
    9999999.0,
    1e10,
    -1e-10,
    1.7976931348623157e308,
    5e-324,
    float("nan"),
    float("inf"),
    float("-inf"),
    123456.789,
)
DECIMALS = (  # low and high half
    (0, 0x3040000000000000),
    (1, 0x3040000000000000),
    (0, 0xB040000000000000),
    (12345, 0x303A000000000000),
    (1, 0x3042000000000000),
    (1, 0x3030000000000000),
    (1, 0x3034000000000000),
    (0, 0x3052000000000000),
    (0x378D8E63FFFFFFFF, 0x5FFFED09BEAD87C0),
    (1, 0x0000000000000000),
    (0, 0x7C00000000000000),
    (0, 0xFC00000000000000),
    (0, 0x7800000000000000),
    (0, 0xF800000000000000),
    (0, 0x6C10000000000000),
    (2**64 - 1, 0x3041FFFFFFFFFFFF),
)


def document(rng: Random, depth: int = 0, *, old_types: bool = True) -> bytes:
    """One document, with the types that drivers no longer write if `old_types`, and now and then a name twice."""
    return _framed(b"".join(_member(rng, _text_of(rng, NAMES).replace("\x00", ""), depth, old_types) for _ in range(_count(rng, depth))))


_USUAL_NAMES = tuple(name for name in NAMES if name and name[0] != "$")
_USUAL_KINDS = (0x01, 0x02, 0x07, 0x08, 0x09, 0x0A, 0x10, 0x12, 0x13, 0x01, 0x02, 0x10)


def family(rng: Random) -> Callable[[], bytes]:
    """A collection: a function that makes documents of one shape, with other values and lists of other lengths each time.

    In some families fields are missing now and then, or numbers are of two types, as JavaScript writes them.
    """
    return _document_maker(rng, 0, missing=(0.0, 0.1)[rng.randrange(2)], numbers=rng.random() < 0.3)


def _document_maker(rng: Random, depth: int, missing: float, numbers: bool) -> Callable[[], bytes]:
    names = sorted({_text_of(rng, NAMES if rng.random() < 0.02 else _USUAL_NAMES) for _ in range(1 + rng.randrange(8 - depth))})
    fields = [(name, _maker(rng, depth, missing, numbers)) for name in names]

    def make() -> bytes:
        kept = (field for field in fields if rng.random() >= missing)
        return _framed(b"".join(_element(kind, name, value) for name, maker in kept for kind, value in (maker(),)))

    return make


def _maker(rng: Random, depth: int, missing: float, numbers: bool) -> Callable[[], tuple[int, bytes]]:
    """Makes values of one type: returns the type and the value."""
    choice = rng.random()
    if depth < 4 and choice < 0.2:
        document_of = _document_maker(rng, depth + 1, missing, numbers)
        return lambda: (3, document_of())
    if depth < 4 and choice < 0.5:
        element_of = _maker(rng, depth + 1, missing, numbers)
        longest = (1, 4, 30)[rng.randrange(3)] if depth < 2 else 3

        def array() -> tuple[int, bytes]:
            elements = (element_of() for _ in range(rng.randrange(longest + 1)))
            return 4, _framed(b"".join(_element(kind, str(index), value) for index, (kind, value) in enumerate(elements)))

        return array
    kind = _kind(rng, 9, True) if choice > 0.97 else _USUAL_KINDS[rng.randrange(len(_USUAL_KINDS))]
    if numbers and kind in (0x01, 0x10):
        return lambda: (0x01, _double(rng)) if rng.random() < 0.5 else (0x10, _value(rng, 0x10, 9, False))
    return lambda: (kind, _value(rng, kind, 4, False))


def _array(rng: Random, depth: int, old_types: bool) -> bytes:
    if rng.random() < 0.5:  # of one type, as most are
        kind = _kind(rng, depth, old_types)
        return _framed(b"".join(_element(kind, str(index), _value(rng, kind, depth, old_types)) for index in range(_count(rng, depth))))
    return _framed(b"".join(_member(rng, str(index), depth, old_types) for index in range(_count(rng, depth))))


def _member(rng: Random, name: str, depth: int, old_types: bool) -> bytes:
    kind = _kind(rng, depth, old_types)
    return _element(kind, name, _value(rng, kind, depth, old_types))


def _kind(rng: Random, depth: int, old_types: bool) -> int:
    if depth < 4 and rng.random() < 0.2:
        return 3 if rng.random() < 0.5 else 4
    if old_types and rng.random() < 0.1:
        return (0x06, 0x0C, 0x0E)[rng.randrange(3)]
    kinds = (0x01, 0x02, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0D, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x7F, 0xFF, 0x02, 0x10, 0x01)
    return kinds[rng.randrange(len(kinds))]


def _value(rng: Random, kind: int, depth: int, old_types: bool) -> bytes:
    if kind == 3:
        return document(rng, depth + 1, old_types=old_types)
    if kind == 4:
        return _array(rng, depth + 1, old_types)
    if kind == 0x0F:
        content = _string(_text_of(rng, TEXTS)) + document(rng, depth + 3, old_types=old_types)
        return struct.pack("<i", len(content) + 4) + content
    write = _SCALARS.get(kind)
    return write(rng) if write else b""


def _binary(rng: Random) -> bytes:
    subtype = (0, 1, 2, 3, 4, 5, 6, 0x80, 0xFF)[rng.randrange(9)]
    content = bytes(rng.randrange(256) for _ in range(16 if subtype in (3, 4) else rng.randrange(20)))
    if subtype == 2:
        content = struct.pack("<i", len(content)) + content
    return struct.pack("<iB", len(content), subtype) + content


def _regex(rng: Random) -> bytes:
    options = "".join(letter for letter in "xsmliu" if rng.random() < 0.3)
    return f"{_text_of(rng, TEXTS)}".replace("\x00", "").encode() + b"\0" + options.encode() + b"\0"


def _double(rng: Random) -> bytes:
    if rng.random() < 0.5:
        return struct.pack("<d", DOUBLES[rng.randrange(len(DOUBLES))])
    return struct.pack("<d", rng.randrange(-(10**8), 10**8) / 10 ** rng.randrange(1, 9))


def _long(rng: Random) -> bytes:
    return struct.pack("<q", LONGS[rng.randrange(len(LONGS))] if rng.random() < 0.5 else rng.randrange(-(2**63), 2**63))


_SCALARS: dict[int, Callable[[Random], bytes]] = {
    0x01: _double,
    0x02: lambda rng: _string(_text_of(rng, TEXTS)),
    0x05: _binary,
    0x07: lambda rng: bytes(rng.randrange(256) for _ in range(12)),
    0x08: lambda rng: bytes([rng.randrange(2)]),
    0x09: lambda rng: struct.pack("<q", DATES[rng.randrange(len(DATES))] if rng.random() < 0.5 else rng.randrange(4 * 10**12)),
    0x0B: _regex,
    0x0C: lambda rng: _string("db.other") + bytes(rng.randrange(256) for _ in range(12)),
    0x0D: lambda rng: _string(_text_of(rng, TEXTS)),
    0x0E: lambda rng: _string(_text_of(rng, TEXTS)),
    0x10: lambda rng: struct.pack("<i", INTS[rng.randrange(len(INTS))] if rng.random() < 0.5 else rng.randrange(-(2**31), 2**31)),
    0x11: lambda rng: struct.pack("<II", rng.randrange(2**32), rng.randrange(2**32)),
    0x12: _long,
    0x13: lambda rng: struct.pack("<QQ", *DECIMALS[rng.randrange(len(DECIMALS))]),
}


def _count(rng: Random, depth: int) -> int:
    return rng.randrange(12 - 3 * depth) if depth < 3 else rng.randrange(3)


def _text_of(rng: Random, texts: tuple[str, ...]) -> str:
    return texts[rng.randrange(len(texts))]


def _string(text: str) -> bytes:
    content = text.encode() + b"\0"
    return struct.pack("<i", len(content)) + content


def _element(kind: int, name: str, value: bytes) -> bytes:
    return bytes([kind]) + name.encode() + b"\0" + value


def _framed(content: bytes) -> bytes:
    return struct.pack("<i", len(content) + 5) + content + b"\0"
