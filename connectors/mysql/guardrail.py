"""`guardrail.collections.max`: how many tables a connector may hold the structures of (`GuardrailValidator.java`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from connect_py.errors import FatalTaskError
from connectors.engine.relational.table import TableId
from connectors.mysql.config import MySqlConfig

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
