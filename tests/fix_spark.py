"""A lakehouse for tests: one Spark context for the session, tables read back by pyiceberg or deltalake, which know nothing of Spark, and a
context that stands for the runtime's."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.api.record import TopicPartition
from connect_py.api.task import BadRecord, LogRecord
from connect_py.kafka.range_reader import RangeReader
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import WorkerConversion
from spark_sink.config.sink_config import SinkConfig, parse
from spark_sink.routing import TableName
from spark_sink.spark.session import open_session
from spark_sink.tables.base import Tables, Writer
from spark_sink.tables.iceberg.branches import Branches, StatementBranches, open_branches
from spark_sink.tables.open import open_tables
from spark_sink.task import SparkLakehouseSinkTask

_WORKER = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.json.JsonConverter")


class Context:
    """`BatchSinkContext` over a real broker, with the consumer group's offsets in a dict that the test may look at and change."""

    connector = "lake"
    task = 0
    group_id = "connect-lake"

    def __init__(self, bootstrap: str) -> None:
        self.kafka_options = {"bootstrap.servers": bootstrap}
        self.group: dict[TopicPartition, int] = {}
        self.rejected: list[BadRecord] = []
        self.notes: list[Mapping[str, Any]] = []
        self.config: Mapping[str, str] = {}  # of the task that was started last
        self._ranges = RangeReader(self.kafka_options)
        self._client = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests", "allow.auto.create.topics": False})

    @property
    def conversion(self) -> WorkerConversion:
        return WorkerConversion.of(Plugins.discover(), _WORKER, self.config)

    def log_offsets(self, topics: Sequence[str], pattern: str | None) -> Mapping[TopicPartition, tuple[int, int]]:
        known = self._client.list_topics(timeout=60).topics
        wanted = [name for name in known if name in topics or (pattern and re.fullmatch(pattern, name))]
        return {
            TopicPartition(name, number): self._client.get_watermark_offsets(KafkaTopicPartition(name, number), timeout=60)
            for name in wanted
            for number in known[name].partitions
        }

    def committed(self) -> Mapping[TopicPartition, int]:
        return dict(self.group)

    def records(self, ranges: Mapping[TopicPartition, tuple[int, int]], max_bytes: int) -> Sequence[LogRecord] | None:
        return self._ranges.read(ranges, max_bytes)

    def rewind(self) -> None:
        """Set the group back to the beginning, as a report that was lost: the next task reads everything again."""
        self.group = dict.fromkeys(self.group, 0)

    def notify(self, notification: Mapping[str, Any]) -> None:
        self.notes.append(notification)

    def reject(self, records: Sequence[BadRecord]) -> None:
        self.rejected += records

    def close(self) -> None:
        self._ranges.close()
        self._client.close()


def rows_that_spark_holds(spark: Any) -> int:
    """How many sets of rows a session's Spark holds."""
    return spark._jvm.org.apache.spark.SparkContext.getOrCreate().getPersistentRDDs().size()


#: In the first step of a commit that appends rows.
FIRST_OF_COMMIT = {"iceberg": "CREATE BRANCH", "delta": "INSERT INTO"}


#: Parts of statements that a test still waits for.
_set: list[str] = []


class Watched:
    """Opens a task's tables (`make_tables`) over a session whose statements a test sees, and the steps of Iceberg's branches.

    Attributes:
        tables: those that were opened last.
        before: called with each statement before it is sent; for a setting with ``SET name``, for branches with ``CREATE BRANCH of name``,
            ``PUBLISH BRANCH of name`` and so on.
        after: the same after it was carried out.
        by_statements: whether tables are written, and branches used, by statements, as over Spark Connect.
    """

    def __init__(
        self,
        before: Callable[[str], None] = lambda _: None,
        after: Callable[[str], None] = lambda _: None,
        *,
        by_statements: bool = False,
    ) -> None:
        self.by_statements = by_statements
        self.tables: Any = None
        self.before = before
        self.after = after

    def __call__(self, spark: Any, config: SinkConfig, writer: Writer) -> Tables:
        session: Any = _WatchedSession(spark, self)
        way = StatementBranches if self.by_statements else open_branches
        branches: Any = _WatchedBranches(way(session, config["catalog"]), self)
        self.tables = open_tables(session, config, writer, branches, by_statements=self.by_statements)
        return self.tables

    def once(self, part: str, do: Callable[[], object]) -> None:
        """Do something before the next statement that contains `part`; the test fails if there is none."""

        def before(text: str) -> None:
            if part in text:
                self.before = lambda _: None
                _set.remove(part)
                do()

        self.before = before
        _set.append(part)


