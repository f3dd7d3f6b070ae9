"""From a table's structure to what the data path needs of it: encoder, routes, source block. Built by the task, once per structure.

`Reselector` reads again what an event lacks: values that are stored out of line and were not changed, and NULLs. Such a value is the
table's present one, not the event's: another transaction may have changed it since. That later change has its own event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from connect_py.api import ConvertedColumn, Route
from connect_py.api.record import JsonEncoding
from connect_py.errors import RetriableError
from connectors.engine.batches import rows_per_batch
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.plugins.post_processors import Fill, NotReadError, Reselect
from connectors.engine.relational.column_rules import ColumnFacts
from connectors.engine.relational.tables import Table, TableId
from connectors.engine.topic_naming import TopicNaming
from connectors.engine.visibility import Visibility
from connectors.postgres.config import PostgresConfig
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.encode.table import FillingEncoder, PostgresEncoder
from connectors.postgres.errors import ServerError, class_of
from connectors.postgres.pgoutput import Relation
from connectors.postgres.server.catalog import TypeInfo, make_column
from connectors.postgres.server.connection import Connection, quote_literal, quote_name
from connectors.postgres.server.visibility import await_visible
from connectors.postgres.types.columns import PgColumn, column_plan, holds_characters, length_and_scale, root_type, shown_type_name
from connectors.postgres.types.defaults import literal_of

log = logging.getLogger(__name__)


class Reselector:
    """Makes the functions that fill rows in. Owned by the task's thread.

    Args:
        general: returns the task's open connection, which is replaced after a reconnect; it is used while the stream waits.
        transaction: returns the id of the transaction whose rows are made into events; None while there is none.
    """

    def __init__(self, options: Reselect, general: Callable[[], Connection], transaction: Callable[[], int | None]) -> None:
        self._options = options
        self._general = general
        self._transaction = transaction
        self._visibility = Visibility(lambda xid, seconds: await_visible(general(), (xid,), seconds))

    def filler(self, table: TableId, columns: Sequence[ColumnPlan], key: Sequence[str], event_key: Sequence[str]) -> Fill | None:
        names = [quote_name(plan.name) for plan in columns]
        source = f"{quote_name(table.schema)}.{quote_name(table.table)}"

        def read(wanted: Sequence[int], key: Sequence[tuple[int, str]]) -> Sequence[Sequence[str | None]]:
            condition = " AND ".join(f"{names[column]} = {quote_literal(text)}" for column, text in key)
            try:
                if (transaction := self._transaction()) is not None:
                    self._visibility.wait_for(transaction)
                return self._general().query(
                    f"SELECT {', '.join(names[column] for column in wanted)} FROM {source} WHERE {condition} LIMIT 2"
                )
            except ServerError as error:
                if class_of(error.sqlstate) is RetriableError:
                    raise
                raise NotReadError(str(error)) from error

        return self._options.filler(str(table), columns, key, event_key, read)


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A captured table in one structure.

    Attributes:
        structure: what it was built from; an equal one needs no new encoder.
        route: the route of rows and tombstones.
        keyless_route: the route of truncates.
        batch_rows: rows of a snapshot's batch.
    """

    id: TableId
    structure: tuple[tuple[PgColumn, ...], tuple[str, ...]]
    encoder: PostgresEncoder
    block: SourceBlock
    route: Route
    keyless_route: Route
    batch_rows: int


def table_of_relation(relation: Relation, table: Table[PgColumn] | None, types: dict[int, TypeInfo]) -> Table[PgColumn]:
    """Return the structure of a table in the stream: the columns that the server sends, in its order.

    Types come from the message; nullability, defaults and the key from the present catalog. A column that the catalog no longer has is
    optional.
    """
    columns = []
    for sent in relation.columns:
        known = table.column(sent.name) if table else None
        if known is not None and known.type_oid == sent.type_oid and known.typmod == sent.modifier:
            columns.append(known)
            continue
        info = types.get(sent.type_oid)
        columns.append(
            make_column(
                types,
                name=sent.name,
                oid=sent.type_oid,
                type_name=info.name if info else "unknown",
                modifier=sent.modifier,
                category=info.category if info else "b",
                element=info.element if info else 0,
                nullable=known.nullable if known else True,
                default=known.default if known else None,
            )
        )
    names = {column.name for column in columns}
    key = tuple(name for name in table.key if name in names) if table else ()
    return Table(TableId(relation.schema, relation.table), tuple(columns), key)


