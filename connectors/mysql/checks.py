"""What a MySQL or MariaDB connector needs of its server, as functions from facts to findings. Pure: a start and the doctor use the same
ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from connect_py.api.doctor import Finding, Person
from connect_py.kafka.acl import READ, WRITE, Login, TopicNeed, topic_findings
from connectors.engine.relational.tables import TableId
from connectors.mysql.errors import ServerError
from connectors.mysql.model import quote_name

#: A connector that is stopped over a weekend still finds its place.
SHORTEST_EXPIRY_SECONDS = 3 * 86_400
#: Of the history's topic: nothing may ever be dropped (`offsets.schema_history.SETTINGS`).
_FOREVER = ("-1", str((1 << 63) - 1))
#: Tables that a sentence names.
_SHOWN = 20

_ADMIN, _OWNER = "an administrator (GRANT OPTION)", "a user with ALTER on the tables"
_GRANT = re.compile(r"GRANT (?P<rights>.+?) ON (?P<place>\S+?|`.*?`\.\S+) TO ", re.IGNORECASE | re.DOTALL)
#: By what else the server calls a right that is asked for.
_SAME_RIGHT: Mapping[str, frozenset[str]] = {
    "REPLICATION CLIENT": frozenset({"BINLOG MONITOR"}),
    "REPLICATION SLAVE": frozenset({"REPLICATION REPLICA"}),
    "RELOAD": frozenset({"FLUSH_TABLES"}),
}


@dataclass(frozen=True, slots=True)
class Grants:
    """The rights of a user, those of its active roles included: rights in capitals, by `*.*`, a database or a table."""

    rights: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, lines: Sequence[str]) -> Grants:
        """Read the answer of SHOW GRANTS."""
        found: dict[str, set[str]] = {}
        for line in lines:
            match = _GRANT.match(line)
            if match is not None:
                names = {re.sub(r"\s*\(.*?\)", "", right).strip().upper() for right in re.split(r",(?![^(]*\))", match["rights"])}
                found.setdefault(match["place"].replace("`", ""), set()).update(names)
        return cls({place: frozenset(names) for place, names in found.items()})

    def has(self, right: str, table: TableId | None = None) -> bool:
        """Return whether the user has a right everywhere, or on a table."""
        names = {right, "ALL", "ALL PRIVILEGES", *_SAME_RIGHT.get(right, ())}
        if names & self.rights.get("*.*", frozenset()):
            return True
        if table is None:
            return False
        places = [place for place in self.rights if _covers(place, table)]
        return any(names & self.rights[place] for place in places)


def _covers(place: str, table: TableId) -> bool:
    database, _, name = place.partition(".")
    if name != "*":
        return (database, name) == (table.schema, table.table)
    parts = re.findall(r"\\.|.", database)
    pattern = "".join(".*" if part == "%" else "." if part == "_" else re.escape(part[-1]) for part in parts)
    return re.fullmatch(pattern, table.schema) is not None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A captured table that the user sees."""

    id: TableId
    engine: str = "InnoDB"
    has_key: bool = True


@dataclass(frozen=True, slots=True)
class HistoryFacts:
    """The topic of the schema history.

    Attributes:
        login: what the history's clients may do there; None where that could not be asked.
        partitions: None when it does not exist, or may not be looked at.
        error: why it could not be looked at.
        owner: `topic.prefix` of the connector that wrote the first record; "" where there is none, or it could not be read.
    """

    topic: str
    servers: str
    login: Login | None = None
    partitions: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the doctor has read of one server.

    Attributes:
        user: the account that the server has found, such as ``'app'@'%'``.
        variables: the server's, by names in lower case.
        invisible: tables that the configuration names and the server does not show.
        replica_ids: the server ids of its replicas, as far as the user may ask.
        is_replica: whether it is one itself.
        rds_hours: what RDS calls "binlog retention hours"; None where there is no such setting, 0 for NULL.
        signal: the table of signals and the number of its columns, 0 when it is not there.
    """

    user: str
    is_mariadb: bool
    version: str
    variables: Mapping[str, str]
    grants: Grants
    tables: Sequence[TableFacts] = ()
    invisible: Sequence[TableId] = ()
    replica_ids: frozenset[int] = frozenset()
    is_replica: bool = False
    rds_hours: int | None = None
    signal: tuple[TableId, int] | None = None
    history: HistoryFacts | None = None

    def lock_right(self, locking: Locking) -> str | None:
        """Return what the snapshot's global lock takes; None where the server gives it to nobody."""
        return None if self.rds_hours is not None and not locking.is_perconas else locking.right(self.variables)

    def variable(self, *names: str) -> str:
        """Return the first of these variables that the server has, in capitals; empty when it has none."""
        return next((self.variables[name].upper() for name in names if name in self.variables), "")

    def set_global(self, name: str, value: str) -> str:
        """Return the statement that sets a variable; MySQL keeps it over a restart."""
        return f"SET {'GLOBAL' if self.is_mariadb or self.version.startswith('5.') else 'PERSIST'} {name} = {value};"


