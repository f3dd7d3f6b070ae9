"""Checks of the server, of the slot, and of how the server is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from connect_py.api.doctor import Finding, Person
from connectors.postgres.checks.facts import Facts, Wanted
from connectors.postgres.errors import ADVICE, ServerError
from connectors.postgres.position.offset import format_lsn
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import quote_literal, quote_name

#: The check of a slot that is not ready yet, for which a start waits.
SLOT_IN_CREATION = "postgres.slot.in_creation"
#: A slot that may keep less is lost within minutes of a busy server's work: two of its largest default checkpoints (max_wal_size).
SMALLEST_KEEP_BYTES = 2 << 30
#: A standby decodes since then.
_STANDBY_VERSION = 160000

_SUPERUSER = "a superuser"
_NEW_SNAPSHOT = "Then have a new snapshot taken: set snapshot.mode=when_needed, or delete the connector's offsets."

#: What a hosted server wants in place of a superuser's statement, by `ServerState.provider`.
_WAL_LEVEL: Final[Mapping[str, str]] = {
    "rds": "Set rds.logical_replication = 1 in the parameter group of the instance or cluster, and reboot it.",
    "azure": "Set the server parameter wal_level to logical, and restart the server.",
    "cloudsql": "Set the flag cloudsql.logical_decoding = on, and restart the instance.",
    "neon": "Enable logical replication in the settings of the project.",
}


# -- the server -------------------------------------------------------------------------------------------------------------------


def server_findings(state: ServerState, user: str) -> Iterator[Finding]:
    """Check what streaming needs of every server; a start does, too."""
    if state.wal_level != "logical":
        hosted = _WAL_LEVEL.get(state.provider)
        yield Finding(
            "postgres.wal_level",
            f"Postgres server wal_level property must be 'logical' but is: '{state.wal_level}'.",
            "The server can make changes of rows from its log only at this level.",
            Person.DBA,
            "" if hosted else _SUPERUSER,
            () if hosted else ("ALTER SYSTEM SET wal_level = 'logical';",),
            hosted or "Then restart the server.",
        )
    if not state.may_replicate:
        role = quote_name(user)
        is_rds = state.provider == "rds"
        yield Finding(
            "postgres.replication",
            f"The user '{user}' has not the privilege REPLICATION, which a replication slot needs.",
            "Without it no change is read.",
            Person.DBA,
            "a member of rds_superuser" if is_rds else "the administrator" if state.provider else _SUPERUSER,
            (f"GRANT rds_replication TO {role};" if is_rds else f"ALTER ROLE {role} WITH REPLICATION;",),
        )
    if state.is_standby and state.version < _STANDBY_VERSION:
        yield Finding(
            "postgres.standby",
            f"The server is a standby of version {state.version // 10000}, and a standby decodes its log only since version 16.",
            "No slot can be created there.",
            Person.YOU,
            advice="Set database.hostname and database.port to the primary.",
        )


def capacity_findings(facts: Facts, wanted: Wanted, *, is_running: bool) -> Iterator[Finding]:
    """Check that there is room for the slot and for the connection that reads it, and that the server keeps what is not read yet."""
    used, limit = facts.slots
    if facts.state.slot is None and used >= limit:
        idle = [f"SELECT pg_drop_replication_slot({quote_literal(name)});" for name in facts.idle_slots[:3]]
        unneeded = f" Or drop a slot that nobody needs, which takes no restart: {' '.join(idle)}" if idle else ""
        yield Finding(
            "postgres.max_replication_slots",
            f"No replication slot is free: {used} of {limit} exist (max_replication_slots).",
            f"The slot '{wanted.slot}' cannot be created.",
            Person.DBA,
            _SUPERUSER,
            (f"ALTER SYSTEM SET max_replication_slots = {used + 10};",),
            f"Then restart the server.{unneeded}",
        )
    used, limit = facts.senders
    if not is_running and used >= limit:
        yield Finding(
            "postgres.max_wal_senders",
            f"No WAL sender is free: {used} of {limit} run (max_wal_senders).",
            "The connector cannot open the connection on which changes come.",
            Person.DBA,
            _SUPERUSER,
            (f"ALTER SYSTEM SET max_wal_senders = {used + 10};",),
            "Then restart the server.",
        )
    if 0 <= facts.slot_keep_bytes < SMALLEST_KEEP_BYTES:
        yield Finding(
            "postgres.max_slot_wal_keep_size",
            f"A slot may keep {_size(facts.slot_keep_bytes)} of the log (max_slot_wal_keep_size).",
            "A connector that stops while more than that is written loses its slot, and needs a new snapshot.",
            Person.DBA,
            _SUPERUSER,
            ("ALTER SYSTEM SET max_slot_wal_keep_size = '20GB';", "SELECT pg_reload_conf();"),
            "Choose what your disk has room for.",
            severity="risk",
        )
    if facts.idle_slot_seconds > 0:
        yield Finding(
            "postgres.idle_replication_slot_timeout",
            f"The server invalidates a slot that nobody reads for {facts.idle_slot_seconds} s (idle_replication_slot_timeout).",
            "A connector that is stopped for longer loses its slot, and needs a new snapshot.",
            Person.DBA,
            _SUPERUSER,
            ("ALTER SYSTEM SET idle_replication_slot_timeout = 0;", "SELECT pg_reload_conf();"),
            severity="risk",
        )
    if not facts.state.wal_sender_timeout_ms:
        yield Finding(
            "postgres.wal_sender_timeout",
            "The server never gives up a reader that has become silent (wal_sender_timeout=0).",
            "When the worker's machine is lost, the slot stays in use for hours, and a start elsewhere has to wait for it.",
            Person.DBA,
            _SUPERUSER,
            ("ALTER SYSTEM SET wal_sender_timeout = '60s';", "SELECT pg_reload_conf();"),
            severity="risk",
        )
    if facts.state.is_standby and not facts.hot_standby_feedback:
        yield Finding(
            "postgres.hot_standby_feedback",
            "The server is a standby whose primary does not know what the slot still needs (hot_standby_feedback=off).",
            "When the primary removes rows of its catalog, the slot is invalidated, and a new snapshot is needed.",
            Person.DBA,
            f"{_SUPERUSER} on the standby",
            ("ALTER SYSTEM SET hot_standby_feedback = on;", "SELECT pg_reload_conf();"),
            severity="risk",
        )


def _size(count: int) -> str:
    return f"{count >> 30} GB" if count >= 1 << 30 else f"{count >> 20} MB"


# -- the slot ---------------------------------------------------------------------------------------------------------------------


def slot_findings(state: ServerState, name: str, database: str) -> Iterator[Finding]:
    """Check that a slot of that name is ours and still has its log; a start does, too."""
    slot = state.slot
    if slot is None:
        return
    drop = f"SELECT pg_drop_replication_slot({quote_literal(name)});"
    if slot.plugin != "pgoutput" or slot.database != database:
        yield Finding(
            "postgres.slot.other",
            f"The replication slot '{name}' exists for the plug-in '{slot.plugin}' and the database '{slot.database}', not for 'pgoutput' "
            f"and '{database}'. It was left as it is.",
            "The connector cannot read it, and must not take it from another program.",
            Person.YOU,
            advice=f"Set another slot.name, or have it dropped if nobody needs it: {drop}",
        )
    elif slot.lost:
        yield Finding(
            "postgres.slot.lost",
            f"The replication slot '{name}' was invalidated by the server (max_slot_wal_keep_size): the changes since "
            f"{format_lsn(slot.confirmed_lsn or slot.restart_lsn or 0)} are gone.",
            "No start can continue from it.",
            Person.DBA,
            "a user with REPLICATION",
            (drop,),
            _NEW_SNAPSHOT,
        )
    elif slot.confirmed_lsn is None:
        yield Finding(
            SLOT_IN_CREATION,
            f"The replication slot '{name}' is still being created, by a session that waits for running transactions to end.",
            "Nothing can be read before they have ended.",
            Person.DBA,
            "a superuser or a member of pg_signal_backend",
            (f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = {quote_literal(name)};",),
        )


def slot_use_findings(facts: Facts, wanted: Wanted, *, is_running: bool) -> Iterator[Finding]:
    """Check that nobody else reads the slot and that its log does not run out."""
    slot, ours = facts.slot, facts.state.slot
    if slot is None or ours is None or ours.lost or ours.confirmed_lsn is None or ours.database != wanted.database:
        return
    if slot.user is not None and not is_running:
        yield Finding(
            "postgres.slot.active",
            f"The replication slot '{wanted.slot}' is read by another session: {slot.user}.",
            "Only one can read it: a second connector waits, and then fails.",
            Person.YOU,
            advice="If this connector runs elsewhere, stop it there. If another one has this slot, set another slot.name.",
            severity="risk",
        )
    if slot.wal_status == "unreserved":
        yield Finding(
            "postgres.slot.wal_status",
            f"The slot '{wanted.slot}' keeps {_size(slot.retained_bytes)} of the log, more than max_slot_wal_keep_size allows.",
            "The next checkpoint may remove what is not read yet, and then a new snapshot is needed.",
            Person.DBA,
            _SUPERUSER,
            ("ALTER SYSTEM SET max_slot_wal_keep_size = -1;", "SELECT pg_reload_conf();"),
            "Set the limit again when the connector has caught up.",
        )


def waiting_findings(facts: Facts, described: str, seconds: float) -> Iterator[Finding]:
    """Check whether a slot's creation would wait for transactions that have run for long. A user without pg_read_all_stats does not see
    for how long those of others have.

    Args:
        described: sentences about them and how to end the oldest.
    """
    ages = [int(row[4]) for row in facts.running if row[4] is not None]
    if facts.state.slot is None and ages and max(ages) >= seconds:
        yield Finding(
            "postgres.long_transactions",
            f"A transaction has been open for {max(ages)} s. {described}",
            "The slot can be created only when it has ended; the connector waits until then.",
            Person.DBA,
            severity="risk",
        )


# -- how the server is reached ----------------------------------------------------------------------------------------------------


def connection_finding(what: str, error: ServerError, wanted: Wanted, *, replication: bool = False) -> Finding:
    """Return the finding of a connection that could not be opened.

    Args:
        what: what was tried, as the beginning of a sentence.
        replication: whether it was one that reads changes.
    """
    text = f"{what}: {error.message} (SQLSTATE {error.sqlstate})."
    role = quote_name(wanted.user)
    finding = Finding(
        "postgres.connection.replication" if replication else "postgres.connection",
        text,
        "No change is read." if replication else "Nothing else of the database could be looked at.",
        Person.YOU,
        advice=next((advice for prefix, advice in ADVICE if error.sqlstate.startswith(prefix)), "").format(
            user=wanted.user, database=wanted.database
        ),
    )
    message = error.message
    if "unsupported startup parameter" in message or "unsupported replication" in message:
        return replace(
            finding,
            check="postgres.connection.proxy",
            what=f"{text} A proxy such as PgBouncer answers there.",
            why="Proxies carry no replication connections.",
            advice="Set database.hostname and database.port to the server itself.",
        )
    if "permission denied for database" in message:
        grant = f"GRANT CONNECT ON DATABASE {quote_name(wanted.database)} TO {role};"
        return replace(finding, who=Person.DBA, role=f"the owner of the database or {_SUPERUSER}", statements=(grant,), advice="")
    if "is not permitted to log in" in message:
        return replace(finding, who=Person.DBA, role=_SUPERUSER, statements=(f"ALTER ROLE {role} LOGIN;",), advice="")
    if "too many connections for role" in message:
        return replace(finding, who=Person.DBA, role=_SUPERUSER, statements=(f"ALTER ROLE {role} CONNECTION LIMIT -1;",), advice="")
    if "pg_hba.conf" in message:
        line = f"host  {wanted.database}  {wanted.user}  <address of the worker>/32  scram-sha-256"
        return replace(finding, who=Person.DBA, advice=f"Add a line to pg_hba.conf: {line}; then run SELECT pg_reload_conf();")
    if not finding.advice:
        return replace(finding, advice="Check database.hostname, database.port and database.ssl*, and that no firewall is between the two.")
    return finding


def replication_connection_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check that a replication connection was opened, where nothing else explains that it was not."""
    if facts.replication_error is not None and facts.state.may_replicate and facts.senders[0] < facts.senders[1]:
        yield connection_finding("A replication connection cannot be opened", facts.replication_error, wanted, replication=True)
