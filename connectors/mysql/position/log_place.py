"""Places of the binlog that can be compared. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A position in a file of one server's log; the files' names end with their number."""

    file: str
    pos: int

    def __lt__(self, other: LogPlace) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[int, int]:
        number = self.file.rpartition(".")[2]
        return int(number) if number.isdigit() else 0, self.pos