@dataclass(frozen=True, slots=True)
class Locking:
    """How a snapshot keeps others from writing.

    Attributes:
        mode: `snapshot.locking.mode`.
        flushes: whether tables that are locked in place of everything are flushed first (`snapshot.locking.fallback=flush`).
    """

    mode: str = "minimal"
    flushes: bool = True

    @property
    def is_perconas(self) -> bool:
        """Whether it takes Percona Server's backup lock, which lets others write."""
        return self.mode.startswith("minimal_percona")

    @property
    def may_lock_tables(self) -> bool:
        """Whether the captured tables may be locked where the global lock is refused."""
        return self.mode != "minimal_percona_no_table_locks"

    def right(self, variables: Mapping[str, str]) -> str | None:
        """Return what the global lock takes; None where the server gives it to nobody.

        Args:
            variables: the server's `LOCK_VARIABLES`, by names in lower case.
        """
        if self.is_perconas:
            # https://docs.percona.com/percona-server/8.0/backup-locks.html; other servers do not know the statement
            is_percona = "percona" in variables.get("version_comment", "").lower()
            return None if not is_percona else "RELOAD" if variables.get("version", "").startswith("5.") else "BACKUP_ADMIN"
        is_rds = "rdsdb" in variables.get("basedir", "") or "aurora_version" in variables
        return None if is_rds else "RELOAD"


#: By which a server tells whether it gives the global lock to anybody.
LOCK_VARIABLES: Final = ("version", "version_comment", "basedir", "aurora_version")


@dataclass(frozen=True, slots=True)
class MissingLocks:
    """The rights that a snapshot's locks still take.

    Attributes:
        everywhere: to be granted on `*.*`.
        tables: those on which `LOCK TABLES` is to be granted.
        may_lock: whether the user may lock every captured table already.
    """

    everywhere: tuple[str, ...] = ()
    tables: tuple[TableId, ...] = ()
    may_lock: bool = True

    def __bool__(self) -> bool:
        return bool(self.everywhere or self.tables)

    @property
    def advice(self) -> str:
        """What else helps, in place of the rights."""
        if self.may_lock and self.everywhere == ("RELOAD",):
            return "Or set snapshot.locking.fallback=lock: the user may lock the tables without flushing them."
        return "Or set snapshot.locking.mode=none where no table changes its structure during the snapshot."


