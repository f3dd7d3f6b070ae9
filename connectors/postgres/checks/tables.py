"""Checks of the captured tables, of the table of signals, and of the publication."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from connect_py.api.doctor import Finding, Person
from connectors.engine.relational.tables import TableId
from connectors.postgres.checks.facts import Facts, PublicationFacts, TableFacts, Wanted
from connectors.postgres.server.connection import quote_name

#: Operations as publications call them.
OPERATIONS: Final[Mapping[str, str]] = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}
#: Tables that a sentence names.
_SHOWN = 20

_SUPERUSER, _OWNER = "a superuser", "the owner of the tables"


# -- tables -----------------------------------------------------------------------------------------------------------------------


def no_table(database: str) -> Finding:
    """Return the finding that the filters choose nothing."""
    return Finding(
        "postgres.tables.none",
        f"No table of the database '{database}' matches the filters (schema.*.list, table.*.list): nothing is captured until one does. "
        "Names are matched whole, as schema.table.",
        "The connector runs and sends nothing.",
        Person.YOU,
        advice="Correct the lists, or create the table.",
    )


def unreadable(tables: Sequence[TableId], user: str) -> Iterator[Finding]:
    """Return one finding for all tables that the user may not read; a start does, too.

    Args:
        tables: those that are captured and not readable.
    """
    if not tables:
        return
    role = quote_name(user)
    statements = []
    for schema in dict.fromkeys(table.schema for table in tables):
        statements += [
            f"GRANT USAGE ON SCHEMA {quote_name(schema)} TO {role};",
            f"GRANT SELECT ON {names_sql([table for table in tables if table.schema == schema])} TO {role};",
        ]
    yield Finding(
        "postgres.tables.select",
        f"The user '{user}' may not read {_listed(tables)} (SQLSTATE 42501).",
        "A snapshot reads them.",
        Person.DBA,
        f"{_OWNER} or a superuser",
        tuple(statements),
    )


def table_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check what the captured tables need so that snapshots are whole, and that changes can be made and are understood."""
    captured = [table for table in facts.tables if table.id in facts.captured]
    if wanted.reads:
        yield from unreadable([table.id for table in captured if not table.readable], wanted.user)
        hidden = [table.id for table in captured if table.row_security and table.readable]
        if hidden:
            yield Finding(
                "postgres.tables.row_security",
                f"Row security may hide rows of {_listed(hidden)} from the user '{wanted.user}'.",
                "A snapshot lacks these rows without a word; changes of them come all the same.",
                Person.DBA,
                _SUPERUSER,
                (f"ALTER ROLE {quote_name(wanted.user)} BYPASSRLS;",),
            )
    if not wanted.streams:
        return
    unlogged = [table.id for table in captured if table.is_unlogged]
    if unlogged:
        yield Finding(
            "postgres.tables.unlogged",
            f"Changes of {_listed(unlogged)} are not written to the log: the tables are UNLOGGED.",
            "No change of them is ever read.",
            Person.DBA,
            _OWNER,
            (*(f"ALTER TABLE {names_sql([table])} SET LOGGED;" for table in unlogged), *_published(facts, wanted, unlogged)),
        )
    rows = [table for table in facts.tables if not table.is_partitioned and (table.id in facts.captured or table.root in facts.captured)]
    rows = [table for table in rows if not table.is_unlogged]
    if wanted.operations & {"u", "d"}:
        yield from _identity_findings([table for table in rows if table.identity == "n" or (table.identity == "d" and not table.has_key)])
    partial = [table.id for table in rows if table.large_values and table.identity != "f"]
    if partial and not wanted.reselects and "u" in wanted.operations:
        yield Finding(
            "postgres.tables.large_values",
            f"{_listed(partial)} {'has' if len(partial) == 1 else 'have'} large values, which the log holds only when they change.",
            "An UPDATE that leaves it alone shows unavailable.value.placeholder in its place.",
            Person.DBA,
            _OWNER,
            tuple(f"ALTER TABLE {names_sql([table])} REPLICA IDENTITY FULL;" for table in partial),
            "Or have the connector read the value again: post.processors with ReselectColumnsPostProcessor.",
            severity="risk",
        )
    yield from _partition_findings(facts, wanted)


def _identity_findings(tables: Sequence[TableFacts]) -> Iterator[Finding]:
    if tables:
        ids = [table.id for table in tables]
        yield Finding(
            "postgres.tables.replica_identity",
            f"The log would not say which row of {_listed(ids)} was changed: without a primary key, or with REPLICA IDENTITY NOTHING.",
            "While a publication has such a table the server refuses every UPDATE and DELETE of it, to your applications, too.",
            Person.DBA,
            _OWNER,
            tuple(f"ALTER TABLE {names_sql([table])} REPLICA IDENTITY FULL;" for table in ids),
            "A primary key is better where the table can have one.",
        )


