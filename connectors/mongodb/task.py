"""The task of the MongoDB connector: what a start checks, and what the states of `engine/task.py` do.

Before anything is read, a start checks the server and the stored position. Memory is bounded by an answer of the server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from connect_py.api import EncodedBatch, SourceTaskContext
from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.signal.actions import BlockingRequest
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.engine.snapshot.initial.progress import SnapshotProgress
from connectors.engine.snapshot.modes import SnapshotMode, StoredPosition
from connectors.engine.task import IDLE_SECONDS, DatabaseTask, State
from connectors.mongodb.checks import kind_findings
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import CONNECTOR, MongoConfig, parse_config
from connectors.mongodb.position.offset import MongoOffset, ResumeToken, stored_offset
from connectors.mongodb.server import connection
from connectors.mongodb.server.connection import Client, LostPositionError, open_client, translated
from connectors.mongodb.snapshot.snapshot import MongoSnapshot, SnapshotRequest
from connectors.mongodb.stream.services import MongoServices
from connectors.mongodb.stream.stream import ChangeStream, EventStream
from connectors.mongodb.values.documents import Documents

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Start:
    """What a start does.

    Attributes:
        position: from where streaming continues; None for the present, or `capture.start.op.time`. An unfinished snapshot resumes by it.
        to_read: the collections of a snapshot; None when there is none to take.
    """

    position: MongoOffset | None
    to_read: list[str] | None


def prepare(client: Client, config: MongoConfig, position: MongoOffset | None, *, snapshot_done: bool) -> Start:
    """Check the server and the stored position, and decide what to do.

    Args:
        position: the stored one, or that of the last batch.
        snapshot_done: whether this task has taken its snapshot: modes that take one at every start take none at a reconnection.

    Raises:
        FatalTaskError: the connector cannot continue, or not in this mode, or not with this server.
        ServerError: the server cannot be asked.
    """
    mode = config.snapshot_mode
    _check_kind(client)
    stored = StoredPosition.NONE
    if position is not None:
        stored = StoredPosition.UNFINISHED_SNAPSHOT if position.in_snapshot else StoredPosition.STREAMING
    resumes = position is not None and position.in_snapshot and _can_resume(client, config, position)
    if stored is StoredPosition.UNFINISHED_SNAPSHOT and not resumes:
        log.info("The previous snapshot did not end: a new one is taken")
    reads = mode.reads_data(stored) and not (snapshot_done and stored is StoredPosition.STREAMING)
    if (
        position is not None
        and stored is StoredPosition.STREAMING
        and mode.streams
        and not reads
        and not _is_there(client, config, position)
    ):
        if not mode.when_position_lost:
            raise FatalTaskError(
                f"The connector is trying to read change stream starting at {position}, but this is no longer available on the server. "
                "Reconfigure the connector to use a snapshot mode when needed."
            )
        log.warning("The server no longer has its log from %s on: a new snapshot is taken", position)
        reads, position = True, None
    if not reads:
        return Start(None if stored is not StoredPosition.STREAMING else position, None)
    start = position if resumes and position is not None else current_position(client, config)
    found = connection.captured_namespaces(client, config)
    to_read = [name for name in found if config.namespaces.is_snapshotted(name)]
    check_guardrail(config, found)
    return Start(start, to_read)


def _can_resume(client: Client, config: MongoConfig, position: MongoOffset) -> bool:
    """Return whether an interrupted snapshot can resume: a part is done, and the stream still has what happened since it began."""
    return bool(position.progress) and config.snapshot_mode.streams and _is_there(client, config, position)


def check_guardrail(config: MongoConfig, found: list[str]) -> None:
    """Apply `guardrail.collections.max`. Raises FatalTaskError."""
    most = config.number("guardrail.collections.max")
    if not most or len(found) <= most:
        return
    text = f"{len(found)} collections are captured, more than guardrail.collections.max={most}"
    if config.choice("guardrail.collections.limit.action") == "fail":
        raise FatalTaskError(f"{text}. Nothing was read. Capture fewer, or raise the limit")
    log.warning(text)


def current_position(client: Client, config: MongoConfig) -> MongoOffset:
    """Return where the stream is now: what a snapshot that begins afterwards need not read from it.

    Raises:
        ServerError: the stream cannot be opened.
    """
    stream = ChangeStream(client, config.capture, None, batch_size=1, wait_ms=1)
    try:
        events = stream.read()
        if events:
            seconds, increment = events[-1]["clusterTime"]
            return MongoOffset(seconds, increment, ResumeToken(events[-1]["_id"]))
        if stream.token is not None:
            return MongoOffset(-1, -1, stream.token)
    finally:
        stream.close()
    with translated("Cannot read the server's time"):
        now = client[config.capture.database or "admin"].command("hello").get("operationTime")
    if now is None:
        raise FatalTaskError("The server tells neither a resume token nor its operation time: it has no change streams")
    return MongoOffset(now.time, now.inc)


def _check_kind(client: Client) -> None:
    found = connection.hello(client)
    for finding in kind_findings(has_streams="setName" in found or found.get("msg") == "isdbgrid"):
        raise FatalTaskError(finding.refusal("Nothing was read."))


def _is_there(client: Client, config: MongoConfig, position: MongoOffset) -> bool:
    """Return whether the stream can continue after a position. Raises LostConnectionError and other errors that leave this open."""
    if position.token is None:
        return False
    try:
        ChangeStream(client, config.capture, position, batch_size=1, wait_ms=1).close()
    except LostPositionError as error:
        log.warning("%s", error)
        return False
    return True


#: The longest that the server may wait for an event: a task that must stop waits for it.
LONGEST_WAIT_MS = 500
#: After so long without a change of ours the offset follows the server's log: an old token would be cut off with the log one day.
QUIET_SECONDS = 20.0


class MongoDbConnectorTask(DatabaseTask[MongoServices, MongoOffset]):
    """Snapshot, then stream, one deployment."""

    #: A new start checks whether a position that is said to be lost is really gone.
    passing: ClassVar[tuple[type[ConnectError], ...]] = (RetriableError, LostPositionError)

    def __init__(self, *, hooks: SnapshotHooks | None = None, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(hooks=hooks, tuning=tuning)
        self._client: Client | None = None
        self._snapshot: MongoSnapshot | None = None
        self._stream: EventStream | None = None
        self._snapshot_done = False
        self._quiet_until = 0.0

    # -- the contract ------------------------------------------------------------------------------------------------------------------

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Take the configuration and the stored offset; the server is first asked in `poll`. Raises ConfigError."""
        self._config = parsed = parse_config(config)
        self._context = context
        self._partition = {"server_id": parsed.topic_prefix}
        self._begin(parsed, context, CONNECTOR, CONNECTOR)
        self._position = stored_offset(parsed, context.offset)
        self._collections = CollectionFactory(parsed, context.encoding, self._headers)
        self._documents = Documents(parsed.choice("json.serialization.mode"))
        services = MongoServices(
            parsed,
            context,
            self._collections,
            self._documents,
            self._open_client,
            lambda: self._position,
            self._hooks,
            self._tuning,
        )
        self.use_services(services)
        if self._snapshot_is_due() or parsed.snapshot_mode.when_finished:
            self._not_before = time.monotonic() + parsed.seconds("snapshot.delay.ms")

    # -- the state machine -------------------------------------------------------------------------------------------------------------

    @property
    def _mode(self) -> SnapshotMode:
        return self._config.snapshot_mode

    def _open_client(self) -> Client:
        if self._client is None:
            self._client = open_client(self._config)
        return self._client

    @property
    def _running(self) -> MongoSnapshot | None:
        return self._snapshot

    def _resume_description(self) -> str:
        return "the snapshot begins again" if self._snapshot_is_due() else f"reading goes on from {self._position}"

    def _log_position(self) -> Mapping[str, int]:
        if self._stream is None:
            return {}
        idle = self._stream.idle_offset
        at = (idle.time if idle is not None else None) or self._stream.offset.time
        return {} if at is None else {"position": at[0]}

    def _close_connections(self) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._snapshot is not None:
            self._snapshot.close()
        if self._client is not None:
            self._client.close()
        self._stream = self._client = self._snapshot = None
        if self._maybe_services is not None:
            self._maybe_services.attach(None)

    def _snapshot_is_due(self) -> bool:
        return self._position is None or self._position.in_snapshot

    def _connect(self) -> None:
        start = prepare(self._open_client(), self._config, self._position, snapshot_done=self._snapshot_done)
        self._services.starts(from_start=start.to_read is not None or start.position is None)
        if start.to_read is None:
            if not self._snapshot_done:
                self._snapshot_metrics.skipped()
                self._services.events.skipped()
                self._snapshot_done = True
            self._position = start.position
            self._state = self._after_snapshot()
            return
        base = start.position or MongoOffset()
        self._services.restore({})
        progress = SnapshotProgress(base.progress)
        self._snapshot = self._new_snapshot(SnapshotRequest(start.to_read, base, self._config.overrides, progress=progress))
        self._position = self._snapshot.offset
        self._must_store = self._config.snapshot_mode.streams
        self._state = State.SNAPSHOT

    def _new_snapshot(self, request: SnapshotRequest) -> MongoSnapshot:
        return MongoSnapshot(
            self._open_client(),
            self._config,
            request,
            self._collections,
            self._documents,
            self._context.encoding,
            events=self._services.events,
            metrics=self._snapshot_metrics,
        )

    def _end_snapshot(self, snapshot: MongoSnapshot) -> None:
        self._position = snapshot.after
        self._snapshot = None
        self._snapshot_done = True
        self._state = self._after_snapshot()
        if not snapshot.is_blocking:
            self._not_before = time.monotonic() + self._config.seconds("streaming.delay.ms")

    def _begin_blocking(self, request: BlockingRequest) -> None:
        """Interrupt streaming for a snapshot that a signal asked for; what cannot be done is logged."""
        try:
            found = connection.captured_namespaces(self._open_client(), self._config)
            names = [name for name in found if self._config.namespaces.is_snapshotted(name, list(request.collections))]
            if not names:
                log.warning("The blocking snapshot '%s' matches no captured collection: %s", request.signal, ", ".join(request.collections))
            # the stream is closed: the server would give up a cursor that is not read for ten minutes
            base = self._stream.offset if self._stream is not None else self._position or MongoOffset()
            if self._stream is not None:
                self._stream.close()
                self._stream = None
                self._services.attach(None)
            base = replace(base, more=self._services.fields())
            self._snapshot = self._new_snapshot(SnapshotRequest(names, base, dict(request.statements), is_blocking=True))
            self._state = State.SNAPSHOT
        except RetriableError:
            raise
        except ConnectError as error:
            log.error("The blocking snapshot '%s' cannot begin; streaming goes on. %s", request.signal, error)

    def _read_stream(self) -> EncodedBatch | None:
        services = self._services
        stream = self._stream
        if stream is None:
            stream = self._stream = self._open_stream()
            services.attach(stream)
            if self._position is None and stream.offset.token is not None and (batch := self._batch(stream.offset)) is not None:
                # nothing is stored yet: a kill before the first commit would begin after what has happened by then
                batch.is_milestone = True
                return batch
        services.before_read()
        if services.blocking:
            batch = self._batch(stream.offset)
            self._begin_blocking(services.blocking.popleft())
            return batch
        offset = stream.offset if stream.read() else None
        self._reset_backoff()
        services.after_read()
        now = time.monotonic()
        if offset is not None:
            self._quiet_until = now + QUIET_SECONDS
        if services.beat() or (offset is None and now >= self._quiet_until):
            offset = offset or stream.idle_offset
            self._quiet_until = now + QUIET_SECONDS
        return self._batch(offset)

    def _batch(self, offset: MongoOffset | None) -> EncodedBatch | None:
        """Return what waits, with the offset of the last event (None: as before), and the services' records."""
        fields = self._services.fields()
        rows = self._services.pending.take()
        before = self._position or MongoOffset()
        if not rows and (offset is None or offset == replace(before, more={})) and fields == before.more:
            return None
        self._position = replace(offset or before, more=fields)
        stored = self._position.dump()
        return EncodedBatch(rows, self._partition, stored, self._services.made(stored))

    def _open_stream(self) -> EventStream:
        config = self._config
        client = self._open_client()
        start = self._position
        if (start is None or start.is_empty) and config.capture.start_at is None:
            # a position of our own, from which to continue if the connection breaks before the first event
            start = current_position(client, config)
        wait = config.number("cursor.max.await.time.ms")
        wait_ms = min(wait, LONGEST_WAIT_MS) if wait > 0 else int(IDLE_SECONDS * 1000)
        cursor = ChangeStream(client, config.capture, start, batch_size=config.number("max.batch.size"), wait_ms=wait_ms)
        self._streaming_metrics.connected = True
        self._quiet_until = time.monotonic() + QUIET_SECONDS
        log.info("Streaming changes of %s from %s", config.capture.shown_target, start or "now")
        return EventStream(
            cursor,
            config,
            replace(start, more={}) if start is not None else MongoOffset(),
            self._collections,
            self._documents,
            pending=self._services.pending,
            signal=self._services.signal,
            monitor=self._services.monitor,
            metrics=self._streaming_metrics,
        )
