"""The doctor of PostgreSQL connectors: reads the facts of one server by a handful of statements, and has them checked.

It opens two sessions, an ordinary one and one for replication, both of which it closes. It writes nothing.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api.doctor import Diagnosis, Finding
from connectors.engine.facts import LIMIT_SECONDS, clock_findings
from connectors.engine.relational.tables import TableId
from connectors.engine.topic_naming import TopicNaming
from connectors.postgres.checks import server, tables
from connectors.postgres.checks.facts import Facts, PublicationFacts, SignalFacts, SlotFacts, TableFacts, Wanted
from connectors.postgres.config import PostgresConfig, parse_config
from connectors.postgres.errors import ServerError
from connectors.postgres.facts import HEAD_SQL
from connectors.postgres.server import catalog
from connectors.postgres.server.connection import Connection, quote_literal
from connectors.postgres.slot.publication import options_sql
from connectors.postgres.slot.slot import RUNNING_SQL, describe_running
from connectors.postgres.stream.opening import parse_identities

#: A transaction that has been open for so long will not end within a moment.
LONG_SECONDS = 60.0


def diagnose(
    config: Mapping[str, str], *, is_running: bool, long_seconds: float = LONG_SECONDS, clock: Callable[[], float] = time.time
) -> Diagnosis:
    """Look at the server of a connector.

    Args:
        config: a configuration that can be parsed.
        is_running: whether the worker runs the connector now.
        long_seconds: how long a transaction may have been open.
        clock: this machine's time.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    parsed = parse_config(config)
    settings, at = parsed.connection, f"{parsed.connection.host}:{parsed.connection.port}"
    wanted = _wanted(parsed)
    try:
        connection = open_session(parsed)
    except ServerError as error:
        what = f"Cannot connect to the database '{settings.database}' at {at}"
        unreached = server.connection_finding(what, error, wanted)
        return Diagnosis([unreached], unseen=[f"The database '{settings.database}' at {at}: {error.message}"])
    try:
        facts = read_facts(connection, parsed, wanted)
        before, ((now,),), after = clock(), connection.query("SELECT extract(epoch FROM clock_timestamp())"), clock()
        version = connection.pgconn.parameter_status(b"server_version") or b"?"
    except ServerError as error:
        return Diagnosis(unseen=[f"The database '{settings.database}' at {at} refused to be looked at: {error.message}"])
    finally:
        connection.close()
    found = all_findings(facts, wanted, describe_running(list(facts.running)), is_running=is_running, long_seconds=long_seconds)
    found += clock_findings(before, float(now or 0), after)
    naming = TopicNaming.from_config(parsed.raw)
    topics = sorted({naming.data_topic(table.schema, table.table) for table in facts.captured})
    number = version.decode().partition(" ")[0]
    seen = f"PostgreSQL {number} at {at}, database {settings.database}, {len(facts.captured)} captured tables"
    return Diagnosis(found, looked_at=[seen], topics=topics)


def all_findings(facts: Facts, wanted: Wanted, described: str, *, is_running: bool, long_seconds: float) -> list[Finding]:
    """Return all that is wrong, in the order in which it is to be mended.

    Args:
        described: sentences about `Facts.running`.
        is_running: whether the worker runs the connector now.
        long_seconds: from when on a transaction is long.
    """
    found: list[Finding] = []
    if wanted.streams:
        found += server.server_findings(facts.state, wanted.user)
        found += server.replication_connection_findings(facts, wanted)
        found += server.capacity_findings(facts, wanted, is_running=is_running)
        found += server.slot_findings(facts.state, wanted.slot, wanted.database)
        found += server.slot_use_findings(facts, wanted, is_running=is_running)
        found += server.waiting_findings(facts, described, long_seconds)
    if not facts.captured:
        found.append(tables.no_table(wanted.database))
    found += tables.table_findings(facts, wanted)
    found += tables.signal_findings(facts, wanted)
    if wanted.streams:
        found += tables.publication_findings(facts, wanted)
    return found


