"""The doctor of MySQL and MariaDB connectors: reads the facts of one server and of the history's topic, and has them checked.

It opens one session, which it closes, and writes nothing.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from connect_py.api.doctor import Diagnosis
from connect_py.errors import ConnectError, RetriableError
from connect_py.kafka.acl import READ, Login, principal
from connect_py.kafka.admin import KafkaAdmin
from connectors.engine.facts import LIMIT_SECONDS, clock_findings
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.modes import StoredPosition
from connectors.engine.topic_naming import TopicNaming
from connectors.mysql.checks import LOCK_VARIABLES, Facts, Grants, HistoryFacts, TableFacts, Wanted, all_findings, connection_finding
from connectors.mysql.config.config import MySqlConfig, parse_config
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection, quote_literal
from connectors.mysql.snapshot.locks import locking_of
from offsets.schema_history import KafkaSchemaHistory

_VARIABLES = (
    "log_bin", "binlog_format", "binlog_row_image", "binlog_expire_logs_seconds", "expire_logs_days", "gtid_mode", "server_id",
    "log_replica_updates", "log_slave_updates", "binlog_order_commits", "binlog_row_value_options", *LOCK_VARIABLES,
)  # fmt: skip
#: An entry of a list of tables that is a name and no pattern: dots may be escaped.
_NAME = re.compile(r"([\w$-]+)\\?\.([\w$-]+)|([\w$-]+)\[\.\]([\w$-]+)")


def diagnose(config: Mapping[str, str], connector: str, *, is_running: bool) -> Diagnosis:
    """Look at the server and the history's topic of a connector.

    Args:
        config: a configuration that can be parsed.
        connector: `mysql` or `mariadb`.
        is_running: whether the worker runs the connector now.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    parsed = parse_config(config, connector)
    at = f"{parsed.connection.host}:{parsed.connection.port}"
    wanted = _wanted(parsed)
    try:
        connection = open_session(parsed)
    except ServerError as error:
        return Diagnosis([connection_finding(error, at, parsed.connection.user)], unseen=[f"The server at {at}: {error.reason}"])
    try:
        facts = read_facts(connection, parsed, is_running=is_running)
        before, ((now,),), after = time.time(), connection.texts("SELECT UNIX_TIMESTAMP(NOW(6))"), time.time()
    except ServerError as error:
        return Diagnosis(unseen=[f"The server at {at} refused to be looked at: {error.reason}"])
    finally:
        connection.close()
    naming = TopicNaming.from_config(parsed.raw, "default")
    topics = sorted({naming.data_topic(table.id.schema, table.id.table) for table in facts.tables})
    kind = "MariaDB" if facts.is_mariadb else "MySQL"
    seen = [f"{kind} {facts.version} at {at}, {len(facts.tables)} captured tables"]
    unseen = []
    if facts.history is not None and facts.history.error:
        unseen.append(f"The topic of the schema history, {facts.history.topic}")
    elif facts.history is not None:
        seen.append(f"The topic of the schema history, {facts.history.topic}")
    findings = [*all_findings(facts, wanted), *clock_findings(before, float(now), after)]
    return Diagnosis(findings, looked_at=seen, unseen=unseen, topics=topics)


def open_session(config: MySqlConfig) -> Connection:
    """Return a session whose statements have a time limit. Raises ServerError."""
    limits = replace(config.connection, connect_timeout=LIMIT_SECONDS, query_timeout=LIMIT_SECONDS)
    return queries.open_connection(replace(config, connection=limits))


def _wanted(config: MySqlConfig) -> Wanted:
    mode = config.snapshot_mode
    return Wanted(
        config.server_id,
        streams=mode.streams,
        reads=mode.reads_data(StoredPosition.NONE),
        locking=locking_of(config) if mode.reads_schema(StoredPosition.NONE) else None,
        read_only=config.read_only,
        accepts_minimal=config.choice("binlog.row.image.minimal") == "accept",
        deletes_windows=config.deletes_close_windows,
        prefix=config.topic_prefix,
    )


