"""The quick ways together (shapes, lists, the driver's decoder) give what the slow way gives: every text, every refusal."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from json.encoder import encode_basestring
from random import Random
from typing import Any

import bson
import orjson
import pytest
from bson import Binary, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions

from connect_py.data.java_text import escaped
from connectors.mongodb.values.bson_driver import DriverTexts, driver_texts, while_it_pays
from connectors.mongodb.values.bson_forms import Form, MalformedBsonError, double_text, scalar_texts
from connectors.mongodb.values.bson_json import MAX_DEPTH, BsonJson, bson_json
from connectors.mongodb.values.bson_lists import LISTS, list_texts
from connectors.mongodb.values.bson_shapes import MAX_SHAPES, Shapes
from tests.bson_documents import DOUBLES, TEXTS, document, family
from tests.unit.connectors.mongodb.test_bson_json import mutated

SEED = int(os.environ.get("BSON_SEED", "0")) or Random().randrange(1, 2**31)
FORMS = [(Form.STRICT, ","), (Form.CANONICAL, ","), (Form.RELAXED, ","), (Form.RELAXED, ", ")]
EVERY_FORM = pytest.mark.parametrize(("form", "comma"), FORMS, ids=["strict", "canonical", "relaxed", "spaced"])
#: Texts and names that look like what the writers of JSON put around them.
TRAPS = [":", '":', '": ', "\\", '\\":', ':"', ",", '","', '"}', "[", "{", "\\u0000", "\x00", "a\x00b", "%d", "%", "7"]
TRAPS += [":" * 120, '"' * 120 + ":"]


def result(writer: BsonJson, data: bytes) -> str:
    """The text, or the error's class and message."""
    try:
        return writer.document(data)
    except MalformedBsonError as error:
        return f"{type(error).__name__}: {error}"


def slow_way(writer: BsonJson) -> BsonJson:
    """The same writer with no quick way, not even for documents in arrays."""
    slow = bson_json(writer.form, writer.comma, elements_depth=-1)
    return BsonJson(writer.form, writer.comma, slow.walk, slow.write_value, Shapes(lambda _: None), lambda _: None)


def driver(form: Form, comma: str) -> DriverTexts:
    return driver_texts(form, scalar_texts(form, comma), comma)


@EVERY_FORM
def test_collections_and_their_broken_documents_have_the_texts_and_errors_of_the_slow_way(form: Form, comma: str) -> None:
    rng = Random(SEED)
    shaped = 0
    for number in range(60):
        make, writer = family(rng), bson_json(form, comma)
        authority = slow_way(writer)
        for _ in range(12):
            data = make()
            for copy in (data, mutated(rng, data), mutated(rng, data)):
                assert result(writer, copy) == result(authority, copy), f"BSON_SEED={SEED}, family {number}: {copy.hex()}"
        shaped += writer.shapes.hits > 0
    assert shaped > 3


@EVERY_FORM
def test_what_the_driver_writes_is_what_the_slow_way_writes(form: Form, comma: str) -> None:
    rng = Random(SEED)
    authority, texts = slow_way(bson_json(form, comma)), driver(form, comma)
    taken = 0
    for number in range(150):
        make = family(rng)
        for data in (make(), make(), document(rng), document(rng, old_types=False)):
            for copy in (data, mutated(rng, data), mutated(rng, data), mutated(rng, data)):
                text = texts.document(copy)
                taken += text is not None
                assert text is None or escaped(text) == result(authority, copy), f"BSON_SEED={SEED}, family {number}: {copy.hex()}"
                as_array = b"".join((struct.pack("<i", len(copy) + 8), b"\4a\0", copy, b"\0"))
                text = texts.array(copy)
                expected = result(authority, as_array)
                assert text is None or f'{{"a": {escaped(text)}}}' == expected, f"BSON_SEED={SEED}, family {number}: {copy.hex()}"
    assert taken > 200


