"""Differences of JSON documents, applied to the text before them."""

import pytest

from connectors.mysql.binlog.codes import MalformedEventError
from connectors.mysql.binlog.json_text import patched

REPLACE, INSERT, REMOVE = 0, 1, 2
SEVEN = b"\x05\x07\x00"


def difference(operation: int, path: str, value: bytes = b"") -> bytes:
    written = path.encode()
    return bytes([operation, len(written)]) + written + (bytes([len(value)]) + value if operation != REMOVE else b"")


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ('{"a":1.50,"b":[1,2]}', difference(REPLACE, "$.a", SEVEN), '{"a":7,"b":[1,2]}'),
        ('{"a":1.50,"b":[1,2]}', difference(INSERT, "$.b[1]", SEVEN), '{"a":1.50,"b":[1,7,2]}'),
        ('{"b":[1,2]}', difference(INSERT, "$.b[9]", SEVEN), '{"b":[1,2,7]}'),
        ('{"b":[1,2]}', difference(REPLACE, "$.b[last-1]", SEVEN), '{"b":[7,2]}'),
        ('{"b":[1,2]}', difference(REMOVE, "$.b[last]"), '{"b":[1]}'),
        ('{"bb":1}', difference(INSERT, "$.c", SEVEN), '{"c":7,"bb":1}'),
        ('{"a \\"q":{"é":1}}', difference(REMOVE, '$."a \\"q".é'), '{"a \\"q":{}}'),
        ("[1]", difference(REPLACE, "$", SEVEN), "7"),
        ("[1]", difference(REPLACE, "$[0]", SEVEN) + difference(INSERT, "$[1]", SEVEN), "[7,7]"),
    ],
)
def test_a_difference_changes_what_its_path_names(before: str, change: bytes, after: str) -> None:
    assert patched(before, change) == after


@pytest.mark.parametrize(
    "change",
    [
        difference(REPLACE, "$.missing", SEVEN),
        difference(INSERT, "$.a", SEVEN),
        difference(REMOVE, "$"),
        difference(REPLACE, "$.a.b.c", SEVEN),
        difference(REPLACE, "no path", SEVEN),
        difference(9, "$.a", SEVEN),
        difference(REPLACE, "$.a", SEVEN)[:-1],
        b"\x00",
    ],
)
def test_a_difference_that_does_not_fit_is_malformed(change: bytes) -> None:
    with pytest.raises(MalformedEventError):
        patched('{"a":1}', change)