def missing_locks(grants: Grants, tables: Sequence[TableId], locking: Locking, right: str | None) -> MissingLocks:
    """Return which rights a snapshot lacks to lock everything, or the captured tables in place of that; a start that is refused the global
    lock asks this, too.

    `FLUSH TABLES … WITH READ LOCK` takes `LOCK TABLES` on each table, and `RELOAD` or `FLUSH_TABLES`.

    Args:
        right: what the global lock takes; None where the server gives it to nobody.
    """
    if locking.mode == "none" or (right is not None and grants.has(right)):
        return MissingLocks()
    unlocked = tuple(table for table in tables if not grants.has("LOCK TABLES", table))
    flush = ("RELOAD",) if locking.flushes and not grants.has("RELOAD") else ()
    may_lock = bool(tables) and not unlocked
    if locking.may_lock_tables and may_lock and not flush:
        return MissingLocks()
    if right is not None:
        return MissingLocks((right,), (), may_lock and locking.may_lock_tables)
    return MissingLocks(flush, unlocked, may_lock) if locking.may_lock_tables else MissingLocks()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a configuration asks of the server.

    Attributes:
        reads: whether the first start reads rows.
        locking: how the first start locks, which is also for reading structures; None where it reads neither.
        prefix: `topic.prefix`.
    """

    server_id: int
    streams: bool = True
    reads: bool = True
    locking: Locking | None = Locking()
    read_only: bool = False
    accepts_minimal: bool = False
    deletes_windows: bool = False
    prefix: str = ""


# -- the log ----------------------------------------------------------------------------------------------------------------------


def log_format_findings(binlog_format: str, row_image: str, *, accepts_minimal: bool) -> Iterator[Finding]:
    """Check that the log holds whole rows, or parts that the configuration accepts; a start does, too.

    Args:
        binlog_format, row_image: the server's variables; an empty image is FULL.
        accepts_minimal: `binlog.row.image.minimal=accept`.
    """
    if binlog_format.upper() != "ROW":
        yield Finding(
            "mysql.binlog_format",
            "The database server is not configured to use a ROW binlog_format, which is required for this connector to work properly.",
            "Other logs hold statements, not the rows that they change.",
            Person.DBA,
            "a user with SYSTEM_VARIABLES_ADMIN, or SUPER",
            ("SET GLOBAL binlog_format = 'ROW';",),
            "Change the database configuration to use a binlog_format=ROW and restart the connector. Open sessions keep the old one.",
        )
    if (row_image or "FULL").upper() not in ("FULL", "NOBLOB") and not accepts_minimal:
        yield Finding(
            "mysql.binlog_row_image",
            "The database server is not configured to use a FULL binlog_row_image, which is required for this connector to work properly.",
            "Events would show only the key and what a change touches.",
            Person.DBA,
            "a user with SYSTEM_VARIABLES_ADMIN, or SUPER",
            ("SET GLOBAL binlog_row_image = 'FULL';",),
            "Change the database configuration to use a binlog_row_image=FULL|NOBLOB and restart the connector. Or set "
            "binlog.row.image.minimal=accept, and have ReselectColumnsPostProcessor read the rest from the table.",
        )


def gtid_mode_off() -> Finding:
    """Return the finding that `read.only` lacks GTIDs; a start's, too."""
    return Finding(
        "mysql.gtid_mode",
        "Read only connection requires GTID_MODE to be ON.",
        "Without GTIDs an incremental snapshot cannot tell which changes came before a chunk.",
        Person.DBA,
        "a user with SYSTEM_VARIABLES_ADMIN, or SUPER",
        (
            "SET PERSIST enforce_gtid_consistency = ON;",
            "SET PERSIST gtid_mode = OFF_PERMISSIVE;",
            "SET PERSIST gtid_mode = ON_PERMISSIVE;",
            "SET PERSIST gtid_mode = ON;",
        ),
        "Or set read.only=false, and signal.data.collection to a table that the user may write to.",
    )


def log_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check the server's log and its settings."""
    if not wanted.streams:
        return
    if facts.variable("log_bin") in ("OFF", "0"):
        yield Finding(
            "mysql.log_bin",
            "The server keeps no binary log (log_bin=OFF).",
            "Changes are read from this log and nowhere else.",
            Person.DBA,
            advice="Set log_bin and a server_id in the server's configuration file, section [mysqld], and restart the server. On "
            "Amazon RDS enable automated backups.",
        )
        return
    image = facts.variable("binlog_row_image")
    unfit = list(log_format_findings(facts.variable("binlog_format"), image, accepts_minimal=wanted.accepts_minimal))
    for finding in unfit:
        name, value = finding.check.removeprefix("mysql."), "'ROW'" if "format" in finding.check else "'FULL'"
        yield replace(finding, statements=(facts.set_global(name, value),))
    if wanted.read_only and not facts.is_mariadb and facts.variable("gtid_mode") != "ON":
        yield gtid_mode_off()
    if facts.is_replica and facts.variable("log_replica_updates", "log_slave_updates") == "OFF":
        yield Finding(
            "mysql.log_replica_updates",
            "The server is a replica that does not write what it receives to its own log (log_replica_updates=OFF).",
            "Changes of its source never reach the connector.",
            Person.DBA,
            advice="Set log_replica_updates=ON (log_slave_updates in older versions) in the server's configuration file, and restart it.",
        )
    if facts.signal is not None and facts.variable("binlog_order_commits") == "OFF" and facts.variable("gtid_mode") != "ON":
        yield Finding(
            "mysql.binlog_order_commits",
            "Transactions may show in another order than the log has them (binlog_order_commits=OFF), and they have no GTIDs "
            "by which the connector could wait for them.",
            "An incremental snapshot may read a row as it was before a change that the log has already: the topic keeps the old row.",
            Person.DBA,
            "a user with SYSTEM_VARIABLES_ADMIN, or SUPER",
            (facts.set_global("binlog_order_commits", "ON"),),
            severity="risk",
        )
    if not unfit and "PARTIAL_JSON" in facts.variable("binlog_row_value_options") and image not in ("", "FULL"):
        yield Finding(
            "mysql.binlog_row_value_options",
            f"The log has only the differences of JSON documents (binlog_row_value_options=PARTIAL_JSON), and with "
            f"binlog_row_image={image} it may lack the documents that they change.",
            "Such a document is unavailable.value.placeholder in its event.",
            Person.DBA,
            "a user with SYSTEM_VARIABLES_ADMIN, or SUPER",
            (facts.set_global("binlog_row_image", "'FULL'"),),
            "Sessions that are connected keep their image until they connect again.",
            severity="risk",
        )
    yield from _expiry_findings(facts)
    own = facts.variable("server_id")
    if own == str(wanted.server_id) or wanted.server_id in facts.replica_ids:
        yield Finding(
            "mysql.server_id",
            f"The server id {wanted.server_id} is {'that of the server' if own == str(wanted.server_id) else 'in use by another replica'}.",
            "The server ends one of two connections that have the same id, again and again.",
            Person.YOU,
            advice="Set database.server.id to a number that no server and no other connector has.",
        )