def open_session(config: PostgresConfig, *, replication: bool = False) -> Connection:
    """Return a session whose statements have a time limit. Raises ServerError."""
    return Connection(
        config.connection,
        "Debezium Doctor",
        replication=replication,
        query_seconds=LIMIT_SECONDS,
        cancel_seconds=LIMIT_SECONDS,
        connect_seconds=LIMIT_SECONDS,
    )


def _wanted(config: PostgresConfig) -> Wanted:
    return Wanted(
        user=config.user,
        database=config.database,
        slot=config.slot,
        publication=config.publication,
        streams=config.snapshot_mode.streams,
        reads=config.snapshot_mode.without_offset,
        publication_mode=config.publication_mode,
        operations=frozenset("cudt") - config.skipped | config.signal_operations,
        options=options_sql(
            config.skipped - config.signal_operations if config.skipped_explicitly else None,
            via_partition_root=config.flag("publish.via.partition.root"),
        ),
        via_root=config.flag("publish.via.partition.root"),
        deletes_windows=config.deletes_close_windows,
        reselects=config.reselect is not None and config.reselect.unavailable,
    )


def read_facts(connection: Connection, config: PostgresConfig, wanted: Wanted) -> Facts:
    """Read everything that is checked. Raises ServerError."""
    state = catalog.read_server_state(connection, config.slot, config.publication)
    found = _tables(connection)
    captured = frozenset(table.id for table in found if config.filters.is_captured(table.id))
    large = _with_large_values(connection, captured)
    set_by_us = parse_identities(config.raw.get("replica.identity.autoset.values"))
    found = [
        replace(table, large_values=table.id in large, identity="f" if _is_set(table, set_by_us) else table.identity) for table in found
    ]
    error = _replication_error(config) if wanted.streams and state.may_replicate else None
    return Facts(
        state,
        slot=_slot(connection, config.slot) if state.slot is not None else None,
        publication=_publication(connection, config.publication),
        tables=found,
        captured=captured,
        signal=_signal(connection, config),
        running=connection.query(RUNNING_SQL) if state.slot is None and wanted.streams else (),
        replication_error=error,
        **_server(connection),
    )


def _is_set(table: TableFacts, identities: Sequence[tuple[re.Pattern[str], str]]) -> bool:
    """Return whether the connector sets the table's replica identity itself when it starts to stream."""
    return table.owned and any(regex.fullmatch(str(table.id)) for regex, _ in identities)


def _server(connection: Connection) -> dict[str, Any]:
    (row,) = connection.query(
        "SELECT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), has_database_privilege(current_database(), 'CREATE'), "
        "(SELECT count(*) FROM pg_replication_slots), current_setting('max_replication_slots'), "
        "(SELECT json_agg(slot_name ORDER BY slot_name) FROM pg_replication_slots WHERE NOT active), "
        "(SELECT count(*) FROM pg_stat_replication), current_setting('max_wal_senders'), "
        "pg_size_bytes(current_setting('max_slot_wal_keep_size', true)), "
        "(SELECT setting FROM pg_settings WHERE name = 'idle_replication_slot_timeout'), current_setting('hot_standby_feedback')"
    )
    superuser, create, slots, most_slots, idle, senders, most_senders, keep, idle_timeout, feedback = row
    return {
        "is_superuser": superuser == "t",
        "may_create": create == "t",
        "slots": (int(slots or 0), int(most_slots or 0)),
        "idle_slots": json.loads(idle) if idle else [],
        "senders": (int(senders or 0), int(most_senders or 0)),
        "slot_keep_bytes": -1 if keep is None else int(keep),
        "idle_slot_seconds": int(idle_timeout or 0),
        "hot_standby_feedback": feedback == "on",
    }