class TableFactory:
    """Builds `CapturedTable`s.

    Args:
        encoding: how rows are to look; kept as `encoding`.
        headers: the context headers of every record.
        reselector: reads again what rows of the stream do not have; None when nothing is.
        snapshot_rows: rows of a snapshot's batch; None for as many as `rows_per_batch` says.

    Attributes:
        columns: each table's columns, in the structure that was built last.
    """

    def __init__(
        self,
        config: PostgresConfig,
        encoding: JsonEncoding,
        headers: tuple[tuple[str, str], ...],
        reselector: Reselector | None = None,
        snapshot_rows: int | None = None,
    ) -> None:
        self._reselector = reselector
        self._snapshot_rows = snapshot_rows
        self.columns: dict[TableId, tuple[PgColumn, ...]] = {}
        self._config = config
        self.encoding = encoding
        self._naming = TopicNaming.from_config(config.raw)
        self.headers = headers
        self._warned: set[str] = set()

    def build(self, table: Table[PgColumn], known: CapturedTable | None = None, *, streamed: bool = False) -> CapturedTable:
        """Return a table's parts; `known` itself when its structure is the same.

        Args:
            streamed: whether the structure came with the stream: propagated source types differ between the two ways.
        """
        config = self._config
        key = config.keys.columns(table)
        if known is not None and known.structure == (table.columns, key):
            return known
        self.columns[table.id] = table.columns
        plans = []
        for column in table.columns:
            shown = config.filters.is_column_captured(table.id, column.name)
            plan = None
            if shown:
                plan = self._plan(table.id, column, streamed)
            elif column.name in key:
                plan = self._plan_of_key(table.id, column, streamed)
            if shown and plan is None:
                self._warn_once(
                    f"Column {table.id}.{column.name} has the type {column.type_name}, which is not supported; it is left out of records"
                )
            plans.append(plan)
        if not key:
            self._warn_once(
                f"Table '{table.id}' has neither a primary key nor a usable unique index: its records have no key, so a sink cannot tell "
                "its rows apart. Add a key, or name columns in message.key.columns"
            )
        topic = self._naming.data_topic(table.id.schema, table.id.table)
        name = self._naming.schema_name(topic)
        fill = None
        if self._reselector is not None and table.id != config.signal_table:
            fill = self._reselector.filler(table.id, [plan for plan in plans if plan is not None], table.key, key)
        encoder = (PostgresEncoder if fill is None else partial(FillingEncoder, fill=fill))(
            topic,
            plans,
            key,
            SOURCE_SCHEMA,
            self.encoding,
            schema_name=name,
            field_name=self._naming.field_name,
            on_failure=config.choice("event.converting.failure.handling.mode"),
            skip_unchanged=config.flag("skip.messages.without.change"),
            key_mark=self._naming.key_mark(table.id.schema, table.id.table),
        )
        return CapturedTable(
            id=table.id,
            structure=(table.columns, key),
            encoder=encoder,
            block=SourceBlock(
                version=config.version,
                name=config.topic_prefix,
                database=config.database,
                schema=table.id.schema,
                table=table.id.table,
                nulls_as_defaults=self.encoding.nulls_as_defaults,
            ),
            route=Route(topic, encoder.key_schema, encoder.value_schema, self.headers),
            keyless_route=Route(topic, None, encoder.value_schema, self.headers),
            batch_rows=self._snapshot_rows or rows_per_batch(encoder.constant_bytes),
        )

    def _plan_of_key(self, table: TableId, column: PgColumn, streamed: bool) -> ColumnPlan | None:
        # the reference knows nothing but the type of an excluded column in the stream; the same keys are worth more than a better schema
        plan = self._plan(table, replace(column, nullable=True, default=None) if streamed else column, streamed)
        return replace(plan, only_in_key=True) if plan is not None else None

    def _plan(self, table: TableId, column: PgColumn, streamed: bool) -> ColumnPlan | None:
        config = self._config
        rules = config.column_rules
        plan = self._converted(table, column) if config.converters.converters else None
        if plan is None:
            plan = column_plan(column, config.values)
        if plan is None or not rules.rules:
            return plan
        root = root_type(column)
        length, scale = length_and_scale(root, streamed=streamed)
        facts = ColumnFacts(
            id=f"{table}.{column.name}",
            type_id=f"{table}.{column.type_name}",
            name=column.name,
            type_name=shown_type_name(column, streamed=streamed),
            length=length,
            scale=scale,
            characters=holds_characters(root),
        )
        return rules.apply(plan, facts)

    def _converted(self, table: TableId, column: PgColumn) -> ColumnPlan | None:
        root = root_type(column)
        length, scale = length_and_scale(root, streamed=True)
        asked = ConvertedColumn(
            name=column.name,
            data_collection=str(table),
            type_name=column.type_name,
            length=length,
            scale=scale,
            optional=column.nullable,
            default=literal_of(column.default) if column.default else None,
        )
        return self._config.converters.plan(asked, self._config.values.placeholder)

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning(text)
