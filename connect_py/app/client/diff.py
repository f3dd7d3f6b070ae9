"""Compare what a user wants with what a worker has. Pure.

Values of secrets are never shown. A worker with ``rest.redact.secrets`` answers ``[hidden]`` in place of them: such a value cannot be
compared, which is counted and not taken for a change.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connect_py.api.storage import TargetState
from connect_py.app.client.files import ConnectorFile
from connect_py.config.unknown_properties import closest
from connect_py.errors import NotFoundError
from connect_py.log.redact import HIDDEN, is_secret_name, scrub


class Action(StrEnum):
    """What has to be done for one connector."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    NONE = "unchanged"


@dataclass(frozen=True)
class Change:
    """One property, or with the name ``(state)`` the target state; None is a property that is not there. Secrets are hidden."""

    name: str
    before: str | None
    after: str | None

    @property
    def line(self) -> str:
        """``+ name: value``, ``- name: value`` or ``~ name: before → after``."""
        if self.before is None:
            return f"+ {self.name}: {self.after}"
        if self.after is None:
            return f"- {self.name}: {self.before}"
        return f"~ {self.name}: {self.before} → {self.after}"


STATE = "(state)"


@dataclass(frozen=True)
class Plan:
    """What has to be done for one connector, and why.

    Attributes:
        wanted: None for one that is to be deleted.
        hidden: how many values the worker hides, so that they were not compared.
    """

    name: str
    action: Action
    changes: tuple[Change, ...] = ()
    wanted: ConnectorFile | None = None
    hidden: int = 0

    @property
    def changes_config(self) -> bool:
        """Whether properties differ, not only the state."""
        return any(change.name != STATE for change in self.changes)

    @property
    def new_state(self) -> TargetState | None:
        """The state to set, None where it is right or not wanted."""
        return self.wanted.state if self.wanted and any(change.name == STATE for change in self.changes) else None

    @property
    def lines(self) -> list[str]:
        """A line for the connector and one for each change."""
        sign = {Action.CREATE: "+", Action.CHANGE: "~", Action.DELETE: "-", Action.NONE: "="}[self.action]
        source = f" ({self.wanted.source})" if self.wanted and self.wanted.source and self.action is not Action.NONE else ""
        hidden = f", {self.hidden} hidden by the worker and not compared" if self.hidden else ""
        return [f"{sign} {self.name}: {self.action}{hidden}{source}", *(f"    {change.line}" for change in self.changes)]

    def as_json(self) -> dict[str, Any]:
        """Return it for --json."""
        changes = [{"name": change.name, "before": change.before, "after": change.after} for change in self.changes]
        return {"name": self.name, "action": str(self.action), "changes": changes, "hidden": self.hidden}


def config_changes(current: Mapping[str, str | None], wanted: Mapping[str, str]) -> tuple[list[Change], int]:
    """Return what differs, by name, and how many values could not be compared. ``name`` is not looked at, null is not there."""
    have = {name: value for name, value in current.items() if value is not None and name != "name"}
    want = {name: value for name, value in wanted.items() if name != "name"}
    changes, hidden = [], 0
    for name in sorted({*have, *want}):
        before, after = have.get(name), want.get(name)
        if before == after:
            continue
        if before == HIDDEN and after is not None:
            hidden += 1
            continue
        changes.append(Change(name, _shown(name, before), _shown(name, after)))
    return changes, hidden


def _shown(name: str, value: str | None) -> str | None:
    return value if value is None else HIDDEN if is_secret_name(name) else scrub(value)


#: Reported state → the target state that it shows; FAILED, UNASSIGNED and RESTARTING connectors are to run.
_TARGETS = {"PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}

#: Target state → how the REST API calls it.
STATE_NAMES = {TargetState.STARTED: "RUNNING", TargetState.PAUSED: "PAUSED", TargetState.STOPPED: "STOPPED"}


def plan_for(wanted: ConnectorFile, current: Mapping[str, Any] | None) -> Plan:
    """Return what has to be done for one connector.

    Args:
        current: ``{"info": …, "status": …}`` as the worker answers; None for a connector that it does not have.
    """
    if current is None:
        changes = [Change(name, None, _shown(name, value)) for name, value in sorted(wanted.config.items()) if name != "name"]
        state = wanted.state
        if state is not None and state is not TargetState.STARTED:
            changes.append(Change(STATE, None, STATE_NAMES[state]))
        return Plan(wanted.name, Action.CREATE, tuple(changes), wanted)
    changes, hidden = config_changes(current["info"]["config"], wanted.config)
    if wanted.keeps_state and wanted.state is not None:
        have = _TARGETS.get(str(current.get("status", {}).get("connector", {}).get("state")), TargetState.STARTED)
        if have is not wanted.state:
            changes.append(Change(STATE, STATE_NAMES[have], STATE_NAMES[wanted.state]))
    return Plan(wanted.name, Action.CHANGE if changes else Action.NONE, tuple(changes), wanted, hidden)


def plan(wanted: Sequence[ConnectorFile], current: Mapping[str, Mapping[str, Any]], *, prune: bool = False) -> list[Plan]:
    """Return what has to be done, in the order of the files; with `prune` also what is not in them is to be deleted, last."""
    plans = [plan_for(each, current.get(each.name)) for each in wanted]
    names = {each.name for each in wanted}
    return plans + [Plan(name, Action.DELETE) for name in sorted(current) if prune and name not in names]


def select(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that a user means, sorted: by themselves, or by a glob such as ``shop-*`` (`fnmatch`, case counts).

    Raises:
        NotFoundError: a name or a glob fits no connector; the text has the name that was probably meant.
    """
    known = sorted(names)
    found: set[str] = set()
    for pattern in patterns:
        fits = [pattern] if pattern in known else [name for name in known if fnmatch.fnmatchcase(name, pattern)]
        if not fits:
            is_glob = any(char in pattern for char in "*?[")
            meant = None if is_glob else closest(pattern, known)
            text = f"No connector fits {pattern}" if is_glob else f"There is no connector {pattern}"
            raise NotFoundError(text + (f". Did you mean {meant}?" if meant else "; there are: " + (", ".join(known[:10]) or "none")))
        found.update(fits)
    return sorted(found)
