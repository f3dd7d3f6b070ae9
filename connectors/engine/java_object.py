"""Keys of an incremental snapshot as Debezium stores them in offsets: a Java `Object[]`, serialised, in hexadecimal.

Pure. Both ways, so that a snapshot that one side began can be finished by the other. Format: the chapter "Object Serialization Stream
Protocol" of the Java Object Serialization Specification; what Debezium writes:
`AbstractIncrementalSnapshotContext.arrayToSerializedString`. A value is a Java class name and a text: what the database would show and
accept.
"""

from __future__ import annotations

import datetime
import re
import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

from connect_py.data.schema import EXACT
from connect_py.errors import ConfigError

_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,9}))?").fullmatch


def seconds_of_moment(text: str) -> tuple[int, int]:
    """Return seconds since 1970 and nanoseconds of a date and time of UTC."""
    moment, _, fraction = text.partition(".")
    since = datetime.datetime.fromisoformat(moment) - datetime.datetime(1970, 1, 1)
    return since // datetime.timedelta(seconds=1), int(fraction.ljust(9, "0")) if fraction else 0


def seconds_of_time(text: str) -> tuple[int, int]:
    """Return whole seconds, rounded down, and nanoseconds of a time that may be negative, as `java.time.Duration` holds them.

    Raises:
        ValueError: it is no time.
    """
    if (found := _TIME(text)) is None:
        raise ValueError(f"{text} is no time")
    sign, hours, minutes, seconds, fraction = found.groups()
    nanos = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**9 + int((fraction or "").ljust(9, "0"))
    return divmod(-nanos if sign else nanos, 10**9)


def time_text(seconds: int, nanos: int) -> str:
    """Return the text of a time; the inverse of `seconds_of_time`."""
    whole, part = divmod(abs(seconds * 10**9 + nanos), 10**9)
    sign = "-" if seconds < 0 else ""
    return f"{sign}{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{fraction_text(part)}"


def fraction_text(nanos: int) -> str:
    """Return a point and the digits after it; nothing for none."""
    return f".{nanos:09}".rstrip("0") if nanos else ""


class JavaValue(NamedTuple):
    """One part of a key.

    Attributes:
        java_class: such as ``java.lang.Integer``; one of `CLASSES`, `LOCAL_DATE`, `DURATION`, ``java.lang.String`` or ``[B``, whose text is
            ``\\x`` and hexadecimal.
        text: as the database writes it.
    """

    java_class: str
    text: str


#: None stands for a null element.
JavaArray = Sequence[JavaValue | None]
#: Parts of a key with their Java classes.
StoredKey = tuple[JavaValue | None, ...]


@dataclass(frozen=True, slots=True)
class _Class:
    """A class descriptor: `fields` are (type code, name, class of a reference)."""

    uid: int
    flags: int
    fields: tuple[tuple[str, str, str], ...] = ()
    parent: str | None = None