class _WatchedSession:
    def __init__(self, spark: Any, watched: Watched) -> None:
        self._spark = spark
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    @property
    def conf(self) -> Any:
        return _WatchedSettings(self._spark.conf, self._watched)

    def sql(self, text: str) -> Any:
        self._watched.before(text)
        found = self._spark.sql(text)
        self._watched.after(text)
        return found


class _WatchedSettings:
    def __init__(self, settings: Any, watched: Watched) -> None:
        self._settings = settings
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, name)

    def set(self, key: str, value: str) -> None:
        self._watched.before(f"SET {key}")
        self._settings.set(key, value)


class _WatchedBranches:
    def __init__(self, branches: Branches, watched: Watched) -> None:
        self._branches = branches
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._branches, name)

        def watched(table: TableName, *more: Any) -> Any:
            text = f"{name.upper()} BRANCH of {table}"
            self._watched.before(text)
            found = step(table, *more)
            self._watched.after(text)
            return found

        return watched


class Lake:
    """A warehouse of one test, with topics of its own. Tables are Iceberg's; `DeltaLake` has Delta's."""

    format = "iceberg"

    def __init__(self, bootstrap: str, warehouse: Path, tag: str) -> None:
        self.bootstrap = bootstrap
        self.warehouse = warehouse
        self.tag = tag
        self.context = Context(bootstrap)
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self.tasks: list[SparkLakehouseSinkTask] = []

    def topic(self, table: str, partitions: int = 1) -> str:
        """A new topic for table public.<table>."""
        name = f"{self.tag}.public.{table}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(20)
        return name

    def produce(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], partition: int = 0) -> None:
        """Write records in order and wait until Kafka has them."""
        if partition:
            self.producer.list_topics(topic, 20)  # one that was added since is not known else
        for key, value in records:
            self.producer.produce(topic, value, key, partition)
        assert self.producer.flush(20) == 0

    def produce_in_transaction(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], *, commit: bool = True) -> None:
        """Write records to a topic's first partition in a transaction, and end it."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.tag})
        producer.init_transactions(20)
        producer.begin_transaction()
        for key, value in records:
            producer.produce(topic, value, key, 0)
        assert producer.flush(20) == 0
        (producer.commit_transaction if commit else producer.abort_transaction)(20)

    def delete_below(self, topic: str, offset: int) -> None:
        """Remove the records of a topic's first partition below an offset, as its retention does."""
        place, admin = KafkaTopicPartition(topic, 0, offset), AdminClient({"bootstrap.servers": self.bootstrap})
        admin.delete_records([place])[place].result(20)

    def config(self, *topics: str, **more: str) -> dict[str, str]:
        """A task's configuration; `more` are lakehouse properties with underscores for dots and double ones for dashes."""
        return {
            "topics": ",".join(topics),
            **self.destination(),
            "lakehouse.tables.auto-create-enabled": "true",
            "lakehouse.tables.evolve-schema-enabled": "true",
            "lakehouse.control.commit.interval-ms": "0",
            **self.driven(),
            **{"lakehouse." + name.replace("__", "-").replace("_", "."): value for name, value in more.items()},
        }

    def driven(self) -> dict[str, str]:
        """Where Spark runs and what plans the batches: of the environment, so that the same tests can run in all ways."""
        remote, driver = os.environ.get("CONNECT_PY_LAKE_REMOTE"), os.environ.get("CONNECT_PY_LAKE_DRIVER", "loop")
        # A test's JVM does not live long enough for the second compiler.
        here = {"lakehouse.spark.master": "local[2]", "lakehouse.spark.conf.spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
        return {
            **({"lakehouse.spark.remote": remote} if remote else here),
            "lakehouse.source.mode": driver,
            "lakehouse.checkpoint.location": (self.warehouse.parent / "checkpoint").as_uri(),
        }

    def destination(self) -> dict[str, str]:
        """Where the tables are."""
        return {
            "lakehouse.catalog": "lake",
            "lakehouse.catalog.type": "hadoop",
            "lakehouse.catalog.warehouse": str(self.warehouse),
        }

    def sql(self, name: str) -> str:
        """A table's name in a task's session."""
        return f"lake.public.{name}"

    def start(self, config: Mapping[str, str], **more: Any) -> SparkLakehouseSinkTask:
        """A started task, made with `more`; closed at the test's end."""
        task = SparkLakehouseSinkTask(**more)
        self.tasks.append(task)
        self.context.config = config
        task.start(config, self.context)
        assert task.ready(600)
        return task

    def drain(self, task: SparkLakehouseSinkTask, *, report: bool = True) -> int:
        """Step until nothing is left; returns the number of batches. `report` keeps what the task reports as the group's offsets."""
        batches = 0
        while (reached := task.step()) is not None:
            batches += 1
            if report:
                self.context.group.update(reached)
        return batches

    def table(self, name: str) -> Any:
        """A table as pyiceberg sees it now."""
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(str(self.warehouse / "public" / name))

    def whole_rows(self, name: str) -> list[dict[str, Any]]:
        """A table's rows."""
        return self.table(name).scan().to_arrow().to_pylist()

    def types(self, name: str) -> dict[str, str]:
        """A table's columns and their types as Spark names them, metadata columns left out."""
        names = {"int": "int", "long": "bigint", "string": "string", "float": "float", "double": "double"}
        found = {field.name: str(field.field_type) for field in self.table(name).schema().fields}
        return {column: names.get(type_, type_) for column, type_ in found.items() if not column.startswith("__")}

    def rows_by_spark(self, task: SparkLakehouseSinkTask, name: str) -> list[dict[str, Any]]:
        """A table's rows without the metadata columns, as Spark has them."""
        found = [row.asDict(recursive=True) for row in task.spark.table(self.sql(name)).collect()]
        return [{column: value for column, value in row.items() if not column.startswith("__")} for row in found]

    def roll_back(self, task: SparkLakehouseSinkTask, name: str) -> None:
        """Make the table what it was after the sink's first commit to it."""
        summaries = [(snapshot.snapshot_id, snapshot.summary.additional_properties) for snapshot in self.table(name).metadata.snapshots]
        first = next(snapshot for snapshot, summary in summaries if "kafka.connect.commit-id" in summary)
        task.spark.sql(f"CALL lake.system.rollback_to_snapshot('public.{name}', {first})").collect()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """A table's rows without the metadata columns."""
        found = self.whole_rows(name)
        return [{column: value for column, value in row.items() if not column.startswith("__")} for row in found]

    def snapshots(self, name: str) -> int:
        """How many commits of the sink's the table has seen."""
        summaries = [snapshot.summary.additional_properties for snapshot in self.table(name).metadata.snapshots]
        return sum(any(key.startswith("kafka.connect.offsets.") for key in summary) for summary in summaries)

    def watermark(self, name: str) -> dict[str, dict[str, int]]:
        """The offsets that the table holds."""
        return json.loads(self.table(name).properties["kafka.connect.offsets.lake"])

    def files(self, name: str) -> int:
        """How many data files the table has now."""
        return len(self.table(name).inspect.data_files())

    def drop(self, task: SparkLakehouseSinkTask, name: str) -> None:
        """Remove a table and its files."""
        task.spark.sql(f"DROP TABLE {self.sql(name)} PURGE")

    def generations(self, name: str) -> list[int]:
        """The generation of each of the sink's commits, oldest first."""
        summaries = [snapshot.summary.additional_properties for snapshot in self.table(name).metadata.snapshots]
        return [int(summary["kafka.connect.generation"]) for summary in summaries if "kafka.connect.generation" in summary]

    def close(self) -> None:
        for task in self.tasks:
            task.close()
        self.context.close()


class DeltaLake(Lake):
    """The same with Delta tables below a root directory."""

    format = "delta"

    def destination(self) -> dict[str, str]:
        return {"lakehouse.format": "delta", "lakehouse.delta.root": str(self.warehouse)}

    def sql(self, name: str) -> str:
        return f"delta.`{self.warehouse}/public/{name}`"

    def roll_back(self, task: SparkLakehouseSinkTask, name: str) -> None:
        commits = reversed(self.table(name).history())
        first = next(commit["version"] for commit in commits if "kafka.connect.commit-id" in commit.get("userMetadata", ""))
        others = task.spark.newSession()  # whose commits have nothing of what the task's session says of one that is under way
        others.sql(f"RESTORE TABLE {self.sql(name)} TO VERSION AS OF {first}").collect()

    def files(self, name: str) -> int:
        return len(self.table(name).file_uris())

    def drop(self, task: SparkLakehouseSinkTask, name: str) -> None:
        shutil.rmtree(self.warehouse / "public" / name)

    def table(self, name: str) -> Any:
        """A table as deltalake sees it now."""
        from deltalake import DeltaTable

        return DeltaTable(str(self.warehouse / "public" / name))

    def whole_rows(self, name: str) -> list[dict[str, Any]]:
        import pyarrow
        from deltalake import QueryBuilder

        found = QueryBuilder().register("t", self.table(name)).execute("SELECT * FROM t").read_all()
        return pyarrow.table(found).to_pylist()

    def types(self, name: str) -> dict[str, str]:
        names = {"integer": "int", "long": "bigint"}
        fields = json.loads(self.table(name).schema().to_json())["fields"]
        return {field["name"]: names.get(field["type"], field["type"]) for field in fields if not field["name"].startswith("__")}

    def _commits(self, name: str) -> list[dict[str, Any]]:
        found = [json.loads(commit.get("userMetadata") or "{}") for commit in self.table(name).history()]
        return [metadata for metadata in reversed(found) if "kafka.connect.offsets.lake" in metadata]

    def snapshots(self, name: str) -> int:
        return len(self._commits(name))

    def watermark(self, name: str) -> dict[str, dict[str, int]]:
        return self._commits(name)[-1]["kafka.connect.offsets.lake"]

    def generations(self, name: str) -> list[int]:
        return [commit["kafka.connect.generation"] for commit in self._commits(name)]


LAKES = {lake.format: lake for lake in (Lake, DeltaLake)}

#: For tests of what a table format does; they are the contract of both, and run in every run.
both_formats = pytest.mark.parametrize("lake", list(LAKES), indirect=True)
#: For tests of what does not depend on the format: in Iceberg in every run, in Delta with the long tests.
iceberg_and_long_delta = pytest.mark.parametrize("lake", ["iceberg", pytest.param("delta", marks=pytest.mark.long)], indirect=True)


@pytest.fixture(scope="session")
def held_spark(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session that keeps the context between tests; its settings are those of `Lake.config`."""
    held = open_session(parse(Lake(kafka.bootstrap, tmp_path_factory.mktemp("held"), "held").config("none")), "tests")
    yield held.spark
    held.close()


@pytest.fixture
def lake(request: pytest.FixtureRequest, kafka: Any, held_spark: Any, tmp_path: Path, tag: str) -> Iterator[Lake]:
    """A warehouse and topics of this test's own; Iceberg's unless the test is for `both_formats`."""
    made = LAKES[getattr(request, "param", "iceberg")](kafka.bootstrap, tmp_path / "warehouse", tag)
    _set.clear()
    yield made
    made.close()
    held_spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # a megabyte of each table, for an hour
    assert not _set, "what should have happened before a statement has not, so the test shows nothing"


# -- records ----------------------------------------------------------------------------------------------------------------------

TEXT = {"type": "string", "optional": True}
INT = {"type": "int32", "optional": True}
BIGINT = {"type": "int64", "optional": True}


def with_schema(schema: Mapping[str, Any], payload: Any) -> bytes:
    """A value as JsonConverter writes it."""
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


def struct(columns: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A struct's schema."""
    return {"type": "struct", "fields": [{**type_, "field": name} for name, type_ in columns.items()], "optional": False, **more}


ID = {"type": "int32", "optional": False}


def event(
    op: str, key: int | None, row: Mapping[str, Any] | None, columns: Mapping[str, Mapping[str, Any]], table: str = "t"
) -> tuple[bytes | None, bytes]:
    """A change event of a table with the key `id` and the columns given, as Debezium's envelope."""
    of_row = {**struct({"id": ID, **columns}), "optional": True}
    source = struct({"db": TEXT, "schema": TEXT, "table": TEXT, "ts_ms": BIGINT})
    envelope = struct({"before": of_row, "after": of_row, "source": source, "op": TEXT, "ts_ms": BIGINT}, name="x.Envelope")
    after = None if row is None else {"id": key, **row}
    payload = {
        "before": after if op == "d" else None,
        "after": None if op == "d" else after,
        "source": {"db": "d", "schema": "public", "table": table, "ts_ms": 1},
        "op": op,
        "ts_ms": 2,
    }
    return None if key is None else with_schema(struct({"id": ID}), {"id": key}), with_schema(envelope, payload)
