"""What a source could capture: the tables of its database, and how a configuration's list of them says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: A page that shows more, and a client that gets more, has another use than to choose from them.
MAX_TABLES = 5000


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table, or a collection.

    Attributes:
        name: as lists of configurations name it.
        captured: whether the configuration captures it.
        rows: how many rows the server estimates; None where it says nothing.
        entry: what to write into the list so that it means this table and no other; "" where nothing does.
        matched_by: which entries of the list mean it, by number.
        fixed_by: the property because of which the list does not decide about it; "" where it does.
    """

    name: str
    captured: bool
    rows: int | None = None
    entry: str = ""
    matched_by: tuple[int, ...] = ()
    fixed_by: str = ""


@dataclass(frozen=True, slots=True)
class SourceTables:
    """The tables of a source.

    Attributes:
        property: the list that names what is captured: ``table.include.list``.
        entries: its entries as they are written; none where it is not set, and everything is captured that no other list leaves out.
        replaces: properties of the configuration that cannot stand next to the list, or are an old name of it.
        tables: by name.
        left_out: how many tables there are beyond `MAX_TABLES`; captured ones are the last to be left out.
    """

    property: str
    entries: Sequence[str] = ()
    replaces: Sequence[str] = ()
    tables: Sequence[SourceTable] = ()
    left_out: int = 0
