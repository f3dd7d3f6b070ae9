"""Compares two recordings, point by point: each REST answer, each record, each topic's configuration."""

from __future__ import annotations

import functools
import json
import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


def _words(text: str) -> set[str]:
    return set(text.split())


#: Fields that differ from run to run wherever they are.
ALWAYS = _words(
    "ts_ms ts_us ts_ns ts_usec worker_id trace kafka_cluster_id commit session-key timestamp creation-timestamp resume_token generation"
    " timestamp_ms last_modified"
)
STACK = "__connect.errors.exception.stacktrace"
#: Fields that differ from run to run in some objects.
INSIDE = {
    "source": _words("lsn txId xmin sequence version file pos gtid server_id thread ord wallTime query lsid txnNumber"),
    "position": _words("file pos gtids server_id ts_sec"),
    "transaction": {"id"},
}
#: Fields of source offsets that differ from run to run.
OFFSETS = _words("lsn lsn_proc lsn_commit txId file pos gtids server_id ts_sec row event sec ord transaction_id position")

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TXID = re.compile(r"^\d+:\d{6,}$|file=[^,]+,pos=\d+|^(?:[0-9a-f-]{36}|UUID):\d+$")
INSTANT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}Z")


def normalise(node: Any, inside: str = "", offsets: bool = False) -> Any:
    """Replace what differs from run to run by its type, so that only type and place are compared."""
    if isinstance(node, dict):
        result = {}
        for key, value in node.items():
            state_version = key == "version" and "state" in node
            volatile = key in ALWAYS or key in INSIDE.get(inside, ()) or (offsets and key in OFFSETS) or state_version
            if key in ("topics", "recommended_values", "offsets", "data_collections") and isinstance(value, list):
                value = sorted(value, key=lambda item: json.dumps(item, sort_keys=True))
            if key == "headers" and isinstance(value, list):
                value = [[name, kind(text) if name == STACK else text] for name, text in value]
            result[key] = kind(value) if volatile else normalise(value, key, offsets or key == "offset")
        return result
    if isinstance(node, list):
        return [normalise(item, inside, offsets) for item in node]
    return _plain(node) if isinstance(node, str) else node


@functools.cache
def _plain(text: str) -> str:
    text = TXID.sub("TXID", UUID.sub("UUID", text))
    return INSTANT.sub("INSTANT", text) if "WindowTimestamp" in text else text


def kind(value: Any) -> str:
    """Return what stands for a value of its type."""
    return "<null>" if value is None else f"<{type(value).__name__}>"


def differences(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, reference, candidate) wherever two JSON values differ.

    A different order of fields counts, except in maps that the reference keeps unordered (configurations, offsets).
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a:
            if key not in b:
                yield f"{path}.{key}", a[key], "(missing)"
            else:
                yield from differences(a[key], b[key], f"{path}.{key}")
        for key in b:
            if key not in a:
                yield f"{path}.{key}", "(missing)", b[key]
        if set(a) == set(b) and list(a) != list(b) and not re.search(r"\.(config|offset|notes|additional_data)\b", path):
            yield f"{path} (order of fields)", list(a), list(b)
    elif isinstance(a, list) and isinstance(b, list):
        for i in range(max(len(a), len(b))):
            if i >= len(a):
                yield f"{path}[{i}]", "(missing)", b[i]
            elif i >= len(b):
                yield f"{path}[{i}]", a[i], "(missing)"
            else:
                yield from differences(a[i], b[i], f"{path}[{i}]")
    elif a != b or type(a) is not type(b):
        yield path, a, b


INTERNALS = re.compile(
    r"Cannot invoke|Cannot construct instance|Cannot deserialize|java\.|org\.apache\.kafka\.connect\.runtime|StreamReadFeature|PluginDesc"
)


def better(reference: Any, candidate: Any) -> bool:
    """Where the reference answers a client's mistake with its own internals, a plain 4xx with a message is as good."""
    if not (isinstance(reference, dict) and isinstance(reference.get("body"), dict) and isinstance(candidate.get("body"), dict)):
        return False
    message = candidate["body"].get("message") or ""
    refused = 400 <= candidate["status"] < 500 and candidate["body"].get("error_code") == candidate["status"]
    return bool(INTERNALS.search(str(reference["body"].get("message"))) and refused and message and not INTERNALS.search(message))