def _tables(connection: Connection) -> list[TableFacts]:
    root = (
        "pg_partition_root(c.oid)" if connection.server_version >= 120000 else "(SELECT inhparent FROM pg_inherits WHERE inhrelid = c.oid)"
    )
    rows = connection.query(
        f"SELECT n.nspname, c.relname, rn.nspname, r.relname, c.relkind = 'p', {catalog.READABLE_SQL}, pg_has_role(c.relowner, 'USAGE'), "
        "c.relreplident, EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), c.relpersistence = 'u', "
        "row_security_active(c.oid) "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"LEFT JOIN pg_class r ON c.relispartition AND r.oid = {root} LEFT JOIN pg_namespace rn ON rn.oid = r.relnamespace "
        f"WHERE {catalog.TABLES_SQL} ORDER BY 1, 2"
    )
    return [
        TableFacts(
            TableId(str(schema), str(table)),
            TableId(str(root_schema), str(root_table)) if root_table is not None else None,
            is_partitioned == "t",
            readable == "t",
            owned == "t",
            str(identity),
            key == "t",
            unlogged == "t",
            security == "t",
        )
        for schema, table, root_schema, root_table, is_partitioned, readable, owned, identity, key, unlogged, security in rows
    ]


def _with_large_values(connection: Connection, captured: frozenset[TableId]) -> frozenset[TableId]:
    """Return the tables whose out-of-line storage holds something. The size is asked for with a short wait for locks."""
    if not captured:
        return frozenset()
    listed = ", ".join(f"({quote_literal(table.schema)}, {quote_literal(table.table)})" for table in sorted(captured))
    try:
        rows = connection.query(
            "SET lock_timeout = '500ms'; SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE (n.nspname, c.relname) IN ({listed}) AND c.reltoastrelid <> 0 AND pg_relation_size(c.reltoastrelid) > 0"
        )
    except ServerError as error:
        if error.sqlstate.startswith("08"):
            raise
        return frozenset()  # somebody alters a table at this moment; nothing else rests on the answer
    return frozenset(TableId(str(schema), str(table)) for schema, table in rows)


def _slot(connection: Connection, name: str) -> SlotFacts | None:
    status = "coalesce(s.wal_status, '')" if connection.server_version >= 130000 else "''"
    rows: Sequence[tuple[str | None, ...]] = connection.query(
        f"SELECT s.active_pid, a.application_name, a.client_addr, {status}, pg_wal_lsn_diff(head, s.restart_lsn) "
        f"FROM (SELECT {HEAD_SQL}) AS log, pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid "
        f"WHERE s.slot_name = {quote_literal(name)}"
    )
    if not rows:
        return None
    pid, application, address, wal_status, retained = rows[0]
    user = None if pid is None else f"pid {pid} ({application or 'no application name shown'}, from {address or 'an address not shown'})"
    return SlotFacts(user, wal_status or "", int(retained or 0))


def _publication(connection: Connection, name: str) -> PublicationFacts | None:
    via_root = "pubviaroot" if connection.server_version >= 130000 else "false"
    truncate = "pubtruncate" if connection.server_version >= 110000 else "true"
    rows = connection.query(
        f"SELECT puballtables, pubinsert, pubupdate, pubdelete, {truncate}, {via_root}, pg_has_role(pubowner, 'USAGE') "
        f"FROM pg_publication WHERE pubname = {quote_literal(name)}"
    )
    if not rows:
        return None
    every, *published, root, owned = rows[0]
    members = connection.query(f"SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = {quote_literal(name)}")
    return PublicationFacts(
        every == "t",
        frozenset(operation for operation, answer in zip("cudt", published, strict=True) if answer == "t"),
        root == "t",
        owned == "t",
        frozenset(TableId(str(schema), str(table)) for schema, table in members),
    )


def _signal(connection: Connection, config: PostgresConfig) -> SignalFacts | None:
    table = config.signal_table
    if table is None or "source" not in config.names("signal.enabled.channels"):
        return None
    rows = connection.query(
        "SELECT (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), "
        "has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'DELETE') "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = {quote_literal(table.schema)} AND c.relname = {quote_literal(table.table)}"
    )
    if not rows:
        return SignalFacts(table, None, False, False)
    columns, insert, delete = rows[0]
    writes = not config.flag("read.only")
    return SignalFacts(table, int(columns or 0), insert == "t" or not writes, delete == "t" or not writes)


def _replication_error(config: PostgresConfig) -> ServerError | None:
    """Open a connection as the stream does, and ask it who it is; return why that failed."""
    try:
        connection = open_session(config, replication=True)
    except ServerError as error:
        return error
    try:
        connection.query("IDENTIFY_SYSTEM")
    except ServerError as error:
        return error
    finally:
        connection.close()
    return None
