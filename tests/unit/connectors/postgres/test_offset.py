"""PostgreSQL's offsets: Debezium's fields, and what a restart takes from them."""

import pytest

from connect_py.errors import BadRequestError, ConfigError
from connectors.postgres.connector import PostgresConnector
from connectors.postgres.position.offset import PostgresOffset, acknowledged_lsn, format_lsn, parse_lsn
from connectors.postgres.position.stream_position import ResumePoint

STREAMING = {
    "lsn_proc": 49568144,
    "messageType": "DELETE",
    "lsn_commit": 49568140,
    "lsn": 49568144,
    "txId": 802,
    "ts_usec": 1795244385329091,
}
SNAPSHOT = {
    "last_snapshot_record": True,
    "lsn": 91974880,
    "txId": 966,
    "ts_usec": 1795244470727685,
    "snapshot": "INITIAL",
    "snapshot_completed": True,
}


def test_debeziums_offsets_come_back_in_their_order() -> None:
    for stored in (STREAMING, SNAPSHOT):
        assert list(PostgresOffset.load(stored).dump().items()) == list(stored.items())


def test_fields_that_are_not_known_are_left_out() -> None:
    assert PostgresOffset(lsn=1, lsn_proc=1, message_type="INSERT").dump() == {"lsn_proc": 1, "messageType": "INSERT", "lsn": 1}


def test_the_number_of_events_at_a_position_shows_only_when_there_are_several() -> None:
    assert "lsn_events_processed" not in PostgresOffset(lsn=1, lsn_proc=1, events_processed=1).dump()
    assert PostgresOffset(lsn=1, lsn_proc=1, events_processed=3).dump()["lsn_events_processed"] == 3


def test_an_offset_of_an_older_debezium_in_its_snapshot_is_unfinished() -> None:
    for flag in (True, "true"):
        old = PostgresOffset.load({"lsn": 5, "txId": 1, "ts_usec": 1, "snapshot": flag, "last_snapshot_record": False})
        assert old.snapshot == "INITIAL"
        assert old.is_snapshot_unfinished
    done = PostgresOffset.load({"lsn": 5, "snapshot": True, "last_snapshot_record": True})
    assert not done.is_snapshot_unfinished


def test_a_missing_commit_position_is_the_processed_one() -> None:
    assert PostgresOffset.load({"lsn_proc": 7, "lsn": 7}).lsn_commit == 7


def test_streaming_starts_after_the_last_whole_transaction() -> None:
    assert PostgresOffset.load(STREAMING).start_lsn == 49568140
    assert PostgresOffset.load(SNAPSHOT).start_lsn == 91974880
    assert PostgresOffset().start_lsn == 0


def test_the_server_hears_of_whole_transactions_only() -> None:
    assert acknowledged_lsn(STREAMING) == 49568140
    assert acknowledged_lsn(SNAPSHOT) is None
    assert acknowledged_lsn({"lsn_proc": 7}) == 7


def test_lsn_texts_have_no_padding() -> None:
    assert format_lsn(0x1_0000_00AB) == "1/AB"
    assert parse_lsn("1/AB") == 0x1_0000_00AB
    assert format_lsn(0xFFFFFFFF_FFFFFFFF) == "FFFFFFFF/FFFFFFFF"


def test_a_restart_skips_known_transactions_and_the_known_part_of_the_next() -> None:
    resume = ResumePoint(PostgresOffset.load({**STREAMING, "lsn_events_processed": 2}))
    assert resume.is_transaction_known(49568139)
    assert not resume.is_transaction_known(49568140)
    assert resume.is_partly_known(802)
    assert not resume.is_partly_known(803)
    assert resume.is_event_known(49568000, 1)
    assert resume.is_event_known(49568144, 2)
    assert not resume.is_event_known(49568144, 3)
    assert not resume.is_event_known(49568145, 1)


def test_nothing_is_known_after_a_snapshot() -> None:
    resume = ResumePoint(PostgresOffset.load(SNAPSHOT))
    assert not resume.is_transaction_known(1)
    assert not resume.is_partly_known(966)


def test_a_position_that_is_a_begin_or_commit_knows_no_event() -> None:
    for kind in ("BEGIN", "COMMIT", None):
        assert not ResumePoint(PostgresOffset(lsn=5, lsn_proc=5, lsn_commit=5, tx_id=9, message_type=kind)).is_partly_known(9)


def test_an_offset_that_is_no_number_names_its_field() -> None:
    for value in ({"a": 1}, [5], float("inf")):
        with pytest.raises(ConfigError, match=r"'lsn' of the stored offset is .*, not a whole number"):
            PostgresOffset.load({"lsn": value})
    with pytest.raises(ConfigError, match="'lsn' of the stored offset is 'abc', not a whole number"):
        PostgresOffset.load(STREAMING | {"lsn": "abc"})


def test_a_client_cannot_set_an_offset_that_the_task_could_not_read() -> None:
    connector = PostgresConnector()
    assert connector.alter_offsets({}, [({"server": "shop"}, STREAMING), ({"server": "shop"}, None)]) is False
    with pytest.raises(BadRequestError, match="could not be read back: The field 'lsn'"):
        connector.alter_offsets({}, [({"server": "shop"}, {"lsn": "abc"})])
    with pytest.raises(BadRequestError, match="is not one of this connector"):
        connector.alter_offsets({}, [({"database": "shop"}, STREAMING)])
