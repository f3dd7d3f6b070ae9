"""What the connector reads from PostgreSQL's catalog: the state of the server, tables, columns, types and keys. Few statements: each is a
round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from connectors.engine.relational.tables import Table, TableId
from connectors.postgres.position.offset import parse_lsn
from connectors.postgres.server.connection import Connection, placeholders, quote_literal
from connectors.postgres.types.columns import IDENTITY_DEFAULT, BaseType, PgColumn

#: Types from here on are made by users or extensions (`FirstNormalObjectId`): enums and domains, whose parts must be looked up.
FIRST_USER_OID = 16384
#: Memberships that stand for the attribute REPLICATION on Amazon RDS.
_CLOUD_ROLES = ("rds_superuser", "rdsadmin", "rdsrepladmin", "rds_replication")
#: Whether the user may have a replication slot.
MAY_REPLICATE_SQL = (
    "(SELECT r.rolreplication OR r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) OR EXISTS (SELECT 1 FROM pg_roles g "
    f"WHERE g.rolname IN ({placeholders(_CLOUD_ROLES)}) AND pg_has_role(current_user, g.oid, 'MEMBER'))"
)
#: A role that every server of a host has → the host.
_PROVIDERS = {"rds_superuser": "rds", "azure_pg_admin": "azure", "cloudsqlsuperuser": "cloudsql", "neon_superuser": "neon"}

#: Of pg_class c and pg_namespace n: every table outside of the system's schemas, partitioned ones and partitions included.
TABLES_SQL = (
    "c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND n.nspname NOT LIKE 'pg\\_temp%'"
)
#: Whether the user may read such a table, or a part of it.
READABLE_SQL = (
    "has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A row of pg_replication_slots."""

    database: str | None
    plugin: str | None
    restart_lsn: int | None
    confirmed_lsn: int | None
    lost: bool


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a start needs to know of the server, read in one statement.

    Attributes:
        may_replicate: whether the user has REPLICATION, is superuser or has a cloud's equivalent.
        wal_sender_timeout_ms: after which the server gives up a silent receiver; 0 is never.
        publication_all_tables: None when the publication does not exist.
        provider: who hosts the server, by its roles: rds (Aurora, too), azure, cloudsql, neon; empty when none of these.
    """

    version: int
    wal_level: str
    may_replicate: bool
    is_standby: bool
    wal_sender_timeout_ms: int
    slot: Slot | None
    publication_all_tables: bool | None
    provider: str = ""


def read_server_state(connection: Connection, slot: str, publication: str) -> ServerState:
    """Read the state of the server, the slot and the publication. Raises ServerError."""
    status = "wal_status = 'lost'" if connection.server_version >= 130000 else "false"
    (row,) = connection.query(
        f"SELECT current_setting('wal_level'), {MAY_REPLICATE_SQL}, "
        "pg_is_in_recovery(), (SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'), "
        f"(SELECT puballtables FROM pg_publication WHERE pubname = {quote_literal(publication)}), "
        f"(SELECT min(rolname) FROM pg_roles WHERE rolname IN ({placeholders(tuple(_PROVIDERS))})), "
        "s.slot_name, s.database, s.plugin, s.restart_lsn, s.confirmed_flush_lsn, s.lost "
        "FROM (SELECT 1) one LEFT JOIN "
        f"(SELECT *, {status} AS lost FROM pg_replication_slots WHERE slot_name = {quote_literal(slot)}) s ON true"
    )
    wal_level, replication, recovery, timeout, all_tables, host, slot_name, database, plugin, restart, confirmed, lost = row
    found = None
    if slot_name is not None:
        found = Slot(
            database,
            plugin,
            parse_lsn(restart) if restart else None,
            parse_lsn(confirmed) if confirmed else None,
            lost == "t",
        )
    return ServerState(
        version=connection.server_version,
        wal_level=wal_level or "",
        may_replicate=replication == "t",
        is_standby=recovery == "t",
        wal_sender_timeout_ms=int(timeout or 0),
        slot=found,
        publication_all_tables=None if all_tables is None else all_tables == "t",
        provider=_PROVIDERS.get(host or "", ""),
    )


def read_table_ids(connection: Connection) -> list[tuple[TableId, bool]]:
    """Read every table outside of the system's schemas, partitioned ones and partitions included, and whether the user may read it.

    Raises:
        ServerError: the server refuses, or the connection is gone.
    """
    rows = connection.query(
        f"SELECT n.nspname, c.relname, {READABLE_SQL} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE {TABLES_SQL} ORDER BY 1, 2"
    )
    return [(TableId(str(schema), str(table)), readable == "t") for schema, table, readable in rows]


def row_estimates(connection: Connection) -> dict[TableId, int]:
    """Return how many rows tables have by the server's statistics, as far as it has some. Raises ServerError."""
    rows = connection.query(
        "SELECT n.nspname, c.relname, c.reltuples::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE {TABLES_SQL} AND c.reltuples > 0"
    )
    return {TableId(str(schema), str(table)): int(count or 0) for schema, table, count in rows}


