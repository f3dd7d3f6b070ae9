"""The publication that pgoutput reads: created or altered before the slot, by `publication.autocreate.mode`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from connect_py.errors import FatalTaskError, noted
from connectors.engine.relational.tables import TableId
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import Connection, quote_literal, quote_name

log = logging.getLogger(__name__)

#: Locks on the tables may have to be waited for; after this the statement is given up (Debezium's create.slot.command.timeout).
STATEMENT_TIMEOUT_MS = 90_000
#: Operations as publications call them.
_NAMES = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}


def options_sql(skipped: frozenset[str] | None, *, via_partition_root: bool) -> str:
    """Return the `WITH (…)` of CREATE PUBLICATION; `skipped` is None when `skipped.operations` was not set by the user."""
    options = []
    if via_partition_root:
        options.append("publish_via_partition_root = true")
    if skipped:
        options.append("publish = '" + ",".join(name for op, name in _NAMES.items() if op not in skipped) + "'")
    return f" WITH ({', '.join(options)})" if options else ""


def tables_sql(tables: Sequence[TableId]) -> str:
    """Return quoted names, joined by commas."""
    return ", ".join(f"{quote_name(t.schema)}.{quote_name(t.table)}" for t in tables)


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
            raise FatalTaskError(
                "Publication autocreation is disabled, please create one and restart the connector. "
                f"For example: CREATE PUBLICATION {quote_name(name)} FOR TABLE {tables_sql(tables) or '<tables>'};"
            )
        return None
    quoted = quote_name(name)
    if mode == "filtered":
        if not tables:
            error = FatalTaskError(f"No table filters found for filtered publication {name}")
            raise noted(
                error,
                f"No table of the database '{database}' matches the filters (schema.*.list, table.*.list), so the publication would be "
                "empty. Nothing was created and nothing was read. Names are matched whole, as schema.table: correct the list, or create "
                "the table, and restart this task.",
            )
        if state.publication_all_tables:
            raise FatalTaskError(
                f"A logical publication for all tables named '{name}' for plugin 'pgoutput' and database '{database}' is already active "
                "on the server and can not be altered. If you need to exclude some tables or include only specific subset, please "
                "recreate the publication with necessary configuration. Otherwise, set publication.autocreate.mode=all_tables, or "
                "another publication.name."
            )
        if not exists:
            _run(connection, f"CREATE PUBLICATION {quoted} FOR TABLE {tables_sql(tables)}{options}", name, user, database)
            return None
        rows = connection.query(f"SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = {quote_literal(name)}")
        published = frozenset(TableId(str(schema), str(table)) for schema, table in rows)
        if published != set(tables) and not state.is_standby:
            log.info("Publication '%s' is set to the %d captured tables", name, len(tables))
            _run(connection, f"ALTER PUBLICATION {quoted} SET TABLE {tables_sql(tables)}", name, user, database)
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
    published = dict(zip("cd", rows[0], strict=True)) if rows else {}
    missing = [_NAMES[operation] for operation in sorted(operations) if published.get(operation) == "f"]
    if missing:
        log.warning(
            "The publication '%s' does not publish %s of the signal table: signals do not arrive, or incremental snapshots wait for ever. "
            "Run ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate');",
            name,
            " and ".join(missing),
            quote_name(name),
        )


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
            raise FatalTaskError(
                f"The user '{user}' may not create or alter the publication '{name}': {error.message} (SQLSTATE 42501). Nothing was "
                f"changed. Either run as a superuser: {statement}; and set publication.autocreate.mode=disabled, or set "
                f"publication.autocreate.mode=filtered and give the user what that needs: GRANT CREATE ON DATABASE {quote_name(database)} "
                f"TO {quote_name(user)}; and ownership of the tables."
            ) from None
        if error.sqlstate == "57014":
            raise FatalTaskError(
                "Creation of publication failed: query to create/update publication timed out, please make sure that there are no "
                "maintenance activities going on the database end."
            ) from None
        raise translate(error, f"Cannot create or alter the publication '{name}'", user=user, database=database) from None