@EVERY_FORM
@pytest.mark.parametrize(
    "document",
    [
        {"a": [{"b": trap, trap.replace("\x00", "") or "n": [trap, 1]} for trap in TRAPS]},
        *({trap.replace("\x00", "") + "k": [{trap.replace("\x00", ""): trap}]} for trap in TRAPS),
        {"a": [{"b": text, "c": [text]} for text in TEXTS], "d": list(TEXTS)},
        {"_id": ObjectId(bytes(12)), "a": [{"b": number} for number in DOUBLES], "c": list(DOUBLES)},
        {"a": [{"b": number} for number in (2.0**-9, 2.0**23, 8388607.999999999, 1e7, 0.001, 0.00195312, 9999999.999999998, 1e16, 1.7e12)]},
        {"a": [[2**31 - 1, -(2**31), Int64(2**63 - 1), Int64(-(2**63)), Int64(0), True, None]]},
        {"a": [[Binary(b"\x00" * size, subtype) for size in (0, 1, 16)] for subtype in (0, 1, 2, 5, 9, 128, 255)]},
        {"a": [Binary(bytes(range(16)), 3), Binary(bytes(range(16)), 4), Timestamp(2**32 - 1, 1), MinKey(), MaxKey(), Regex("a:b", "im")]},
        {"a": [[Decimal128(text)] for text in ("0", "-0", "1E+6144", "NaN", "-Infinity", "1.10", "0.0000001")]},
        {"a": [DBRef("c", 1), {"$ref": "c"}, {"$id": 1, "$ref": 2}]},
        {"a": [[], {}, [[]], [{}], [[], [{}]]], "b": {}, "c": []},
        {"_id": ObjectId(bytes(12))},
        {"_id": ObjectId(bytes(12)), "l": [ObjectId(bytes(12))] * 12, "m": [ObjectId(bytes(range(12)))], "n": [Int64(5)] * 30},
    ],
    ids=lambda document: str(next(iter(document)))[:12],
)
def test_a_document_of_unusual_values_has_the_text_of_the_slow_way(form: Form, comma: str, document: dict[str, Any]) -> None:
    writer = bson_json(form, comma)
    data = bson.encode(document)
    expected = result(slow_way(writer), data)
    for _ in range(6):  # by the driver, then by a shape
        assert result(writer, data) == expected


def elements_of(name: bytes, *values: tuple[int, bytes]) -> bytes:
    content = b"".join(bytes([kind]) + name + b"\0" + value for kind, value in values)
    return struct.pack("<i", len(content) + 5) + content + b"\0"


def text_of(content: bytes) -> bytes:
    return struct.pack("<i", len(content) + 1) + content + b"\0"


@EVERY_FORM
def test_two_fields_of_one_name_have_the_text_of_the_slow_way(form: Form, comma: str) -> None:
    """Also where the first one, of which nothing is seen later, is a text that looks like other fields."""
    writer = bson_json(form, comma)
    undefined, symbol = (0x06, b""), (0x0E, text_of(b"s"))
    hidden = (0x02, text_of(b"x\0\x0a\0\x02b\0\x02\0\0\0y"))
    for pair in (
        ((0x10, b"\1\0\0\0"), (0x02, text_of(b"x"))),
        (hidden, (0x10, b"\1\0\0\0")),
        (hidden, undefined),
        (undefined, hidden),
        (hidden, symbol),
        (symbol, hidden, (0x0A, b"")),
    ):
        for data in (elements_of(b"a", *pair), elements_of(b"_id", (0x07, b"\1" * 12), *pair)):
            in_list = elements_of(b"l", (4, elements_of(b"0", (3, data))))
            for copy in (data, elements_of(b"l", (3, data)), elements_of(b"l", (4, data)), in_list):
                assert result(writer, copy) == result(slow_way(writer), copy)


def nested(kinds: bytes, levels: int, width: int) -> bytes:
    data = elements_of(b"a", *[(0x0A, b"")] * width)
    for level in range(levels):
        data = elements_of(b"a" if width == 0 else b"key", (kinds[level % len(kinds)], data))
    return data


