"""What Debezium's versions write of snapshots into offsets, and what a start makes of it: only a running initial snapshot is taken again.

The values are those of `SnapshotType`, of `CommonOffsetContext`'s table and of the loaders; each was asked of Debezium 3.6 too, by PATCH.
"""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.errors import BadRequestError, ConfigError
from connectors.mongodb.position.offset import MongoOffset
from connectors.mysql.connector import MySqlConnector
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.schema.history import is_at_or_before
from connectors.postgres.connector import PostgresConnector
from connectors.postgres.position.offset import PostgresOffset

MYSQL: dict[str, Any] = {
    "ts_sec": 1_795_437_540,
    "file": "mysql-bin.000003",
    "pos": 484,
    "gtids": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-13",
}
PG: dict[str, Any] = {
    "lsn_proc": 49_568_144,
    "messageType": "INSERT",
    "lsn_commit": 49_568_140,
    "lsn": 49_568_144,
    "txId": 802,
    "ts_usec": 1,
}
WINDOW = {
    "incremental_snapshot_collections": '[{"incremental_snapshot_collections_id":"a.t"}]',
    "incremental_snapshot_correlation_id": "x",
}

#: Fields, and whether they say that an initial snapshot runs.
FIELDS: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"snapshot": "INCREMENTAL", "snapshot_completed": False}, False),
    ({"snapshot": "INCREMENTAL", "snapshot_completed": True}, False),
    ({"snapshot": "INCREMENTAL", "snapshot_completed": False, "last_snapshot_record": False, **WINDOW}, False),
    ({"snapshot": "INCREMENTAL"}, False),
    ({"snapshot": "BLOCKING", "snapshot_completed": False}, False),
    ({"snapshot": "BLOCKING"}, False),
    ({"snapshot": "INITIAL", "snapshot_completed": False, "last_snapshot_record": False}, True),
    ({"snapshot": "INITIAL"}, True),
    ({"snapshot": True}, True),
    ({"snapshot": "true"}, True),
    ({"snapshot": "INITIAL", "snapshot_completed": True}, False),
    ({"snapshot": "INITIAL", "snapshot_completed": "true"}, False),
    ({"snapshot": True, "snapshot_completed": True}, False),
    ({"snapshot": False}, False),
    ({"snapshot": "false"}, False),
    ({"snapshot": None}, False),
    ({"snapshot_completed": True}, False),
]


@pytest.mark.parametrize(("fields", "runs"), FIELDS, ids=lambda value: str(value))
def test_only_a_running_initial_snapshot_is_taken_again(fields: dict[str, Any], runs: bool) -> None:
    assert MySqlOffset.load({**MYSQL, **fields}).is_snapshot_unfinished == runs
    assert PostgresOffset.load({**PG, **fields}).is_snapshot_unfinished == runs
    assert not MongoOffset.load({"sec": 1, "ord": 2, **fields}).in_snapshot


def test_a_snapshot_of_postgresql_ends_with_its_last_record() -> None:
    """`PostgresOffsetContext` takes either sign."""
    fields = {"snapshot": "INITIAL", "last_snapshot_record": True, "snapshot_completed": False}
    assert not PostgresOffset.load({**PG, **fields}).is_snapshot_unfinished


@pytest.mark.parametrize(("value", "runs"), [(True, True), ("true", True), (False, False), ("false", False), (None, False)])
def test_mongodb_says_it_by_a_field_of_its_own(value: Any, runs: bool) -> None:
    assert MongoOffset.load({"sec": 1, "ord": 2, "initsync": value}).in_snapshot == runs


@pytest.mark.parametrize("fields", [fields for fields, runs in FIELDS if not runs and "BLOCKING" not in fields.values()])
def test_what_goes_on_is_written_as_debezium_writes_a_stream(fields: dict[str, Any]) -> None:
    """Debezium would keep on showing a taken-over `INCREMENTAL` as a snapshot; it reads what it has itself without one."""
    mysql = MySqlOffset.load({**MYSQL, **fields}).dump()
    assert not {"snapshot", "snapshot_completed"} & mysql.keys()
    postgres = PostgresOffset.load({**PG, **fields})
    assert postgres.snapshot is None or postgres.snapshot_completed
    for dumped in (mysql, postgres.dump()):
        assert {name for name in dumped if name.startswith("incremental_")} == {name for name in fields if name.startswith("incremental_")}


@pytest.mark.parametrize("value", ["LAST", "INITIAL_ONLY", "first", 7])
def test_another_kind_is_refused_and_not_taken_for_a_snapshot(value: Any) -> None:
    with pytest.raises(ConfigError, match="'snapshot' of the stored offset"):
        MySqlOffset.load({**MYSQL, "snapshot": value})
    with pytest.raises(ConfigError, match="'snapshot' of the stored offset"):
        PostgresOffset.load({**PG, "snapshot": value})
    for connector, offset in ((MySqlConnector(), MYSQL), (PostgresConnector(), PG)):
        with pytest.raises(BadRequestError, match="could not be read back"):
            connector.alter_offsets({}, [({"server": "p"}, {**offset, "snapshot": value})])


def test_structures_recorded_at_the_place_of_a_taken_over_window_count() -> None:
    """A record of the history at the same transactions lies behind an initial snapshot's offset, and before a stream's."""
    stored = MySqlOffset.load({**MYSQL, "snapshot": "INCREMENTAL", "snapshot_completed": False}).dump()
    assert is_at_or_before(MYSQL, stored, lambda _: True)
