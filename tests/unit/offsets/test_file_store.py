"""A standalone worker's offset file: its format, and what is left alone."""

from pathlib import Path

import pytest

from connect_py.errors import ConfigError, ConnectError
from offsets.local_stores import FileOffsetStore


def store(path: Path) -> FileOffsetStore:
    return FileOffsetStore({"offset.storage.file.filename": str(path)})


def test_the_file_has_one_line_a_partition_below_a_header(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    store(path).put("c", [({"file": "a\tb"}, {"position": 1}), ({"file": "b"}, {"position": 2}), ({"file": "b"}, None)])
    assert path.read_bytes() == b'{"format":"connect-py offsets","version":1}\n["c",{"file":"a\\tb"}]\t{"position":1}\n'
    assert list(tmp_path.iterdir()) == [path], "nothing is left beside it"


def test_a_missing_and_an_empty_file_are_empty_stores(tmp_path: Path) -> None:
    store(tmp_path / "none").start()
    (tmp_path / "empty").touch()
    store(tmp_path / "empty").start()
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xac\xed\x00\x05sr", "was written by a Java worker"),
        (b"hello\n", "is no offset file"),
        (b'{"format":"connect-py offsets","version":1}\n["c",{"a":1}]\n', "Line 2 of .* is damaged"),
        (b'{"format":"connect-py offsets","version":1}\nx\t{}\n', "Line 2 of .* is damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "offsets"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=text):
        store(path).start()
    assert path.read_bytes() == content


def test_a_file_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r'Missing required configuration "offset\.storage\.file\.filename"'):
        FileOffsetStore({})


def test_a_failed_write_leaves_the_old_file_and_the_old_offsets(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    first = store(path)
    first.put("c", [({"file": "a"}, {"position": 1})])
    before = path.read_bytes()
    (tmp_path / "offsets.new").mkdir()
    with pytest.raises(ConnectError, match="Offsets could not be written"):
        first.put("c", [({"file": "a"}, {"position": 2})])
    assert path.read_bytes() == before
    assert first.read("c", {}, 0) == [({"file": "a"}, {"position": 1})]
    (tmp_path / "offsets.new").rmdir()
    first.put("c", [({"file": "b"}, {"position": 3})])
    assert b'"position":2' not in path.read_bytes(), "what was refused is not written later"
