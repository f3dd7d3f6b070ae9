"""Small batches of Delta tables: what is written without a statement is what the MERGE writes (`spark_sink.tables.delta.direct`)."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as f

from connect_py.api.record import TopicPartition
from spark_sink.config.layout import Layout, Partition
from spark_sink.config.sink_config import parse
from spark_sink.routing import TableName
from spark_sink.spark.local import evaluate
from spark_sink.sql.merge import Shape
from spark_sink.tables.base import Conflict, Writer
from spark_sink.tables.bounds import key_bounds
from spark_sink.tables.delta.direct import DirectTable
from spark_sink.tables.delta.jvm import Transaction
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.direct import NotDirect, is_direct
from spark_sink.tables.upkeep import MaintenancePolicy
from spark_sink.tables.watermark import Watermark
from spark_sink.types.trees import parse_type, type_text
from tests.fix_spark import DeltaLake, Lake, Watched
from tests.seeds import seeds

pytestmark = [pytest.mark.services, pytest.mark.spark]

TP = TopicPartition("t", 0)
#: What is set when a transaction has begun, before a file is written.
BEGUN = "SET spark.sql.codegen.wholeStage"
COLUMNS = {
    "id": "bigint",
    "name": "string",
    "made": "date",
    "price": "decimal(9,2)",
    "place": "string",
    "more": type_text(parse_type("struct<a: int, b: array<string>>")),
}


def shape_of(*keys: str, is_local: bool = True) -> Shape:
    return Shape(keys, COLUMNS, required_keys=frozenset(keys), is_local=is_local)


Row = tuple[str, int, str | None, str, str, str]  # $op and the first five columns


def held(spark: Any, rows: Sequence[Row], *, is_local: bool = True) -> Any:
    """Rows that the driver holds, or Spark's executors, as the sink's steps leave them."""

    def text(of: str | None) -> str:
        return "CAST(NULL AS STRING)" if of is None else repr(of)

    values = ", ".join(
        f"('{op}', {id_}L, {text(name)}, DATE '{made}', CAST({price} AS decimal(9,2)), '{place}')"
        for op, id_, name, made, price, place in rows
    )
    frame = spark.sql(f"SELECT * FROM VALUES {values} AS v(`$op`, id, name, made, price, place)")
    frame = frame.selectExpr("*", "named_struct('a', CAST(id AS INT), 'b', array(name)) more")
    frame = evaluate(frame) if is_local else frame.repartition(3, "id").observe(Observation(), f.expr("count(1)"))
    assert frame is not None
    return frame


class Written:
    """A table that is written directly, and maybe one that is written by statements."""

    def __init__(self, spark: Any, root: str, shape: Shape, layout: Layout, *ways: str, required: Sequence[str] = ()) -> None:
        self.spark, self.root, self.shape, self.offset = spark, root, shape, 0
        self.names = {way: TableName(("public", way)) for way in ("direct", *ways)}
        self.tables = {
            way: DeltaTables(spark, "lake", root, Writer("lake", 0, 1), {}, by_statements=way == "statements") for way in self.names
        }
        for way, name in self.names.items():
            self.tables[way].create(name, COLUMNS, frozenset((*shape.keys, *required)), {}, layout)

    def merge(self, rows: Sequence[Row]) -> None:
        self.offset += 1
        events = held(self.spark, rows, is_local=self.shape.is_local)
        for way, name in self.names.items():
            self.tables[way].load(name)
            is_bounded = self.shape.is_local or self.tables[way].needs_bounds(name, self.shape)
            bounds = key_bounds(events, self.shape, len(rows)) if is_bounded else ()
            shape = Shape(**{**vars(self.shape), "bounds": bounds})
            self.tables[way].merge(name, events, shape, Watermark({TP: self.offset}))

    def append(self, rows: Sequence[Row]) -> None:
        self.offset += 1
        events = held(self.spark, rows, is_local=self.shape.is_local)
        for way, name in self.names.items():
            self.tables[way].load(name)
            self.tables[way].append(name, events, self.shape, Watermark({TP: self.offset}))

    def sql(self, way: str) -> str:
        return f"delta.`{self.root}/public/{way}`"

    def rows(self, way: str) -> list[Any]:
        return sorted(self.spark.table(self.sql(way)).collect(), key=str)

    def history(self, way: str) -> list[Mapping[str, str]]:
        """The metrics of each MERGE that say what became of rows, the newest first."""
        said = ("numTargetRowsInserted", "numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numOutputRows", "numSourceRows")
        found = self.spark.sql(f"DESCRIBE HISTORY {self.sql(way)}").where("operation = 'MERGE'").collect()
        return [{name: commit["operationMetrics"][name] for name in said} for commit in found]


def commits(spark: Any, table: str) -> list[Any]:
    """The newest commit first."""
    return list(spark.sql(f"DESCRIBE HISTORY {table}").collect())


def is_by_statement(spark: Any, table: str) -> bool:
    """Whether the newest commit is a statement's, whose predicate the history has."""
    [commit] = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
    return bool(json.loads(commit["operationParameters"]["predicate"]))


