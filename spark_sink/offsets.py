"""Altering and resetting a stopped sink's offsets: its tables' watermarks take the values that a client asked for.

The worker has no Spark, and should not have a JVM next to its REST API: `alter` starts a short-lived process of this module, which reads a
request from its standard input (configurations hold secrets, so it is not in the command line) and answers on its standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping

from connect_py.api.record import TopicPartition
from connect_py.errors import BadRequestError, ConnectError, RetriableError
from spark_sink import routing
from spark_sink.config import sink_config as configuration
from spark_sink.routing import TableName
from spark_sink.spark.session import open_session
from spark_sink.tables.base import Tables, Writer
from spark_sink.tables.open import open_tables
from spark_sink.tables.watermark import NO_SNAPSHOT, Watermark

#: Connect answers a request within 90 s (`ConnectorsResource`), and Spark starts in some ten.
ALTER_TIMEOUT_SECONDS = 85.0


def alter(config: Mapping[str, str], offsets: Mapping[tuple[str, int], int | None]) -> None:
    """Make the watermarks of a stopped connector's tables say `offsets`; None forgets a partition, no offsets forget all.

    Tables are changed one by one, each in one commit; repeating a request that failed half way finishes it.

    Raises:
        BadRequestError: an offset has no table that could hold it.
        ConnectError: Spark or the catalog refused.
    """
    request = {"config": dict(config), "offsets": [[topic, partition, offset] for (topic, partition), offset in offsets.items()]}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "spark_sink.offsets"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=ALTER_TIMEOUT_SECONDS,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )
    except subprocess.TimeoutExpired:
        raise RetriableError(
            f"The tables' offsets could not be changed within {ALTER_TIMEOUT_SECONDS:.0f} s. Some tables may have them; repeat the request."
        ) from None
    answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not answers:
        raise ConnectError(f"The tables' offsets could not be changed: the process ended with {done.returncode}. {done.stderr[-1000:]}")
    answer = json.loads(answers[-1])
    if "refused" in answer:
        raise BadRequestError(answer["refused"])
    if "failed" in answer:
        raise ConnectError(f"{answer['failed']} Some tables may have the new offsets; repeat the request.")


def alter_tables(
    tables: Tables, names: Mapping[str, Iterable[TableName]], offsets: Mapping[TopicPartition, int | None], everything: Iterable[TableName]
) -> None:
    """Change watermarks, one table after the other, each in one commit.

    Args:
        names: tables that a topic's records go to, by topic.
        everything: tables that hold a watermark of this connector; all of it is forgotten when `offsets` is empty.

    Raises:
        BadRequestError: an offset has no table that could hold it; nothing was changed.
    """
    wanted: dict[TableName, dict[TopicPartition, int | None]] = {} if offsets else {name: {} for name in everything}
    for tp, offset in offsets.items():
        found = [name for name in names[tp.topic] if tables.load(name) is not None]
        if not found and offset is not None:
            raise BadRequestError(
                f"Topic {tp.topic} has no lakehouse table yet, and offsets are kept in the tables. Create the table, or set "
                "lakehouse.starting-offsets. Nothing was changed."
            )
        for name in found:
            wanted.setdefault(name, {})[tp] = offset
    for name, changes in sorted(wanted.items()):
        if (state := tables.load(name)) is None:
            continue
        after = {tp: offset for tp, offset in {**state.watermark.offsets, **changes}.items() if offset is not None} if offsets else {}
        if after != dict(state.watermark.offsets):
            tables.alter(name, Watermark(after, dict.fromkeys(state.watermark.snapshots, NO_SNAPSHOT)))


def _run(request: Mapping[str, object]) -> None:
    raw = request["config"]
    entries = request["offsets"]
    assert isinstance(raw, dict)
    assert isinstance(entries, list)
    config = configuration.parse(raw)
    offsets = {TopicPartition(topic, partition): offset for topic, partition, offset in entries}
    session = open_session(config, f"{raw['name']}-offsets")
    try:
        tables = open_tables(session.spark, config, Writer(raw["name"], 0, time.time_ns() // 1_000_000))
        written = tables.written()
        names: dict[str, set[TableName]] = {}
        for topic in {tp.topic for tp in offsets}:
            names[topic] = {name for name, mark in written.items() if any(tp.topic == topic for tp in mark.offsets)}
            names[topic].update(routing.of_topic(topic, config))
        alter_tables(tables, names, offsets, written)
    finally:
        session.close()


def main() -> None:
    """Answer one request."""
    answer: dict[str, str] = {}
    try:
        _run(json.loads(sys.stdin.read()))
    except BadRequestError as error:
        answer["refused"] = str(error)
    except Exception as error:  # noqa: BLE001  # the process's answer, whatever it was
        answer["failed"] = str(error).splitlines()[0][:1000]
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
