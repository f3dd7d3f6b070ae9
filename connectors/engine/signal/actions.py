"""What signals do: the actions that every connector knows (`pipeline/signal/actions`), and what hands signals to them
(`SignalProcessor.java`).

A signal is never fatal: one of an unknown type, one that cannot be parsed and one whose action fails is logged. Only what passes by itself
(a lost connection) is raised, and the signal is taken again.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connectors.engine.plugins.extensions import extensions
from connectors.engine.signal.records import DEFECTS, Signal, SignalRecord, parse_object

log = logging.getLogger(__name__)


#: Carries out a signal. Raises ConnectError.
Action = Callable[[Signal], None]

#: Entry points of packages that add signals: the name is the signal's type, the value a function that takes a `Signal`.
ENTRY_POINTS = "connect_py.signals"


class SignalProcessor:
    """Owned by the task's thread.

    Args:
        actions: by the type of signal.
    """

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = actions

    def require(self, record: SignalRecord) -> None:
        """Raise ConfigError when the type of a signal is unknown."""
        if self._action(record.type) is None:
            known = ", ".join(sorted({*self._actions, *self._custom}))
            raise ConfigError(f"There is no signal of the type '{record.type}'; known are {known}.")

    def process(self, record: SignalRecord) -> None:
        """Carry out one signal.

        Raises:
            RetriableError: it could not be carried out just now and has to be given again.
        """
        action = self._action(record.type)
        if action is None:
            log.warning("Signal '%s' has been received but the type '%s' is not recognized", record.id, record.type)
            return
        try:
            data = parse_object(record.data) if record.data else {}
        except ValueError as error:
            log.warning("Signal '%s' has been received but the data '%s' cannot be parsed: %s", record.id, record.data, error)
            return
        try:
            action(Signal(record.id, record.type, data, record.channel, record.additional))
        except RetriableError:
            raise
        except ConnectError as error:
            log.warning("Action %s failed. The signal '%s' may not have been processed. %s", record.type, record.id, error)
        except DEFECTS:
            log.exception("Action %s failed by a defect. The signal '%s' may not have been processed", record.type, record.id)
        except Exception:
            if record.type in self._actions:
                raise
            log.exception("Action %s of an installed package failed. The signal '%s' may not have been processed", record.type, record.id)

    def _action(self, type_: str) -> Action | None:
        return self._actions.get(type_) or self._custom.get(type_)

    @functools.cached_property
    def _custom(self) -> dict[str, Action]:
        return custom_actions()


def custom_actions() -> dict[str, Action]:
    """Load the signals that installed packages add; one that cannot be loaded is logged and left out."""
    found: dict[str, Action] = {}
    for entry in extensions(ENTRY_POINTS):
        try:
            found[entry.name] = entry.load()
        except Exception:
            log.exception("The signal '%s' of the package %s cannot be loaded", entry.name, entry.dist.name if entry.dist else "?")
    return found


#: Database, schema, statement and changes of tables, as records of the schema history have them.
ChangeStructures = Callable[[str, str, str | None, Sequence[Mapping[str, Any]]], None]

NOT_CONFIGURED = (
    "Incremental snapshot is not properly configured, either signalling data collection is not provided or connector-specific "
    "snapshotting not set. Set signal.data.collection to a table with the columns id, type and data that the connector may write, or "
    "read.only=true where the connector has it."
)
ONLY_INCREMENTAL = "only incremental snapshots can be stopped by a signal"


class Incremental(Protocol):
    """What signals do to an incremental snapshot; see `IncrementalSnapshot`."""

    def begin(
        self, signal: str, collections: Sequence[str], conditions: Sequence[tuple[str, str]] = ..., surrogate_key: str | None = ...
    ) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self, collections: Sequence[str] = ..., signal: str = ...) -> None: ...
    def window_opened(self, watermark: str) -> None: ...
    def window_closed(self, watermark: str) -> None: ...


@dataclass(frozen=True, slots=True)
class BlockingRequest:
    """A blocking snapshot that was asked for.

    Attributes:
        collections: regexes of whole names, in any case.
        statements: collection and the statement that is read instead of it.
    """

    signal: str
    collections: tuple[str, ...]
    statements: tuple[tuple[str, str], ...] = ()


def standard_actions(
    incremental: Incremental | None,
    begin_blocking: Callable[[BlockingRequest], None],
    offset: Callable[[], Mapping[str, Any]],
    change_structures: ChangeStructures,
    *,
    takes_conditions: bool = True,
) -> dict[str, Action]:
    """Return the actions by the type of signal.

    Args:
        incremental: None when the connector is not configured for one.
        begin_blocking: asks for a blocking snapshot.
        offset: where the source stands, for the signal `log`.
        change_structures: applies what `schema-changes` says of tables.
        takes_conditions: `signal.conditions.enabled`.
    """
    return {
        "log": lambda signal: _log(signal, offset),
        "execute-snapshot": lambda signal: _execute(signal, incremental, begin_blocking, takes_conditions=takes_conditions),
        "stop-snapshot": lambda signal: _stop(signal, incremental),
        "pause-snapshot": lambda _: incremental.pause() if incremental else None,
        "resume-snapshot": lambda _: incremental.resume() if incremental else None,
        "snapshot-window-open": lambda signal: incremental.window_opened(signal.id) if incremental else None,
        "snapshot-window-close": lambda signal: incremental.window_closed(signal.id) if incremental else None,
        "schema-changes": lambda signal: _schema_changes(signal, change_structures),
    }


def _log(signal: Signal, offset: Callable[[], Mapping[str, Any]]) -> None:
    message = signal.data.get("message")
    if not isinstance(message, str):
        log.warning("Logging signal '%s' has arrived but the requested field 'message' is missing from data", signal.id)
        return
    log.info("%s", message.replace("{}", json.dumps(dict(offset())), 1))


def require_snapshot(data: Mapping[str, Any], *, has_incremental: bool, takes_conditions: bool = True) -> None:
    """Check an `execute-snapshot` before it is carried out. Raises ConfigError: it will not be, with the reason."""
    if not _collections(data):
        raise ConfigError("'data-collections' is missing from data or is empty; it lists the collections to read.")
    _conditions(data, allowed=takes_conditions)
    _surrogate(data)
    if _kind(data) == "INCREMENTAL" and not has_incremental:
        raise ConfigError(NOT_CONFIGURED)


def require_stop(data: Mapping[str, Any]) -> None:
    """Check a `stop-snapshot` before it is carried out. Raises ConfigError: it will not be, with the reason."""
    for name in _collections(data):
        compile_java_regex(name)
    if _kind(data) != "INCREMENTAL":
        raise ConfigError(ONLY_INCREMENTAL)


def _execute(
    signal: Signal, incremental: Incremental | None, begin_blocking: Callable[[BlockingRequest], None], *, takes_conditions: bool
) -> None:
    collections = _collections(signal.data)
    if not collections:
        log.warning(
            "Execute snapshot signal '%s' has arrived but the requested field '%s' is missing from data or is empty",
            signal.id,
            "data-collections",
        )
        return
    kind = _kind(signal.data)
    conditions = _conditions(signal.data, allowed=takes_conditions)
    surrogate = _surrogate(signal.data)
    if "additional-condition" in signal.data:
        log.warning(
            "Signal '%s' has an 'additional-condition', which is not read since Debezium 2.4: use 'additional-conditions'", signal.id
        )
    log.info(
        "Requested '%s' snapshot of data collections '%s' with additional conditions '%s' and surrogate key '%s'",
        kind,
        collections,
        conditions,
        surrogate or "PK of table will be used",
    )
    if kind == "BLOCKING":
        begin_blocking(BlockingRequest(signal.id, tuple(collections), tuple(conditions)))
    elif incremental is None:
        raise ConfigError(NOT_CONFIGURED)
    else:
        incremental.begin(signal.id, collections, conditions, surrogate)


def _stop(signal: Signal, incremental: Incremental | None) -> None:
    collections = _collections(signal.data)
    kind = _kind(signal.data)
    log.info("Requested stop of snapshot '%s' for data collections '%s'", kind, collections)
    if kind != "INCREMENTAL":
        raise ConfigError(ONLY_INCREMENTAL)
    if incremental is not None:
        incremental.stop(collections, signal.id)


def _schema_changes(signal: Signal, change: ChangeStructures) -> None:
    """Carry out `schema-changes`. The order of the checks is Debezium's (`SchemaChanges.java`)."""
    data = signal.data
    database, schema, changes = data.get("database"), data.get("schema"), data.get("changes")
    for field, value in (("changes", changes), ("database", database)):
        if not value:
            log.warning("Table changes signal '%s' has arrived but the requested field '%s' is missing from data", signal.id, field)
            return
    if not isinstance(changes, list) or not all(isinstance(entry, dict) for entry in changes):
        raise ConfigError("'changes' must be a list of changes as the schema history has them")
    ddl = data.get("ddl")
    change(str(database), str(schema or ""), None if ddl is None else str(ddl), changes)


