"""What a client's program printed, with everything left out that may differ between two workers that behave the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: What these name depends on the worker or on the time.
_OWN = {"commit": "COMMIT", "kafka_cluster_id": "CLUSTER", "kafkaClusterId": "CLUSTER", "last_modified": 0}

#: How Python's logging writes the time.
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+")

#: Plugins that both workers have for certain; others are compared by the parity kit.
_PLUGINS = re.compile(r"org\.apache\.kafka\.connect\.file\.")


def parse(printed: str, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """One entry a call.

    Args:
        names: text that this run chose, to the word that stands for it.
    """
    for text, word in sorted(names.items(), key=lambda pair: -len(pair[0])):
        printed = printed.replace(text, word)
    return [_common(json.loads(line)) for line in printed.splitlines()]


def _common(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: _OWN.get(key, _common(each)) for key, each in value.items()}
        if isinstance(found.get("recommended_values"), list):
            found["recommended_values"] = bool(found["recommended_values"])
        if "recommendedValues" in found:
            found["recommendedValues"] = bool(found["recommendedValues"])
        return found
    if isinstance(value, list):
        kept = [each for each in value if not _is_plugin(each) or _PLUGINS.match(each.get("class") or each["className"])]
        return [_common(each) for each in kept]
    if isinstance(value, str) and value.startswith(("{", "[")):  # an answer that the client hands on as text
        try:
            return _common(json.loads(value))
        except ValueError:
            return value
    return _TIME.sub("TIME", value) if isinstance(value, str) else value


def _is_plugin(value: Any) -> bool:
    return isinstance(value, dict) and ("class" in value or "className" in value) and "type" in value
