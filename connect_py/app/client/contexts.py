"""Workers that a person has given names: ``contexts.toml`` below ``$XDG_CONFIG_HOME/connect-py``, or ``~/.config/connect-py``.

::

    current = "staging"

    [contexts.staging]
    worker = "https://connect.staging:8443"
    user = "ops"
    password-file = "/etc/connect-py/ops.password"

A password never stands in it. Which worker a command means is decided by `choose`.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connect_py.config.unknown_properties import closest
from connect_py.errors import ConfigError

DEFAULT_WORKER = "http://localhost:8083"

#: Environment variable that names a worker; behind --worker and --context, before the current context.
WORKER_VARIABLE = "CONNECT_PY_WORKER"

#: What a context may hold. The last two are for `tail`, which reads Kafka itself.
SETTINGS = ("worker", "user", "password-file", "ca-file", "cert-file", "key-file", "bootstrap-servers", "worker-properties")

_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Contexts:
    """The file's contents.

    Attributes:
        current: the context that commands use; empty for none.
        contexts: name → settings of `SETTINGS`.
    """

    current: str = ""
    contexts: dict[str, dict[str, str]] = field(default_factory=dict)


def contexts_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the file is."""
    base = environ.get("XDG_CONFIG_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".config") / "connect-py" / "contexts.toml"


def read_contexts(path: Path) -> Contexts:
    """Return the file's contents; nothing where there is no file.

    Raises:
        ConfigError: it cannot be read, or holds something else; the text names the place.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    current, tables = found.get("current", ""), found.get("contexts", {})
    if not isinstance(current, str) or not isinstance(tables, dict):
        raise ConfigError(f"{path}: 'current' must be a string and 'contexts' a table")
    contexts = {name: _settings(path, name, table) for name, table in tables.items()}
    if current and current not in contexts:
        raise ConfigError(f"{path}: the current context is {current}, but there is no [contexts.{current}]")
    return Contexts(current, contexts)


def _settings(path: Path, name: str, table: object) -> dict[str, str]:
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [contexts.{name}] must be a table")
    for key, value in table.items():
        if key not in SETTINGS:
            meant = closest(key, SETTINGS)
            raise ConfigError(f"{path}: [contexts.{name}] has no setting '{key}'" + (f". Did you mean '{meant}'?" if meant else ""))
        if not isinstance(value, str):
            raise ConfigError(f"{path}: '{key}' of [contexts.{name}] must be a string")
    return {key: table[key] for key in SETTINGS if key in table}


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file; only its owner may read it. Comments are lost. Raises ConfigError."""
    lines = [f"current = {_quoted(contexts.current)}"] if contexts.current else []
    for name, settings in sorted(contexts.contexts.items()):
        lines += ["", f"[contexts.{name}]", *(f"{key} = {_quoted(settings[key])}" for key in SETTINGS if settings.get(key))]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text("\n".join(lines).lstrip("\n") + "\n", encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def _quoted(text: str) -> str:
    """Return a basic string of TOML; its escapes include those of JSON, but for DEL, which JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def require_name(name: str) -> str:
    """Return the name of a context. Raises ConfigError when it has other characters than letters, digits, ``-`` and ``_``."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"'{name}' is no name of a context: use letters, digits, - and _")
    return name


def choose(contexts: Contexts, worker: str | None, context: str | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings of the worker that a command means: --worker, --context, ``CONNECT_PY_WORKER``, the current context, localhost.

    An address that was given has no user of any context: its password is not for another worker.

    Raises:
        ConfigError: there is no such context, or both --worker and --context were given.
    """
    if worker and context:
        raise ConfigError("Give --worker or --context, not both")
    if worker:
        return {"worker": worker}
    if context:
        return _named(contexts, context)
    if environ.get(WORKER_VARIABLE, "").strip():
        return {"worker": environ[WORKER_VARIABLE].strip()}
    return _named(contexts, contexts.current) if contexts.current else {"worker": DEFAULT_WORKER}


def _named(contexts: Contexts, name: str) -> dict[str, str]:
    if name not in contexts.contexts:
        known = ", ".join(sorted(contexts.contexts)) or "none"
        raise ConfigError(f"There is no context {name} (there are: {known}). Make one with: connect-py context set {name} --worker URL")
    settings = contexts.contexts[name]
    return {"worker": DEFAULT_WORKER, **settings}
