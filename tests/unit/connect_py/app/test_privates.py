"""What the check of tests' private names refuses, and what it leaves alone."""

import pytest

from tests.privates import found


@pytest.mark.parametrize(
    ("source", "offence"),
    [
        ("from connect_py.app.cli import _main", "imports _main"),
        ("task.a._b.c()", "reads task.a._b"),
        ("task._state = 1", "sets task._state"),
        ("from connect_py import limits\nlimits.MOST = 1", "sets limits.MOST"),
        ("patch.setattr(limits, 'MOST', 1)", "patches limits.MOST"),
        ("patch.setattr('connect_py.limits.MOST', 1)", "patches connect_py.limits.MOST"),
        ("getattr(task, '_state')", "names _state"),
    ],
)
def test_what_is_not_the_tests_own_is_refused(source: str, offence: str) -> None:
    assert [what for _, what in found(source)] == [offence]


@pytest.mark.parametrize(
    "source",
    [
        "class Fake:\n    def __init__(self):\n        self._calls = []\n\ndef test():\n    assert not Fake()._calls",
        "connection.driver._sock.close()",
        "monkeypatch.setattr(sys, 'path', [])",
        "setattr(producer, 'is_away', True)",
        "import os\nos.environ.copy()",
        "run.producer.refuses = None",
    ],
)
def test_what_is_the_tests_own_or_another_projects_is_left_alone(source: str) -> None:
    assert found(source) == []
