"""Which lines `connect-py logs` chooses."""

from __future__ import annotations

from connect_py.app.commands.logs import Filter

LINES = [
    (1, 0, "[2026-11-25 07:24:40,043] INFO [a|task-0] starts (x:1)"),
    (2, 0, "[2026-11-25 07:24:41,043] ERROR [a|task-0] fails (x:2)"),
    (3, 1, '{"timestamp":"2026-11-25T07:24:41Z","level":"WARN","message":"slow"}'),
    (4, 0, "org.apache.kafka.connect.errors.ConnectException: no"),
    (5, 1, "a line without a level"),
]


def numbers(level: str | None, task: int | None = None) -> list[int]:
    return [line[0] for line, _ in Filter(level, task).chosen(LINES)]


def test_lines_of_a_trace_have_the_level_of_their_tasks_line_before() -> None:
    assert numbers("error") == [2, 4]
    assert numbers("warn") == [2, 3, 4, 5]
    assert numbers(None, 1) == [3, 5]


def test_a_trace_that_arrives_in_two_pieces_keeps_its_level() -> None:
    chooser = Filter("error", None)
    assert [line[0] for line, _ in chooser.chosen(LINES[:2])] == [2]
    assert [line[0] for line, _ in chooser.chosen(LINES[3:4])] == [4]
