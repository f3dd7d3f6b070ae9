"""`replica.identity.autoset.values`: replica identities that the connector sets when streaming starts (postgres.md §7)."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from connectors.engine.relational.filters import compile_java_regex
from connectors.engine.relational.table import TableId
from connectors.postgres.errors import ServerError
from connectors.postgres.server.connection import Connection, quote_literal, quote_name

log = logging.getLogger(__name__)

_LETTERS = {"DEFAULT": "d", "FULL": "f", "NOTHING": "n"}


def parse_identities(text: str | None) -> list[tuple[re.Pattern[str], str]]:
    """(table regex, identity) of each entry of a text that validation has passed."""
    found = []
    for entry in (text or "").split(","):
        regex, colon, identity = entry.strip().rpartition(":")
        if colon:
            found.append((compile_java_regex(regex), identity.strip()))
    return found


def set_identities(connection: Connection, wanted: Sequence[tuple[re.Pattern[str], str]], tables: Sequence[TableId]) -> None:
    """Alter the tables whose identity differs. Failures are logged: the user may not own a table, and its changes still flow."""
    for table in tables:
        matching = [identity for regex, identity in wanted if regex.fullmatch(str(table))]
        if len(matching) > 1:
            log.error(
                "More than one entry of replica.identity.autoset.values matches the table %s; its replica identity was left alone", table
            )
        elif matching:
            try:
                _set(connection, table, matching[0])
            except ServerError as error:
                log.error("The replica identity of %s could not be set to %s: %s", table, matching[0], error)


def _set(connection: Connection, table: TableId, identity: str) -> None:
    rows = connection.query(
        "SELECT c.relreplident, (SELECT ic.relname FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid "
        "WHERE i.indrelid = c.oid AND i.indisreplident) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = {quote_literal(table.schema)} AND c.relname = {quote_literal(table.table)}"
    )
    if not rows:
        return
    present, index = rows[0]
    kind, _, name = identity.partition(" ")
    name = name.strip()
    if kind.upper() == "INDEX":
        if present == "i" and index == name:
            return
        what = f"USING INDEX {quote_name(name)}"
    else:
        if present == _LETTERS[kind.upper()]:
            return
        what = kind.upper()
    connection.query(f"ALTER TABLE {quote_name(table.schema)}.{quote_name(table.table)} REPLICA IDENTITY {what}")
    log.info("Replica identity of %s set to %s", table, identity)
