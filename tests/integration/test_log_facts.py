"""The readers of facts against real servers."""

from __future__ import annotations

import pytest

from connectors.mysql.facts import MySqlFactsReader
from tests.fix_mysql import MySqlAddress

pytestmark = pytest.mark.services


def test_mysql_says_how_far_an_offset_is_from_the_end_of_the_log(mysql: MySqlAddress, tag: str) -> None:
    config = {
        "database.hostname": mysql.host,
        "database.port": str(mysql.port),
        "database.user": mysql.user,
        "database.password": mysql.password,
        "database.server.id": "71",
        "topic.prefix": tag,
        "schema.history.internal.kafka.bootstrap.servers": "localhost:1",
        "schema.history.internal.kafka.topic": tag,
    }
    reader = MySqlFactsReader(config, "mysql")
    try:
        first = reader.read(())
        assert first.head is not None and first.position is None
        (group,) = first.groups
        number = int(group.values["end-file-number"])  # type: ignore[arg-type]
        offset = {"file": f"binlog.{number:06}", "pos": 4}
        stored = reader.read([({"server": tag}, offset)])
        assert stored.position == stored.segments[number] + 4
        assert stored.head is not None and stored.groups[0].values["distance-bytes"] == stored.head - stored.position
        gone = reader.read([({"server": tag}, {**offset, "file": "binlog.999999"})])
        assert gone.position is None
        assert gone.groups[0].values["position-available"] is False
        assert gone.groups[0].values["seconds-left"] == 0
    finally:
        reader.close()