_NUMBER, _DATE = "java.lang.Number", "java.util.Date"
STRING: Final = "java.lang.String"
_BYTES: Final = "[B"
_OBJECT_ID, _DECIMAL128 = "org.bson.types.ObjectId$SerializationProxy", "org.bson.types.Decimal128"
_PROXIED: Final = "org.bson.types.ObjectId"
_TIMESTAMP: Final = "java.sql.Timestamp"
_TIME_SER: Final = "java.time.Ser"
LOCAL_DATE: Final = "java.time.LocalDate"
DURATION: Final = "java.time.Duration"
_DURATION_SIGN, _LOCAL_DATE_SIGN = 1, 3
#: Of the exponent of a finite decimal of 128 bits, above 113 bits of digits.
_BIAS, _EXPONENT_PLACE = 6176, 113
CLASSES: Final[dict[str, _Class]] = {
    _NUMBER: _Class(0x86AC951D0B94E08B, 2),
    "java.lang.Integer": _Class(0x12E2A0A4F7818738, 2, (("I", "value", ""),), _NUMBER),
    "java.lang.Long": _Class(0x3B8BE490CC8F23DF, 2, (("J", "value", ""),), _NUMBER),
    "java.lang.Short": _Class(0x684D37133460DA52, 2, (("S", "value", ""),), _NUMBER),
    "java.lang.Double": _Class(0x80B3C24A296BFB04, 2, (("D", "value", ""),), _NUMBER),
    "java.lang.Float": _Class(0xDAEDC9A2DB3CF0EC, 2, (("F", "value", ""),), _NUMBER),
    "java.lang.Boolean": _Class(0xCD207280D59CFAEE, 2, (("Z", "value", ""),)),
    "java.util.UUID": _Class(0xBC9903F7986D852F, 2, (("J", "leastSigBits", ""), ("J", "mostSigBits", ""))),
    "java.math.BigDecimal": _Class(0x54C71557F981284F, 3, (("I", "scale", ""), ("L", "intVal", "Ljava/math/BigInteger;")), _NUMBER),
    "java.math.BigInteger": _Class(
        0x8CFC9F1FA93BFB1D,
        3,
        (
            ("I", "bitCount", ""),
            ("I", "bitLength", ""),
            ("I", "firstNonzeroByteNum", ""),
            ("I", "lowestSetBit", ""),
            ("I", "signum", ""),
            ("[", "magnitude", _BYTES),
        ),
        _NUMBER,
    ),
    _DATE: _Class(0x686A81014B597419, 3),
    "java.sql.Date": _Class(0x14FA46683F356697, 2, (), _DATE),
    _TIMESTAMP: _Class(0x2618D5C80153BF65, 2, (("I", "nanos", ""),), _DATE),
    # what java.time writes instead of its classes, each with a sign of its own
    _TIME_SER: _Class(0x955D84BA1B2248B2, 12),
    # MongoDB's own: the driver writes an ObjectId as a proxy with its octets
    _OBJECT_ID: _Class(1, 2, (("[", "bytes", _BYTES),)),
    _DECIMAL128: _Class(0x3F6F5BF7C3C19B7F, 2, (("J", "high", ""), ("J", "low", "")), _NUMBER),
    _BYTES: _Class(0xACF317F8060854E0, 2),
    "[Ljava.lang.Object;": _Class(0x90CE589F1073296C, 2),
}
_HEAD = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY, _BLOCK, _END, _LONG_STRING = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x77, 0x78, 0x7C
_FIRST_HANDLE = 0x7E0000
_SIMPLE = {"I": ">i", "J": ">q", "S": ">h", "D": ">d", "F": ">f", "Z": ">?", "B": ">b"}
_HAS_BLOCK, _IS_EXTERNALIZABLE = 1, 4
_WRITTEN_AS = {_PROXIED: _OBJECT_ID, LOCAL_DATE: _TIME_SER, DURATION: _TIME_SER}
_DAY_MS = 86_400_000
_EPOCH = datetime.date(1970, 1, 1)


def encode_key(key: JavaArray | None) -> str:
    """Return a key, or the null that stands for none, as hexadecimal text. Raises ValueError for a text that is not of its class."""
    return _Writer().array(key).hex()


def decode_key(text: str) -> list[JavaValue | None] | None:
    """Return what `encode_key` or Debezium wrote; None for the null array.

    Raises:
        ConfigError: it is neither, or holds values of a class that no key has.
    """
    try:
        data = bytes.fromhex(text)
        if data[:4] != _HEAD:
            raise ValueError("it does not begin as a Java object does")
        found = _Reader(data).value()
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, struct.error) as error:
        raise ConfigError(
            f"A key of an incremental snapshot in the stored offset cannot be read: {error}. Nothing was read. Stop the connector and take "
            "the fields incremental_snapshot_* out of its offset (PATCH offsets), then send the signal again."
        ) from None
    if found is not None and not (isinstance(found, list) and all(isinstance(part, JavaValue | bytes | None) for part in found)):
        raise ConfigError(f"A key of an incremental snapshot in the stored offset is no array but {found!r}")
    return None if found is None else [JavaValue(_BYTES, f"\\x{part.hex()}") if isinstance(part, bytes) else part for part in found]


