"""What the sink has the JVM of its own process do (`spark_sink.spark.local`, `spark_sink.spark.evaluation`, `LocalFiles.java`)."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as f

from connect_py.api.record import TopicPartition
from spark_sink.spark.evaluation import Evaluations
from spark_sink.spark.local import answer_at_once, evaluate, held_rows, hold, private_field, select
from tests.fix_spark import TEXT, Lake, event, rows_that_spark_holds
from tests.seeds import seeds
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.spark]


@pytest.fixture
def spark(lake: Lake) -> Any:
    return lake.start(lake.config(lake.topic("t"))).spark


def test_expressions_that_are_handed_over_together_are_those_of_spark(spark: Any) -> None:
    frame = spark.range(3)
    for texts in (["id"], ["id + 1 a", "'it''s' b", "concat('\n', `id`) `c d`", "'\\\\' e"], ["id", "'a\0b' with_separator"]):
        assert select(frame, texts).collect() == frame.selectExpr(*texts).collect()
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        select(frame, ["id", "other"])


@pytest.mark.parametrize("at_once", [True, False])
def test_rows_that_spark_holds_are_made_once_and_gone_when_they_are_released(spark: Any, at_once: bool) -> None:
    before, seen = rows_that_spark_holds(spark), Observation()
    rows = spark.range(1_000).repartition(3, "id").selectExpr("id", "uuid() name")
    held = hold(rows.observe(seen, f.expr("count(1) n")) if at_once else rows, at_once=at_once)
    first = sorted(map(tuple, held.rows.collect()))
    assert [number for number, _ in first] == list(range(1_000))
    assert sorted(map(tuple, held.rows.where("id >= 0").collect())) == first, "other rows have other names"
    assert not at_once or seen.get == {"n": 1_000}
    assert rows_that_spark_holds(spark) == before + 1
    held.release()
    assert rows_that_spark_holds(spark) == before


def test_long_answers_are_not_delayed_in_a_thread_that_says_so(spark: Any) -> None:
    def seconds() -> float:
        """The least time of several answers of 12 kB; one that is delayed takes 40 ms."""
        repeat = spark._jvm.java.util.Collections.nCopies(4_000, "a").toString
        took = []
        for _ in range(8):
            began = time.monotonic()
            assert len(repeat()) == 12_000
            took.append(time.monotonic() - began)
        return min(took)

    def before_and_after() -> tuple[float, float]:
        before = seconds()
        answer_at_once(spark)
        return before, seconds()

    with ThreadPoolExecutor(1) as other:
        before, after = other.submit(before_and_after).result()
    assert after < 0.03 < before
    assert seconds() < 0.03, "the task's own thread has said so"


def test_consumers_of_a_batch_are_closed_soon_after_it(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    spark: Any = task.spark
    consumers = "org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer$"
    pool = private_field(spark._jvm.org.apache.spark.util.Utils.classForName(consumers, True, False), "consumerPool", None)
    objects = private_field(pool.getClass(), "pool", pool)
    before = objects.getCreatedCount()
    lake.produce(topic, [event("c", number, {"n": "x" * 100_000}, {"n": TEXT}) for number in range(190)])
    lake.drain(task)
    assert objects.getCreatedCount() > before, "the batch is too large for the driver, so Spark has read it"
    eventually(lambda: pool.size() == 0, lambda: f"{pool.size()} consumers are still open")


def test_files_of_a_context_are_written_by_calls_of_the_system(spark: Any, tmp_path: Path) -> None:
    java, file = spark._jvm, tmp_path / "file"
    path = java.org.apache.hadoop.fs.Path
    context = java.org.apache.hadoop.fs.FileContext.getFileContext(
        path(str(tmp_path)).toUri(), java.org.apache.spark.SparkContext.getOrCreate().hadoopConfiguration()
    )
    file.write_text("text")
    assert context.getDefaultFileSystem().getClass().getName() == "io.github.connectpy.spark.LocalFiles$OfContext"
    context.setPermission(path(str(file)), java.org.apache.hadoop.fs.permission.FsPermission("640"))
    assert file.stat().st_mode & 0o777 == 0o640
    for name, target in (("link", "file"), ("dangling", "nothing")):
        (tmp_path / name).symlink_to(tmp_path / target)
        status = context.getFileLinkStatus(path(str(tmp_path / name)))
        assert status.isSymlink()
        assert status.getSymlink().toUri().getPath() == str(tmp_path / target)
    assert not context.getFileLinkStatus(path(str(file))).isSymlink()
    with pytest.raises(Exception, match="FileNotFoundException"):
        context.getFileLinkStatus(path(str(tmp_path / "other")))


def held(spark: Any, texts: Sequence[str | None]) -> Any:
    """Rows that the driver holds: a number and a text each."""
    values = ", ".join(f"({number}L, {'NULL' if text is None else repr(text)})" for number, text in enumerate(texts))
    frame = evaluate(spark.sql(f"SELECT n, CAST(text AS string) text FROM VALUES {values} AS v(n, text)"))  # text where all are NULL, too
    assert frame is not None
    return frame


PARSED = ["n", "from_json(text, 'a bigint, b array<string>', map('mode', 'PERMISSIVE')) v"]
READ = ["CAST(n AS int) n", "v.a a", "IF(v IS NULL, 'none', concat_ws(',', v.b)) b", "IF(v.a = 13, raise_error('unlucky'), v.a % 3) c"]


def parsed(frame: Any) -> Any:
    return select(select(frame.where("n > 0"), PARSED), READ)


@pytest.mark.parametrize("seed", seeds(3))
def test_a_plan_that_is_kept_makes_of_other_rows_what_spark_makes_of_them(spark: Any, seed: int) -> None:
    chance, evaluations = random.Random(seed), Evaluations()
    plans: list[Any] = []
    texts = [None, "", "{", '{"a":1}', '{"a":7,"b":["x","ä"]}', '{"b":[null]}', '{"a":"no number"}']

    def made(frame: Any) -> Any:
        plans.append(frame)
        return parsed(frame)

    def check(number: int) -> None:
        frame = held(spark, chance.choices(texts, k=chance.randrange(1, 9)))
        found = evaluations.evaluated("parsed", frame, spark, lambda: made(frame))
        assert held_rows(found) is not None
        assert (found.dtypes, found.collect()) == (parsed(frame).dtypes, parsed(frame).collect())

    for number in range(3):
        check(number)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, range(12)))
    assert len(plans) == 1
    assert spark.conf.get("spark.sql.optimizer.excludedRules", None) is None


def test_what_a_row_raises_is_raised_and_the_next_rows_are_evaluated(spark: Any) -> None:
    evaluations, good, bad = Evaluations(), held(spark, ["", '{"a":1}']), held(spark, ["", '{"a":13}'])
    for frame in (good, bad, good):
        if frame is bad:
            with pytest.raises(Exception, match="unlucky"):
                evaluations.evaluated("parsed", frame, spark, lambda: parsed(bad))
        else:
            assert evaluations.evaluated("parsed", frame, spark, lambda: parsed(good)).collect() == parsed(good).collect()


def test_a_plan_is_of_no_rows_in_particular(spark: Any) -> None:
    evaluations, none = Evaluations(), evaluate(held(spark, ["a"]).where("n < 0"))
    for frame, texts in ((none, []), (held(spark, ["a", "b"]), ["a", "b"]), (none, []), (held(spark, ["c"]), ["c"])):
        found = evaluations.evaluated("text", frame, spark, lambda frame=frame: select(frame, ["text"]))  # type: ignore[misc]
        assert [row["text"] for row in found.collect()] == texts
        found = evaluations.evaluated("never", frame, spark, lambda frame=frame: select(frame.where("1 > 2"), ["n"]))  # type: ignore[misc]
        assert found.collect() == []


def test_what_is_more_than_to_project_and_to_filter_is_left_to_spark(spark: Any) -> None:
    evaluations = Evaluations()
    for texts in (["a"], ["a", "b", "a"], ["c", "c"]):
        frame = held(spark, texts)
        found = evaluations.evaluated("distinct", frame, spark, lambda frame=frame: frame.select("text").distinct())  # type: ignore[misc]
        assert held_rows(found) is None
        assert {row["text"] for row in found.collect()} == {*texts}


def test_small_batches_of_a_topic_are_decoded_before_and_after_a_change_of_its_schema(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    for number, columns in enumerate([{}, {}, {}, {"name": TEXT}, {"name": TEXT}, {}]):
        lake.produce(topic, [event("c", number, dict.fromkeys(columns, f"n{number}"), columns)])
        lake.drain(task)
    assert sorted((row["id"], row["name"]) for row in lake.rows("t")) == [(0, None), (1, None), (2, None), (3, "n3"), (4, "n4"), (5, None)]
    assert lake.context.group[TopicPartition(topic, 0)] == 6
