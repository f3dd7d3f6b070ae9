"""Hands signals to their actions (debezium-common §10; `SignalProcessor.java`).

A signal is never fatal: one of an unknown type, one that cannot be parsed and one whose action fails is logged. Only what passes by itself
(a lost connection) is raised, and the signal is taken again.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping

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
        """Raises ConfigError when nobody knows the type of a signal."""
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
    """Signals that installed packages add; one that cannot be loaded is logged and left out."""
    found: dict[str, Action] = {}
    for entry in extensions(ENTRY_POINTS):
        try:
            found[entry.name] = entry.load()
        except Exception:
            log.exception("The signal '%s' of the package %s cannot be loaded", entry.name, entry.dist.name if entry.dist else "?")
    return found
