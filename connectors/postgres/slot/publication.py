"""The publication that pgoutput reads: created or altered before the slot, by `publication.autocreate.mode`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from connect_py.errors import FatalTaskError, noted
from connectors.engine.relational.tables import TableId
from connectors.postgres.checks import tables as checks
from connectors.postgres.checks.tables import OPERATIONS, names_sql
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import Connection, quote_literal, quote_name

log = logging.getLogger(__name__)

#: Locks on the tables may have to be waited for; after this the statement is given up (Debezium's create.slot.command.timeout).
STATEMENT_TIMEOUT_MS = 90_000


def options_sql(skipped: frozenset[str] | None, *, via_partition_root: bool) -> str:
    """Return the `WITH (…)` of CREATE PUBLICATION; `skipped` is None when `skipped.operations` was not set by the user."""
    options = []
    if via_partition_root:
        options.append("publish_via_partition_root = true")
    if skipped:
        options.append("publish = '" + ",".join(name for op, name in OPERATIONS.items() if op not in skipped) + "'")
    return f" WITH ({', '.join(options)})" if options else ""


def ensure_publication(
    connection: Connection,
    state: ServerState,
    *,
    name: str,
    mode: str,
    tables: Sequence[TableId],
    options: str,
    database: str,
    user: str,
) -> frozenset[TableId] | None:
    """Create or alter the publication as the mode says.

    Args:
        tables: the captured ones, for `filtered`.
        options: what `options_sql` returns.

    Returns:
        What it held before; None when it was not there, or does not follow the filters.

    Raises:
        FatalTaskError: it is missing and may not or cannot be made.
    """
    exists = state.publication_all_tables is not None
    if mode == "disabled":
        if not exists:
            raise FatalTaskError(checks.autocreate_disabled(name, tables, options).refusal("Nothing was read."))
        return None
    quoted = quote_name(name)
    if mode == "filtered":
        if not tables and exists:
            log.warning("No table matches the filters; publication '%s' is used as it is", name)
            return None
        if not tables:
            error = FatalTaskError(f"No table filters found for filtered publication {name}")
            raise noted(
                error,
                f"No table of the database '{database}' matches the filters (schema.*.list, table.*.list), so the publication would be "
                "empty. Nothing was created and nothing was read. Names are matched whole, as schema.table: correct the list, or create "
                "the table, and restart this task.",
            )
        if state.publication_all_tables:
            raise FatalTaskError(checks.publication_for_all_tables(name, database).refusal(""))
        if not exists:
            _run(connection, f"CREATE PUBLICATION {quoted} FOR TABLE {names_sql(tables)}{options}", name, user, database)
            return None
        rows = connection.query(f"SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = {quote_literal(name)}")
        published = frozenset(TableId(str(schema), str(table)) for schema, table in rows)
        if published != set(tables) and not state.is_standby:
            log.info("Publication '%s' is set to the %d captured tables", name, len(tables))
            _run(connection, f"ALTER PUBLICATION {quoted} SET TABLE {names_sql(tables)}", name, user, database)
        return published
    if exists or state.is_standby:
        return None
    what = "" if mode == "no_tables" else " FOR ALL TABLES"
    _run(connection, f"CREATE PUBLICATION {quoted}{what}{options}", name, user, database)
    return None


def warn_of_hidden(connection: Connection, name: str, operations: Collection[str]) -> None:
    """Warn when the publication hides operations (`c`, `d`) that signals and watermarks need; an older setting may have made it so.

    Raises:
        ServerError: the server cannot be asked.
    """
    rows = connection.query(f"SELECT pubinsert, pubdelete FROM pg_publication WHERE pubname = {quote_literal(name)}")
    published = [operation for operation, answer in zip("cd", rows[0], strict=True) if answer == "t"] if rows else operations
    for finding in checks.operation_findings(name, published, operations, " of the signal table"):
        log.warning("%s %s %s", finding.what, finding.why, finding.remedy)


def _run(connection: Connection, statement: str, name: str, user: str, database: str) -> None:
    try:
        connection.query(f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}")
        connection.query(statement)
        connection.query("SET statement_timeout = 0")
    except ServerError as error:
        if error.sqlstate == "42710":  # another session made it meanwhile
            connection.query("SET statement_timeout = 0")
            return
        if error.sqlstate == "42501":
            denied = checks.publication_denied(name, user, database, f"{statement};", error.message)
            raise FatalTaskError(denied.refusal("Nothing was changed.", "Then restart this task.")) from None
        if error.sqlstate == "57014":
            raise FatalTaskError(
                "Creation of publication failed: query to create/update publication timed out, please make sure that there are no "
                "maintenance activities going on the database end."
            ) from None
        raise translate(error, f"Cannot create or alter the publication '{name}'", user=user, database=database) from None