def inline_schemas(recording: dict[str, Any], but: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a recording with its schemas where they are referred to; `but` are those that stay apart."""
    schemas = {name: schema for name, schema in recording.get("schemas", {}).items() if name not in but}

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: _referred(schemas, value) if key == "schema" else walk(value) for key, value in node.items()}
        return [walk(each) for each in node] if isinstance(node, list) else node

    def _referred(schemas: dict[str, Any], value: Any) -> Any:
        return schemas.get(value[1:], value) if isinstance(value, str) and value.startswith("$") else walk(value)

    found: dict[str, Any] = walk({key: value for key, value in recording.items() if key != "schemas"})
    return found


def points(recording: dict[str, Any], but: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The points of comparison of one recording: each REST answer, each record, each topic's configuration; with all schemas `but` some."""
    found = {}
    recording = inline_schemas(recording, but)
    for i, answer in enumerate(recording["rest"]):
        found[f"rest {i} {answer['label']}"] = normalise(answer)
    for topic, records in recording["topics"].items():
        offsets = topic == "internal:offset"
        for i, record in enumerate(records):
            found[f"topic {topic} [{i}]"] = normalise(record, offsets=offsets)
    for topic, config in recording.get("topic_configs", {}).items():
        found[f"config of {topic}"] = config
    for name, value in recording.get("notes", {}).items():
        found[f"note {name}"] = value
    return found


@dataclass(frozen=True)
class Comparison:
    """What two recordings have in common.

    Attributes:
        good: points that are equal.
        count: all points of either.
        lines: the differences, for people.
    """

    good: int
    count: int
    lines: list[str]


def compare_recordings(reference: dict[str, Any], candidate: dict[str, Any] | None, show: int) -> Comparison:
    """Compare two recordings; `show` is how many points that differ are told of."""
    same = _same_schemas(reference, candidate) if candidate else frozenset()
    want, got = points(reference, same), points(candidate, same) if candidate else {}
    bad = []
    for point in want:
        found = list(differences(want[point], got[point])) if point in got else [("", "present", "(missing)")]
        if found and point in got and better(want[point], got[point]):
            found = []
        if found:
            bad.append((point, found))
    extra = [p for p in got if p not in want]
    lines = []
    for point, found in bad[:show]:
        for where, a, b in found[:6]:
            lines += [f"    {point}{where}", f"        reference {short(a)}", f"        candidate {short(b)}"]
    lines += [f"    only in the candidate: {point}: {short(got[point])}" for point in extra[:show]]
    return Comparison(len(want) - len(bad), len(want) + len(extra), lines)


def _same_schemas(reference: dict[str, Any], candidate: dict[str, Any]) -> frozenset[str]:
    """The schemas that two recordings share to the last character: each of many records has them, and they are compared once."""
    theirs, ours = ({name: json.dumps(schema) for name, schema in each.get("schemas", {}).items()} for each in (reference, candidate))
    return frozenset(name for name, text in theirs.items() if ours.get(name) == text)


def compare_folders(reference: pathlib.Path, candidate: pathlib.Path, names: list[str], show: int) -> int:
    """Compare folders of recordings and print what differs; returns the exit code."""
    total = same = 0
    for path in sorted(reference.glob("*.json")):
        if names and path.stem not in names:
            continue
        other = candidate / path.name
        found = compare_recordings(json.loads(path.read_text()), json.loads(other.read_text()) if other.exists() else None, show)
        total, same = total + found.count, same + found.good
        print(f"{path.stem}: {found.good}/{found.count} points equal", *found.lines, sep="\n")
    print(f"{same}/{total} points equal")
    return 0 if same == total else 1


def short(value: Any) -> str:
    """Return JSON, cut."""
    text = json.dumps(value)
    return text if len(text) < 300 else text[:300] + "…"
