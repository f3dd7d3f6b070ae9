"""The branches of Iceberg tables: a batch waits on one of its own until it is published.

There are two ways. `StatementBranches` needs only SQL, as over Spark Connect. Each of its steps is a statement that is parsed and planned
and a version of the table's metadata, and a look at a head is a job of Spark's. `DirectBranches` asks Iceberg's Java interface, in the JVM
of this process: a publication is one version, which moves the head, stores the properties and ends the waiting branch. For a small batch
that is a third of its time.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from spark_sink.routing import TableName
from spark_sink.spark.local import activate, has_java, java_class
from spark_sink.tables.base import properties_sql
from spark_sink.types.columns import literal, quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

#: How often a publication is tried that others' changes of the table's metadata, but not of its head, have come in between.
_ATTEMPTS = 5

#: Of Iceberg: the metadata has changed since it was loaded, in a way that matters.
_CHANGED = "org.apache.iceberg.exceptions.CommitFailedException", "org.apache.iceberg.exceptions.ValidationException"

_LOAD = "org.apache.iceberg.spark.Spark3Util"


class Refused(Exception):
    """A branch is not what a commit is for. Nothing of the commit is there."""


def is_refused(error: BaseException) -> bool:
    """Return whether an error says that nothing of a commit is there, because of another one."""
    return isinstance(error, Refused) or any(name in str(error) for name in _CHANGED)


class Branches(Protocol):
    """What a batch does with the branches of a table. Heads are ids of snapshots."""

    def head(self, name: TableName, branch: str) -> int | None:
        """Return the head of a branch; None while there is no such branch."""
        ...

    def names(self, name: TableName) -> Sequence[str]:
        """Return the table's branches and tags."""
        ...

    def create(self, name: TableName, branch: str, head: int | None) -> None:
        """Make a branch.

        Args:
            head: None for whatever the table holds by now, which may be nothing.
        """
        ...

    def publish(self, name: TableName, target: str, branch: str, properties: Callable[[int], Mapping[str, str]]) -> int:
        """Make the rows of a branch those of another, its target, and return the head. Raise if that one has moved meanwhile.

        Args:
            properties: returns, for the head, the properties that are stored with it, or by `finish`.
        """
        ...

    def finish(self, name: TableName, branch: str, properties: Mapping[str, str]) -> None:
        """Do what is left to do for a branch that has been published: it is not needed any more."""
        ...

    def drop(self, name: TableName, branch: str) -> None:
        """Remove a branch if it is there."""
        ...


def open_branches(spark: SparkSession, catalog: str) -> Branches:
    """Return the way that a session has."""
    return DirectBranches(spark, catalog) if has_java(spark) else StatementBranches(spark, catalog)


def load_table(spark: Any, catalog: str, name: TableName) -> Any:
    """Return Iceberg's own `Table`, of a session that `has_java`."""
    activate(spark)  # it names catalogs
    return java_class(spark, _LOAD).loadIcebergTable(spark._jsparkSession, quoted(catalog, name))


def quoted(catalog: str, name: TableName) -> str:
    """Return a table's name for a statement."""
    return ".".join(quote(part) for part in (catalog, *name.parts))


def procedure_sql(catalog: str, name: TableName, procedure: str, *arguments: str) -> str:
    """Return the call of a procedure of Iceberg's for a table; further arguments as ``name => value``."""
    table = f"table => {literal('.'.join(quote(part) for part in name.parts))}"
    return f"CALL {quote(catalog)}.system.{procedure}({', '.join((table, *arguments))})"


class StatementBranches:
    """`Branches` by statements."""

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        self._spark = spark
        self._catalog = catalog

    def head(self, name: TableName, branch: str) -> int | None:
        return self._heads(name).get(branch)

    def names(self, name: TableName) -> Sequence[str]:
        return list(self._heads(name))

    def _heads(self, name: TableName) -> dict[str, int]:
        rows = self._spark.sql(f"SELECT name, snapshot_id FROM {quoted(self._catalog, name)}.refs").collect()
        return {row["name"]: row["snapshot_id"] for row in rows}

    def create(self, name: TableName, branch: str, head: int | None) -> None:
        version = "" if head is None else f" AS OF VERSION {head}"
        self._spark.sql(f"ALTER TABLE {quoted(self._catalog, name)} CREATE BRANCH {quote(branch)}{version}")

    def publish(self, name: TableName, target: str, branch: str, properties: Callable[[int], Mapping[str, str]]) -> int:
        call = procedure_sql(self._catalog, name, "fast_forward", f"branch => {literal(target)}", f"to => {literal(branch)}")
        try:
            return int(self._spark.sql(call).collect()[0]["updated_ref"])
        except Exception as error:
            with contextlib.suppress(Exception):  # what failed is the error to show
                heads = self._heads(name)
                if (head := heads.get(branch)) is not None and head == heads.get(target):
                    _answer_lost(name, error)
                    return head
            raise

    def finish(self, name: TableName, branch: str, properties: Mapping[str, str]) -> None:
        self._spark.sql(f"ALTER TABLE {quoted(self._catalog, name)} SET TBLPROPERTIES {properties_sql(properties)}")
        self.drop(name, branch)

    def drop(self, name: TableName, branch: str) -> None:
        self._spark.sql(f"ALTER TABLE {quoted(self._catalog, name)} DROP BRANCH IF EXISTS {quote(branch)}")


