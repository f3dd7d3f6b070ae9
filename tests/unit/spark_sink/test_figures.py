"""The sink's own figures: what is said of bad records."""

import pytest

from connect_py.api import TopicPartition
from connect_py.api.task import NOTES_DOMAIN
from spark_sink.figures import SinkFigures
from spark_sink.tables.watermark import PastCommit


def notes(figures):
    return [dict(group.values) for group in figures.groups() if group.domain == NOTES_DOMAIN]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("the key is not what its schema says", "the key is not what its schema says"),
        ("[CAST_INVALID_INPUT] The value 'secret' of the type STRING", "a value does not fit (CAST_INVALID_INPUT)"),
        ("no rule gives a table to 'secret'", "no rule gives a table to"),
    ],
)
def test_a_bad_record_is_noted_with_its_place_and_a_reason_without_its_values(why, reason):
    figures = SinkFigures(wall_clock=lambda: 100.0)
    figures.rejected({(TopicPartition("t", 3), 7): why}, "s.t")
    expected = {"at": 100_000, "table": "s.t", "place": "topic t, partition 3, offset 7", "reason": reason, "message": why}
    assert notes(figures) == [expected]


def test_the_last_bad_records_are_noted_and_all_are_counted():
    figures = SinkFigures(wall_clock=lambda: 100.0)
    figures.rejected({(TopicPartition("t", 0), offset): "bad" for offset in range(100)}, "s.t")
    figures.rejected({(TopicPartition("t", 0), 100): "worse"})
    values = {group.type: group.values for group in figures.groups()}
    assert values["lakehouse-sink"]["records-rejected-total"] == 101
    assert values["lakehouse-table"]["records-rejected-total"] == 100
    assert [note["place"].rpartition(" ")[2] for note in notes(figures)] == [str(offset) for offset in range(81, 101)]


def test_commits_from_before_the_task_are_told_for_a_minute():
    now = [1000.0]
    figures = SinkFigures(clock=lambda: now[0], wall_clock=lambda: 100.0)
    figures.past("s.t", [PastCommit(90.0, 7), PastCommit(80.0, None)])
    figures.past("s.t", [PastCommit(95.0, 1)])
    assert notes(figures) == notes(figures) == [{"at": 90.0, "records": 7}, {"at": 80.0}]
    now[0] += 61
    assert notes(figures) == []
