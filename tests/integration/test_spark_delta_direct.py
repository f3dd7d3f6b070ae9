"""Small batches of Delta tables: what is written without a statement is what the MERGE writes (`spark_sink.tables.delta_direct`)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from spark_sink.config.layout import Layout, Partition
from spark_sink.routing import TableName
from spark_sink.spark.local import evaluate
from spark_sink.sql.merge import Shape
from spark_sink.tables.base import Conflict, Writer
from spark_sink.tables.delta import DeltaTables
from spark_sink.tables.delta_direct import DirectMerge, Transaction, is_direct
from spark_sink.tables.watermark import Watermark
from spark_sink.types.trees import parse_type, type_text
from spark_sink.write.bounds import key_bounds
from tests.fix_spark import DeltaLake, Lake
from tests.seeds import seeds

pytestmark = [pytest.mark.services, pytest.mark.spark]

TP = TopicPartition("t", 0)
VIEW = "changes"
COLUMNS = {
    "id": "bigint",
    "name": "string",
    "made": "date",
    "price": "decimal(9,2)",
    "place": "string",
    "more": type_text(parse_type("struct<a: int, b: array<string>>")),
}


def shape_of(*keys: str) -> Shape:
    return Shape(keys, COLUMNS, required_keys=frozenset(keys), is_local=True)


Row = tuple[str, int, str | None, str, str, str]  # $op and the first five columns


def held(spark: Any, rows: Sequence[Row]) -> Any:
    """Rows that the driver holds, as the sink's steps leave them."""
    values = ", ".join(
        f"('{op}', {id_}L, {'NULL' if name is None else repr(name)}, DATE '{made}', CAST({price} AS decimal(9,2)), '{place}')"
        for op, id_, name, made, price, place in rows
    )
    frame = spark.sql(f"SELECT * FROM VALUES {values} AS v(`$op`, id, name, made, price, place)")
    frame = evaluate(frame.selectExpr("*", "named_struct('a', CAST(id AS INT), 'b', array(name)) more"))
    assert frame is not None
    frame.createOrReplaceTempView(VIEW)
    return frame


class Pair:
    """A table that is written directly, and one that is written by statements."""

    def __init__(self, spark: Any, root: str, shape: Shape, layout: Layout, **properties: str) -> None:
        self.spark, self.root, self.shape, self.offset = spark, root, shape, 0
        writer = Writer("lake", 0, 1)
        self.names = {"direct": TableName(("public", "direct")), "statements": TableName(("public", "statements"))}
        self.tables = {way: DeltaTables(spark, "lake", root, writer, properties, by_statements=way == "statements") for way in self.names}
        for way, name in self.names.items():
            self.tables[way].create(name, COLUMNS, frozenset(shape.keys), {}, layout)

    def merge(self, rows: Sequence[Row]) -> None:
        self.offset += 1
        events = held(self.spark, rows)
        for way, name in self.names.items():
            self.tables[way].load(name)
            shape = Shape(**{**vars(self.shape), "bounds": key_bounds(events, self.shape, len(rows))})
            self.tables[way].merge(name, VIEW, shape, Watermark({TP: self.offset}))

    def sql(self, way: str) -> str:
        return f"delta.`{self.root}/public/{way}`"

    def rows(self, way: str) -> list[Any]:
        return sorted(self.spark.table(self.sql(way)).collect(), key=str)

    def history(self, way: str) -> list[Mapping[str, str]]:
        """The metrics of each MERGE that say what became of rows, the newest first."""
        said = ("numTargetRowsInserted", "numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numOutputRows", "numSourceRows")
        found = self.spark.sql(f"DESCRIBE HISTORY {self.sql(way)}").where("operation = 'MERGE'").collect()
        return [{name: commit["operationMetrics"][name] for name in said} for commit in found]


def is_by_statement(spark: Any, table: str) -> bool:
    """Whether the newest commit is a statement's, whose predicate the history has."""
    [commit] = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
    return bool(json.loads(commit["operationParameters"]["predicate"]))