@EVERY_FORM
@pytest.mark.parametrize("kinds", [b"\3", b"\4", b"\3\4"], ids=["documents", "arrays", "both"])
def test_as_many_levels_are_written_as_by_the_slow_way(form: Form, comma: str, kinds: bytes) -> None:
    writer = bson_json(form, comma)
    texts = driver(form, comma)
    for levels in (1, 19, 20, 21, 149, 150, 151, 199, 200, 201, *range(MAX_DEPTH - 3, MAX_DEPTH + 4), 250, 253, 254, 255, 3000):
        for width in (0, 40):
            data = nested(kinds, levels, width)
            # the walk of 3,000 levels ends at MAX_DEPTH
            expected = result(slow_way(writer), data)
            assert expected.startswith("MalformedBsonError") == (levels > MAX_DEPTH)
            assert result(writer, data) == result(writer, data) == expected
            beside = bson.encode({"flag": True})[4:-1] + b"\4list\0" + data
            beside = struct.pack("<i", len(beside) + 5) + beside + b"\0"
            assert result(writer, beside) == result(slow_way(writer), beside)
            assert levels <= MAX_DEPTH or texts.document(data) is None


def test_documents_of_ever_new_shapes_leave_nothing_behind() -> None:
    rng = Random(SEED)
    writer = bson_json(Form.STRICT)
    authority = slow_way(writer)
    for number in range(3000):
        data = bson.encode({f"f{number}": number, f"g{rng.randrange(10**9)}": [{f"h{number}": "x"}], "t": "x" * (number % 7)})
        assert writer.document(data) == authority.document(data)
    assert len(writer.shapes) <= MAX_SHAPES


def test_documents_that_the_driver_never_takes_are_seldom_given_to_it() -> None:
    seen: list[bytes] = []

    def write(data: bytes) -> str | None:
        seen.append(data)
        return None if data == b"refused" else "text"

    worthwhile = while_it_pays(write)
    assert [worthwhile(b"refused") for _ in range(816)] == [None] * 816
    assert len(seen) == 116
    assert [worthwhile(b"taken") for _ in range(8)].count("text") >= 1
    assert [worthwhile(b"taken") for _ in range(8)] == ["text"] * 8


def values_of(rng: Random, kind: int, count: int) -> list[Any]:
    makers: dict[int, Any] = {
        0x01: lambda: DOUBLES[rng.randrange(len(DOUBLES))] if rng.random() < 0.3 else rng.randrange(1, 10**7) / 10 ** rng.randrange(4),
        0x02: lambda: TEXTS[rng.randrange(len(TEXTS) - 1)].replace("\x00", "") + str(rng.randrange(100)),
        0x07: lambda: ObjectId(rng.randrange(2**96).to_bytes(12, "big")),
        0x09: lambda: bson.DatetimeMS(rng.randrange(-(2**50), 2**50)),
        0x10: lambda: rng.randrange(-(2**31), 2**31),
        0x12: lambda: Int64(rng.randrange(-(2**63), 2**63)),
    }
    return [makers[kind]() for _ in range(count)]


@EVERY_FORM
@pytest.mark.parametrize("kind", sorted(LISTS))
def test_a_list_of_one_type_has_the_text_of_the_slow_way(form: Form, comma: str, kind: int) -> None:
    rng = Random(SEED)
    write = list_texts(scalar_texts(form, comma), comma)[kind]
    authority = slow_way(bson_json(form, comma))
    options: CodecOptions[Any] = CodecOptions()
    for count in (0, 1, 2, 9, 10, 11, 99, 100, 101, *(rng.randrange(40) for _ in range(60))):
        data = bson.encode({"a": values_of(rng, kind, count)}, codec_options=options)
        shown = f'{{"a": {write(data[11:-2]).decode()}}}'
        assert escaped(shown) == authority.document(data), f"BSON_SEED={SEED}, {count}"


def near_limits(rng: Random) -> Iterator[float]:
    """Doubles of the range in which orjson writes them, with many whose last digit is between two."""
    for _ in range(100_000):
        yield rng.randrange(1, 10**9) / 10 ** rng.randrange(1, 9)
        bits = rng.randrange(1, 52)
        yield 2.0 ** rng.randrange(-9, 23) + rng.randrange(2**bits) * 2.0 ** -rng.randrange(bits, 60)


def test_orjson_writes_plain_doubles_as_java_does() -> None:
    rng = Random(SEED)
    numbers = [number for number in near_limits(rng) if 0.001 <= number < 1e7]
    assert orjson.dumps(numbers).decode()[1:-1].split(",") == [double_text(number) for number in numbers], f"BSON_SEED={SEED}"


def test_orjson_escapes_what_the_standard_library_escapes() -> None:
    characters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    assert orjson.dumps(characters).decode() == encode_basestring(characters)