def _expiry_findings(facts: Facts) -> Iterator[Finding]:
    seconds, days = facts.variable("binlog_expire_logs_seconds"), facts.variable("expire_logs_days")
    by_seconds = seconds.isdigit() and int(seconds) > 0
    kept = int(seconds) if by_seconds else int(float(days) * 86_400) if re.fullmatch(r"\d+(\.\d+)?", days) else 0
    name, value = ("binlog_expire_logs_seconds", "604800") if by_seconds else ("expire_logs_days", "7")
    why = "A connector that is stopped for longer finds its place gone, and needs a new snapshot."
    if 0 < kept < SHORTEST_EXPIRY_SECONDS:
        yield Finding(
            "mysql.binlog_expire",
            f"The server removes its log after {kept / 3600:.3g} hours ({name}).",
            why,
            Person.DBA,
            "a user with SYSTEM_VARIABLES_ADMIN, or SUPER",
            (facts.set_global(name, value),),
            "Choose what your disk has room for.",
            severity="risk",
        )
    if facts.rds_hours is not None and facts.rds_hours * 3600 < SHORTEST_EXPIRY_SECONDS:
        yield Finding(
            "mysql.rds_retention",
            f"Amazon RDS removes the log {f'after {facts.rds_hours} hours' if facts.rds_hours else 'as soon as it can'} "
            "('binlog retention hours').",
            why,
            Person.DBA,
            "the master user of the instance",
            ("CALL mysql.rds_set_configuration('binlog retention hours', 168);",),
            severity="risk",
        )


# -- rights -----------------------------------------------------------------------------------------------------------------------


def grant_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check the user's rights, and return one finding for all that is missing."""
    everywhere = []
    if wanted.streams:
        client = "BINLOG MONITOR" if facts.is_mariadb and not facts.version.startswith("10.4") else "REPLICATION CLIENT"
        pairs = (("REPLICATION SLAVE", "REPLICATION SLAVE"), ("REPLICATION CLIENT", client))
        everywhere += [shown for right, shown in pairs if not facts.grants.has(right)]
    tables = [table.id for table in facts.tables]
    locks = MissingLocks()
    if wanted.locking is not None:
        right = facts.lock_right(wanted.locking)
        locks = missing_locks(facts.grants, tables, wanted.locking, right)
        if right is None and not wanted.locking.may_lock_tables:
            yield backup_lock_unknown()
    everywhere += locks.everywhere
    unread = [*(table for table in tables if wanted.reads and not facts.grants.has("SELECT", table)), *facts.invisible]
    statements = _grants(facts.user, everywhere, unread, locks.tables)
    if not statements:
        return
    lacks = [
        *everywhere,
        *(f"{right} on {_listed(on)}" for right, on in (("SELECT", unread), ("LOCK TABLES", locks.tables)) if on),
    ]
    yield Finding(
        "mysql.grants",
        f"The user {facts.user} lacks {', '.join(lacks)}{' (or these do not exist)' if facts.invisible else ''}.",
        "The snapshot reads the tables, for which it locks them for a moment, and the stream reads the log.",
        Person.DBA,
        _ADMIN,
        statements,
        locks.advice if locks and not unread and everywhere == list(locks.everywhere) else "",
    )


