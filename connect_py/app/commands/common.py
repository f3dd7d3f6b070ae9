"""Do what several commands need: read connector files, ask a running worker over its REST API, run with arguments and end.

Connector files are those of a standalone worker's command line (`cli/ConnectStandalone.java`).
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from connect_py.api.storage import TargetState
from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError, ConnectError

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
    """Return scalars as the texts that a configuration holds; JSON booleans are written as in JSON."""
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in values.items() if value is not None}


_ANSWER_SECONDS = 30


def ask(worker: str, connector: str, what: str, *, called: str | None = None) -> Mapping[str, Any]:
    """``GET /connectors/{connector}/{what}``.

    Args:
        called: how an error names what was asked for; `what` itself by default.

    Raises:
        ConfigError: `worker` is no URL.
        ConnectError: the worker does not answer, or refuses.
    """
    url = f"{worker.rstrip('/')}/connectors/{urllib.parse.quote(connector, safe='')}/{what}"
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"--worker {worker} is no URL of a worker")
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310  # http and https only, see above
            found: Mapping[str, Any] = json.load(answer)
            return found
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ConnectError(f"The worker does not tell {called or what} of '{connector}': {error}") from error


def post(worker: str, path: str, body: Mapping[str, Any], *, seconds: float = _ANSWER_SECONDS) -> Mapping[str, Any]:
    """``POST /{path}`` with JSON; return the answer, which is an object.

    Raises:
        ConfigError: `worker` is no URL, or refuses the body.
        ConnectError: the worker does not answer.
    """
    url = f"{worker.rstrip('/')}/{path}"
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"--worker {worker} is no URL of a worker")
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"}, method="POST")  # noqa: S310  # see above
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310  # http and https only, see above
            found: Mapping[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        raise ConfigError(f"The worker refuses the request: {_message(error)}") from error
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ConnectError(f"The worker at {worker} does not answer: {error}") from error


def _message(error: urllib.error.HTTPError) -> str:
    """Return what the worker says of a refusal."""
    try:
        return str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError, OSError):
        return str(error)


def run(parser: argparse.ArgumentParser, arguments: Sequence[str], work: Callable[[argparse.Namespace], int]) -> int:
    """Parse, work, and name what failed in one line.

    Returns:
        What `work` returns; 0 where help was asked for; 1 where an argument or a configuration is wrong; 2 where a server cannot be asked.
    """
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as end:
        return 0 if end.code == 0 else 1
    try:
        return work(chosen)
    except ConfigError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    except ConnectError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
