"""Structured Streaming drives the same tables: what the checkpoint remembers never decides. Real broker, real tables."""

from __future__ import annotations

import pytest

from connect_py.api.record import TopicPartition
from tests.fix_spark import TEXT, Lake, both_formats, event

pytestmark = [pytest.mark.services, pytest.mark.spark]


def notes(*texts: str) -> list[tuple[bytes | None, bytes]]:
    """Events without a key: each becomes a row of its own, so that a repeated one shows."""
    return [event("c", None, {"note": text}, {"note": TEXT}) for text in texts]


def found(lake: Lake) -> list[str]:
    return sorted(row["note"] for row in lake.rows("t"))


def streaming(lake: Lake, *topics: str, **more: str) -> dict[str, str]:
    return lake.config(*topics, source_mode="stream", checkpoint_location=f"file://{lake.warehouse.parent}/checkpoint", **more)


@both_formats
def test_batches_of_a_stream_reach_the_table_once_and_a_restart_repeats_none(lake: Lake) -> None:
    topic = lake.topic("t", partitions=2)
    config = streaming(lake, topic, max__offsets__per__trigger="2")
    task = lake.start(config)
    lake.produce(topic, notes("a", "b", "c"))
    assert lake.drain(task) == 2
    lake.produce(topic, notes("d"), partition=1)
    lake.produce(topic, notes("e"))
    assert lake.drain(task) == 1
    task.close()
    again = lake.start(config)
    assert lake.drain(again) == 0
    lake.produce(topic, notes("f"))
    assert lake.drain(again) == 1
    assert found(lake) == ["a", "b", "c", "d", "e", "f"]
    assert lake.context.group == {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 1}