def read_tables(connection: Connection, ids: Sequence[TableId], *, with_generated: bool = True) -> dict[TableId, Table[PgColumn]]:
    """Return the structures of tables, by name; a table that is gone is missing in the answer. Raises ServerError.

    Args:
        with_generated: whether generated columns are shown, which pgoutput leaves out.
    """
    if not ids:
        return {}
    wanted = ", ".join(f"({quote_literal(t.schema)}, {quote_literal(t.table)})" for t in ids)
    generated = "a.attgenerated <> ''" if connection.server_version >= 120000 else "false"
    key_width = "i.indnkeyatts" if connection.server_version >= 110000 else "i.indnatts"
    rows = connection.query(
        f"WITH wanted AS (SELECT c.oid, n.nspname, c.relname FROM (VALUES {wanted}) AS v (s, t) JOIN pg_namespace n ON n.nspname = v.s "
        "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = v.t) "
        "SELECT w.nspname, w.relname, a.attname, a.atttypid, t.typname, a.atttypmod, a.attnotnull, "
        f"CASE WHEN a.attidentity <> '' THEN {quote_literal(IDENTITY_DEFAULT)} WHEN {generated} THEN NULL "
        "ELSE pg_get_expr(d.adbin, d.adrelid) END, t.typtype, t.typelem, key.position, col_description(w.oid, a.attnum) "
        "FROM wanted w JOIN pg_attribute a ON a.attrelid = w.oid AND a.attnum > 0 AND NOT a.attisdropped "
        f"{'' if with_generated else f'AND NOT ({generated}) '}"
        "JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
        # the primary key, else the first usable unique index as pgjdbc lists them: clustered ones first, then by name. Unlike Debezium we
        # leave out partial indexes: their columns do not identify rows
        f"LEFT JOIN LATERAL (SELECT i.indkey, {key_width} AS width FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid "
        "WHERE i.indrelid = w.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL "
        "ORDER BY i.indisprimary DESC, i.indisclustered DESC, ic.relname LIMIT 1) chosen ON true "
        "LEFT JOIN LATERAL (SELECT k.position FROM unnest(chosen.indkey::int2[]) WITH ORDINALITY AS k (attnum, position) "
        "WHERE k.attnum = a.attnum AND k.position <= chosen.width LIMIT 1) key ON true ORDER BY w.oid, a.attnum"
    )
    types = read_types(connection, {int(oid) for row in rows for oid in (row[3], row[9]) if oid and int(oid) >= FIRST_USER_OID})
    columns: dict[TableId, list[PgColumn]] = {}
    keys: dict[TableId, list[tuple[int, str]]] = {}
    for schema, table, name, oid, type_name, modifier, not_null, default, kind, element, position, comment in rows:
        id_ = TableId(str(schema), str(table))
        column = make_column(
            types,
            name=str(name),
            oid=int(oid or 0),
            type_name=str(type_name),
            modifier=int(modifier or -1),
            category=str(kind),
            element=int(element or 0),
            nullable=not_null != "t",
            default=default,
            comment=comment,
        )
        columns.setdefault(id_, []).append(column)
        if position is not None:
            keys.setdefault(id_, []).append((int(position), str(name)))
    return {id_: Table(id_, tuple(found), tuple(name for _, name in sorted(keys.get(id_, ())))) for id_, found in columns.items()}


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A row of pg_type, with an enum's labels in their order."""

    oid: int
    name: str
    category: str
    base: int
    base_modifier: int
    element: int
    labels: tuple[str, ...]


