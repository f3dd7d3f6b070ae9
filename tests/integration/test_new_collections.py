"""A table of MySQL and a collection of MongoDB are added to a running source: what they hold is read once, while the others are streamed.

`test_postgres_new_tables.py` has the races and kills; the rule itself is one for all three databases.
"""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.snapshot.new_tables import FIELD
from tests import mongo_task
from tests.fix_kafka import Kafka
from tests.mongo_task import MongoTask
from tests.mysql_task import DirectMySqlTask, mysql_source
from tests.postgres_task import DirectTask

pytestmark = pytest.mark.services


def settle(task: DirectTask) -> None:
    """Wait for the stream, and for the end of the snapshot if one runs."""
    task.poll_until(task.is_streaming, what="the stream")
    task.poll()
    task.poll_until(lambda: not task.is_snapshotting(), what="the end of the snapshot")


def test_a_table_of_mysql(mysql: MySqlAddress, kafka: Kafka, tag: str) -> None:
    database = f"new_{tag}"
    with mysql.connect() as connection:
        cursor = connection.cursor()

        def run(*statements: str) -> None:
            for statement in statements:
                cursor.execute(statement)

        run(f"CREATE DATABASE {database}", f"USE {database}")
        run("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        for table in ("old", "new"):
            run(f"CREATE TABLE {table} (id INT PRIMARY KEY, v TEXT)", f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        more = {
            "signal_data_collection": f"{database}.signals",
            "snapshot_new_tables": "incremental",
            "incremental_snapshot_chunk_size": "2",
        }
        config = mysql_source(mysql, kafka.bootstrap, database, **more)

        def start(tables: str, offset: Any = None) -> DirectMySqlTask:
            listed = ",".join(f"{database}.{table}" for table in tables.split(","))
            return DirectMySqlTask({**config, "table.include.list": listed}, offset)

        def of(task: DirectTask, table: str) -> list[tuple[str, int]]:
            return [(value["op"], key["id"]) for key, value in task.of(f"{database}.{database}.{table}") if value is not None]

        with start("old") as task:
            settle(task)
            assert of(task, "old") == [("r", 1), ("r", 2), ("r", 3)]
            offset = task.offset
        run("INSERT INTO old VALUES (4, 'while away')", "UPDATE new SET v = 'while away' WHERE id = 2")
        with start("old,new", offset) as task:
            settle(task)
            run("INSERT INTO old VALUES (5, 'streamed')", "INSERT INTO new VALUES (5, 'streamed')")
            task.poll_until(lambda: ("c", 5) in of(task, "new"), what="the streamed row")
            assert of(task, "old") == [("c", 4), ("c", 5)]
            assert [key for op, key in of(task, "new") if op == "r"] == [1, 2, 3]
            run("CREATE TABLE later (id INT PRIMARY KEY)")
            offset = task.offset
        with start("old,new,later", offset) as task:
            settle(task)
            run("INSERT INTO later VALUES (1)")
            task.poll_until(lambda: of(task, "later"), what="the streamed row")
            assert of(task, "new") == [], "it is read once"
        assert f"{database}.new" in offset[FIELD]
        run(f"DROP DATABASE {database}")


def test_a_collection_of_mongodb(mongo: MongoAddress) -> None:
    with mongo_task.database(mongo) as db:
        for name in ("old", "new"):
            db[name].insert_many([{"_id": n} for n in (1, 2, 3)])
        more = {"signal_data_collection": f"{db.name}.signals", "snapshot_new_tables": "incremental"}

        def start(names: str, offset: Any = None) -> MongoTask:
            listed = ",".join(f"{db.name}.{name}" for name in names.split(","))
            return MongoTask(mongo_task.config(mongo, db, collection_include_list=listed, **more), offset)

        with start("old") as task:
            settle(task)
            db["old"].insert_one({"_id": 4})
            task.poll_until(lambda: ("c", "4") in task.operations(f"m.{db.name}.old"), what="the streamed document")
            offset = task.offset
        db["old"].insert_one({"_id": 5})
        with start("old,new", offset) as task:
            settle(task)
            db["new"].insert_one({"_id": 5})
            task.poll_until(lambda: ("c", "5") in task.operations(f"m.{db.name}.new"), what="the streamed document")
            assert task.operations(f"m.{db.name}.old") == [("c", "5")]
            assert [key for op, key in task.operations(f"m.{db.name}.new") if op == "r"] == ["1", "2", "3"]
            db["later"].insert_one({"_id": 1})
            offset = task.offset
        with start("old,new", offset) as task:
            settle(task)
            db["new"].insert_one({"_id": 6})
            task.poll_until(lambda: task.operations(f"m.{db.name}.new"), what="the streamed document")
            assert task.operations(f"m.{db.name}.new") == [("c", "6")], "it is read once"
