"""What a start does before it reads anything: check the server and the schema history, and decide what is to be read.

The checks include `guardrail.collections.max`, the number of tables whose structures a connector may hold (`GuardrailValidator.java`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from connect_py.errors import FatalTaskError
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.modes import StoredPosition
from connectors.mysql.checks import log_format_findings
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from offsets.schema_history import KafkaSchemaHistory

log = logging.getLogger(__name__)


def check_number(config: MySqlConfig, tables: Callable[[], Sequence[TableId]]) -> None:
    """Hold the number of tables to the limit: of all on the server, of which the history keeps structures, unless it keeps fewer.

    Args:
        tables: every base table that is not the server's own; asked for where there is a limit.

    Raises:
        FatalTaskError: there are more, and `guardrail.collections.limit.action` is fail.
    """
    limit = config.number("guardrail.collections.max")
    if limit <= 0:
        return
    kept, what = list(tables()), "are on the server, and the schema history holds the structures of all of them"
    if config.flag("schema.history.internal.store.only.captured.tables.ddl"):
        kept, what = [table for table in kept if config.filters.is_captured(table)], "are captured"
    elif config.flag("schema.history.internal.store.only.captured.databases.ddl"):
        kept = [table for table in kept if config.filters.schemas(table.schema)]
        what = "are in captured databases, and the schema history holds the structures of all of them"
    if len(kept) <= limit:
        return
    text = f"Guardrail limit exceeded: {len(kept)} tables {what}; guardrail.collections.max={limit} allows fewer"
    if config.choice("guardrail.collections.limit.action") == "fail":
        raise FatalTaskError(
            f"{text}. Nothing was read. Raise the limit, narrow the lists of tables, or keep fewer structures by "
            "schema.history.internal.store.only.captured.tables.ddl=true: a table that is captured later is then not known to the history"
        )
    log.warning(text)


def check_log_format(connection: Connection, config: MySqlConfig) -> None:
    """Check that the log holds whole rows, or parts that the configuration accepts.

    Raises:
        FatalTaskError: it does not.
        ServerError: the server cannot be asked.
    """
    accepts = config.choice("binlog.row.image.minimal") == "accept"
    found, image = queries.variable(connection, "binlog_format"), queries.variable(connection, "binlog_row_image")
    for finding in log_format_findings(found, image, accepts_minimal=accepts):
        raise FatalTaskError(finding.refusal("Nothing was read."))


@dataclass(frozen=True, slots=True)
class Start:
    """What a start does.

    Attributes:
        position: from where streaming resumes; None when a snapshot decides it.
        schema: whether structures are read from the server; otherwise they come from the history.
        data: whether rows are read too; without structures when what is left of an interrupted snapshot is read.
    """

    position: MySqlOffset | None
    schema: bool
    data: bool


def prepare(
    connection: Connection, config: MySqlConfig, position: MySqlOffset | None, history: KafkaSchemaHistory, *, snapshot_done: bool
) -> Start:
    """Check and decide.

    Args:
        position: the stored one, or that of the last batch.
        snapshot_done: whether this task has taken its snapshot: modes that take one at every start take none at a reconnection.

    Raises:
        FatalTaskError: the connector cannot continue, or not in this mode.
        RetriableError, ServerError: a server cannot be asked.
    """
    mode = config.snapshot_mode
    if mode.streams:
        check_log_format(connection, config)
    check_number(config, lambda: queries.all_tables(connection, with_system=not config.flag("table.ignore.builtin")))
    if mode.when_history_lost and position is None:
        raise FatalTaskError("Could not find existing redo log information while attempting schema only recovery snapshot")
    stored = StoredPosition.NONE
    if position is not None:
        stored = StoredPosition.UNFINISHED_SNAPSHOT if position.is_snapshot_unfinished else StoredPosition.STREAMING
    if snapshot_done and stored is StoredPosition.STREAMING:
        schema = data = False
    else:
        schema, data = mode.reads_schema(stored), mode.reads_data(stored)
    missing = not history.exists() or history.is_empty()
    keeps_position = mode.keeps_position
    if stored is StoredPosition.STREAMING and missing:
        if not mode.when_history_lost:
            raise FatalTaskError(
                "The db history topic is missing. You may attempt to recover it by reconfiguring the connector to recovery."
            )
        schema, keeps_position = True, not data
    if (
        position is not None
        and stored is StoredPosition.STREAMING
        and mode.streams
        and not queries.is_available(connection, config, position)
    ):
        if not mode.when_position_lost:
            raise FatalTaskError(
                f"The connector is trying to read change stream starting at {position.dump()}, but this is no longer available on the "
                "server. Reconfigure the connector to use a snapshot mode when needed."
            )
        log.warning("The server no longer has its log from %s on: a new snapshot is taken", position.dump())
        return Start(None, schema=True, data=True)
    history.create()
    if keeps_position and position is not None:
        return Start(replace(position, snapshot=None), schema=schema, data=False)
    if position is not None and stored is StoredPosition.UNFINISHED_SNAPSHOT and data and mode.streams and not missing:
        # what was deleted since the first attempt comes only from a log that is read from there
        if queries.is_available(connection, config, position):
            return Start(position, schema=False, data=True)
        log.warning("The server no longer has its log from %s on: rows that were deleted since then may stay in topics", position.dump())
    if stored is StoredPosition.UNFINISHED_SNAPSHOT:
        log.info("Previous snapshot was cancelled before completion; a new snapshot will be taken.")
    if position is None and not schema and mode.streams:
        # without structures and without an offset only the log itself has them, from its beginning on
        position = queries.log_beginning(connection, config)
        log.warning("Nothing is stored and %s reads no structures: the log is read from its beginning, %s", mode.name, position.dump())
    return Start(None if schema else position, schema=schema, data=data)
