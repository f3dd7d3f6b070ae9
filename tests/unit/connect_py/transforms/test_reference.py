"""Transforms give what Kafka's and Debezium's own classes gave (`golden/transform_reference.json`).

The file holds records as JsonConverter writes them, configurations, and what connect-transforms 4.3.1 and debezium-connect-plugins 3.6.1
made of each record: null for a dropped one, `error` with the exception's text, or the parts that changed, by their path. Schemas and
long texts are digests of their JSON. `refused` is the text with which a configuration was refused.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.api import Header, SourceRecord
from connect_py.converters.json_converter import JsonConverter
from connect_py.data import Struct
from connect_py.errors import ConfigError, ConnectError
from connect_py.plugins.registry import Plugins
from tests.paths import GOLDEN as RECORDINGS

GOLDEN = json.loads((RECORDINGS / "transform_reference.json").read_text())
PLUGINS = Plugins.discover()
CONVERTER = JsonConverter()
NAMES = sorted({case["steps"][0][0] for case in GOLDEN["cases"]})


def test_the_recording_covers_the_transforms() -> None:
    assert len(NAMES) > 25
    assert sum(len(case.get("results", ())) for case in GOLDEN["cases"]) > 3000


@pytest.mark.parametrize("name", NAMES)
def test_each_record_becomes_what_java_made_of_it(name: str) -> None:
    logging.getLogger("connect_py.transforms").setLevel(logging.CRITICAL)  # rows of an outbox that are no JSON are warned about
    wrong = [difference for case in GOLDEN["cases"] if case["steps"][0][0] == name for difference in differences(case)]
    assert not wrong, "\n".join(wrong[:10])


def differences(case: dict[str, Any]) -> Iterator[str]:
    try:
        steps = [configured(*step) for step in case["steps"]]
    except ConfigError as error:
        if str(error) != case.get("refused"):
            yield f"{case['steps']} was refused: {error}"
        return
    if "refused" in case:
        yield f"{case['steps']} was taken; Java says {case['refused']}"
        return
    for index, expected in case["results"]:
        found = outcome(steps, index)
        if found != expected:
            yield f"{case['steps']} of record {index}: {found}; Java made {expected}"


def configured(name: str, config: dict[str, str]) -> Any:
    transform = PLUGINS.load(name)()
    transform.configure(config)
    return transform


def outcome(steps: list[Any], index: int) -> dict[str, Any] | None:
    """What becomes of a record, in the recording's terms. All cases share the record: none may change it."""
    given, before = prepared(index)
    record = given
    try:
        for step in steps:
            record = step.apply(record)
            if record is None:
                return None
        after = as_json(record, given, before)
    except ConnectError as error:
        return {"error": str(error)}
    return {path: shortened(value, path) for path, value in changes(before, after)}


@functools.cache
def prepared(index: int) -> tuple[SourceRecord, dict[str, Any]]:
    record = as_record(GOLDEN["records"][index])
    return record, as_json(record)


def as_record(given: dict[str, Any]) -> SourceRecord:
    key_schema, key = read(given.get("key"))
    value_schema, value = read(given.get("value"))
    headers = [Header(name, *reversed(read(node))) for name, node in given.get("headers") or ()]
    where = given["topic"], key_schema, key, value_schema, value, given.get("partition"), given.get("timestamp")
    return SourceRecord({"p": "1"}, {"o": 1}, *where, headers)


def read(node: Any) -> tuple[Any, Any]:
    if node is None:
        return None, None
    schema = GOLDEN["schemas"][node["schema"]] if isinstance(node["schema"], str) else node["schema"]
    return CONVERTER.to_connect_data("t", json.dumps({**node, "schema": schema}).encode())


def as_json(record: SourceRecord, given: SourceRecord | None = None, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """A record as JSON; sides that are still those of a given record are known."""

    def side(schema: Any, value: Any) -> Any:
        data = CONVERTER.from_connect_data("t", schema, value)
        return None if data is None else normal(json.loads(data))

    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": known["key"] if known and given and is_same(record.key, given.key) else side(record.key_schema, record.key),
        "value": known["value"] if known and given and is_same(record.value, given.value) else side(record.value_schema, record.value),
        "headers": [[header.name, side(header.schema, header.value)] for header in record.headers],
    }


def is_same(value: Any, given: Any) -> bool:
    return isinstance(value, Struct) and value is given


def normal(node: Any, key: str = "") -> Any:
    """Java keeps parameters of schemas in an order of its own."""
    if isinstance(node, dict):
        parts = {name: normal(value, name) for name, value in node.items()}
        return dict(sorted(parts.items())) if key == "parameters" else parts
    return [normal(item) for item in node] if isinstance(node, list) else node


def changes(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(before, dict) and isinstance(after, dict) and before and before.keys() == after.keys():
        for name in after:
            yield from changes(before[name], after[name], f"{path}/{name}")
    elif json.dumps(before) != json.dumps(after):
        yield path, after


def shortened(value: Any, path: str) -> Any:
    if path.endswith("/schema") or "/schema/" in path:
        return None if value is None else digest(value)
    if isinstance(value, str):
        return digest(value) if len(value) > 200 else value
    if isinstance(value, dict):
        return {name: shortened(item, f"{path}/{name}") for name, item in value.items()}
    return [shortened(item, path) for item in value] if isinstance(value, list) else value


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return f"sha1:{hashlib.sha1(text.encode()).hexdigest()[:12]}"
