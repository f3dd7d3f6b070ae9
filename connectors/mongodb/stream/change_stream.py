"""A change stream as batches of raw events (mongodb.md §2). The only module that reads its cursor.

The driver's own `ChangeStream` gives one event at a time and does not say whether another one is there already, so that a reader either
waits after each burst or works event by event. Here a batch is what one answer of the server holds. Going on after a failure is the task's
work, from the place that it has given out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from pymongo.command_cursor import CommandCursor
from pymongo.errors import PyMongoError

from connect_py.errors import FatalTaskError
from connectors.mongodb.capture import Capture
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.position.resume_token import ResumeToken
from connectors.mongodb.server.connection import Client
from connectors.mongodb.server.errors import translated
from connectors.mongodb.values.change_event import Event, fields_of
from connectors.mongodb.values.documents import RAW


class ChangeStream:
    """An open cursor.

    Args:
        start: where to begin: behind its token, at its time, at `capture.start.op.time`, now, whichever is there first.
        batch_size: events of one answer at most.
        wait_ms: how long the server waits for an event before it answers that there is none.

    Raises:
        LostPositionError: the place is gone.
        ServerError: the server refuses.
    """

    def __init__(self, client: Client, capture: Capture, start: MongoOffset | None, *, batch_size: int, wait_ms: int) -> None:
        options: dict[str, Any] = dict(capture.options)
        if start is not None and start.token is not None:
            options["resumeAfter"] = start.token.document
        elif start is not None and start.seconds > 0:
            options["startAtOperationTime"] = Timestamp(start.seconds, max(start.increment, 0))
        elif capture.start_at is not None:
            options["startAtOperationTime"] = Timestamp(*capture.start_at)
        if capture.database is None:
            options["allChangesForCluster"] = True
        command = {
            "aggregate": capture.collection or 1,
            "pipeline": [{"$changeStream": options}, *capture.stages],
            "cursor": {"batchSize": batch_size},
        }
        self._parts: list[dict[str, Any]] = []
        with translated(f"The change stream of {capture.shown_target} cannot be opened"):
            # the answers behind the first one are read with the options of the database
            database = client.get_database(capture.database or "admin", codec_options=RAW)
            self._cursor: CommandCursor[Any] = database.cursor_command(
                command, codec_options=RAW, read_preference=client.read_preference, max_await_time_ms=wait_ms
            )
            # a cursor takes the size of the answers that follow the first one from here
            self._cursor.batch_size(batch_size)

    def read(self) -> Sequence[Event]:
        """The events of the next answer, those that the server split put together; none when none came in the time.

        Raises:
            LostPositionError, LostConnectionError, ServerError: reading failed.
            MalformedBsonError: the bytes of an event are none.
            FatalTaskError: parts of an event are missing, or an event like `invalidate` ended the stream.
        """
        with translated("Unable to fetch change stream events"):
            first = self._cursor.try_next()
            answer: list[RawBSONDocument] = [] if first is None else [first]
            if self._cursor._has_next():
                self._cursor._next_batch(answer)
            if first is None and not self._cursor.alive:
                raise FatalTaskError(
                    "The change stream has ended: what it watches (capture.target) was dropped or renamed. What happened before was read. "
                    "Restart the connector with another capture.target or scope, or take a new snapshot"
                )
        found = [fields_of(bytes(event.raw)) for event in answer]
        return self._joined(found) if self._parts or any("splitEvent" in event for event in found) else found

    @property
    def token(self) -> ResumeToken | None:
        """A place behind everything that was read, given also where nothing happens; None where the server gives none."""
        # not public, and neither is `_next_batch`: the driver's own ChangeStream has its `resume_token` from here
        token = self._cursor._post_batch_resume_token
        return None if token is None or self._parts else ResumeToken.of(token)

    def close(self) -> None:
        """Close the cursor; a server that is gone is no error."""
        # the server drops the cursor by itself
        with suppress(PyMongoError, OSError):
            self._cursor.close()

    def _joined(self, events: Sequence[dict[str, Any]]) -> list[Event]:
        found: list[Event] = []
        for event in events:
            split = event.get("splitEvent")
            if split is None:
                if self._parts:
                    raise FatalTaskError("Missing event fragment")
                found.append(event)
                continue
            self._parts.append(event)
            place = fields_of(split)
            if place["fragment"] != len(self._parts):
                raise FatalTaskError("Missing event fragment")
            if place["fragment"] == place["of"]:
                found.append(merged(self._parts))
                self._parts = []
        return found


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One event from its fragments: the first value of each field, and the place behind the last fragment."""
    event: dict[str, Any] = {}
    for part in reversed(parts):
        event |= part
    event["_id"] = parts[-1]["_id"]
    del event["splitEvent"]
    return event
