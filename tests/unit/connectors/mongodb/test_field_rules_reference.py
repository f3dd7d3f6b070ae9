"""Excluded and renamed fields are those that Debezium 3.6.1's `FieldSelector` excluded and renamed in a JVM
(`golden/mongo_field_rules.json.gz`).

A row: the document, `field.exclude.list`, `field.renames`, some names of fields; the document's text, or the error's, as a whole document
and as the updated fields of a change; and what became of the names.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

from connect_py.errors import DataError
from connectors.mongodb.field_rules import FieldChanges, FieldRules
from connectors.mongodb.values.bson_forms import Form
from connectors.mongodb.values.bson_json import bson_json, decode_tree, encode_tree
from tests.paths import GOLDEN

ROWS = json.loads(gzip.decompress((GOLDEN / "mongo_field_rules.json.gz").read_bytes()))
STRICT = bson_json(Form.STRICT).document
SPACED = bson_json(Form.RELAXED, ", ").document


def changes_of(excludes: str, renames: str) -> FieldChanges:
    return FieldRules.parse(excludes or None, renames or None).of("db.c") or FieldChanges(())


def text_or_error(write: Callable[[bytes], str], change: Callable[[dict[str, Any]], dict[str, Any]], data: bytes) -> tuple[str | None, str]:
    try:
        return write(encode_tree(change(decode_tree(data)))), ""
    except DataError as error:
        return None, str(error)


def test_whole_documents_are_changed_as_by_the_reference() -> None:
    for data, excludes, renames, _, *expected, _, _, _ in ROWS:
        changes = changes_of(excludes, renames)
        assert text_or_error(STRICT, changes.document, base64.b64decode(data)) == tuple(expected), (data, excludes, renames)


def test_updated_fields_are_changed_as_by_the_reference() -> None:
    for data, excludes, renames, _, _, _, *expected, _ in ROWS:
        changes = changes_of(excludes, renames)
        assert text_or_error(SPACED, changes.updated_fields, base64.b64decode(data)) == tuple(expected), (data, excludes, renames)


def test_names_of_removed_fields_are_changed_as_by_the_reference() -> None:
    for _, excludes, renames, names, *_, expected in ROWS:
        changes = changes_of(excludes, renames)
        assert [changes.kept(name) for name in names] == expected, (excludes, renames, names)