def _partition_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """A change of a partitioned table has the name of the partition, or of the root where the publication says so."""
    via_root = wanted.via_root if facts.publication is None else facts.publication.via_root
    leaves = [table for table in facts.tables if table.root is not None and not table.is_partitioned]
    if not via_root:
        lost = sorted({table.root for table in leaves if table.root in facts.captured and table.id not in facts.captured} - {None}, key=str)
        roots = [root for root in lost if root is not None]
        if not roots:
            return
        exists = facts.publication is not None
        yield Finding(
            "postgres.tables.partitions",
            f"{_listed(roots)} {'is' if len(roots) == 1 else 'are'} captured, but not all partitions, under whose names changes come.",
            "Changes of rows in the other partitions are lost.",
            Person.DBA if exists else Person.YOU,
            "the owner of the publication" if exists else "",
            (f"ALTER PUBLICATION {quote_name(wanted.publication)} SET (publish_via_partition_root = true);",) if exists else (),
            "Or capture the partitions: add their names to table.include.list."
            if exists
            else "Set publish.via.partition.root=true, or add the partitions to table.include.list.",
        )
        return
    rootless = sorted({str(table.root) for table in leaves if table.id in facts.captured and table.root not in facts.captured})
    if rootless:
        yield Finding(
            "postgres.tables.partition_root",
            f"Changes come under the name of the partitioned table (publish_via_partition_root): {', '.join(rootless)} is not captured.",
            "Changes of its captured partitions are lost.",
            Person.YOU,
            advice=f"Add {', '.join(rootless)} to table.include.list.",
        )


def signal_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check the table of signals: its columns, and the right to write watermarks."""
    signal = facts.signal
    if signal is None:
        return
    name, role = names_sql([signal.id]), quote_name(wanted.user)
    rights = "SELECT, INSERT, DELETE" if wanted.deletes_windows else "SELECT, INSERT"
    create = f"CREATE TABLE {name} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048) NULL);"
    grants = (f"GRANT USAGE ON SCHEMA {quote_name(signal.id.schema)} TO {role};", f"GRANT {rights} ON {name} TO {role};")
    why = "Signals do not arrive, or incremental snapshots fail."
    if signal.columns is None:
        yield Finding(
            "postgres.signal.missing",
            f"The table of signals '{signal.id}' (signal.data.collection) does not exist.",
            why,
            Person.DBA,
            "a user who may create tables there",
            (create, *grants, *_published(facts, wanted, [signal.id])),
        )
    elif signal.columns != 3:
        yield Finding(
            "postgres.signal.columns",
            f"The table of signals '{signal.id}' has {signal.columns} columns; it must have three: id, type, data.",
            why,
            Person.DBA,
            _OWNER,
            (f"DROP TABLE {name};", create, *grants, *_published(facts, wanted, [signal.id])),
            "Save its rows first if somebody needs them.",
        )
    elif not signal.may_insert or (wanted.deletes_windows and not signal.may_delete):
        yield Finding(
            "postgres.signal.rights",
            f"The user '{wanted.user}' may not write to the table of signals '{signal.id}'.",
            "An incremental snapshot writes its watermarks there, and fails.",
            Person.DBA,
            _OWNER,
            grants,
        )


# -- the publication --------------------------------------------------------------------------------------------------------------


def create_sql(name: str, tables: Sequence[TableId], options: str = "") -> str:
    """Return CREATE PUBLICATION for tables."""
    return f"CREATE PUBLICATION {quote_name(name)} FOR TABLE {names_sql(tables) or '<tables>'}{options};"


def autocreate_disabled(name: str, tables: Sequence[TableId], options: str = "") -> Finding:
    """Return the finding that a publication is missing and nobody may make it; a start's, too."""
    return Finding(
        "postgres.publication.missing",
        "Publication autocreation is disabled, please create one and restart the connector.",
        "Without a publication the server sends no changes.",
        Person.DBA,
        f"{_OWNER}, with CREATE on the database",
        (create_sql(name, tables, options),),
    )


def publication_for_all_tables(name: str, database: str) -> Finding:
    """Return the finding that a filtered publication cannot be made of one for all tables; a start's, too."""
    return Finding(
        "postgres.publication.all_tables",
        f"A logical publication for all tables named '{name}' for plugin 'pgoutput' and database '{database}' is already active "
        "on the server and can not be altered. If you need to exclude some tables or include only specific subset, please "
        "recreate the publication with necessary configuration.",
        "publication.autocreate.mode=filtered cannot give it the captured tables.",
        Person.YOU,
        advice="Otherwise, set publication.autocreate.mode=all_tables, or another publication.name.",
    )


