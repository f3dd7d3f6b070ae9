"""Documents by the driver's decoder and orjson, both in C, where those two show what Java's writer shows.

A regular expression reads the bytes of a document as a row of tokens: a field with its value, the head of a document or array, a zero that
ends one. It takes the types of which the driver keeps everything and no others: not symbols, undefined values or references, which it
decodes as something else. Where a value ends it knows as the decoder does, short texts by one alternative for each length; which lengths of
documents are right is left to the decoder. Whatever is unusual or wrong goes the slow way (`bson_json`), which decides.

orjson writes no space after colons. They are put in afterwards, where a quote and a colon follow each other: only names end so unless a
text holds the two, or begins with a colon. Then orjson indents, which sets a space, and the lines are joined.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error
from typing import Any

import bson
import orjson
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion, TypeDecoder, TypeRegistry
from bson.datetime_ms import DatetimeMS
from bson.errors import BSONError
from orjson import Fragment

from connectors.mongodb.values.bson_forms import CONSTANTS, Form, ScalarTexts, decimal_text
from connectors.mongodb.values.bson_lists import short_texts

#: orjson refuses more than 254 levels, and `bson_json` more than 220. A document that may have more than some of these is wrapped in lists
#: for orjson to refuse it sooner; then the slow way counts.
_FEWEST_LEVELS = 150
_WRAPPING = 254 - 200
#: A document in a document has at least 7 bytes: type, name without letters, length, end.
_SURELY_SHALLOW = 7 * _FEWEST_LEVELS

_INT32, _SIZE = Struct("<i").unpack_from, Struct("<i").pack
_DOUBLE, _TEXT, _BINARY = 0x01, 0x02, 0x05
_COLON, _DOLLAR, _BACKSLASH = b":$\\"

#: Doubles from 2^-9 up to 2^23, and zeros: `Double.toString` is plain there, as orjson is; the digits of both are the shortest.
_PLAIN_DOUBLE = rb"\x01N......(?:.[\x40\xc0]|[\x60-\xff][\x3f\xbf]|[\x00-\x5f][\x41\xc1]|(?<=\0{6})\0[\0\x80])"
_ANY_DOUBLE = rb"\x01N........"
_TOKENS = (
    rb"\x02N(?:TEXT)|\x10N....|DOUBLE|[\x03\x04]N....|\0|[\x09\x11\x12]N........|\x08N[\0\1]|\x07N............|[\x0a\x7f\xff]N"
    rb"|\x13N................"
)
#: Names without letters are not worth an alternative. `$ref` makes the driver decode a document as a reference.
_NAME = rb"[^\0:$][^\0]*+\0"

#: What documents begin with after their length; an ObjectId of 12 bytes follows.
_ID = b"\x07_id\0"
_HALVES = Struct("<QQ")
#: Documents of fewer bytes for each double that needs Java's layout go the slow way.
_BYTES_OF_A_DOUBLE = 50
#: Looking at a document costs a tenth of writing it the slow way.
_MANY_REFUSALS = 16
_ONE_IN = 8

#: What the decoder and orjson raise for documents that they do not take.
_REFUSALS = (BSONError, struct_error, IndexError, TypeError, ValueError, ArithmeticError, RecursionError)


@functools.cache
def _tokens(double: bytes) -> Callable[[bytes, int], re.Match[bytes] | None]:
    tokens = _TOKENS.replace(b"DOUBLE", double).replace(b"N", _NAME).replace(b"TEXT", short_texts(100, b"[^:]", b"."))
    return re.compile(rb"(?s)(?:%b)*+" % tokens).match


class _Decoder(TypeDecoder):
    """Makes JSON of the values of a type while documents are decoded."""

    def __init__(self, kind: type, text: Callable[[Any], bytes]) -> None:
        self._kind = kind
        self._text = text

    @property
    def bson_type(self) -> type:
        return self._kind

    def transform_bson(self, value: Any) -> Fragment:
        return Fragment(self._text(value))


class _Style:
    """One way to have orjson write: with the texts of values in JSON without spaces, or with all spaces."""

    def __init__(self, form: Form, texts: ScalarTexts, comma: str, *, indented: bool) -> None:
        def shown(text: str) -> bytes:
            return (text if indented else text.replace('": ', '":')).encode()

        def integer(write: Callable[[int], str]) -> Callable[[Any], bytes]:
            pattern = shown(write(7))
            if pattern.count(b"7") == 1 and not pattern.endswith(b'Z"}'):
                return pattern.replace(b"%", b"%%").replace(b"7", b"%d").__mod__
            return lambda value: shown(write(value))

        decoders = [_Decoder(float, lambda value: shown(texts.double(value)))]
        if form is Form.CANONICAL:
            decoders.append(_Decoder(int, integer(texts.int32)))
        self.with_doubles = _codec(decoders)
        self.codec = self.with_doubles if form is Form.CANONICAL else _codec([])

        oid = shown('{"$oid": "%b"}')
        timestamp = shown(f'{{"$timestamp": {{"t": %d{comma}"i": %d}}}}')
        decimal = shown('{"$numberDecimal": "%b"}')
        date_of, long_of = integer(texts.date), integer(texts.int64)
        writers: dict[type, Callable[[Any], bytes]] = {
            ObjectId: lambda value: oid % value.binary.hex().encode(),
            DatetimeMS: lambda value: date_of(int(value)),
            Int64: long_of,
            Timestamp: lambda value: timestamp % (value.time, value.inc),
            Decimal128: lambda value: decimal % decimal_text(*_HALVES.unpack(value.bid)).encode(),
            bytes: lambda value: shown(texts.binary(value, 0)),
            Binary: lambda value: shown(texts.binary(bytes(value), value.subtype)),
            MinKey: lambda _: shown(CONSTANTS[0xFF]),
            MaxKey: lambda _: shown(CONSTANTS[0x7F]),
        }

        def value_text(value: Any) -> Fragment:
            try:
                return Fragment(writers[type(value)](value))
            except KeyError:
                raise TypeError(f"{type(value).__name__} is not written here") from None

        # a long is an integer to orjson unless it passes subclasses through, as the forms that show longs apart need
        own_longs = texts.int64(7) != "7"
        self.options = (orjson.OPT_INDENT_2 if indented else 0) | (orjson.OPT_PASSTHROUGH_SUBCLASS if own_longs else 0)
        self.value_text = value_text


def _codec(decoders: list[_Decoder]) -> CodecOptions[dict[str, Any]]:
    return CodecOptions(type_registry=TypeRegistry(decoders), datetime_conversion=DatetimeConversion.DATETIME_MS)


@dataclass(frozen=True, slots=True)
class DriverTexts:
    """Writes what needs nothing special: the text as `bson_json` has it before `escaped`, or None where that must write it.

    Attributes:
        document: the text of the document that all of some bytes are.
        array: the same for an array.
    """

    document: Callable[[bytes], str | None]
    array: Callable[[bytes], str | None]


def driver_texts(form: Form, texts: ScalarTexts, comma: str) -> DriverTexts:
    """Return the writers of a form, which write nothing where the driver has no decoder in C. Closures, as in `bson_json`."""
    if not bson.has_c():
        return DriverTexts(lambda _: None, lambda _: None)
    double = _ANY_DOUBLE if form is Form.CANONICAL else _PLAIN_DOUBLE
    indented = _Style(form, texts, comma, indented=True)
    compact = _Style(form, texts, comma, indented=False) if comma == "," else None
    decode, dumps = bson.decode, orjson.dumps
    line_end = f"{comma}\n".encode()

    def document(data: bytes) -> str | None:
        try:
            if data[:9] != _SIZE(len(data)) + _ID:
                return text(data, None)
            # most documents begin with an ObjectId, for which the driver and orjson need as long as for ten numbers
            shown = text(_SIZE(len(data) - 17) + data[21:], "_id")
        except _REFUSALS:
            return None
        if shown is None:
            return None
        return f'{{"_id": {{"$oid": "{data[9:21].hex()}"}}{"" if shown == "{}" else comma}{shown[1:]}'

    def array(data: bytes) -> str | None:
        try:
            # the driver decodes documents only, and names of elements may be anything: a document whose only field is the array
            shown = text(b"%b\4a\0%b\0" % (_SIZE(len(data) + 8), data), None)
        except _REFUSALS:
            return None
        return None if shown is None else shown[6:-1]  # without {"a": }

    def text(data: bytes, absent: str | None) -> str | None:
        """Return the text of a document that has no field `absent`; None for one that has, or has values that are not written here."""
        found = _tokens(double)(data, 4)  # made when it is needed first: that takes 4 ms
        own_doubles = own_colons = False
        if found is not None and (at := found.end()) < len(data):
            needs = the_rest(data, at)
            if needs is None:
                return None
            own_doubles, own_colons = needs
        if compact is not None and not own_colons:
            out = written(data, compact, own_doubles, absent)
            if _BACKSLASH not in out or b'\\":' not in out:
                return out.replace(b'":', b'": ').decode()
        out = written(data, indented, own_doubles, absent)
        if comma != ",":
            out = out.replace(b",\n", line_end)
        return b"".join(map(bytes.lstrip, out.split(b"\n"))).decode()

    def written(data: bytes, style: _Style, own_doubles: bool, absent: str | None) -> bytes:
        tree = decode(data, style.with_doubles if own_doubles else style.codec)
        if absent in tree:
            raise TypeError(f"{absent} is there twice")
        if len(data) > _SURELY_SHALLOW and data.count(3) + data.count(4) > _FEWEST_LEVELS:
            dumps(_wrapped(tree), style.value_text, style.options)
        return dumps(tree, style.value_text, style.options)

    def the_rest(data: bytes, at: int) -> tuple[bool, bool] | None:
        """Read on where there is no token: return whether doubles need Java's layout, and whether texts or names begin with colons."""
        end, own_doubles, own_colons = len(data), 0, False
        while at < end:
            kind, value = data[at], data.index(0, at) + 1
            if data[at + 1] == _DOLLAR:
                return None
            own_colons |= data[at + 1] == _COLON
            if kind == _DOUBLE:
                own_doubles += 1
                at = value + 8
            elif kind == _TEXT and (size := _INT32(data, value)[0]) > 0:
                own_colons |= data[value + 4] == _COLON
                at = value + 4 + size
            elif kind == _BINARY and (size := _INT32(data, value)[0]) >= 0:
                at = value + 5 + size
            else:
                return None
            if (found := _tokens(double)(data, at)) is not None:
                at = found.end()
        # each of them costs as much as the slow way needs for a number and a name
        return (own_doubles > 0, own_colons) if own_doubles * _BYTES_OF_A_DOUBLE <= len(data) else None

    return DriverTexts(document, array)


def while_it_pays(write: Callable[[bytes], str | None]) -> Callable[[bytes], str | None]:
    """Return the same writer, which does not look at most documents after many in a row that it could not write."""
    refused = skipped = 0

    def worthwhile(data: bytes) -> str | None:
        nonlocal refused, skipped
        if refused >= _MANY_REFUSALS:
            skipped += 1
            if skipped % _ONE_IN:
                return None
        text = write(data)
        refused = refused + 1 if text is None else 0
        return text

    return worthwhile


def _wrapped(tree: Any) -> Any:
    for _ in range(_WRAPPING):
        tree = [tree]
    return tree