class DirectBranches:
    """`Branches` by Iceberg's Java interface (`org.apache.iceberg.Table`)."""

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        self._session: Any = spark
        self._catalog = catalog

    def head(self, name: TableName, branch: str) -> int | None:
        ref = self._load(name).refs().get(branch)
        return None if ref is None else int(ref.snapshotId())

    def names(self, name: TableName) -> Sequence[str]:
        return list(self._load(name).refs().keySet())

    def create(self, name: TableName, branch: str, head: int | None) -> None:
        snapshots = self._load(name).manageSnapshots()
        (snapshots.createBranch(branch) if head is None else snapshots.createBranch(branch, head)).commit()

    def publish(self, name: TableName, target: str, branch: str, properties: Callable[[int], Mapping[str, str]]) -> int:
        return self._published(name, target, branch, lambda _: None, properties)

    def commit(
        self,
        name: TableName,
        target: str,
        head: int | None,
        branch: str,
        add: Callable[[Any], None],
        properties: Callable[[int], Mapping[str, str]],
        table: Any = None,
    ) -> int:
        """Make files the next snapshot of a branch, in one version of the table's metadata, and return it.

        Args:
            target: the branch.
            head: the snapshot that must still be its head; None for a table that has none.
            branch: a name for the time within that version.
            add: gives the files to a `RowDelta` of Iceberg's.
            properties: as of `publish`.
            table: as it was loaded; a transaction looks for its newest state by itself.

        Raises:
            Refused: the branch has another head.
        """

        def prepare(transaction: Any) -> None:
            ref = transaction.table().refs().get(target)
            if (None if ref is None else int(ref.snapshotId())) != head:
                raise Refused(f"Branch {target} of table {name} has another head.")
            if head is not None:
                transaction.manageSnapshots().createBranch(branch, head).commit()
            row_delta = transaction.newRowDelta().toBranch(branch)
            add(row_delta)
            row_delta.commit()

        return self._published(name, target, branch, prepare, properties, table)

    def _published(
        self,
        name: TableName,
        target: str,
        branch: str,
        prepare: Callable[[Any], None],
        properties: Callable[[int], Mapping[str, str]],
        table: Any = None,
    ) -> int:
        # A transaction is of the metadata that it began with: others' changes make it fail, also those that would not matter.
        for left in reversed(range(_ATTEMPTS)):
            transaction = (self._load(name) if table is None else table).newTransaction()
            table = None
            prepare(transaction)
            head = int(transaction.table().refs().get(branch).snapshotId())
            transaction.manageSnapshots().fastForwardBranch(target, branch).removeBranch(branch).commit()
            update = transaction.updateProperties()
            for key, value in properties(head).items():
                update.set(key, value)
            update.commit()
            try:
                transaction.commitTransaction()
                return head
            except Exception as error:
                with contextlib.suppress(Exception):  # what failed is the error to show
                    if self.head(name, target) == head:
                        _answer_lost(name, error)
                        return head
                if not left or not is_refused(error):
                    raise
        raise AssertionError("The last attempt returns or raises.")

    def finish(self, name: TableName, branch: str, properties: Mapping[str, str]) -> None:
        """Do nothing: `publish` has done it."""

    def drop(self, name: TableName, branch: str) -> None:
        table = self._load(name)
        if table.refs().containsKey(branch):
            table.manageSnapshots().removeBranch(branch).commit()

    def _load(self, name: TableName) -> Any:
        return load_table(self._session, self._catalog, name)


def _answer_lost(name: TableName, error: Exception) -> None:
    _log.warning("The catalog's answer to a commit of table %s was lost; the commit is there: %s", name, error)
