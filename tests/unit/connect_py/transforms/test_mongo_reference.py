"""MongoDB's transforms give what Debezium's own classes gave (`golden/mongo_transform_reference.json.gz`).

The file holds records as JsonConverter writes them, configurations, and what debezium-connector-mongodb 3.6.1 made of each record in a
JVM: a digest of the record, `dropped`, `error:` and a digest of the text, or `internal` where Java failed by a NullPointerException, a
ClassCastException or the like; there only an error or a record is asked for.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import logging
from typing import Any

import pytest

from connect_py.api import SourceRecord
from connect_py.converters.json_converter import JsonConverter
from connect_py.errors import ConfigError, ConnectError
from connect_py.plugins.registry import Plugins
from tests.paths import GOLDEN as RECORDINGS

GOLDEN = json.loads(gzip.decompress((RECORDINGS / "mongo_transform_reference.json.gz").read_bytes()))
#: Connect's Timestamp is a datetime here, so dates after the year 9999 are refused; Java writes them.
LATE_DATE = "is beyond the years 1 to 9999"
PLUGINS = Plugins.discover()
CONVERTER = JsonConverter()


def test_the_recording_is_large() -> None:
    assert sum(len(case.get("results", ())) for case in GOLDEN["cases"]) > 5000


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: f"{case['class'].rpartition('.')[2]}-{json.dumps(case['config'])[:60]}")
def test_each_record_becomes_what_java_made_of_it(case: dict[str, Any]) -> None:
    logging.getLogger("connect_py.transforms").setLevel(logging.CRITICAL)  # what is no JSON is warned about
    transform = PLUGINS.load(case["class"])()
    if case.get("refused"):
        with pytest.raises(ConfigError):
            transform.configure(case["config"])
        return
    transform.configure(case["config"])
    wrong = []
    for index, expected in case["results"]:
        found, text = outcome(transform, index)
        if expected.startswith("error:") and "outbox" in case["class"]:
            expected, found = "error", found.partition(":")[0]  # which of two missing fields is named first is not held
        if expected not in (found, "internal") and LATE_DATE not in text:
            wrong.append(f"record {index}: expected {expected}, found {found}: {text[:2000]}")
    assert not wrong, "\n".join(wrong[:5])


def outcome(transform: Any, index: int) -> tuple[str, str]:
    """What becomes of a record, in the recording's terms, and in full."""
    try:
        record = transform.apply(given(index))
        if record is None:
            return "dropped", ""
        text = json.dumps(as_json(record))
    except ConnectError as error:
        return f"error:{hashlib.sha1(str(error).encode()).hexdigest()[:8]}", str(error)
    return hashlib.sha1(text.encode()).hexdigest()[:10], text


@functools.cache
def given(index: int) -> SourceRecord:
    record = GOLDEN["records"][index]
    return SourceRecord({"p": "1"}, {"o": 1}, record["topic"], *read(record["key"]), *read(record["value"]))


def read(node: Any) -> tuple[Any, Any]:
    if node is None:
        return None, None
    return CONVERTER.to_connect_data("t", json.dumps({**node, "schema": GOLDEN["schemas"][node["schema"]]}).encode())


def as_json(record: Any) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": side(record.key_schema, record.key),
        "value": side(record.value_schema, record.value),
        "headers": [[header.name, side(header.schema, header.value)] for header in record.headers],
    }


def side(schema: Any, value: Any) -> Any:
    data = CONVERTER.from_connect_data("t", schema, value)
    return None if data is None else normal(json.loads(data))


def normal(node: Any, key: str = "") -> Any:
    """Java keeps parameters of schemas in an order of its own."""
    if isinstance(node, dict):
        parts = {name: normal(value, name) for name, value in node.items()}
        return dict(sorted(parts.items())) if key == "parameters" else parts
    return [normal(item) for item in node] if isinstance(node, list) else node