@pytest.fixture
def spark(lake: Lake) -> Any:
    return lake.start(lake.config(lake.topic("t"))).spark


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
@pytest.mark.parametrize(
    ("keys", "layout"),
    [
        (("id",), Layout()),
        (("name", "made"), Layout(partitions=(Partition("place"),))),
        (("price",), Layout(cluster=("id",))),
    ],
    ids=["number", "text and date, partitioned", "decimal, clustered"],
)
def test_both_ways_leave_the_same_rows_and_say_the_same_of_them(lake: DeltaLake, spark: Any, keys: tuple[str, ...], layout: Layout) -> None:
    [seed] = seeds(1)
    print(f"seed {seed}")
    chance = random.Random(seed)
    pair = Pair(spark, str(lake.warehouse), shape_of(*keys), layout)

    def row() -> Row:
        number = chance.randrange(40)
        made, price = f"20{number:02}-01-0{1 + number % 9}", f"{number - 20}.{number % 10}5"
        name = f"né {'long ' * 10}{number}" if number % 2 else f"a{number}"
        return chance.choice("ccud"), number, name, made, price, chance.choice(["a b", "ö/%:=", "c"])

    names = list(COLUMNS)
    for number, count in enumerate((12, 1, 30, 30, 300, 5)):
        of_key: dict[Any, Row] = {}
        for _ in range(count):
            new = row()
            of_key[tuple(new[1 + names.index(key)] for key in keys)] = new
        pair.merge(list(of_key.values()))
        assert pair.rows("direct") == pair.rows("statements"), number
        assert not is_by_statement(spark, pair.sql("direct"))
        assert is_by_statement(spark, pair.sql("statements"))
        if number == 3:
            spark.sql(f"OPTIMIZE {pair.sql('direct')}").collect()
    assert pair.history("direct") == pair.history("statements")
    table = lake.table("direct")  # as deltalake reads it
    assert len(table.file_uris()) > 0
    assert len(lake.whole_rows("direct")) == len(pair.rows("direct"))


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_a_batch_that_deletes_all_rows_or_none_still_stores_its_watermark(lake: DeltaLake, spark: Any) -> None:
    pair = Pair(spark, str(lake.warehouse), shape_of("id"), Layout())
    rows: list[Row] = [("c", number, "n", "2020-01-01", "1.00", "a") for number in range(5)]
    pair.merge(rows)
    pair.merge([("d", *row[1:]) for row in rows])
    pair.merge([("d", *row[1:]) for row in rows])
    assert pair.rows("direct") == []
    assert lake.watermark("direct") == {"t": {"0": 3}}
    assert pair.history("direct") == pair.history("statements")
    assert len(lake.table("direct").file_uris()) == 0, "a file that has lost all rows goes"


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_what_others_commit_is_seen_and_two_tasks_of_one_sequence_write_once(lake: DeltaLake, spark: Any) -> None:
    pair = Pair(spark, str(lake.warehouse), shape_of("id"), Layout())
    pair.merge([("c", 1, "n", "2020-01-01", "1.00", "a")])
    table = pair.sql("direct")
    spark.sql(f"INSERT INTO {table} SELECT 2L, name, made, price, place, more FROM {table}").collect()
    pair.merge([("u", 2, "new", "2020-01-01", "1.00", "a")])
    assert [(row["id"], row["name"]) for row in pair.rows("direct")] == [(1, "n"), (2, "new")]

    other = DeltaTables(spark, "lake", str(lake.warehouse), Writer("lake", 0, 1), {})
    name = pair.names["direct"]
    other.load(name)
    pair.merge([("u", 1, "first", "2020-01-01", "1.00", "a")])
    held(spark, [("u", 1, "second", "2020-01-01", "1.00", "a")])
    with pytest.raises(Conflict):
        other.merge(name, VIEW, pair.shape, Watermark({TP: 9}))
    assert [row["name"] for row in pair.rows("direct")] == ["first", "new"]
    pair.merge([("d", 1, "first", "2020-01-01", "1.00", "a")])
    assert [row["name"] for row in pair.rows("direct")] == ["new"]


class Interrupted(DirectMerge):
    """Has somebody else write the table after its positions were found."""

    table = ""

    def _positions(self, *args: Any) -> Any:
        found = super()._positions(*args)
        self._spark.sql(f"INSERT INTO {self.table} SELECT 7L, name, made, price, place, more FROM {self.table} LIMIT 1").collect()
        return found


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_rows_that_others_write_meanwhile_make_it_fail_and_the_next_attempt_sees_them(lake: DeltaLake, spark: Any) -> None:
    pair = Pair(spark, str(lake.warehouse), shape_of("id"), Layout())
    pair.merge([("c", 1, "n", "2020-01-01", "1.00", "a")])
    held(spark, [("u", 1, "new", "2020-01-01", "1.00", "a"), ("u", 7, "seven", "2020-01-01", "1.00", "a")])
    path = f"{lake.warehouse}/public/direct"
    other = Interrupted(spark, path)
    other.table = pair.sql("direct")
    with pytest.raises(Exception, match="DELTA_CONCURRENT"):
        other.merge(VIEW, pair.shape, Transaction("lh:lake", 5))
    assert sorted((row["id"], row["name"]) for row in pair.rows("direct")) == [(1, "n"), (7, "n")]
    assert DirectMerge(spark, path).merge(VIEW, pair.shape, Transaction("lh:lake", 5)) is not None
    assert sorted((row["id"], row["name"]) for row in pair.rows("direct")) == [(1, "new"), (7, "seven")]


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_tables_of_which_more_is_to_be_regarded_are_written_by_the_statement(lake: DeltaLake, spark: Any) -> None:
    pair = Pair(spark, str(lake.warehouse), shape_of("id"), Layout())
    pair.merge([("c", 1, "n", "2020-01-01", "1.00", "a")])
    table, row = pair.sql("direct"), ("u", 1, "new", "2020-01-01", "1.00", "a")
    assert not is_by_statement(spark, table)
    for setting, is_direct_ in (("delta.enableChangeDataFeed", False), ("delta.enableDeletionVectors", True)):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{setting}' = '{str(not is_direct_).lower()}')")
        pair.merge([row])
        assert is_by_statement(spark, table), setting
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{setting}' = '{str(is_direct_).lower()}')")
        pair.merge([row])
        assert not is_by_statement(spark, table), setting
    changes = spark.sql(f"SELECT * FROM table_changes_by_path('{lake.warehouse}/public/direct', 3, 3)").collect()
    assert sorted(change["_change_type"] for change in changes) == ["update_postimage", "update_preimage"]
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (mine STRING)")
    spark.sql(f"UPDATE {table} SET mine = 'kept'").collect()
    pair.merge([row])
    assert is_by_statement(spark, table)
    assert [row["mine"] for row in pair.rows("direct")] == ["kept"]


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
        "is_local": False,
        "required_keys": frozenset(),
        "keys": (),
    }.items():
        assert not is_direct(Shape(**{**vars(plain), name: value})), name
