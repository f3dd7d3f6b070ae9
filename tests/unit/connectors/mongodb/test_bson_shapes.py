"""The quick way of a shape gives what the slow way gives, or nothing."""

from __future__ import annotations

import json
import os
import struct
from json.encoder import encode_basestring
from random import Random
from typing import Any

import bson
import pytest
from bson import Int64, ObjectId

from connectors.mongodb.values.bson_forms import Form, MalformedBsonError, scalar_texts
from connectors.mongodb.values.bson_json import BsonJson, bson_json
from connectors.mongodb.values.bson_shapes import FIRST_PATIENCE, MAX_FIELDS, Shape, Shapes, shape_of
from tests.bson_documents import document
from tests.unit.connectors.mongodb.test_bson_json import mutated

SEED = int(os.environ.get("BSON_SEED", "0")) or Random().randrange(1, 2**31)
FORMS = [(Form.STRICT, ","), (Form.CANONICAL, ","), (Form.RELAXED, ","), (Form.RELAXED, ", ")]
EVERY_FORM = pytest.mark.parametrize(("form", "comma"), FORMS, ids=["strict", "canonical", "relaxed", "spaced"])


def made(writer: BsonJson, data: bytes) -> Shape | None:
    return shape_of(data, scalar_texts(writer.form, writer.comma), writer.comma, encode_basestring, writer.write_value)


def slow(writer: BsonJson, data: bytes) -> str | None:
    """The slow way's text; None for bytes that it refuses."""
    try:
        return BsonJson(writer.form, writer.comma, writer.walk, writer.write_value, Shapes(lambda _: None), lambda _: None).document(data)
    except MalformedBsonError:
        return None


def quick(shape: Shape, data: bytes) -> str | None:
    shapes = Shapes(lambda _: shape)
    for _ in range(FIRST_PATIENCE):
        shapes.missed(data)
    return shapes.text(data)


@EVERY_FORM
def test_a_shape_writes_its_own_document_and_its_broken_copies_as_the_slow_way_does(form: Form, comma: str) -> None:
    rng = Random(SEED)
    writer = bson_json(form, comma)
    taken = 0
    for index in range(250):
        data = document(rng)
        shape = made(writer, data)
        if shape is None:
            continue
        for copy in (data, *(mutated(rng, data) for _ in range(20))):
            text = quick(shape, copy)
            taken += text is not None
            assert text is None or text == slow(writer, copy), f"BSON_SEED={SEED}, document {index}: {copy.hex()}"
    assert taken > 100


@EVERY_FORM
def test_documents_of_one_shape_take_the_quick_way(form: Form, comma: str) -> None:
    writer = bson_json(form, comma)
    for number in range(50):
        fields: dict[str, Any] = {
            "_id": ObjectId(),
            "name": f"näme {number}",
            "n": number,
            "big": Int64(number),
            "x": number / 7,
            "flag": number % 2 == 0,
        }
        fields |= {"in": {"a": "x" * number, "tags": ["t"] * number, "last": None}, "end": "100%"}
        data = bson.encode(fields)
        assert writer.document(data) == slow(writer, data)
    assert writer.shapes.hits > 40


def test_a_text_that_looks_like_the_next_field_is_no_next_field() -> None:
    """The first text's length says that it holds what follows; only lengths tell."""
    writer = bson_json(Form.STRICT)
    shape = made(writer, bson.encode({"a": "x", "b": "y"}))
    assert shape is not None
    inner = b"x\0\x02b\0" + struct.pack("<i", 2) + b"y"
    content = b"\x02a\0" + struct.pack("<i", len(inner) + 1) + inner + b"\0"
    spoof = struct.pack("<i", len(content) + 5) + content + b"\0"
    assert len(bson.decode(spoof)) == 1
    assert quick(shape, spoof) is None
    assert writer.document(spoof) == '{"a": "x\\u0000\\u0002b\\u0000\\u0002\\u0000\\u0000\\u0000y"}'


def test_two_fields_of_one_name_and_very_many_fields_have_no_shape() -> None:
    writer = bson_json(Form.STRICT)
    assert made(writer, bytes.fromhex("1a000000 106100 01000000 106200 02000000 106100 03000000 00".replace(" ", ""))) is None
    assert made(writer, bson.encode({f"f{n}": n for n in range(MAX_FIELDS + 1)})) is None


def test_where_no_two_documents_are_alike_shapes_are_made_seldom() -> None:
    calls: list[bytes] = []

    def make(data: bytes) -> None:
        calls.append(data)

    shapes = Shapes(make)
    for _ in range(10_000):
        shapes.missed(b"")
    assert len(calls) < 10


def test_documents_in_arrays_take_the_quick_way_and_deep_ones_are_still_refused() -> None:
    writer = bson_json(Form.STRICT)
    data = bson.encode({"lines": [{"sku": f"s{n}", "n": n, "in": [{"x": n}, {"x": "é"}], "l": []} for n in range(50)]})
    text = writer.document(data)
    assert json.loads(text)["lines"][7] == {"sku": "s7", "n": 7, "in": [{"x": 7}, {"x": "é"}], "l": []}
    assert text.count("},{") >= 49
    deep = bson.encode({"a": [{"a": []}]})
    for _ in range(20):
        writer.document(deep)
    inner = b"\x05\0\0\0\0"
    for _ in range(3000):
        inner = struct.pack("<i", len(inner) + 8) + b"\x04a\0" + inner + b"\0"
        inner = struct.pack("<i", len(inner) + 8) + b"\x030\0" + inner + b"\0"
    with pytest.raises(MalformedBsonError):
        writer.document(struct.pack("<i", len(inner) + 8) + b"\x04a\0" + inner + b"\0")
