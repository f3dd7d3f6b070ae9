"""Lanes that share their files: each process collects all of them and runs those that it is the first to claim, so that lanes next to each
other end together, whatever a file takes on this machine. `tests/lanes.py` starts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

#: One unit, since all scenarios run ahead of their tests, several at a time.
_PARITY = Path(__file__).with_name("parity")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--claims", type=Path, metavar="FOLDER", help="run only files that no other process with this folder has claimed")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    folder: Path | None = session.config.getoption("--claims")
    if folder is None or session.testsfailed:  # pytest's own loop says that modules could not be collected
        return None
    items = unclaimed(session.items, folder)
    item = next(items, None)
    while item is not None:
        following = next(items, None)  # pytest keeps the fixtures that this one needs too
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def unclaimed(items: Sequence[pytest.Item], folder: Path) -> Iterator[pytest.Item]:
    """Yield the items of each file that this process claims first; a file is claimed when its first item is asked for."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(_PARITY if _PARITY in item.path.parents else item.path, []).append(item)
    for file, its_items in files.items():
        if claims(folder, file):
            yield from its_items


def claims(folder: Path, file: Path) -> bool:
    """Return whether this process is the first to claim a file."""
    try:
        (folder / str(file).replace("/", "_")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
