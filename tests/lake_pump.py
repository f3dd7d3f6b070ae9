"""A real source task whose events go to a real broker, for lakehouse tests without a worker: the test says when anything moves."""

from __future__ import annotations

import itertools
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.api import EncodedBatch, JsonEncoding
from tests.fix_spark import Lake
from tests.mongo_task import MongoTask
from tests.mysql_task import DirectMySqlTask
from tests.postgres_task import DirectTask


class _Pump(DirectTask):
    """Call `pump` to move what the source has by now."""

    encoding = JsonEncoding()

    def __init__(self, config: dict[str, str], lake: Lake) -> None:
        self._lake = lake
        self._topics: set[str] = set()
        self._admin = AdminClient({"bootstrap.servers": lake.bootstrap})
        self.moved = 0
        super().__init__(config)

    def poll(self) -> list[Any]:
        batch = self.task.poll()
        if not isinstance(batch, EncodedBatch):
            return []
        for route, _, _ in batch.rows:
            if route.topic not in self._topics:
                self._topics.add(route.topic)
                self._admin.create_topics([NewTopic(route.topic, 1, 1)])[route.topic].result(20)
        for topic, rows in itertools.groupby(batch.rows, key=lambda row: row[0].topic):
            self._lake.produce(topic, [(key, value) for _, key, value in rows])
        self.moved += len(batch.rows)
        self.task.offsets_committed([(batch.source_partition, batch.source_offset)])
        return list(batch.rows)

    def pump(self, until: int) -> None:
        """Move events until so many have been moved since the start."""
        self.poll_until(lambda: self.moved >= until, what=f"{until} events; {self.moved} came")


class PostgresPump(_Pump):
    """PostgreSQL's."""


class MySqlPump(_Pump, DirectMySqlTask):
    """MySQL's and MariaDB's."""


class MongoPump(_Pump, MongoTask):
    """MongoDB's."""