def _collections(data: Mapping[str, Any]) -> list[str]:
    found = data.get("data-collections") or []
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ConfigError("'data-collections' must be a list of strings")
    return [name.strip() for name in found]


def _kind(data: Mapping[str, Any]) -> str:
    kind = data.get("type")
    if kind is None:
        return "INCREMENTAL"
    if not isinstance(kind, str) or kind.upper() not in ("INCREMENTAL", "BLOCKING"):
        raise ConfigError(f"Detected an unexpected snapshot type '{kind}'. It must be incremental or blocking")
    return kind.upper()


def _conditions(data: Mapping[str, Any], *, allowed: bool) -> list[tuple[str, str]]:
    if data.get("additional-conditions") and not allowed:
        raise ConfigError("'additional-conditions' are refused, since signal.conditions.enabled=false")
    try:
        return [(str(entry["data-collection"]), str(entry["filter"])) for entry in data.get("additional-conditions") or []]
    except (TypeError, KeyError):
        raise ConfigError('\'additional-conditions\' must be a list of {"data-collection": …, "filter": …}') from None


def _surrogate(data: Mapping[str, Any]) -> str | None:
    surrogate = data.get("surrogate-key")
    if surrogate is not None and not isinstance(surrogate, str):
        raise ConfigError("'surrogate-key' must be the name of a column")
    return (surrogate or "").strip() or None
