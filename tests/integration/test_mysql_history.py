"""`connect-py history`: what is missing in a schema history is named, and put back where the server can tell it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from connect_py.app.cli import main
from connect_py.app.services.mysql import MySqlAddress
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka, set_topic

pytestmark = pytest.mark.services


@pytest.fixture
def captured(mysql: MySqlAddress, kafka: Kafka, tmp_path: Path) -> Iterator[tuple[Any, dict[str, str], Path, Any]]:
    """A cursor in a database of three tables, the configuration of a connector that has read them, its file, and its offset."""
    name = f"history_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        for table in "abc":
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))")
            cursor.execute(f"INSERT INTO {table} VALUES (1, 'old')")
        config = task_config(mysql, kafka, name)
        with DirectTask(config) as task:
            task.poll_until(lambda: task.rows("c"))
            cursor.execute("INSERT INTO a VALUES (2, 'new')")
            task.poll_until(lambda: len(task.rows("a")) == 2)
        file = tmp_path / "connector.json"
        file.write_text(json.dumps({"name": name, "config": config}))
        yield cursor, config, file, task.offsets[-1]
        cursor.execute(f"DROP DATABASE {name}")


def copy_without(kafka: Kafka, config: dict[str, str], words: str) -> None:
    """A history topic that lacks the records whose statement holds some words, as after a loss."""
    from offsets.schema_history import KafkaSchemaHistory

    old = KafkaSchemaHistory(config["schema.history.internal.kafka.topic"], {"bootstrap.servers": kafka.bootstrap})
    config["schema.history.internal.kafka.topic"] += "_short"
    new = KafkaSchemaHistory(config["schema.history.internal.kafka.topic"], {"bootstrap.servers": kafka.bootstrap})
    new.create()
    for record in old.read():
        if words not in record["ddl"]:
            new.append(record)
    old.close()
    new.close()


def test_a_whole_history_is_found_whole_although_statements_follow_the_offset(captured: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cursor, _, file, offset = captured
    cursor.execute("ALTER TABLE b ADD w INT FIRST")
    cursor.execute("RENAME TABLE c TO d")
    assert main(["history", "verify", str(file), "--offset", json.dumps(offset)]) == 0
    assert "nothing wrong" in capsys.readouterr().out


def test_a_lost_record_is_named_with_its_range_and_put_back(
    captured: Any, kafka: Kafka, mysql: MySqlAddress, capsys: pytest.CaptureFixture[str]
) -> None:
    cursor, config, file, _ = captured
    with DirectTask(config, captured[3]) as task:
        cursor.execute("ALTER TABLE b ADD w INT FIRST")
        cursor.execute("ALTER TABLE c MODIFY v VARCHAR(9) CHARACTER SET latin1")
        cursor.execute("INSERT INTO b VALUES (5, 2, 'new')")
        task.poll_until(lambda: task.rows("b"))
    offset = task.offsets[-1]
    copy_without(kafka, config, "ADD w")
    file.write_text(json.dumps({"name": "x", "config": config}))
    arguments = [str(file), "--offset", json.dumps(offset)]
    assert main(["history", "verify", *arguments]) == 3
    shown = capsys.readouterr().out
    assert "1 wrong" in shown
    assert (
        f".b has another structure (columns id, v; the server has w, id, v) in the history: a record is missing between {offset['file']}:"
        in shown
    )
    assert f"and {offset['file']}:{offset['pos']}" in shown
    assert main(["history", "repair", *arguments]) == 0
    assert main(["history", "verify", *arguments]) == 0
    cursor.execute("INSERT INTO b VALUES (6, 3, 'more')")
    with DirectTask(config, offset) as again:
        again.poll_until(lambda: again.rows("b"))
    assert again.rows("b") == [("c", {"w": 6, "id": 3, "v": "more"})]


def test_a_table_that_changes_behind_the_offset_is_not_repaired(captured: Any, kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    cursor, config, file, offset = captured
    copy_without(kafka, config, "CREATE TABLE `b`")
    file.write_text(json.dumps({"name": "x", **config}))
    cursor.execute("ALTER TABLE b ADD w INT")
    assert main(["history", "repair", str(file), "--offset", json.dumps(offset)]) == 3
    shown = capsys.readouterr().out
    assert "has no structure in the history" in shown and "a statement behind the offset concerns it" in shown and "not repaired" in shown


def test_a_topic_that_is_gone_is_made_anew(captured: Any, kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    cursor, config, file, offset = captured
    config["schema.history.internal.kafka.topic"] += "_gone"
    file.write_text(json.dumps({"name": "x", **config}))
    assert main(["history", "repair", str(file), "--offset", json.dumps(offset)]) == 0
    assert "all structures are missing" in capsys.readouterr().out
    cursor.execute("INSERT INTO b VALUES (2, 'new')")
    with DirectTask(config, offset) as task:
        task.poll_until(lambda: task.rows("b"))
    assert task.rows("b") == [("c", {"id": 2, "v": "new"})]


def test_records_that_are_gone_or_none_and_a_topic_that_forgets_are_named(
    captured: Any, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    _, config, file, offset = captured
    topic = config["schema.history.internal.kafka.topic"]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(topic, b"no JSON", partition=0)
    producer.flush(30)
    set_topic(kafka.bootstrap, topic, {"retention.ms": "604800000"})
    deadline = time.monotonic() + 30
    shown = ""
    while "retention.ms=604800000: records can be lost" not in shown:  # brokers learn of a setting a moment later
        assert time.monotonic() < deadline, shown
        assert main(["history", "verify", str(file), "--offset", json.dumps(offset)]) == 3
        shown = capsys.readouterr().out
    assert "is none, behind mysql-bin" in shown


def test_wrong_usage_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "verify", str(tmp_path / "missing.json")]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert main(["history", "mend", "x"]) == 1