def statistics(lake: DeltaLake, way: str) -> list[Any]:
    """What the log says of the rows of each file, the newest last."""
    log = sorted((lake.warehouse / "public" / way / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for file in log for line in file.read_text().splitlines()]
    return [json.loads(action["add"]["stats"]) for action in actions if "add" in action]


@pytest.fixture
def spark(lake: Lake) -> Any:
    return lake.start(lake.config(lake.topic("t"))).spark


delta = pytest.mark.parametrize("lake", ["delta"], indirect=True)
of_any_size = pytest.mark.parametrize("is_local", [True, False], ids=["driver", "executors"])
of_any_layout = pytest.mark.parametrize(
    ("keys", "layout"),
    [
        (("id",), Layout()),
        (("name", "made"), Layout(partitions=(Partition("place"),))),
        (("price",), Layout(cluster=("id",))),
    ],
    ids=["number", "text and date, partitioned", "decimal, clustered"],
)


def batches(chance: random.Random, keys: tuple[str, ...], counts: Sequence[int]) -> Iterator[list[Row]]:
    """Batches of random rows, one of each key."""
    names = list(COLUMNS)
    for count in counts:
        of_key: dict[Any, Row] = {}
        for _ in range(count):
            number = chance.randrange(40)
            made, price = f"20{number:02}-01-0{1 + number % 9}", f"{number - 20}.{number % 10}5"
            name = f"né {'long ' * 10}{number}" if number % 2 else f"a{number}"
            row = (chance.choice("ccud"), number, name, made, price, chance.choice(["a b", "ö/%:=", "c"]))
            of_key[tuple(row[1 + names.index(key)] for key in keys)] = row
        yield list(of_key.values())


@delta
@pytest.mark.rotates(keep=3)
@of_any_size
@of_any_layout
def test_a_table_has_the_last_row_of_each_key(lake: DeltaLake, spark: Any, keys: tuple[str, ...], layout: Layout, is_local: bool) -> None:
    [seed] = seeds(1)
    print(f"seed {seed}")
    written = Written(spark, str(lake.warehouse), shape_of(*keys, is_local=is_local), layout)
    held_: dict[Any, Row] = {}
    for rows in batches(random.Random(seed), keys, (12, 30, 300)):
        written.merge(rows)
        for row in rows:
            key = row[2:4] if len(keys) == 2 else row[1]  # a number has one price
            held_.pop(key, None)
            if row[0] != "d":
                held_[key] = row
        found = [(row["id"], row["name"], str(row["made"]), str(row["price"]), row["place"]) for row in written.rows("direct")]
        assert sorted(found) == sorted(row[1:] for row in held_.values())
    assert not is_by_statement(spark, written.sql("direct"))
    assert len(lake.whole_rows("direct")) == len(held_), "as deltalake reads it"


@pytest.mark.long
@delta
@of_any_size
@of_any_layout
def test_both_ways_leave_the_same_rows_and_say_the_same_of_them(
    lake: DeltaLake, spark: Any, keys: tuple[str, ...], layout: Layout, is_local: bool
) -> None:
    [seed] = seeds(1)
    print(f"seed {seed}")
    written = Written(spark, str(lake.warehouse), shape_of(*keys, is_local=is_local), layout, "statements")
    for number, rows in enumerate(batches(random.Random(seed), keys, (12, 1, 30, 30, 300, 5))):
        written.merge(rows)
        assert written.rows("direct") == written.rows("statements"), number
        assert not is_by_statement(spark, written.sql("direct"))
        assert is_by_statement(spark, written.sql("statements"))
        if number == 3:
            spark.sql(f"OPTIMIZE {written.sql('direct')}").collect()
    assert written.history("direct") == written.history("statements")


@delta
@of_any_size
def test_a_batch_that_deletes_all_rows_or_none_still_stores_its_watermark(lake: DeltaLake, spark: Any, is_local: bool) -> None:
    written = Written(spark, str(lake.warehouse), shape_of("id", is_local=is_local), Layout())
    rows: list[Row] = [("c", number, "n", "2020-01-01", "1.00", "a") for number in range(5)]
    written.merge(rows)
    written.merge([("d", *row[1:]) for row in rows])
    written.merge([("d", *row[1:]) for row in rows])
    assert written.rows("direct") == []
    assert lake.watermark("direct") == {"t": {"0": 3}}
    assert [commit["numTargetRowsMatchedDeleted"] for commit in written.history("direct")] == ["0", "5", "0"]
    assert len(lake.table("direct").file_uris()) == 0, "a file that has lost all rows goes"


@delta
@of_any_layout
def test_compaction_leaves_the_rows_in_fewer_files_and_is_no_change(
    lake: DeltaLake, spark: Any, keys: tuple[str, ...], layout: Layout
) -> None:
    [seed] = seeds(1)
    print(f"seed {seed}")
    written, policy = Written(spark, str(lake.warehouse), shape_of(*keys), layout), MaintenancePolicy.of(parse(lake.config("t")))
    chance = random.Random(seed)
    for rows in batches(chance, keys, (30, 10, 10)):
        written.merge(rows)
    before, table = written.rows("direct"), written.sql("direct")
    files = {*lake.table("direct").file_uris()}
    direct = written.tables["direct"]
    direct.compact(written.names["direct"], policy, thoroughly=True)
    assert written.rows("direct") == before
    places = {row["place"] for row in before} if layout.partitions else {"all"}
    fewer = {*lake.table("direct").file_uris()}
    assert len(fewer) == len(places)
    [commit] = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
    assert (commit["operation"], commit["userMetadata"]) == ("OPTIMIZE", None)
    metrics = {name: int(value) for name, value in commit["operationMetrics"].items()}
    # the only file of a place stays as it is
    assert (metrics["numAddedFiles"], metrics["numRemovedFiles"]) == (len(fewer - files), len(files - fewer))
    assert 0 < metrics["numAddedFiles"] < metrics["numRemovedFiles"]
    assert (
        metrics["minFileSize"] <= metrics["p50FileSize"] <= metrics["maxFileSize"] <= metrics["numAddedBytes"] < metrics["numRemovedBytes"]
    )
    log = (lake.warehouse / "public" / "direct" / "_delta_log" / f"{commit['version']:020}.json").read_text().splitlines()
    assert {change["dataChange"] for action in map(json.loads, log) for kind, change in action.items() if kind in ("add", "remove")} == {
        False
    }
    for rows in batches(chance, keys, (20, 20)):
        written.merge(rows)
    assert lake.watermark("direct") == {"t": {"0": 5}}
    assert not is_by_statement(spark, table)


@delta
@pytest.mark.parametrize(
    ("keys", "has_job"), [(("id",), False), (("name", "price"), False), (("id", "made"), True)], ids=["number", "text and decimal", "date"]
)
def test_rows_of_small_files_are_found_without_a_job_unless_dates_are_keys(
    lake: DeltaLake, spark: Any, keys: tuple[str, ...], has_job: bool
) -> None:
    def of_now() -> set[int]:
        return set(spark.sparkContext.statusTracker().getJobIdsForGroup())

    written = Written(spark, str(lake.warehouse), shape_of(*keys), Layout())
    rows: list[Row] = [("c", number, f"né {number}", "2020-01-01", f"{number}.00", "a") for number in range(20)]
    written.merge(rows)
    written.merge([("d", *row[1:]) for row in rows[:3]])
    before = of_now()
    written.merge([("u", *row[1:5], "b") for row in rows[2:5]])
    assert (len(of_now() - before) > 0) == has_job
    assert [(row["id"], row["place"]) for row in sorted(written.rows("direct"))] == [
        (number, "b" if number < 5 else "a") for number in range(2, 20)
    ]
    [commit, *_] = written.history("direct")
    assert (commit["numTargetRowsInserted"], commit["numTargetRowsMatchedUpdated"]) == ("1", "2"), "a deleted row is no match"


@delta
@of_any_size
@of_any_layout
def test_rows_are_appended_as_by_the_statement(lake: DeltaLake, spark: Any, keys: tuple[str, ...], layout: Layout, is_local: bool) -> None:
    def of_now() -> set[int]:
        return set(spark.sparkContext.statusTracker().getJobIdsForGroup())

    written = Written(spark, str(lake.warehouse), shape_of(*keys, is_local=is_local), layout, "statements")
    rows: list[Row] = [("c", number, f"né {number}", "2020-01-01", f"{number}.00", "ab"[number % 2]) for number in range(20)]
    for part in (rows[:12], rows[12:], rows[:1]):
        written.append(part)
    files = [statistics(lake, way)[-1] for way in ("direct", "statements")]
    assert files[0] == files[1]
    assert files[0]["numRecords"] == 1
    assert written.rows("direct") == written.rows("statements")
    assert len(written.rows("direct")) == 21
    of_ways = ([commit.asDict() for commit in commits(spark, written.sql(way))[:-1]] for way in ("direct", "statements"))
    for commit, by_statement in zip(*of_ways, strict=True):
        said = ("operation", "operationParameters", "isBlindAppend", "readVersion")
        assert [commit[name] for name in said] == [by_statement[name] for name in said]
        assert commit["operationMetrics"].keys() == by_statement["operationMetrics"].keys()
        assert commit["operationMetrics"].get("numOutputRows") == by_statement["operationMetrics"].get("numOutputRows")
    written.names = {"direct": written.names["direct"]}
    before = of_now()
    written.append(rows[:2])
    jobs = (1 if layout.partitions else 0) if is_local else 2  # one writes into partitions; another has made the rows that executors hold
    assert len(of_now() - before) == jobs
    written.merge([("u", 3, "né 3", "2020-01-01", "3.00", "b")])
    assert not is_by_statement(spark, written.sql("direct")), "what was appended is known"
    assert lake.watermark("direct") == {"t": {"0": 5}}


@delta
def test_rows_of_one_sequence_are_appended_once(lake: DeltaLake, spark: Any) -> None:
    written, rows = Written(spark, str(lake.warehouse), shape_of("id"), Layout()), [("c", 1, "n", "2020-01-01", "1.00", "a")]
    other, name = DeltaTables(spark, "lake", str(lake.warehouse), Writer("lake", 0, 1), {}), written.names["direct"]
    other.load(name)
    written.append(rows)
    with pytest.raises(Conflict):
        other.append(name, held(spark, rows), written.shape, Watermark({TP: 9}))
    assert len(written.rows("direct")) == 1
    watched, stranger = Watched(), DeltaTables(spark, "lake", str(lake.warehouse), Writer("stranger", 0, 1), {})
    late = watched(spark, parse(lake.config("t")), Writer("lake", 0, 1))
    late.load(name)
    watched.once(BEGUN, lambda: written.append(rows))
    with pytest.raises(Exception, match="DELTA_CONCURRENT_TRANSACTION"):
        late.append(name, held(spark, rows), written.shape, Watermark({TP: 9}))
    late.load(name)
    stranger.load(name)
    watched.once(BEGUN, lambda: stranger.append(name, held(spark, rows), written.shape, Watermark({TP: 1})))
    late.append(name, held(spark, rows), written.shape, Watermark({TP: 9}))
    assert len(written.rows("direct")) == 4, "rows of others are no conflict"


@delta
def test_what_is_not_for_one_task_is_compacted_by_the_statement(lake: DeltaLake, spark: Any) -> None:
    written = Written(spark, str(lake.warehouse), shape_of("id"), Layout())
    row = ("u", 1, "new", "2020-01-01", "1.00", "a")
    direct = DirectTable(spark, f"{lake.warehouse}/public/direct")
    with pytest.raises(NotDirect):
        direct.compact(1 << 20)
    written.merge([row])
    direct.merge(held(spark, [row]), written.shape, Transaction("lh:other", 1))
    assert direct.compact(1 << 20) is None, "there is one file only"
    for number in (2, 3):
        direct.merge(held(spark, [("u", number, *row[2:])]), written.shape, Transaction("lh:other", number))
    largest = max(file.stat().st_size for file in (lake.warehouse / "public" / "direct").glob("*.parquet"))
    with pytest.raises(NotDirect):
        direct.compact(2 * largest + 1)  # three, each of less than half
    assert direct.compact(1 << 20) == direct.version()


@delta
def test_what_others_commit_is_seen_and_two_tasks_of_one_sequence_write_once(lake: DeltaLake, spark: Any) -> None:
    written = Written(spark, str(lake.warehouse), shape_of("id"), Layout())
    written.merge([("c", 1, "n", "2020-01-01", "1.00", "a")])
    table = written.sql("direct")
    spark.sql(f"INSERT INTO {table} SELECT 2L, name, made, price, place, more FROM {table}").collect()
    written.merge([("u", 2, "new", "2020-01-01", "1.00", "a")])
    assert [(row["id"], row["name"]) for row in written.rows("direct")] == [(1, "n"), (2, "new")]

    other = DeltaTables(spark, "lake", str(lake.warehouse), Writer("lake", 0, 1), {})
    name = written.names["direct"]
    other.load(name)
    written.merge([("u", 1, "first", "2020-01-01", "1.00", "a")])
    with pytest.raises(Conflict):
        other.merge(name, held(spark, [("u", 1, "second", "2020-01-01", "1.00", "a")]), written.shape, Watermark({TP: 9}))
    assert [row["name"] for row in written.rows("direct")] == ["first", "new"]
    written.merge([("d", 1, "first", "2020-01-01", "1.00", "a")])
    assert [row["name"] for row in written.rows("direct")] == ["new"]

    direct = DirectTable(spark, f"{lake.warehouse}/public/direct")
    again = held(spark, [("u", 2, "again", "2020-01-01", "1.00", "a")])
    direct.merge(again, written.shape, Transaction("lh:other", 1))
    version = direct.version()
    shutil.rmtree(lake.warehouse / "public" / "direct")  # another table comes to its place, with as many versions
    written.tables["direct"].create(name, COLUMNS, frozenset({"id"}), {}, Layout())
    for number in range(version):
        direct_now = DirectTable(spark, f"{lake.warehouse}/public/direct")
        direct_now.merge(again, written.shape, Transaction("lh:other", number))
    direct.merge(again, written.shape, Transaction("lh:other", 99))
    assert [(row["id"], row["name"]) for row in written.rows("direct")] == [(2, "again")]


@delta
def test_rows_that_others_write_meanwhile_make_it_fail_and_the_next_attempt_sees_them(lake: DeltaLake, spark: Any) -> None:
    written = Written(spark, str(lake.warehouse), shape_of("id"), Layout())
    written.merge([("c", 1, "n", "2020-01-01", "1.00", "a")])
    rows = held(spark, [("u", 1, "new", "2020-01-01", "1.00", "a"), ("u", 7, "seven", "2020-01-01", "1.00", "a")])
    table, name, watched = written.sql("direct"), written.names["direct"], Watched()
    other = watched(spark, parse(lake.config("t")), Writer("lake", 0, 1))
    other.load(name)
    insert = f"INSERT INTO {table} SELECT 7L, name, made, price, place, more FROM {table}"
    watched.once(BEGUN, lambda: spark.sql(insert).collect())
    with pytest.raises(Exception, match="DELTA_CONCURRENT"):
        other.merge(name, rows, written.shape, Watermark({TP: 2}))
    assert sorted((row["id"], row["name"]) for row in written.rows("direct")) == [(1, "n"), (7, "n")]
    other.load(name)
    other.merge(name, rows, written.shape, Watermark({TP: 2}))
    assert sorted((row["id"], row["name"]) for row in written.rows("direct")) == [(1, "new"), (7, "seven")]
    assert lake.watermark("direct") == {"t": {"0": 2}}


@delta
def test_what_comes_between_the_look_at_a_table_and_the_transaction_is_seen(lake: DeltaLake, spark: Any) -> None:
    written = Written(spark, str(lake.warehouse), shape_of("id"), Layout())
    table, row = written.sql("direct"), ("u", 1, "new", "2020-01-01", "1.00", "a")
    written.merge([row])
    direct = DirectTable(spark, f"{lake.warehouse}/public/direct")
    assert direct.version() == 1
    spark.sql(f"INSERT INTO {table} SELECT 2L, name, made, price, place, more FROM {table}").collect()
    assert direct.merge(held(spark, [("d", 2, *row[2:])]), written.shape, Transaction("lh:other", 1)) == 3
    assert [row["id"] for row in written.rows("direct")] == [1]

    elsewhere = lake.warehouse / "public" / "elsewhere"  # this JVM takes it for another table
    elsewhere.symlink_to(lake.warehouse / "public" / "direct")
    assert direct.version() == 3
    spark.sql(f"INSERT INTO delta.`{elsewhere}` SELECT 2L, name, made, price, place, more FROM {table}").collect()
    with pytest.raises(Exception, match="DELTA_CONCURRENT"):
        direct.merge(held(spark, [("d", 2, *row[2:])]), written.shape, Transaction("lh:other", 2))
    assert direct.merge(held(spark, [("d", 2, *row[2:])]), written.shape, Transaction("lh:other", 2)) == 5
    assert [row["id"] for row in written.rows("direct")] == [1]


@delta
def test_tables_of_which_more_is_to_be_regarded_are_written_by_the_statement(lake: DeltaLake, spark: Any) -> None:
    written = Written(spark, str(lake.warehouse), shape_of("id"), Layout())
    written.merge([("c", 1, "n", "2020-01-01", "1.00", "a")])
    table, row = written.sql("direct"), ("u", 1, "new", "2020-01-01", "1.00", "a")
    assert not is_by_statement(spark, table)
    for setting, is_direct_ in (("delta.enableChangeDataFeed", False), ("delta.enableDeletionVectors", True)):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{setting}' = '{str(not is_direct_).lower()}')")
        written.merge([row])
        assert is_by_statement(spark, table), setting
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{setting}' = '{str(is_direct_).lower()}')")
        written.merge([row])
        assert not is_by_statement(spark, table), setting
    changes = spark.sql(f"SELECT * FROM table_changes_by_path('{lake.warehouse}/public/direct', 3, 3)").collect()
    assert sorted(change["_change_type"] for change in changes) == ["update_postimage", "update_preimage"]
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (mine STRING)")
    spark.sql(f"UPDATE {table} SET mine = 'kept'").collect()
    written.merge([row])
    assert is_by_statement(spark, table)
    assert [row["mine"] for row in written.rows("direct")] == ["kept"]


@delta
def test_a_row_that_the_table_refuses_is_refused_as_by_the_statement(lake: DeltaLake, spark: Any) -> None:
    written = Written(spark, str(lake.warehouse), shape_of("id"), Layout(), required=["name"])
    written.merge([("c", 1, "n", "2020-01-01", "1.00", "a")])
    with pytest.raises(Exception, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        written.merge([("u", 2, None, "2020-01-01", "1.00", "a")])
    spark.sql(f"ALTER TABLE {written.sql('direct')} ADD CONSTRAINT cheap CHECK (price < 5)")
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        written.merge([("u", 2, "n", "2020-01-01", "9.00", "a")])
    written.merge([("c", 3, "n", "2020-01-01", "1.00", "a")])
    assert not is_by_statement(spark, written.sql("direct"))
    assert [row["id"] for row in written.rows("direct")] == [1, 3]


@delta
def test_a_table_that_no_statement_writes_has_fewer_checkpoints(lake: DeltaLake, spark: Any) -> None:
    interval = "delta.checkpointInterval"
    ways: Mapping[str, tuple[dict[str, str], bool]] = {"direct": ({}, False), "statements": ({}, True), "chosen": ({interval: "7"}, False)}
    found: dict[str, str | None] = {}
    for name, (properties, by_statements) in ways.items():
        tables = DeltaTables(spark, "lake", str(lake.warehouse), Writer("lake", 0, 1), properties, by_statements=by_statements)
        tables.create(TableName(("public", name)), COLUMNS, frozenset({"id"}), {}, Layout())
        found[name] = lake.table(name).metadata().configuration.get(interval)
    assert found == {"direct": "100", "statements": None, "chosen": "7"}


@delta
def test_checkpoints_are_left_to_the_clean_up_unless_it_is_late(lake: DeltaLake, spark: Any) -> None:
    written, name = Written(spark, str(lake.warehouse), shape_of("id"), Layout()), TableName(("public", "direct"))
    tables, policy = written.tables["direct"], MaintenancePolicy.of(parse(lake.config("t")))

    def checkpoints(until: int) -> list[int]:
        """The versions that have one, once the table has a version."""
        while (found := lake.table("direct").version()) < until:
            written.merge([("u", found, "n", "2020-01-01", "1.00", "a")])
        log = lake.warehouse / "public" / "direct" / "_delta_log"
        return sorted(int(file.name.split(".")[0]) for file in log.glob("*.checkpoint*.parquet"))

    spark.sql(f"ALTER TABLE {written.sql('direct')} SET TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    assert checkpoints(7) == [3, 6], "nobody cleans up"
    tables.load(name)
    tables.compact(name, policy, thoroughly=False)
    assert checkpoints(10) == [3, 6]
    tables.clean(name, policy, thoroughly=False)
    assert checkpoints(12) == [3, 6, 10]
    tables.clean(name, policy, thoroughly=False)
    assert checkpoints(15) == [3, 6, 10], "two versions are not three"
    assert checkpoints(18) == [3, 6, 10, 18], "no clean-up came within two intervals"
    assert len(written.rows("direct")) == len(lake.whole_rows("direct"))


def test_shapes_that_need_the_rows_of_the_table_are_not_direct() -> None:
    plain = shape_of("id")
    assert is_direct(plain)
    for name, value in {
        "unknown": ("name",),
        "order": "price",
        "soft": True,
        "versions": True,
        "unseen": {"t": 1},
        "expires": ("made", 1),
        "required_keys": frozenset(),
        "keys": (),
    }.items():
        assert not is_direct(Shape(**{**vars(plain), name: value})), name