def _grants(user: str, everywhere: Sequence[str], read: Sequence[TableId], locked: Sequence[TableId]) -> tuple[str, ...]:
    """Return one statement for the server, and one for each database."""
    rights: dict[str, list[str]] = {}
    for right, tables in (("SELECT", read), ("LOCK TABLES", locked)):
        for database in dict.fromkeys(table.schema for table in tables):
            rights.setdefault(database, []).append(right)
    of_databases = (f"GRANT {', '.join(names)} ON {quote_name(database)}.* TO {user};" for database, names in rights.items())
    return (*([f"GRANT {', '.join(everywhere)} ON *.* TO {user};"] if everywhere else []), *of_databases)


def locks_refused(user: str, missing: MissingLocks) -> Finding:
    """Return the finding with which a start ends that can lock neither everything nor the captured tables."""
    return Finding(
        "mysql.lock_tables",
        "User does not have the RELOAD privilege (or FLUSH_TABLES) with which tables are flushed before they are locked, and "
        "snapshot.locking.fallback asks for that."
        if missing.may_lock
        else "User does not have the 'LOCK TABLES' privilege required to obtain a consistent snapshot by preventing concurrent writes to "
        "tables.",
        "The snapshot cannot begin.",
        Person.DBA,
        _ADMIN,
        _grants(user, missing.everywhere, (), missing.tables),
        missing.advice,
    )


def backup_lock_unknown() -> Finding:
    """Return the finding that only Percona Server has the lock of `minimal_percona_no_table_locks`."""
    return Finding(
        "mysql.locking_mode",
        "The server is no Percona Server, so that it does not know the lock of snapshot.locking.mode=minimal_percona_no_table_locks.",
        "The snapshot cannot begin.",
        Person.YOU,
        advice="Set snapshot.locking.mode=minimal.",
    )


# -- tables -----------------------------------------------------------------------------------------------------------------------


