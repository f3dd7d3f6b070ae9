"""What a start does before anything is read: checks of the server and of the stored place (mongodb.md §6)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from connect_py.errors import FatalTaskError
from connectors.engine.snapshot.modes import StoredPosition
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.position.resume_token import ResumeToken
from connectors.mongodb.server import state
from connectors.mongodb.server.connection import Client
from connectors.mongodb.server.errors import LostPositionError, translated
from connectors.mongodb.stream.change_stream import ChangeStream

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Start:
    """What a start does.

    Attributes:
        position: from where streaming goes on; None for now, or `capture.start.op.time`. With what is done of a snapshot, where it goes on.
        to_read: the collections of a snapshot; None when there is none to take.
    """

    position: MongoOffset | None
    to_read: list[str] | None


def prepare(client: Client, config: MongoConfig, position: MongoOffset | None, *, snapshot_done: bool) -> Start:
    """Check and decide.

    Args:
        position: the stored one, or that of the last batch.
        snapshot_done: whether this task has taken its snapshot: modes that take one at every start take none at a reconnection.

    Raises:
        FatalTaskError: the connector cannot go on, or not in this mode, or not with this server.
        ServerError: the server cannot be asked.
    """
    mode = config.snapshot_mode
    _check_kind(client)
    stored = StoredPosition.NONE
    if position is not None:
        stored = StoredPosition.UNFINISHED_SNAPSHOT if position.in_snapshot else StoredPosition.STREAMING
    goes_on = position is not None and position.in_snapshot and _can_go_on(client, config, position)
    if stored is StoredPosition.UNFINISHED_SNAPSHOT and not goes_on:
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
    start = position if goes_on and position is not None else present_place(client, config)
    found = state.captured_namespaces(client, config)
    to_read = [name for name in found if config.namespaces.is_snapshotted(name)]
    check_guardrail(config, found)
    return Start(start, to_read)


def _can_go_on(client: Client, config: MongoConfig, position: MongoOffset) -> bool:
    """Whether a snapshot that was interrupted can go on: something of it is done, and the stream still has what happened since it began."""
    return bool(position.progress) and config.snapshot_mode.streams and _is_there(client, config, position)


def check_guardrail(config: MongoConfig, found: list[str]) -> None:
    """`guardrail.collections.max`. Raises FatalTaskError."""
    most = config.number("guardrail.collections.max")
    if not most or len(found) <= most:
        return
    text = f"{len(found)} collections are captured, more than guardrail.collections.max={most}"
    if config.choice("guardrail.collections.limit.action") == "fail":
        raise FatalTaskError(f"{text}. Nothing was read. Capture fewer, or raise the limit")
    log.warning(text)


def present_place(client: Client, config: MongoConfig) -> MongoOffset:
    """Where the stream is now: what a snapshot that begins afterwards need not read from it.

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
    found = state.hello(client)
    if "setName" not in found and found.get("msg") != "isdbgrid":
        raise FatalTaskError(
            "The server is neither a member of a replica set nor the router of a sharded cluster, and only these have change streams. "
            "Nothing was read. Start it with --replSet and run rs.initiate()"
        )


def _is_there(client: Client, config: MongoConfig, position: MongoOffset) -> bool:
    """Whether the stream can go on behind a place. Raises LostConnectionError and what else is no answer to that."""
    if position.token is None:
        return False
    try:
        ChangeStream(client, config.capture, position, batch_size=1, wait_ms=1).close()
    except LostPositionError as error:
        log.warning("%s", error)
        return False
    return True
