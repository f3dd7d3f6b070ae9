"""Hash values as Java does, so that what is spread by hash lands where a Java worker puts it.

`java_hash` is `Object#hashCode` of a field's value; `murmur_hash` is `org.infinispan.commons.hash.MurmurHash3#hash` as Debezium uses it,
the first 32 bits of MurmurHash3 x64 with seed 9001. Results are signed 32-bit integers.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import EXACT, whole
from connect_py.data.times import date_to_days, time_to_millis, timestamp_to_millis

_MASK32, _MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_SEED = 9001
_FLOAT, _DOUBLE = struct.Struct(">f"), struct.Struct(">d")
_MILLIS_OF_DAY = 86_400_000


def signed(value: int) -> int:
    """Return the low 32 bits as Java's int."""
    value &= _MASK32
    return value - (1 << 32) if value >> 31 else value


def java_hash(schema: Schema | None, value: Any) -> int:
    """`value.hashCode()`.

    A struct's hash in Java differs from one run to the next (it holds identities of enums); here it is that of the list of its values.
    """
    match value:
        case None:
            return 0
        case bool():
            return 1231 if value else 1237
        case int():
            return signed(value) if _is_narrow(schema) else signed(value ^ value >> 32)
        case float() if schema is not None and schema.type is Type.FLOAT32:
            return signed(int.from_bytes(_FLOAT.pack(value), "big") if value == value else 0x7FC00000)
        case float():
            bits = int.from_bytes(_DOUBLE.pack(value), "big") if value == value else 0x7FF8 << 48
            return signed(bits ^ bits >> 32)
        case str():
            return _rolled(_code_units(value), 0)
        case bytes() | bytearray() | memoryview():
            return _rolled((byte - 256 if byte > 127 else byte for byte in reversed(bytes(value))), 1)
        case Decimal():
            return _decimal_hash(value)
        case datetime.datetime():
            return _long_hash(timestamp_to_millis(value))
        case datetime.date():
            return _long_hash(date_to_days(value) * _MILLIS_OF_DAY)
        case datetime.time():
            return _long_hash(time_to_millis(value))
        case Struct():
            return _rolled((java_hash(field.schema, item) for field, item in zip(value.schema.fields, value.values, strict=True)), 1)
        case list():
            element = schema.value_schema if schema is not None else None
            return _rolled((java_hash(element, item) for item in value), 1)
        case dict():
            keys, values = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
            return signed(sum(java_hash(keys, k) ^ java_hash(values, v) for k, v in value.items()))
        case _:
            return _rolled(_code_units(str(value)), 0)


def murmur_hash(schema: Schema | None, value: Any) -> int:
    """Return the hash of a text's UTF-8, or of the four bytes of anything else's `java_hash`."""
    if isinstance(value, str):
        return _murmur(value.encode("utf-8", "replace"))
    return _murmur(struct.pack("<i", java_hash(schema, value)))


def _is_narrow(schema: Schema | None) -> bool:
    return schema is not None and schema.type in (Type.INT8, Type.INT16, Type.INT32)


def _long_hash(value: int) -> int:
    return signed(value ^ value >> 32)


def _code_units(text: str) -> Iterable[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(data) // 2}H", data)


def _rolled(items: Iterable[int], start: int) -> int:
    total = start
    for item in items:
        total = total * 31 + item & _MASK32
    return signed(total)


def _decimal_hash(value: Decimal) -> int:
    scale = -int(value.as_tuple().exponent)
    unscaled = whole(value.scaleb(scale, EXACT))
    magnitude = abs(unscaled).to_bytes((abs(unscaled).bit_length() + 31) // 32 * 4, "big")
    total = _rolled(struct.unpack(f">{len(magnitude) // 4}I", magnitude), 0)
    return signed(31 * (-total if unscaled < 0 else total) + scale)


# -- MurmurHash3 -------------------------------------------------------------------------------------------------------------------


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK64


class _Mixer:
    """The state of the hash; the constants change from block to block, which later versions of the algorithm gave up."""

    def __init__(self) -> None:
        self.h1, self.h2 = 0x9368E53C2F6AF274 ^ _SEED, 0x586DCD208F7CD3FD ^ _SEED
        self._c1, self._c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def mix(self, k1: int, k2: int) -> None:
        self.h1 = (self.h1 ^ _rotated(k1 * self._c1 & _MASK64, 23) * self._c2) + self.h2 & _MASK64
        self.h2 = _rotated(self.h2, 41)
        self.h2 = (self.h2 ^ _rotated(k2 * self._c2 & _MASK64, 23) * self._c1) + self.h1 & _MASK64
        self.h1 = self.h1 * 3 + 0x52DCE729 & _MASK64
        self.h2 = self.h2 * 3 + 0x38495AB5 & _MASK64
        self._c1 = self._c1 * 5 + 0x7B7D159C & _MASK64
        self._c2 = self._c2 * 5 + 0x6BCE6396 & _MASK64


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK64
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK64
    return value ^ value >> 33


def _murmur(data: bytes) -> int:
    mixer = _Mixer()
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        mixer.mix(int.from_bytes(data[at : at + 8], "little"), int.from_bytes(data[at + 8 : at + 16], "little"))
    tail = data[whole:]
    if tail:
        mixer.mix(_tail(tail[:8]), _tail(tail[8:]))
    h1, h2 = mixer.h1, mixer.h2 ^ len(data)
    h1 = h1 + h2 & _MASK64
    h2 = h2 + h1 & _MASK64
    h1, h2 = _finished(h1), _finished(h2)
    return signed((h1 + h2 & _MASK64) >> 32)


def _tail(data: bytes) -> int:
    """Combine the bytes of an unfinished block: each is sign-extended before it is combined, in Java."""
    word = 0
    for index, byte in enumerate(data):
        word ^= (byte - 256 if byte > 127 else byte) << 8 * index & _MASK64
    return word & _MASK64
