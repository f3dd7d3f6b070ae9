"""Batches of Iceberg tables: what is written without a statement is what the MERGE writes (`spark_sink.tables.iceberg.direct`)."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as f

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.config.layout import Layout, parse_partitions
from spark_sink.config.sink_config import parse
from spark_sink.routing import TableName
from spark_sink.spark.local import evaluate
from spark_sink.sql.merge import Shape
from spark_sink.tables.base import Conflict, Writer
from spark_sink.tables.bounds import key_bounds
from spark_sink.tables.iceberg.branches import DirectBranches, Refused
from spark_sink.tables.upkeep import SUMMARY_KEYS, MaintenancePolicy
from spark_sink.tables.watermark import Watermark
from spark_sink.types.trees import parse_type, type_text
from tests.fix_spark import Lake, Watched, rows_that_spark_holds
from tests.seeds import seeds

pytestmark = [pytest.mark.services, pytest.mark.spark]

TP = TopicPartition("t", 0)
COLUMNS = {
    "id": "bigint",
    "name": "string",
    "made": "date",
    "price": "decimal(9,2)",
    "at": "timestamp",
    "more": type_text(parse_type("struct<a: int, b: array<string>>")),
}

#: $op and the first four columns.
Row = tuple[str, int, str | None, str, str]


def shape_of(*keys: str, is_local: bool = True) -> Shape:
    return Shape(keys, COLUMNS, required_keys=frozenset(keys), is_local=is_local)


def held(spark: Any, rows: Sequence[Row], *, is_local: bool = True) -> Any:
    """Rows that the driver holds, or Spark's executors, as the sink's steps leave them."""
    if is_local:
        values = ", ".join(
            f"('{op}', {id_}L, {'NULL' if name is None else repr(name)}, DATE '{made}', CAST({price} AS decimal(9,2)))"
            for op, id_, name, made, price in rows
        )
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS v(`$op`, id, name, made, price)")
    else:  # one text, however many they are: the parser takes a kilobyte of its memory for each value of a statement
        names = ("$op", "id", "name", "made", "price")
        text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
        type_ = "array<struct<`$op`: string, id: bigint, name: string, made: date, price: decimal(9,2)>>"
        frame = spark.range(1).select(f.inline(f.from_json(f.lit(text), type_)))
    more = "named_struct('a', CAST(id AS INT), 'b', array(name)) more"
    frame = frame.selectExpr("*", "timestamp_micros(1600000000000000 + id) at", more)
    found = evaluate(frame) if is_local else frame.repartition(3, "id").observe(Observation(), f.expr("count(1)"))
    assert found is not None
    return found


class Written:
    """A table that is written directly, and maybe one that is written by statements."""

    def __init__(
        self, lake: Lake, spark: Any, shape: Shape, *ways: str, required: Sequence[str] = (), layout: Layout | None = None
    ) -> None:
        self.lake, self.spark, self.shape, self.offset = lake, spark, shape, 0
        self.statements: list[str] = []
        self.names = {way: TableName(("public", way)) for way in ("direct", *ways)}
        self.watched = {
            way: Watched(self.statements.append if way == "direct" else lambda _: None, by_statements=way == "statements")
            for way in self.names
        }
        config = parse(lake.config("t"))
        self.tables: dict[str, Any] = {way: watched(spark, config, Writer("lake", 0, 1)) for way, watched in self.watched.items()}
        for way, name in self.names.items():
            self.tables[way].create(name, COLUMNS, frozenset((*shape.keys, *required)), {}, layout or Layout())

    def merge(self, rows: Sequence[Row]) -> None:
        self._write("merge", rows)

    def append(self, rows: Sequence[Row]) -> None:
        self._write("append", rows)

    def _write(self, what: str, rows: Sequence[Row]) -> None:
        self.offset += 1
        self.statements.clear()
        events = held(self.spark, rows, is_local=self.shape.is_local)
        for way, name in self.names.items():
            self.tables[way].load(name)
            is_bounded = self.shape.is_local or self.tables[way].needs_bounds(name, self.shape)
            bounds = key_bounds(events, self.shape, len(rows)) if is_bounded else ()
            shape = Shape(**{**vars(self.shape), "bounds": bounds})
            getattr(self.tables[way], what)(name, events, shape, Watermark({TP: self.offset}))

    def compaction(self) -> Any:
        """What is left to do of a compaction that needs no statement, which has begun."""
        self.statements.clear()
        self.tables["direct"].load(self.names["direct"])
        found = self.tables["direct"].compact(self.names["direct"], MaintenancePolicy.of(parse(self.lake.config("t"))), thoroughly=False)
        assert not any(statement.startswith("CALL") for statement in self.statements)
        return found

    @property
    def is_by_statement(self) -> bool:
        """Whether the last batch of the direct table was written by a statement."""
        return any(statement.startswith(("MERGE", "INSERT")) for statement in self.statements)

    def rows(self, way: str = "direct") -> list[Any]:
        return sorted(self.spark.table(self.lake.sql(way)).collect(), key=str)

    def summaries(self, way: str) -> list[dict[str, str]]:
        """What the snapshots say of rows and files, the newest last."""
        said = (
            *SUMMARY_KEYS[:-1],
            "added-records",
            "added-position-deletes",
            "total-records",
            "total-position-deletes",
            "total-data-files",
        )
        rows = self.spark.sql(f"SELECT operation, summary FROM {self.lake.sql(way)}.snapshots ORDER BY committed_at").collect()
        ours = [row for row in rows if "kafka.connect.offsets.lake" in row["summary"]]  # a branch of an empty table begins with another
        return [{"operation": row["operation"], **{key: row["summary"].get(key) for key in said}} for row in ours]


@pytest.fixture
def spark(lake: Lake) -> Any:
    task = lake.start(lake.config(lake.topic("t")))
    task.spark.sql("CREATE NAMESPACE lake.public")
    return task.spark


of_any_size = pytest.mark.parametrize("is_local", [True, False], ids=["driver", "executors"])
of_any_key = pytest.mark.parametrize("keys", [("id",), ("name", "made"), ("price",)], ids=["number", "text and date", "decimal"])


def batches(chance: random.Random, keys: tuple[str, ...], counts: Sequence[int]) -> Iterator[list[Row]]:
    """Batches of random rows, one of each key."""
    names = list(COLUMNS)
    for count in counts:
        of_key: dict[Any, Row] = {}
        for _ in range(count):
            number = chance.randrange(40)
            name = f"né {'long ' * 10}{number}" if number % 2 else f"a{number}"
            row: Row = (chance.choice("ccud"), number, name, f"20{number:02}-01-0{1 + number % 9}", f"{number - 20}.{number % 10}5")
            of_key[tuple(row[1 + names.index(key)] for key in keys)] = row
        yield list(of_key.values())


@pytest.mark.rotates(keep=2)
@of_any_size
@of_any_key
def test_both_ways_leave_the_same_rows_and_say_the_same_of_them(lake: Lake, spark: Any, keys: tuple[str, ...], is_local: bool) -> None:
    [seed] = seeds(1)
    print(f"seed {seed}")
    written = Written(lake, spark, shape_of(*keys, is_local=is_local), "statements")
    compaction = None
    for number, rows in enumerate(batches(random.Random(seed), keys, (12, 1, 30, 30, 150, 5))):
        written.merge(rows)
        assert written.rows("direct") == written.rows("statements"), number
        assert not written.is_by_statement
        if compaction is not None:
            compaction.commit()
            assert written.rows("direct") == written.rows("statements"), "rows that a batch has replaced since the writing are gone"
            files = lake.files("direct")
            assert files == 2 if is_local else files <= 4, "the batch's own, one of each task"
        compaction = written.compaction() if number in (1, 3) else None
        if compaction is not None:
            compaction.write()
    of_files = {"total-data-files", "total-records", "total-position-deletes"}  # which compaction changes
    if not is_local:  # the statement may have fewer tasks
        of_files.add("added-data-files")
    said = [
        [{key: value for key, value in each.items() if key not in of_files} for each in written.summaries(way)] for way in written.names
    ]
    assert said[0] == said[1]
    assert len(lake.whole_rows("direct")) == len(written.rows()), "as pyiceberg reads it"


@pytest.mark.rotates(keep=2)
@of_any_size
@pytest.mark.parametrize("text", ["days(made)", "name", "bucket(id, 3), truncate(name, 2)"])
def test_rows_of_partitions_are_replaced_as_by_the_statement(lake: Lake, spark: Any, text: str, is_local: bool) -> None:
    [seed] = seeds(1)
    print(f"seed {seed}")
    written = Written(lake, spark, shape_of("id", is_local=is_local), "statements", layout=Layout(parse_partitions(text)))
    compaction = None
    for number, rows in enumerate(batches(random.Random(seed), ("id",), (12, 1, 30, 30, 150, 5))):
        written.merge(rows)
        assert written.rows("direct") == written.rows("statements"), number
        assert not written.is_by_statement
        if compaction is not None:
            compaction.commit()
            assert written.rows("direct") == written.rows("statements"), "rows that a batch has replaced since the writing are gone"
        compaction = written.compaction() if number in (1, 3) else None
        if compaction is not None:
            compaction.write()
        if number == 2:  # files that the driver has not seen
            written.tables["direct"].forget()
            policy = MaintenancePolicy.of(parse(lake.config("t")))
            written.tables["direct"].compact(written.names["direct"], policy, thoroughly=True)
        if number == 3:
            for way in written.names:
                spark.sql(f"ALTER TABLE {lake.sql(way)} ADD PARTITION FIELD bucket(2, price)")
        if number == 4:
            for way in written.names:
                spark.sql(f"ALTER TABLE {lake.sql(way)} DROP PARTITION FIELD bucket(2, price)")
    assert len(lake.whole_rows("direct")) == len(written.rows()), "as pyiceberg reads it"
    asked = (
        f"SELECT DISTINCT file_path FROM {lake.sql('direct')}.position_deletes p JOIN {lake.sql('direct')}.data_files d USING (file_path)"
    )
    wrong = f"{asked} WHERE p.spec_id <> d.spec_id OR to_json(p.partition) <> to_json(d.partition)"
    assert spark.sql(wrong).collect() == [], "deletes are of the partition of their rows"


def notes(*numbers: int, op: str = "u", name: str = "n") -> list[Row]:
    return [(op, number, name, "2020-01-01", "1.00") for number in numbers]


@pytest.mark.rotates
@of_any_size
def test_a_batch_that_deletes_all_rows_or_none_still_stores_its_watermark(lake: Lake, spark: Any, is_local: bool) -> None:
    written = Written(lake, spark, shape_of("id", is_local=is_local))
    written.merge(notes(*range(5)))
    for _ in range(2):
        written.merge(notes(*range(5), op="d"))
    assert written.rows() == []
    assert lake.watermark("direct") == {"t": {"0": 3}}
    assert [said["added-position-deletes"] for said in written.summaries("direct")] == [None, "5", None]
    assert list(lake.table("direct").metadata.refs) == ["main"]


def test_no_job_is_needed_unless_files_are_not_for_this_process(lake: Lake, spark: Any) -> None:
    def of_now() -> set[int]:
        return set(spark.sparkContext.statusTracker().getJobIdsForGroup())

    written = Written(lake, spark, shape_of("id"))
    written.merge(notes(*range(20), name="old"))
    before = of_now()
    written.merge(notes(2, 3, 40))
    written.merge(notes(3, 4, op="d"))
    assert of_now() == before
    assert [(row["id"], row["name"]) for row in written.rows()][:4] == [(0, "old"), (1, "old"), (10, "old"), (11, "old")]
    assert {row["id"] for row in written.rows() if row["name"] == "n"} == {2, 40}
    formats = "'write.format.default' = 'orc', 'write.delete.format.default' = 'parquet'"
    spark.sql(f"ALTER TABLE {lake.sql('direct')} SET TBLPROPERTIES ({formats})")
    written.merge(notes(5, 41, name="orc"))
    before = of_now()
    written.merge(notes(5, 41, 42))
    assert not written.is_by_statement
    assert max(of_now()) > max(before), "a query has found the rows"
    assert {row["id"] for row in written.rows() if row["name"] == "n"} == {2, 5, 40, 41, 42}


@of_any_size
def test_rows_are_appended_as_by_the_statement(lake: Lake, spark: Any, is_local: bool) -> None:
    written = Written(lake, spark, shape_of("id", is_local=is_local), "statements")
    for numbers in (range(3), range(2, 20), range(1)):
        written.append(notes(*numbers))
        assert not written.is_by_statement
    assert written.rows() == written.rows("statements")
    of_files = ("added-data-files", "total-data-files")  # by a statement a task of each core adds one
    said = [[{**each, **dict.fromkeys(of_files)} for each in written.summaries(way)] for way in written.names]
    assert said[0] == said[1]
    written.merge(notes(3, op="d"))
    assert not written.is_by_statement
    assert written.rows() == written.rows("statements"), "what was appended is known"
    assert lake.watermark("direct") == {"t": {"0": 4}}


def test_rows_are_appended_in_the_order_of_the_table_to_files_that_do_not_overlap(lake: Lake, spark: Any) -> None:
    written = Written(lake, spark, shape_of("id", is_local=False), layout=Layout(cluster=("name",)))
    written.append([("c", number, f"{number * 7919 % 1000:03}", "2020-01-01", "1.00") for number in range(1000)])
    assert not written.is_by_statement
    bounds = "readable_metrics.name.lower_bound, readable_metrics.name.upper_bound"
    files = sorted(map(tuple, spark.sql(f"SELECT {bounds} FROM {lake.sql('direct')}.files").collect()))
    assert all(one[1] < other[0] for one, other in pairwise(files)), files
    assert written.rows()[0]["id"] == 0


def test_more_replaced_rows_than_are_held_are_known_to_the_next_batches(lake: Lake, spark: Any) -> None:
    written = Written(lake, spark, shape_of("id", is_local=False))
    for name in ("old", "new"):
        written.merge(notes(*range(12_000), name=name))
    assert written.summaries("direct")[-1]["added-position-deletes"] == "12000"
    written.shape = shape_of("id")
    written.merge(notes(7, 12_000, name="newer"))
    written.merge(notes(8, op="d"))
    assert not written.is_by_statement
    assert [said["added-position-deletes"] for said in written.summaries("direct")[-2:]] == ["1", "1"], "each of a row that was there"
    assert Counter(row["name"] for row in written.rows()) == {"new": 11_998, "newer": 2}
    assert not rows_that_spark_holds(spark)


@pytest.mark.rotates
@of_any_size
def test_what_others_commit_is_seen(lake: Lake, spark: Any, is_local: bool) -> None:
    written, table = Written(lake, spark, shape_of("id", is_local=is_local)), lake.sql("direct")
    written.merge(notes(1, 2))
    spark.sql(f"INSERT INTO {table} SELECT id + 10, name, made, price, at, more FROM {table}")
    written.merge(notes(2, 12, name="new"))
    assert sorted((row["id"], row["name"]) for row in written.rows()) == [(1, "n"), (2, "new"), (11, "n"), (12, "new")]
    spark.sql(f"DELETE FROM {table} WHERE id = 12")
    written.merge(notes(12, op="d"))
    assert written.summaries("direct")[-1]["added-position-deletes"] is None, "it was deleted already"
    written.merge(notes(12, 1, name="newer"))
    assert sorted((row["id"], row["name"]) for row in written.rows()) == [(1, "newer"), (2, "new"), (11, "n"), (12, "newer")]
    for number in range(30):  # more than are read one by one
        spark.sql(f"UPDATE {table} SET price = {number} WHERE id = {number % 3 + 1}")
    written.merge(notes(1, 2, name="newest"))
    assert not written.is_by_statement
    assert sorted((row["id"], row["name"]) for row in written.rows()) == [(1, "newest"), (2, "newest"), (11, "n"), (12, "newer")]
    assert len(lake.whole_rows("direct")) == 4


@pytest.mark.rotates
@of_any_size
def test_a_name_that_another_column_has_by_now_does_not_mislead(lake: Lake, spark: Any, is_local: bool) -> None:
    written, table = Written(lake, spark, shape_of("id", is_local=is_local)), lake.sql("direct")
    written.merge(notes(1, 2))
    spark.sql(f"ALTER TABLE {table} ADD COLUMN other BIGINT FIRST")
    spark.sql(f"UPDATE {table} SET other = 3 - id")
    for old, new in (("id", "old"), ("other", "id"), ("old", "other")):
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN other")
    written.merge(notes(1, name="new"))
    assert not written.is_by_statement
    assert sorted((row["id"], row["name"], str(row["at"])) for row in written.rows())[0][:2] == (1, "new")
    assert len(written.rows()) == 2


def test_a_table_that_is_made_again_is_not_taken_for_the_old_one(lake: Lake, spark: Any) -> None:
    written, name = Written(lake, spark, shape_of("id")), TableName(("public", "direct"))
    tables = written.tables["direct"]
    for columns in ({**COLUMNS, "price": "int"}, COLUMNS):
        spark.sql(f"DROP TABLE {lake.sql('direct')} PURGE")
        tables.create(name, columns, frozenset({"id"}), {}, Layout())
        assert tables.load(name).columns == columns
    written.merge(notes(1, 2))
    spark.sql(f"DROP TABLE {lake.sql('direct')} PURGE")
    tables.forget()
    tables.create(name, COLUMNS, frozenset({"id"}), {}, Layout())
    written.merge(notes(2, 3, name="new"))
    assert not written.is_by_statement
    assert [(row["id"], row["name"]) for row in written.rows()] == [(2, "new"), (3, "new")]


@of_any_size
def test_a_missing_value_that_the_table_needs_is_refused_as_by_the_statement(lake: Lake, spark: Any, is_local: bool) -> None:
    written = Written(lake, spark, shape_of("id", is_local=is_local), required=["name"])
    written.merge(notes(1))
    files = sorted((lake.warehouse / "public" / "direct" / "data").rglob("*.parquet"))
    with pytest.raises(Exception, match="NOT_NULL_ASSERT_VIOLATION"):
        written.merge([("u", 2, None, "2020-01-01", "1.00")])
    assert len(written.rows()) == 1
    assert sorted((lake.warehouse / "public" / "direct" / "data").rglob("*.parquet")) == files
    assert not rows_that_spark_holds(spark)
    written.merge(notes(2))
    assert not written.is_by_statement


@pytest.mark.parametrize(
    "change",
    [
        "SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')",
        "SET TBLPROPERTIES ('write.delete.granularity' = 'file')",
        "SET TBLPROPERTIES ('write.delete.format.default' = 'orc')",
        "SET TBLPROPERTIES ('format-version' = '3')",
        "ADD COLUMN mine STRING",
    ],
)
def test_tables_of_which_more_is_to_be_regarded_are_written_by_the_statement(lake: Lake, spark: Any, change: str) -> None:
    written, table = Written(lake, spark, shape_of("id")), lake.sql("direct")
    written.merge(notes(1, 2))
    spark.sql(f"ALTER TABLE {table} {change}")
    if "mine" in change:
        spark.sql(f"UPDATE {table} SET mine = 'kept'")
    written.merge(notes(2, 3, name="new"))
    assert written.is_by_statement
    assert sorted((row["id"], row["name"]) for row in written.rows()) == [(1, "n"), (2, "new"), (3, "new")]
    if "mine" in change:
        assert [row["mine"] for row in sorted(written.rows())] == ["kept", "kept", None]


def test_a_large_batch_that_is_left_to_the_statement_says_where_its_keys_are(lake: Lake, spark: Any) -> None:
    written = Written(lake, spark, shape_of("id", is_local=False))
    spark.sql(f"ALTER TABLE {lake.sql('direct')} SET TBLPROPERTIES ('write.delete.granularity' = 'file')")
    for numbers in (range(300), range(250, 310)):
        written.merge(notes(*numbers))
        [merge] = [text for text in written.statements if text.startswith("MERGE")]
        assert f"t.`id` BETWEEN CAST('{numbers[0]}' AS bigint) AND CAST('{numbers[-1]}' AS bigint)" in merge
    assert len(written.rows()) == 310
    assert not rows_that_spark_holds(spark)


def test_merges_of_very_many_events_are_left_to_the_statement(lake: Lake, spark: Any) -> None:
    written = Written(lake, spark, shape_of("id", is_local=False))
    for count, is_by_statement in ((50_000, False), (50_001, True), (3, False)):
        written.shape = replace(written.shape, count=count)
        written.merge(notes(1, 2, 3, name=f"of {count}"))
        assert written.is_by_statement == is_by_statement
        assert {row["name"] for row in written.rows()} == {f"of {count}"}
    written.shape = replace(written.shape, count=50_001)
    written.append(notes(4, 5))
    assert not written.is_by_statement, "nothing is looked for"


def test_rows_that_others_write_meanwhile_make_it_fail_and_leave_no_files(lake: Lake, spark: Any) -> None:
    written, table = Written(lake, spark, shape_of("id")), lake.sql("direct")
    written.merge(notes(1, 2))
    data = lake.warehouse / "public" / "direct" / "data"
    before = {file.name for file in data.rglob("*.parquet")}
    watched = written.watched["direct"]
    watched.once("COMMIT BRANCH", lambda: spark.sql(f"DELETE FROM {table} WHERE id = 1"))
    with pytest.raises(Conflict):
        written.merge(notes(1, 3, name="new"))
    assert len({file.name for file in data.rglob("*.parquet")} - before) == 1, "of the other commit"
    assert [row["id"] for row in written.rows()] == [2]
    written.merge(notes(1, 3, name="new"))
    assert sorted((row["id"], row["name"]) for row in written.rows()) == [(1, "new"), (2, "n"), (3, "new")]
    assert list(lake.table("direct").metadata.refs) == ["main"]


def test_a_change_of_the_table_that_moves_no_head_costs_no_repetition(lake: Lake, spark: Any) -> None:
    written, table = Written(lake, spark, shape_of("id")), lake.sql("direct")
    written.merge(notes(1, 2))
    branches: Any = DirectBranches(spark, "lake")
    head, asked = branches.head(written.names["direct"], "main"), list[int]()

    def changed(found: int) -> dict[str, str]:
        asked.append(found)
        if len(asked) == 1:
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('of.others' = 'x')")
        return {"kept": str(found)}

    def add(row_delta: Any) -> None:
        row_delta.set("a", "b")

    new = branches.commit(written.names["direct"], "main", head, "waits", add, changed)
    assert len(asked) == 2
    assert branches.head(written.names["direct"], "main") == new != head
    with pytest.raises(Refused):
        branches.commit(written.names["direct"], "main", head, "waits", add, changed)


def test_a_compaction_leaves_the_positions_that_are_still_of_use_in_one_file(lake: Lake, spark: Any) -> None:
    written, table = Written(lake, spark, shape_of("id")), lake.sql("direct")
    written.merge([("u", number, f"{random.getrandbits(200):x}", "2020-01-01", "1.00") for number in range(1000)])
    for number in range(6):
        written.merge(notes(number, 1000 + number, name=str(number)))
    compaction = written.compaction()
    compaction.write()
    compaction.commit()
    found = spark.sql(f"SELECT content, record_count FROM {table}.files ORDER BY content, record_count").collect()
    assert [tuple(row) for row in found] == [(0, 12), (0, 1000), (1, 6)], "the large file stays, with six of its rows deleted"
    assert len(lake.whole_rows("direct")) == 1006
    assert written.compaction() is None, "there is nothing to do"
    written.merge(notes(0, 1000, 999, name="new"))
    assert not written.is_by_statement
    assert sorted(row["id"] for row in written.rows() if row["name"] == "new") == [0, 999, 1000]
    assert len(lake.whole_rows("direct")) == 1006


def test_a_file_that_has_lost_all_rows_goes_with_the_positions_in_it(lake: Lake, spark: Any) -> None:
    written = Written(lake, spark, shape_of("id"))
    written.merge(notes(1, 2))
    written.merge(notes(1, 2, op="d"))
    compaction = written.compaction()
    compaction.write()
    compaction.commit()
    assert spark.sql(f"SELECT * FROM {lake.sql('direct')}.files").collect() == []
    written.merge(notes(3))
    assert [row["id"] for row in written.rows()] == [3]
    assert lake.watermark("direct") == {"t": {"0": 3}}


@pytest.mark.parametrize("change", ["a row deleted", "a file gone", "a column more", "made again", "no longer followed"])
def test_a_compaction_whose_table_changes_meanwhile_gives_way_and_leaves_no_files(lake: Lake, spark: Any, change: str) -> None:
    written, table, name = Written(lake, spark, shape_of("id")), lake.sql("direct"), TableName(("public", "direct"))
    for number in range(4):
        written.merge(notes(number, number + 10, name=str(number)))
    compaction = written.compaction()
    compaction.write()
    data = lake.warehouse / "public" / "direct" / "data"
    before = {file.name for file in data.rglob("*.parquet")}
    expected = sorted([*range(4), *range(10, 14)])
    match change:
        case "a row deleted":  # the driver follows what others do, too
            spark.sql(f"DELETE FROM {table} WHERE id = 12")
            expected.remove(12)
            compaction.commit()
            assert [row["id"] for row in sorted(written.rows())] == expected
            assert lake.files("direct") == 1
            return
        case "a file gone":
            spark.sql(f"DELETE FROM {table} WHERE name = '2'")
            spark.sql("CALL lake.system.rewrite_data_files(table => 'public.direct', options => map('delete-file-threshold', '1'))")
            expected = [each for each in expected if each not in (2, 12)]
            with pytest.raises(Exception, match="Missing required files to delete"):
                compaction.commit()
        case "a column more":
            spark.sql(f"ALTER TABLE {table} ADD COLUMN mine STRING")
            compaction.commit()
        case "made again":
            spark.sql(f"DROP TABLE {table}")
            written.tables["direct"].forget()
            written.tables["direct"].create(name, COLUMNS, frozenset({"id"}), {}, Layout())
            written.merge(notes(5))
            expected = [5]
            compaction.commit()
        case _:
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')")
            compaction.commit()
    assert [row["id"] for row in sorted(written.rows())] == expected
    written.merge(notes(3, 20, name="new"))
    assert [row["id"] for row in sorted(written.rows()) if row["name"] == "new"] == [3, 20]
    gone = before - {file.name for file in data.rglob("*.parquet")}
    assert len(gone) == (5 if change == "made again" else 1), "what the compaction has written is no file of the table"


def test_a_commit_of_another_task_is_seen_though_a_compaction_follows_it(lake: Lake, spark: Any) -> None:
    written, name = Written(lake, spark, shape_of("id")), TableName(("public", "direct"))
    for number in range(3):
        written.merge(notes(number, name=str(number)))
    compaction = written.compaction()
    compaction.write()
    younger = Watched()(spark, parse(lake.config("t")), Writer("lake", 0, 2))
    younger.load(name)
    younger.merge(name, held(spark, notes(7)), written.shape, Watermark({TP: 9}))
    compaction.commit()
    with pytest.raises(FatalTaskError):
        written.merge(notes(8))
    assert [row["id"] for row in sorted(written.rows())] == [0, 1, 2, 7]
    assert lake.files("direct") == 2


def test_a_table_to_which_rows_are_only_appended_is_compacted_without_a_statement(lake: Lake, spark: Any) -> None:
    written = Written(lake, spark, shape_of("id"))
    for number in range(25):  # more snapshots than are read one by one
        written.append(notes(number))
    for expected in (25, 26):
        compaction = written.compaction()
        compaction.write()
        compaction.commit()
        assert len(written.rows()) == len(lake.whole_rows("direct")) == expected
        assert lake.files("direct") == 1
        written.append(notes(1))


def test_partitions_are_compacted_by_themselves(lake: Lake, spark: Any) -> None:
    written = Written(lake, spark, shape_of("id"), layout=Layout(parse_partitions("name")))
    for number in range(3):
        written.merge([("u", 10 * number + at, place, "2020-01-01", "1.00") for at, place in enumerate("aabc") if at < 2 or number < 2])
    written.merge(notes(30, name="d"))
    compaction = written.compaction()
    compaction.write()
    written.merge([("d", 0, "a", "2020-01-01", "1.00"), ("u", 11, "b", "2020-01-01", "9.00")])
    compaction.commit()
    found = spark.sql(f"SELECT partition.name, content, count(*) n FROM {lake.sql('direct')}.files GROUP BY ALL ORDER BY ALL").collect()
    assert [tuple(row) for row in found] == [("a", 0, 1), ("a", 1, 1), ("b", 0, 2), ("c", 0, 1), ("d", 0, 1)]
    ids = {"a": (1, 10, 20, 21), "b": (2, 11, 12), "c": (3, 13), "d": (30,)}
    assert {(row["id"], row["name"]) for row in lake.whole_rows("direct")} == {(id_, place) for place in ids for id_ in ids[place]}
    written.merge(notes(1, 10, 13, op="d"))
    assert not written.is_by_statement
    assert sorted(row["id"] for row in written.rows()) == [2, 3, 11, 12, 20, 21, 30]