def table_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check the captured tables, and the table of signals."""
    if not facts.tables and not facts.invisible:
        yield Finding(
            "mysql.tables.none",
            f"No table that the user {facts.user} sees matches the filters (database.*.list, table.*.list). Names are matched whole, as "
            "database.table, and the server shows only tables on which the user has a right.",
            "The connector runs and sends nothing.",
            Person.YOU,
            advice="Correct the lists, or have SELECT granted on the tables.",
        )
    others = [table.id for table in facts.tables if table.engine and table.engine.upper() not in _TRANSACTIONAL]
    if others and wanted.reads:
        yield Finding(
            "mysql.tables.engine",
            f"{_listed(others)} {'has' if len(others) == 1 else 'have'} an engine without transactions.",
            "A consistent snapshot does not hold for it: a row that changes while it is read may come twice, or in both states.",
            Person.DBA,
            _OWNER,
            tuple(f"ALTER TABLE {quote_name(table.schema, table.table)} ENGINE = InnoDB;" for table in others),
            severity="risk",
        )
    keyless = [table.id for table in facts.tables if not table.has_key]
    if keyless:
        yield Finding(
            "mysql.tables.key",
            f"{_listed(keyless)} {'has' if len(keyless) == 1 else 'have'} neither a primary key nor a usable unique index.",
            "The records have no key: a sink cannot tell the rows apart.",
            Person.YOU,
            advice="Name the columns that identify a row in message.key.columns, or add a primary key.",
            severity="risk",
        )
    yield from _signal_findings(facts, wanted)


_TRANSACTIONAL = frozenset({"INNODB", "ROCKSDB", "TOKUDB", "NDBCLUSTER", "NDB", "PARTITION"})


def _signal_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    if facts.signal is None:
        return
    id_, columns = facts.signal
    name = quote_name(id_.schema, id_.table)
    rights = [right for right in ("SELECT", "INSERT", *(("DELETE",) if wanted.deletes_windows else ())) if not facts.grants.has(right, id_)]
    create = f"CREATE TABLE {name} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048) NULL);"
    statements = [] if columns == 3 else [*([f"DROP TABLE {name};"] if columns else []), create]
    if rights and not wanted.read_only:
        statements.append(f"GRANT {', '.join(rights)} ON {name} TO {facts.user};")
    if not statements:
        return
    if columns == 3:
        what = f"may not be written to by {facts.user}"
    else:
        what = f"has {columns} columns, and must have three: id, type, data" if columns else "is not there, or not seen by the user"
    yield Finding(
        "mysql.signal",
        f"The table of signals '{id_}' (signal.data.collection) {what}.",
        "Signals do not arrive, or incremental snapshots fail.",
        Person.DBA,
        _ADMIN,
        tuple(statements),
    )


# -- the topic of the schema history ----------------------------------------------------------------------------------------------


def history_findings(history: HistoryFacts, prefix: str) -> Iterator[Finding]:
    """Check that the topic keeps every structure of the connector with this `topic.prefix`, in one order."""
    name = history.topic
    if history.error:
        yield Finding(
            "mysql.history.connection",
            f"The topic of the schema history cannot be looked at: {history.error}",
            "Without it the connector does not start.",
            Person.YOU,
            advice="Correct schema.history.internal.kafka.bootstrap.servers, and schema.history.internal.producer.* and consumer.* with "
            "its security settings.",
        )
        return
    if history.login is not None:
        yield from topic_findings(
            history.login, {name: TopicNeed((READ, WRITE), "Without its schema history the connector does not start.", creates=True)}
        )
    if history.partitions is None:
        return
    if history.partitions != 1:
        yield Finding(
            "mysql.history.partitions",
            f"The topic '{name}' has {history.partitions} partitions and must have one.",
            "Structures would be read in another order than they were written in.",
            Person.YOU,
            advice="Set schema.history.internal.kafka.topic to a new name, and snapshot.mode=recovery for one start.",
        )
    if history.owner and history.owner != prefix:
        yield Finding(
            "mysql.history.owner",
            f"The topic '{name}' has the schema history of another connector (topic.prefix={history.owner}).",
            "The connector passes over such records. If it has none of its own there, it knows no table and does not start.",
            Person.YOU,
            advice="Set schema.history.internal.kafka.topic to a new name. If the connector has stored offsets, set snapshot.mode=recovery "
            "for one start. If you have changed topic.prefix, its old name gives you the old history back.",
            severity="risk",
        )
    wanted = []
    if "compact" in history.settings.get("cleanup.policy", ""):
        wanted.append("cleanup.policy=delete")
    if history.settings.get("retention.ms", "-1") not in _FOREVER:
        wanted.append("retention.ms=-1")
    if history.settings.get("retention.bytes", "-1") != "-1":
        wanted.append("retention.bytes=-1")
    if wanted:
        yield Finding(
            "mysql.history.retention",
            f"The topic '{name}' does not keep its records for ever ({', '.join(each.partition('=')[0] for each in wanted)}).",
            "When the first structures are gone the connector no longer starts.",
            Person.KAFKA_ADMIN,
            statements=(
                f"kafka-configs.sh --bootstrap-server {history.servers} --alter --entity-type topics --entity-name {name} --add-config "
                f"{','.join(wanted)}",
            ),
        )


# -- how the server is reached ----------------------------------------------------------------------------------------------------


def connection_finding(error: ServerError, at: str, user: str) -> Finding:
    """Return the finding of a connection that could not be opened.

    Args:
        at: host and port.
    """
    finding = Finding(
        "mysql.connection",
        f"Cannot log in to the server at {at}: {error.reason}{f' (error {error.code})' if error.code else ''}.",
        "Nothing else of the server could be looked at.",
        Person.YOU,
        advice="Check database.hostname, database.port and database.ssl.*, and that no firewall is between the two.",
    )
    if error.code == 1045:
        return replace(
            finding,
            advice="Check database.user and database.password; the account may also be for other hosts than this one: "
            "SELECT user, host FROM mysql.user.",
        )
    if error.code == 1130:
        return replace(finding, who=Person.DBA, role=_ADMIN, advice=f"Create an account for this host: CREATE USER '{user}'@'%' …")
    if error.code in (1040, 1203, 1226):
        return replace(finding, who=Person.DBA, advice="Raise max_connections, or the user's own limit (MAX_USER_CONNECTIONS).")
    return finding


def all_findings(facts: Facts, wanted: Wanted) -> list[Finding]:
    """Return all that is wrong, in the order in which it is to be mended."""
    history = history_findings(facts.history, wanted.prefix) if facts.history is not None else ()
    return [*log_findings(facts, wanted), *grant_findings(facts, wanted), *table_findings(facts, wanted), *history]


def _listed(tables: Sequence[TableId]) -> str:
    if len(tables) == 1:
        return f"the table '{tables[0]}'"
    more = f" and {len(tables) - _SHOWN} more" if len(tables) > _SHOWN else ""
    return f"{len(tables)} tables ({', '.join(map(str, tables[:_SHOWN]))}{more})"
