"""How the rows of a new table are laid out: partitions, and the order within them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connect_py.errors import FatalTaskError
from spark_sink.types.columns import quote

#: Transforms by the names that Iceberg's sink takes, with what Spark calls them.
_OF_TIMES = {name: plural for plural in ("years", "months", "days", "hours") for name in (plural, plural[:-1])}
_WITH_NUMBER = ("bucket", "truncate")


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition field: a column, or a transform of it."""

    column: str
    transform: str | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Partitions and clustering columns of a new table; both may be empty."""

    partitions: Sequence[Partition] = ()
    cluster: Sequence[str] = ()

    def check(self, table: str, columns: Mapping[str, str]) -> None:
        """Raise FatalTaskError if a column does not exist."""
        for name in (*(partition.column for partition in self.partitions), *self.cluster):
            if name not in columns:
                raise FatalTaskError(
                    f"Table {table} cannot be created: it is to be partitioned or clustered by {name}, which the records do not have. "
                    f"They have {', '.join(columns)}."
                )


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Parse partition fields such as ``a, days(b), bucket(c, 16)``: commas within parentheses do not separate.

    Raises:
        ValueError: the text does not have this form; the message says what is expected.
    """
    found: list[Partition] = []
    for part in filter(None, (piece.strip() for piece in re.split(r",(?![^(]*\))", text))):
        matched = re.fullmatch(r"(\w+)\s*\(\s*([^(),]+?)\s*(?:,\s*(\d+)\s*)?\)", part)
        name = matched[1].lower() if matched else None
        if matched and name in _OF_TIMES and matched[3] is None:
            found.append(Partition(matched[2], _OF_TIMES[name]))
        elif matched and name in _WITH_NUMBER and matched[3] is not None and int(matched[3]) > 0:
            found.append(Partition(matched[2], name, int(matched[3])))
        elif not matched and re.fullmatch(r"[^()]+", part):
            found.append(Partition(part))
        else:
            raise ValueError(f"{part} is none of a column, years(c), months(c), days(c), hours(c), bucket(c,n), truncate(c,n)")
    return tuple(found)


def partition_sql(partition: Partition) -> str:
    """Return a field of PARTITIONED BY."""
    if partition.transform is None:
        return quote(partition.column)
    number = "" if partition.number is None else f"{partition.number}, "
    return f"{partition.transform}({number}{quote(partition.column)})"
