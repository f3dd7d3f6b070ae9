"""Captured tables: from a table's model to what the data path needs of it (encoder, routes, source block). The task builds it once a
structure.

`Reselector` reads again what an event lacks: columns that the log leaves out (``binlog_row_image``), and NULLs (`Reselect`). The value is
the table's current one, not the event's: another transaction may have changed it since, and that later change has its own event. JSON and
FLOAT have the text that a snapshot shows, as in Debezium; a TIMESTAMP has all of its digits, as in other events.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from connect_py.api import ConvertedColumn, Route
from connect_py.api.record import JsonEncoding
from connect_py.errors import DataError
from connectors.engine.batches import rows_per_batch
from connectors.engine.encode.plan import ColumnPlan, Text
from connectors.engine.encode.table import TableEncoder
from connectors.engine.plugins.post_processors import Fill, NotReadError, Reselect
from connectors.engine.relational.column_rules import ColumnFacts
from connectors.engine.relational.tables import Table, TableId
from connectors.engine.topic_naming import TopicNaming
from connectors.engine.visibility import Visibility
from connectors.mysql.binlog.columns import Meaning
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import JDBC, MyColumn, MyTable, quote_name
from connectors.mysql.position.offset import LoggedTransaction
from connectors.mysql.position.source_info import SourceBlock, block_schema
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.types.columns import column_plan, is_text, meaning_of, selected
from connectors.mysql.types.keys import chunk_key

log = logging.getLogger(__name__)


#: Transactions without GTIDs bear a second in the log. A row of one that is older, and is not there, was deleted.
_YOUNG_SECONDS = 2.0
#: How long an engine may take to end a commit that the log has.
_COMMIT_SECONDS = 0.1


class Reselector:
    """Makes the functions that fill rows in. Owned by the task's thread.

    Args:
        general: returns the task's open session, which may be a new one after a reconnect; it is used while the stream waits.
        transaction: returns the transaction whose rows are made into events; None while there is none.
    """

    def __init__(self, options: Reselect, general: Callable[[], Connection], transaction: Callable[[], LoggedTransaction | None]) -> None:
        self._options = options
        self._general = general
        self._transaction = transaction
        self._visibility = Visibility(lambda gtid, seconds: queries.await_executed(general(), gtid, seconds))
        self._waited_for: LoggedTransaction | None = None

    def filler(
        self, model: MyTable, indexes: Sequence[int], plans: Sequence[ColumnPlan], selected: Sequence[str], key: Sequence[str]
    ) -> Fill | None:
        """Return the function that fills a table's rows in; None where nothing is read again (`Reselect.filler`).

        Args:
            indexes: those of the event's columns among the model's; `plans` and `selected`, their expressions, are parallel to them.
            key: names of the record key's columns.
        """
        columns = [model.columns[index] for index in indexes]
        source = quote_name(model.id.schema, model.id.table)

        def read(wanted: Sequence[int], key: Sequence[tuple[int, str]]) -> Sequence[Sequence[Text]]:
            try:
                condition = " AND ".join(_equal(columns[index], text) for index, text in key)
                statement = f"SELECT {', '.join(selected[index] for index in wanted)} FROM {source} WHERE {condition} LIMIT 2"  # noqa: S608  # quoted
                rows = self._rows(statement)
            except LostConnectionError:
                raise
            except (ServerError, DataError) as error:
                raise NotReadError(str(error)) from error
            codecs = ["utf-8" if is_text(columns[index]) else "latin-1" for index in wanted]
            return [[None if value is None else value.decode(codec) for value, codec in zip(row, codecs, strict=True)] for row in rows]

        return self._options.filler(str(model.id), plans, model.key, key, read)

    def _rows(self, statement: str) -> Sequence[Sequence[bytes | None]]:
        """Return the rows as they are after the transaction. Raises ServerError."""
        transaction = self._transaction()
        if transaction is not None and transaction.gtid is not None:
            self._visibility.wait_for(transaction.gtid)
        rows = self._general().query(statement)
        if rows or transaction is None or transaction.gtid is not None or transaction == self._waited_for:
            return rows
        # without a GTID nothing says whether the commit has ended: a young transaction is given a moment
        self._waited_for = transaction
        now = float(self._general().texts("SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])
        if now - transaction.second > _YOUNG_SECONDS:
            return rows
        time.sleep(_COMMIT_SECONDS)
        return self._general().query(statement)


def _equal(column: MyColumn, text: str) -> str:
    """Return a condition that holds for the rows with this value. Raises DataError: the type cannot be compared."""
    if column.base_type == "BIT":
        return f"{quote_name(column.name)} = {int.from_bytes(text.encode('latin-1'), 'big')}"
    found = chunk_key(column)
    if found is None:
        raise DataError(f"a column of the type {column.type_name} cannot be compared")
    if found.shown.startswith("HEX("):
        # the log leaves zeros at the end of BINARY out
        size = (column.length or 1) if column.base_type == "BINARY" else 0
        text = text.encode("latin-1").ljust(size, bytes(1)).hex()
    return f"{found.compared} = {found.literal(text)}"


_CHARACTERS = frozenset(JDBC[name] for name in ("CHAR", "VARCHAR", "NCHAR", "NVARCHAR"))


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A captured table in one structure.

    Attributes:
        model: what it was built from.
        indexes: those of the event's columns among the model's.
        selected: these columns as a snapshot selects them.
        meanings: what the reader of the log needs to know of each column there.
        route: of rows and tombstones.
        keyless_route: of truncates.
        batch_rows: rows of a snapshot's batch.
        fill: fills in the new rows of the stream, their texts being those of `indexes`; None where nothing is read again.
    """

    id: TableId
    model: MyTable
    indexes: tuple[int, ...]
    selected: tuple[str, ...]
    meanings: tuple[Meaning, ...]
    encoder: TableEncoder
    block: SourceBlock
    route: Route
    keyless_route: Route
    batch_rows: int
    fill: Fill | None = None