def read_types(connection: Connection, oids: Iterable[int]) -> dict[int, TypeInfo]:
    """Return types, and the types that they are made of (a domain's base, an array's element). Raises ServerError."""
    wanted = ", ".join(str(oid) for oid in sorted(set(oids)))
    if not wanted:
        return {}
    rows = connection.query(
        f"WITH RECURSIVE parts AS (SELECT oid, typname, typtype, typbasetype, typtypmod, typelem FROM pg_type WHERE oid IN ({wanted}) "
        "UNION SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typtypmod, t.typelem FROM pg_type t JOIN parts p "
        "ON t.oid = p.typbasetype OR (t.oid = p.typelem AND p.typelem <> 0)) "
        "SELECT p.oid, p.typname, p.typtype, p.typbasetype, p.typtypmod, p.typelem, e.enumlabel FROM parts p "
        "LEFT JOIN pg_enum e ON e.enumtypid = p.oid ORDER BY p.oid, e.enumsortorder"
    )
    found: dict[int, TypeInfo] = {}
    for oid, name, category, base, modifier, element, label in rows:
        number = int(oid or 0)
        before = found[number].labels if number in found else ()
        found[number] = TypeInfo(
            number, str(name), str(category), int(base or 0), int(modifier or -1), int(element or 0), before + ((label,) if label else ())
        )
    return found


def make_column(
    types: dict[int, TypeInfo],
    *,
    name: str,
    oid: int,
    type_name: str,
    modifier: int,
    category: str,
    element: int,
    nullable: bool,
    default: str | None,
    comment: str | None = None,
) -> PgColumn:
    """Return a column with its type resolved: a domain's chain of base types, the labels of an enum (of the element, for an array)."""
    chain: list[BaseType] = []
    root = types.get(oid)
    while root is not None and root.category == "d":
        base, base_modifier = root.base, root.base_modifier
        root = types.get(base)
        if root is None:
            break
        chain.append(BaseType(root.oid, root.name, base_modifier, root.category))
    parts = _element(types, chain[-1].name if chain else type_name, root.element if root else element)
    labelled = types.get(parts.oid) if parts else root
    return PgColumn(
        name=name,
        type_oid=oid,
        type_name=type_name,
        typmod=modifier,
        nullable=nullable,
        default=default,
        category=category,
        enum_labels=labelled.labels if labelled else (),
        base_types=tuple(chain),
        comment=comment,
        element=parts,
    )


def _element(types: dict[int, TypeInfo], type_name: str, oid: int) -> BaseType | None:
    """Return the type of an array's elements; types such as `point` and `name` have a `typelem` too and are no arrays."""
    if not oid or not type_name.startswith("_"):
        return None
    known = types.get(oid)
    return BaseType(oid, known.name, -1, known.category) if known else BaseType(oid, type_name[1:], -1)


def captured_tables(found: Iterable[tuple[TableId, bool]], wanted: Callable[[TableId], bool]) -> tuple[list[TableId], list[TableId]]:
    """Return the captured ones of all tables, and those among them that the user may not read."""
    captured = [(table, readable) for table, readable in found if wanted(table)]
    return [table for table, _ in captured], [table for table, readable in captured if not readable]