def read_facts(connection: Connection, config: MySqlConfig, *, is_running: bool) -> Facts:
    """Read everything that is checked. Raises ServerError."""
    variables = queries.global_variables(connection, _VARIABLES)
    version = variables.get("version", "")
    is_mariadb = "mariadb" in version.lower()
    every = queries.all_tables(connection, with_system=not config.flag("table.ignore.builtin"))
    tables = [id_ for id_ in every if _is_captured(config, id_)]
    replicas = _answer(connection, "SHOW REPLICAS", "SHOW SLAVE HOSTS")
    return Facts(
        user=queries.current_account(connection),
        is_mariadb=is_mariadb,
        version=version,
        variables=variables,
        grants=Grants.parse([row[0] for row in connection.texts("SHOW GRANTS")]),
        tables=_table_facts(connection, tables, config),
        invisible=[id_ for id_ in _named_tables(config) if id_ not in set(tables)],
        replica_ids=frozenset() if is_running else frozenset(int(row[0]) for row in replicas or ()),
        is_replica=bool(_answer(connection, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")),
        rds_hours=_rds_hours(connection),
        signal=_signal(connection, config),
        history=_history(config),
    )


def _is_captured(config: MySqlConfig, id_: TableId) -> bool:
    return config.filters.is_captured(id_) and id_ != config.signal_table


def _named_tables(config: MySqlConfig) -> list[TableId]:
    """Return the tables that `table.include.list` names without a pattern."""
    entries = (_NAME.fullmatch(entry.strip()) for entry in config.raw.get("table.include.list", "").split(","))
    named = [TableId(found[1] or found[3], found[2] or found[4]) for found in entries if found is not None]
    return [id_ for id_ in named if _is_captured(config, id_)]


def _table_facts(connection: Connection, tables: Sequence[TableId], config: MySqlConfig) -> list[TableFacts]:
    if not tables:
        return []
    databases = ", ".join(quote_literal(database) for database in sorted({table.schema for table in tables}))
    engines = {
        (database, table): engine
        for database, table, engine in connection.texts(
            f"SELECT table_schema, table_name, engine FROM information_schema.tables WHERE table_schema IN ({databases})"  # noqa: S608  # quoted
        )
    }
    unique = {
        (database, table)
        for database, table in connection.texts(
            "SELECT table_schema, table_name FROM information_schema.statistics WHERE non_unique = 0 "  # noqa: S608  # quoted
            f"AND table_schema IN ({databases}) GROUP BY table_schema, table_name, index_name HAVING max(nullable) <> 'YES'"
        )
    }
    has_rules = bool(config.keys.rules)  # columns are not read here, so that a rule may be for any table
    return [TableFacts(id_, engines.get((id_.schema, id_.table), ""), has_rules or (id_.schema, id_.table) in unique) for id_ in tables]


def _answer(connection: Connection, *statements: str) -> list[tuple[str, ...]] | None:
    """Return the rows of the first of these statements that the server knows and lets the user run. Raises LostConnectionError."""
    for statement in statements:
        try:
            return connection.texts(statement)
        except LostConnectionError:
            raise
        except ServerError:
            continue
    return None


def _rds_hours(connection: Connection) -> int | None:
    rows = _answer(connection, "SELECT value FROM mysql.rds_configuration WHERE name = 'binlog retention hours'")
    return None if not rows else int(rows[0][0]) if rows[0][0].isdigit() else 0


def _signal(connection: Connection, config: MySqlConfig) -> tuple[TableId, int] | None:
    id_ = config.signal_table
    if id_ is None or "source" not in config.names("signal.enabled.channels"):
        return None
    place = f"table_schema = {quote_literal(id_.schema)} AND table_name = {quote_literal(id_.table)}"
    ((count,),) = connection.texts(f"SELECT count(*) FROM information_schema.columns WHERE {place}")  # noqa: S608  # quoted
    return id_, int(count)


def _history(config: MySqlConfig) -> HistoryFacts:
    client, topic = config.history_client, config.history_topic
    servers = client["bootstrap.servers"]
    try:
        with contextlib.closing(KafkaAdmin(client, timeout=LIMIT_SECONDS)) as admin:
            try:
                allowed = admin.allowed_on_topics([topic])
            except RetriableError as error:
                return HistoryFacts(topic, servers, error=admin.refused_login() or str(error))
            may_not_see = allowed.get(topic) == frozenset()
            refused = admin.creation_refused([topic]) if may_not_see or topic not in allowed else []
        login = Login(("the schema history",), principal(client), servers, allowed, uncreatable=frozenset(refused))
        if may_not_see or topic not in allowed:
            return HistoryFacts(topic, servers, login)
        with contextlib.closing(KafkaSchemaHistory(topic, client, LIMIT_SECONDS, LIMIT_SECONDS)) as history:
            partitions, _, settings = history.describe()
            operations = allowed[topic]
            owner = _owner(history) if operations is None or READ in operations else ""
    except ConnectError as error:
        return HistoryFacts(topic, servers, error=str(error))
    return HistoryFacts(topic, servers, login, partitions, settings, owner=owner)


def _owner(history: KafkaSchemaHistory) -> str:
    """Return the `topic.prefix` in the first record; "" where there is none."""
    with contextlib.closing(history.read()) as records:
        first = next(records, {})
    source = first.get("source")
    return str(source.get("server") or "") if isinstance(source, Mapping) else ""