class _Writer:
    def __init__(self) -> None:
        self._out = bytearray(_HEAD)
        self._handles: dict[str, int] = {}
        self._next = _FIRST_HANDLE

    def array(self, key: JavaArray | None) -> bytes:
        if key is None:
            self._out.append(_NULL)
            return bytes(self._out)
        self._out.append(_ARRAY)
        self._class("[Ljava.lang.Object;")
        self._handle()
        self._out += struct.pack(">i", len(key))
        for value in key:
            if value is None:
                self._out.append(_NULL)
            else:
                self._value(*value)
        return bytes(self._out)

    def _handle(self) -> int:
        self._next += 1
        return self._next - 1

    def _class(self, name: str | None) -> None:
        if name is None:
            self._out.append(_NULL)
            return
        if name in self._handles:
            self._out += bytes((_REFERENCE,)) + struct.pack(">i", self._handles[name])
            return
        known = CLASSES[name]
        self._out += bytes((_CLASS,)) + _utf(name) + struct.pack(">QB", known.uid, known.flags)
        self._handles[name] = self._handle()
        self._out += struct.pack(">h", len(known.fields))
        for code, field, of in known.fields:
            self._out += code.encode() + _utf(field)
            if of:
                self._out += bytes((_STRING,)) + _utf(of)
                self._handle()
        self._out.append(_END)
        self._class(known.parent)

    def _value(self, java_class: str, text: str) -> None:
        if java_class == STRING:
            data = text.encode("utf-8")
            short = len(data) < 1 << 16
            self._out += (
                bytes((_STRING,)) + struct.pack(">H", len(data)) if short else bytes((_LONG_STRING,)) + struct.pack(">q", len(data))
            ) + data
            self._handle()
            return
        if java_class == _BYTES:
            self._octets(bytes.fromhex(text.removeprefix("\\x")))
            return
        self._out.append(_OBJECT)
        self._class(_WRITTEN_AS.get(java_class, java_class))
        self._handle()
        if java_class == "java.math.BigDecimal":
            self._decimal(Decimal(text))
        elif java_class == "java.sql.Date":
            day = (datetime.date.fromisoformat(text) - _EPOCH).days
            self._out += bytes((_BLOCK, 8)) + struct.pack(">q", day * _DAY_MS) + bytes((_END,))
        elif java_class == _TIMESTAMP:
            seconds, nanos = seconds_of_moment(text)
            self._out += bytes((_BLOCK, 8)) + struct.pack(">q", seconds * 1000) + bytes((_END,)) + struct.pack(">i", nanos)
        elif java_class == LOCAL_DATE:
            date = datetime.date.fromisoformat(text)
            self._out += bytes((_BLOCK, 7)) + struct.pack(">biBB", _LOCAL_DATE_SIGN, date.year, date.month, date.day) + bytes((_END,))
        elif java_class == DURATION:
            self._out += bytes((_BLOCK, 13)) + struct.pack(">bqi", _DURATION_SIGN, *seconds_of_time(text)) + bytes((_END,))
        elif java_class == _PROXIED:
            self._octets(bytes.fromhex(text))
        elif java_class == _DECIMAL128:
            sign, digits, exponent = Decimal(text).as_tuple()
            if not isinstance(exponent, int):
                raise ValueError(f"{text} is no finite decimal")
            self._out += (sign << 127 | exponent + _BIAS << _EXPONENT_PLACE | int("".join(map(str, digits)))).to_bytes(16, "big")
        elif java_class == "java.util.UUID":
            number = uuid.UUID(text).int
            self._out += struct.pack(">QQ", number & ((1 << 64) - 1), number >> 64)
        elif java_class == "java.lang.Boolean":
            self._out.append(text in ("t", "true"))
        else:
            code = CLASSES[java_class].fields[0][0]
            self._out += struct.pack(_SIMPLE[code], float(text) if code in "DF" else int(text))

    def _decimal(self, number: Decimal) -> None:
        sign, digits, exponent = number.as_tuple()
        if not isinstance(exponent, int):
            raise ValueError(f"{number} is no BigDecimal")
        unscaled = int("".join(map(str, digits)))
        self._out += struct.pack(">i", -exponent) + bytes((_OBJECT,))
        self._class("java.math.BigInteger")
        self._handle()
        signum = 0 if not unscaled else -1 if sign else 1
        self._out += struct.pack(">iiiii", -1, -1, -2, -2, signum)
        self._octets(unscaled.to_bytes((unscaled.bit_length() + 7) // 8, "big"))
        self._out += bytes((_END, _END))

    def _octets(self, octets: bytes) -> None:
        self._out.append(_ARRAY)
        self._class(_BYTES)
        self._handle()
        self._out += struct.pack(">i", len(octets)) + octets


class _Reader:
    """Reads objects of any class whose parts are plain; those that keys can have become `JavaValue`s."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, len(_HEAD)
        self._handles: list[Any] = []

    def _take(self, form: str) -> Any:
        (found,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def _utf(self, form: str = ">H") -> str:
        length = self._take(form)
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "surrogatepass")

    def value(self) -> Any:
        tag = self._take(">B")
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            return self._handles[self._take(">i") - _FIRST_HANDLE]
        if tag in (_STRING, _LONG_STRING):
            found = JavaValue(STRING, self._utf(">H" if tag == _STRING else ">q"))
            self._handles.append(found)
            return found
        if tag == _ARRAY:
            return self._array()
        if tag == _OBJECT:
            return self._object()
        raise ValueError(f"unexpected tag {tag:#x}")

    def _array(self) -> Any:
        name = self._class()[0][0]
        place = len(self._handles)
        self._handles.append(None)
        count = self._take(">i")
        if name == _BYTES:
            self._at += count
            found: Any = self._data[self._at - count : self._at]
        else:
            found = [self.value() for _ in range(count)]
        self._handles[place] = found
        return found

    def _class(self) -> list[tuple[str, int, list[tuple[str, str]]]]:
        """Return the class and its parents: name, flags, fields."""
        tag = self._take(">B")
        if tag == _NULL:
            return []
        if tag == _REFERENCE:
            known: list[tuple[str, int, list[tuple[str, str]]]] = self._handles[self._take(">i") - _FIRST_HANDLE]
            return known
        if tag != _CLASS:
            raise ValueError(f"unexpected tag {tag:#x} for a class")
        name = self._utf()
        self._take(">Q")
        place = len(self._handles)
        self._handles.append(None)
        flags = self._take(">B")
        fields = []
        for _ in range(self._take(">h")):
            code = chr(self._take(">B"))
            fields.append((code, self._utf()))
            if code in "L[":
                self.value()
        if self._take(">B") != _END:
            raise ValueError(f"class {name} carries annotations")
        chain = [(name, flags, fields)]
        self._handles[place] = chain
        chain += self._class()
        return chain

    def _object(self) -> Any:
        chain = self._class()
        place = len(self._handles)
        self._handles.append(None)
        fields: dict[str, Any] = {}
        block = b""
        for _, flags, described in reversed(chain):
            for code, field in described:
                fields[field] = self.value() if code in "L[" else self._take(_SIMPLE[code])
            if flags & (_HAS_BLOCK | _IS_EXTERNALIZABLE):
                while (tag := self._take(">B")) != _END:
                    if tag != _BLOCK:
                        raise ValueError(f"unexpected tag {tag:#x} in an object")
                    length = self._take(">B")
                    block = self._data[self._at : self._at + length]
                    self._at += length
        found = _known(chain[0][0], fields, block)
        self._handles[place] = found
        return found


def _known(name: str, fields: dict[str, Any], block: bytes) -> Any:
    if name == "java.math.BigInteger":
        return int.from_bytes(fields["magnitude"], "big") * fields["signum"]
    if name == "java.math.BigDecimal":
        number = Decimal(fields["intVal"]).scaleb(-fields["scale"]) if fields["intVal"] else Decimal((0, (0,), -fields["scale"]))
        if abs(number.adjusted()) >= EXACT.prec:
            raise ValueError(f"a BigDecimal of {number.adjusted():,} digits")
        return JavaValue(name, f"{number:f}")
    if name == _OBJECT_ID:
        if not isinstance(octets := fields["bytes"], bytes):
            raise ValueError("an ObjectId that is no bytes")
        return JavaValue(_PROXIED, octets.hex())
    if name == _DECIMAL128:
        bits = (fields["high"] & (1 << 64) - 1) << 64 | fields["low"] & (1 << 64) - 1
        digits = tuple(map(int, str(bits & (1 << _EXPONENT_PLACE) - 1)))
        exponent = (bits >> _EXPONENT_PLACE & 0x3FFF) - _BIAS
        return JavaValue(name, str(Decimal((bits >> 127, digits, exponent))))
    if name == "java.util.UUID":
        number = (fields["mostSigBits"] & (1 << 64) - 1) << 64 | fields["leastSigBits"] & (1 << 64) - 1
        return JavaValue(name, str(uuid.UUID(int=number)))
    if name == "java.sql.Date":
        # midnight of the Java machine's time zone
        day = (struct.unpack(">q", block)[0] + _DAY_MS // 2) // _DAY_MS
        return JavaValue(name, (_EPOCH + datetime.timedelta(days=day)).isoformat())
    if name == _TIMESTAMP:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=struct.unpack(">q", block)[0] // 1000 * 1000)
        return JavaValue(name, moment.isoformat(" ") + fraction_text(fields["nanos"]))
    if name == _TIME_SER and block[0] == _LOCAL_DATE_SIGN:
        return JavaValue(LOCAL_DATE, datetime.date(*struct.unpack(">iBB", block[1:])).isoformat())
    if name == _TIME_SER and block[0] == _DURATION_SIGN:
        return JavaValue(DURATION, time_text(*struct.unpack(">qi", block[1:])))
    if name == "java.lang.Boolean":
        return JavaValue(name, "t" if fields["value"] else "f")
    if name in CLASSES and "value" in fields:
        return JavaValue(name, repr(fields["value"]))
    decimals = [value for value in fields.values() if isinstance(value, JavaValue) and value.java_class == "java.math.BigDecimal"]
    if decimals:  # io.debezium.data.SpecialValueDecimal
        return decimals[0]
    if name == "org.postgresql.util.PGobject" and isinstance(fields.get("value"), JavaValue):
        return fields["value"]
    raise ValueError(f"a value of the class {name}")


def _utf(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data
