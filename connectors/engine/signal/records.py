"""Signals as their channels bring them (`SignalRecord.java`). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Types of the signals that open and close the window of an incremental snapshot.
OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"

#: What code raises at a value that it does not foresee. A signal that brings one must not fail the task: each start would read it again.
DEFECTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, AssertionError)


@dataclass(frozen=True, slots=True)
class SignalRecord:
    """A signal that has arrived.

    Attributes:
        data: JSON text; None or empty for none.
        channel: the name of the channel.
        additional: what else the channel knows.
    """

    id: str
    type: str
    data: str | None
    channel: str
    additional: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal whose data have been parsed: what an action gets."""

    id: str
    type: str
    data: Mapping[str, Any]
    channel: str
    additional: Mapping[str, Any]


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object whose strings can be written as UTF-8, so that offsets, notifications and logs can hold them.

    Raises:
        ValueError: it is none.
    """
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair, which is no character") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def parse_document(text: str, channel: str, *, default_id: str | None = None, **additional: Any) -> SignalRecord:
    """Parse a signal in the form of the channels `kafka` and `file`: ``{"id":…,"type":…,"data":{…}}``.

    Args:
        default_id: for a document without one; None refuses that.

    Raises:
        ValueError: it is no such document.
    """
    document = parse_object(text)
    id_, type_, data = document.get("id", default_id), document.get("type"), document.get("data")
    if not isinstance(id_, str) or not isinstance(type_, str) or not isinstance(data, dict):
        raise ValueError("'id' and 'type' must be strings and 'data' an object")
    more = document.get("additionalData") or document.get("additional-data")
    return SignalRecord(id_, type_, json.dumps(data), channel, {**(more if isinstance(more, dict) else {}), **additional})


def inserted(id_: str, type_: str, data: str | None) -> SignalRecord:
    """Return the signal that a row (document) inserted into the signal table is."""
    return SignalRecord(id_, type_, data, "source")


def deleted(id_: str, data: str | None) -> SignalRecord:
    """Return the signal that a row's deletion is, where deletions are high watermarks (``insert_delete``)."""
    return SignalRecord(id_.replace("open", "close"), CLOSE, data, "source")