class TableFactory:
    """Builds `CapturedTable`s.

    Args:
        headers: the context headers of every record.
        reselector: reads again what rows of the stream do not have; None when nothing is.
        snapshot_rows: rows of a snapshot's batch; None for as many as `rows_per_batch` says.
    """

    def __init__(
        self,
        config: MySqlConfig,
        encoding: JsonEncoding,
        headers: tuple[tuple[str, str], ...],
        reselector: Reselector | None = None,
        snapshot_rows: int | None = None,
    ) -> None:
        self._reselector = reselector
        self._snapshot_rows = snapshot_rows
        self._config = config
        self._encoding = encoding
        self._naming = TopicNaming.from_config(config.raw, "default")
        self._schema = block_schema(config.connector)
        self.headers = headers
        self._warned: set[str] = set()

    def build(self, model: MyTable) -> CapturedTable:
        """Return a table's parts."""
        config = self._config
        key = config.keys.columns(Table(model.id, model.columns, model.key))
        plans = [self._plan(model.id, column, in_key=column.name in key) for column in model.columns]
        indexes = tuple(index for index, plan in enumerate(plans) if plan is not None)
        if not key:
            self._warn_once(
                f"Table '{model.id}' has neither a primary key nor a usable unique index: its records have no key, so a sink cannot tell "
                "its rows apart. Add a key, or name columns in message.key.columns"
            )
        topic = self._naming.data_topic(model.id.schema, model.id.table)
        name = self._naming.schema_name(topic)
        encoder = TableEncoder(
            topic,
            plans,
            key,
            self._schema,
            self._encoding,
            schema_name=name,
            field_name=self._naming.field_name,
            on_failure=config.choice("event.converting.failure.handling.mode"),
            skip_unchanged=config.skips_unchanged,
            key_mark=self._naming.key_mark(model.id.schema, model.id.table),
        )
        chosen = tuple(selected(model.columns[index], config.values) for index in indexes)
        fill = None
        if self._reselector is not None and model.id != config.signal_table:
            fill = self._reselector.filler(model, indexes, encoder.columns, chosen, key)
        return CapturedTable(
            id=model.id,
            model=model,
            indexes=indexes,
            selected=chosen,
            meanings=(
                *(meaning_of(column, config.values) for column in model.columns),
                *(Meaning() for _ in range(model.width - len(model.columns))),
            ),
            encoder=encoder,
            block=SourceBlock(
                config.connector,
                config.version,
                config.topic_prefix,
                model.id.schema,
                model.id.table,
                nulls_as_defaults=self._encoding.nulls_as_defaults,
            ),
            route=Route(topic, encoder.key_schema, encoder.value_schema, self.headers),
            keyless_route=Route(topic, None, encoder.value_schema, self.headers),
            batch_rows=self._snapshot_rows or rows_per_batch(encoder.constant_bytes),
            fill=fill,
        )

    def _plan(self, table: TableId, column: MyColumn, *, in_key: bool) -> ColumnPlan | None:
        shown = self._config.filters.is_column_captured(table, column.name)
        if not shown and not in_key:
            return None
        plan = column_plan(column, self._config.values)
        if self._config.converters.converters:
            plan = self._converted(table, column, plan) or plan
        if plan is None:
            self._warn_once(
                f"Column {table}.{column.name} has the type {column.type_name}, which is not supported; it is left out of records"
            )
            return None
        comment = column.comment if self._config.flag("include.schema.comments") else None
        facts = ColumnFacts(
            id=f"{table}.{column.name}",
            type_id=f"{table}.{column.type_name}",
            name=column.name,
            type_name=column.type_name,
            length=column.length,
            scale=column.scale,
            characters=column.jdbc_type in _CHARACTERS,
            comment=comment,
        )
        if comment:
            plan = replace(plan, schema=replace(plan.schema, doc=comment))
        return replace(self._config.column_rules.apply(plan, facts), only_in_key=not shown)

    def _converted(self, table: TableId, column: MyColumn, plain: ColumnPlan | None) -> ColumnPlan | None:
        # a default that the connector itself does not show, of zeros or unreadable, is none of a converter's either
        has_default = column.has_default and (plain is None or plain.schema.default is not None)
        asked = ConvertedColumn(
            name=column.name,
            data_collection=str(table),
            type_name=column.type_name,
            length=column.length,
            scale=column.scale,
            optional=column.nullable,
            default=column.default if has_default else None,
            charset=column.charset,
        )
        return self._config.converters.plan(asked, self._config.values.placeholder)

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning(text)


class CapturedTables:
    """Captured tables by name, built when they are first asked for and forgotten when their model changes."""

    def __init__(
        self,
        factory: TableFactory,
        is_captured: Callable[[TableId], bool],
        models: Mapping[TableId, MyTable],
        on_first_use: Callable[[TableId], None] = lambda _: None,
    ) -> None:
        self._on_first_use = on_first_use
        self._factory = factory
        self._is_captured = is_captured
        self._models = models
        self._built: dict[TableId, CapturedTable] = {}

    def names(self) -> list[TableId]:
        """Return the captured tables that are known, in order."""
        return sorted(id_ for id_ in self._models if self._is_captured(id_))

    def get(self, id_: TableId) -> CapturedTable | None:
        """Return a table, None for one that is not captured or not known."""
        model = self._models.get(id_)
        if model is None or not self._is_captured(id_):
            return None
        built = self._built.get(id_)
        if built is None or built.model is not model:
            if built is None:
                self._on_first_use(id_)
            built = self._built[id_] = self._factory.build(model)
        return built
