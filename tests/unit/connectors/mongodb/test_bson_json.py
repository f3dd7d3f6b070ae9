"""BSON as text: equal to the Java driver's (`golden/bson_json.json.gz`), to `json_util`'s where the forms are the same, and never a crash.

The golden holds what Debezium 3.6.1's `JsonSerialization` and its driver's JsonWriter made, in a JVM, of the documents of one seed:
a digest of each document's five texts (key, strict, canonical, relaxed, relaxed with spaces), and every 40th document in full.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from random import Random
from typing import Any

import bson
import pytest
from bson import json_util
from bson.codec_options import CodecOptions, DatetimeConversion

from connectors.mongodb.values.bson_forms import Form, MalformedBsonError
from connectors.mongodb.values.bson_json import MAX_DEPTH, bson_json, decode_tree, encode_tree
from tests.bson_documents import document
from tests.paths import GOLDEN

GOLDEN: dict[str, Any] = json.loads(gzip.decompress((GOLDEN / "bson_json.json.gz").read_bytes()).decode("utf-8", "surrogatepass"))
STRICT, CANONICAL, RELAXED, SPACED = (
    bson_json(Form.STRICT),
    bson_json(Form.CANONICAL),
    bson_json(Form.RELAXED),
    bson_json(Form.RELAXED, ", "),
)
WRITERS = (STRICT, CANONICAL, RELAXED, SPACED)
EMPTY = b"\x05\0\0\0\0"
SEED = int(os.environ.get("BSON_SEED", "0")) or Random().randrange(1, 2**31)


def texts(data: bytes) -> list[str]:
    return [id_text(data), *(writer.document(data) for writer in WRITERS)]


def id_text(data: bytes) -> str:
    """The text of `_id`, found without the walker."""
    value = decode_tree(data).get("_id", b"\x0a")
    if isinstance(value, list):
        return RELAXED.value(4, encode_tree({str(index): item for index, item in enumerate(value)}))
    if isinstance(value, dict):
        return RELAXED.value(3, encode_tree(value))
    return RELAXED.value(value[0], value[1:])


def test_twenty_thousand_documents_have_the_texts_that_java_wrote() -> None:
    rng = Random(GOLDEN["seed"])
    documents = [document(rng) for _ in range(GOLDEN["count"])]
    assert hashlib.sha256(b"".join(documents)).hexdigest() == GOLDEN["documents"], "the generator changed: record the golden again"
    digests = base64.b64decode(GOLDEN["digests"])
    wrong = [
        index
        for index, data in enumerate(documents)
        if hashlib.sha256("\0".join(texts(data)).encode("utf-8", "surrogatepass")).digest()[:6] != digests[6 * index : 6 * index + 6]
    ]
    assert not wrong, [(index, documents[index].hex()) for index in wrong[:3]]


@pytest.mark.parametrize("example", GOLDEN["examples"], ids=lambda example: str(example[0]))
def test_an_example_has_the_texts_that_java_wrote(example: list[Any]) -> None:
    assert texts(base64.b64decode(example[1])) == example[2:]


@pytest.mark.parametrize(
    ("writer", "options"),
    [
        (STRICT, json_util.LEGACY_JSON_OPTIONS.with_options(strict_number_long=True)),
        (CANONICAL, json_util.CANONICAL_JSON_OPTIONS),
        (RELAXED, json_util.RELAXED_JSON_OPTIONS),
    ],
    ids=["strict", "canonical", "relaxed"],
)
def test_twenty_thousand_documents_mean_what_json_util_says(writer: Any, options: json_util.JSONOptions) -> None:
    rng = Random(SEED)
    codec: CodecOptions[Any] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS, tz_aware=True)
    for index in range(20_000 // 3 + 1):
        data = document(rng, old_types=False)
        found = json.loads(writer.document(data))
        expected = json.loads(json_util.dumps(bson.decode(data, codec), json_options=options))
        assert folded(found) == folded(expected), f"BSON_SEED={SEED}, document {index}"


def folded(value: Any) -> Any:
    """JSON in which the two libraries agree by their own rules: the driver for Python writes dates, codes and options otherwise."""
    if isinstance(value, list):
        return [folded(item) for item in value]
    if not isinstance(value, dict):
        return repr(float(value)) if isinstance(value, float) else value
    if value.keys() == {"$date"} and isinstance(value["$date"], str):
        return {"$date": value["$date"].rstrip("Z").partition(".")[0]}
    for name in ("$options", "options", "$regularExpression"):
        if name in value:
            return "a regular expression"
    if value.keys() & {"$binary", "$uuid"}:
        return "a binary"
    if (len(value.get("$numberDecimal", "")) == 35 and value["$numberDecimal"].isdigit()) or value == {"$numberDecimal": "0"}:
        return "zero, or digits that are not canonical, which the driver for Python reads as zero"
    if value.keys() == {"$numberDecimal"} or value.keys() == {"$numberDouble"}:
        return {name: repr(float(text)) for name, text in value.items()}
    return {name: folded(item) for name, item in value.items()}


def mutated(rng: Random, data: bytes) -> bytes:
    choice = rng.randrange(4)
    at = rng.randrange(len(data))
    if choice == 0:
        return data[:at]
    if choice == 1:
        return data[:at] + data[at + rng.randrange(1, 9) :]
    if choice == 2:
        return data[:at] + bytes([rng.randrange(256)]) + data[at:]
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(data))] = (0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, rng.randrange(256))[rng.randrange(9)]
    return bytes(changed)


def test_a_tree_becomes_the_document_it_was_made_of() -> None:
    rng = Random(SEED)
    for index in range(2000):
        data = document(rng)
        assert STRICT.document(encode_tree(decode_tree(data))) == STRICT.document(data), f"BSON_SEED={SEED}, document {index}"


def test_of_two_fields_with_one_name_the_last_value_stands_at_the_first_place() -> None:
    data = bytes.fromhex("1a000000 106100 01000000 106200 02000000 106100 03000000 00".replace(" ", ""))
    assert STRICT.document(data) == '{"a": 3,"b": 2}'


def test_malformed_utf_8_is_shown_as_the_replacement_character() -> None:
    data = bytes.fromhex("12000000 026100 06000000 61eda08062 00 00".replace(" ", ""))
    assert STRICT.document(data) == '{"a": "a\ufffdb"}'


def test_documents_nested_without_end_are_refused() -> None:
    data = EMPTY
    for _ in range(MAX_DEPTH + 2):
        data = (len(data) + 8).to_bytes(4, "little") + b"\x03a\0" + data + b"\0"
    with pytest.raises(MalformedBsonError, match="nested more than"):
        STRICT.document(data)
    with pytest.raises(MalformedBsonError, match="nested more than"):
        decode_tree(data)


def test_a_name_without_end_is_refused_though_the_same_bytes_were_a_name_before() -> None:
    assert STRICT.document(bytes.fromhex("07000000 7f00 00".replace(" ", ""))) == '{"": {"$maxKey": 1}}'
    for writer in WRITERS:
        with pytest.raises(MalformedBsonError):
            writer.document(bytes.fromhex("0b000000 7f24736500 7f 00".replace(" ", "")))


def test_what_follows_a_document_is_not_looked_at() -> None:
    assert STRICT.document(b"??" + EMPTY + b"??", 2) == "{}"