def publication_denied(name: str, user: str, database: str, statement: str, reason: str = "") -> Finding:
    """Return the finding that the user may not create or alter the publication; a start's, too.

    Args:
        statement: what is to be run, with a semicolon.
        reason: the server's, where it was asked.
    """
    return Finding(
        "postgres.publication.denied",
        f"The user '{user}' may not create or alter the publication '{name}'{f': {reason} (SQLSTATE 42501)' if reason else ''}.",
        "Without a publication of the captured tables the server does not send their changes.",
        Person.DBA,
        _SUPERUSER,
        (statement,),
        "With publication.autocreate.mode=disabled the connector leaves it to you for good. With filtered it makes it itself; then the "
        f"user needs GRANT CREATE ON DATABASE {quote_name(database)} TO {quote_name(user)}; and ownership of the tables.",
    )


def publication_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check that the publication is there or can be made, and that it publishes what is captured."""
    found, name, mode = facts.publication, wanted.publication, wanted.publication_mode
    captured = [table for table in facts.tables if table.id in facts.captured]
    ids = [table.id for table in captured if not table.is_unlogged]
    owns = facts.is_superuser or (facts.may_create and all(table.owned for table in captured))
    if found is None:
        if mode == "disabled":
            yield autocreate_disabled(name, ids, wanted.options)
        elif (mode == "filtered" and not owns and ids) or (mode == "no_tables" and not (facts.is_superuser or facts.may_create)):
            yield publication_denied(name, wanted.user, wanted.database, create_sql(name, ids, wanted.options))
        elif mode == "all_tables" and not facts.is_superuser:
            statement = f"CREATE PUBLICATION {quote_name(name)} FOR ALL TABLES{wanted.options};"
            yield publication_denied(name, wanted.user, wanted.database, statement)
        return
    missing = _unpublished(facts, found)
    if mode == "filtered" and found.all_tables:
        yield publication_for_all_tables(name, wanted.database)
    elif mode == "filtered" and found.tables != frozenset(ids) and missing and not (owns and found.owned):
        statement = f"ALTER PUBLICATION {quote_name(name)} SET TABLE {names_sql(ids)};"
        yield publication_denied(name, wanted.user, wanted.database, statement)
    elif mode != "filtered" and missing:
        yield Finding(
            "postgres.publication.tables",
            f"The publication '{name}' lacks {_listed(missing)}.",
            "The server does not send changes of these tables: they are lost without a word.",
            Person.DBA,
            "the owner of the publication and of the tables",
            (f"ALTER PUBLICATION {quote_name(name)} ADD TABLE {names_sql(missing)};",),
        )
    yield from operation_findings(name, found.operations, wanted.operations)


def operation_findings(name: str, published: Collection[str], wanted: Collection[str], what: str = "") -> Iterator[Finding]:
    """Check that the operations that become records are published; a start does for those that signals need.

    Args:
        published, wanted: operations: c, u, d, t.
        what: of which table, as `` of the signal table``.
    """
    missing = [word for operation, word in OPERATIONS.items() if operation in wanted and operation not in published]
    if missing:
        yield Finding(
            "postgres.publication.operations",
            f"The publication '{name}' does not publish {' and '.join(missing)}{what}.",
            "Signals do not arrive, or incremental snapshots wait for ever." if what else "These changes are lost without a word.",
            Person.DBA,
            "the owner of the publication",
            (f"ALTER PUBLICATION {quote_name(name)} SET (publish = 'insert, update, delete, truncate');",),
        )


def _published(facts: Facts, wanted: Wanted, tables: Sequence[TableId]) -> tuple[str, ...]:
    """Return the statement by which tables become part of the publication, where nothing else adds them to it."""
    publication = facts.publication
    if publication is None or publication.all_tables or wanted.publication_mode == "filtered":
        return ()
    return (f"ALTER PUBLICATION {quote_name(wanted.publication)} ADD TABLE {names_sql(tables)};",)


def _unpublished(facts: Facts, publication: PublicationFacts) -> list[TableId]:
    """Return captured tables that the publication lacks; a partition comes with its root, and a root with its partitions."""
    if publication.all_tables:
        return []
    with_roots = publication.tables | {table.root for table in facts.tables if table.id in publication.tables and table.root}
    return [
        table.id
        for table in facts.tables
        if table.id in facts.captured and not table.is_unlogged and table.id not in with_roots and table.root not in publication.tables
    ]


def names_sql(tables: Sequence[TableId]) -> str:
    """Return quoted names, joined by commas."""
    return ", ".join(f"{quote_name(table.schema)}.{quote_name(table.table)}" for table in tables)


def _listed(tables: Sequence[TableId]) -> str:
    """Return the tables for a sentence: ``the table 'a.b'``, or ``3 tables: a.b, …``."""
    if len(tables) == 1:
        return f"the table '{tables[0]}'"
    more = f" and {len(tables) - _SHOWN} more" if len(tables) > _SHOWN else ""
    return f"{len(tables)} tables ({', '.join(map(str, tables[:_SHOWN]))}{more})"
