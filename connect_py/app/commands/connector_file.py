"""Connectors given on the command line of a standalone worker (`cli/ConnectStandalone.java`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from connect_py.api.storage import TargetState
from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError

_STATES = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}


@dataclass(frozen=True)
class ConnectorFile:
    """What a file asks for."""

    name: str
    config: dict[str, str]
    state: TargetState | None


def read_connector_file(path: str) -> ConnectorFile:
    """Read a file: a flat JSON object, ``{"name", "config", "initial_state"}``, or Java properties; tried in this order.

    Raises:
        ConfigError: it cannot be read, or has no name.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = parse_properties(text)
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is neither a JSON object nor a properties file.")
    state = None
    if isinstance(found.get("config"), dict):
        wanted = str(found.get("initial_state") or "RUNNING").upper()
        if wanted not in _STATES:
            raise ConfigError(f"{path}: initial_state is {wanted}, but must be one of {', '.join(_STATES)}.")
        state = _STATES[wanted] if "initial_state" in found else None
        config = {**_texts(found["config"]), **({"name": str(found["name"])} if found.get("name") else {})}
    else:
        config = _texts(found)
    if not config.get("name"):
        raise ConfigError(f"{path} has no name for its connector.")
    return ConnectorFile(config["name"], config, state)


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Scalars as the texts that a configuration holds; JSON booleans are written as in JSON."""
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in values.items() if value is not None}
