"""How one column's text becomes JSON text: the part of the writer that a connector's value conversions provide.

Every reader (COPY text, pgoutput text, binlog) hands over a column's text as a str, and a `ColumnPlan` says what to write for it. `convert`
is the authority: any text the server may send. `quick` is a Python expression for the usual texts, pasted into the table's generated
function so that no call is made for a column; it must give exactly what `convert` gives, or raise, in which case the row takes the careful
way. A `RowPlan` has the columns of a table, and what their rows and keys look like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from connect_py.data import Schema

#: Text of a column to JSON text. Raises `Unrepresentable` or ValueError for a text that has no JSON form under the column's schema.
Convert = Callable[[str], str]


class StandsForNull(ValueError):
    """A text that is no value: MySQL's dates of zeros."""


class Unrepresentable(ValueError):
    """A value that the column's schema cannot hold, such as NaN in a Decimal."""


class Stored(NamedTuple):
    """How a value that a reader hands over as it is stored, or in parts, and not as a text, becomes JSON text (`fused.py`).

    Attributes:
        form: what the reader and the writer call the value, such as `integer`; both must mean the same.
        expression: as `ColumnPlan.quick`, with `$` for the value, and for the further parts of a date and time `$clock`, `$second` and
            `$fraction`.
    """

    form: str
    expression: str

    def shown(self, index: int) -> str:
        """Return the expression for the variables of a column."""
        text = self.expression
        for piece in PIECES:
            text = text.replace(f"${piece}", f"{piece}{index}")
        return text.replace("$", f"c{index}")


#: The parts of a date and time that is handed over in several variables.
PIECES = ("clock", "second", "fraction")


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPlan:
    """One column of an event.

    Attributes:
        name: the column's name.
        schema: of its field, with optionality and default.
        convert: any text to JSON text; None where the text is the JSON text already (integers).
        quick: an expression with `$` for the text, no quotes of the kind `"`, no backslash; empty to call `convert`. Its value is put
            through an f-string. It may use the names in `helpers`, and variables of its own that end in `$`.
        quoted: whether `quick`'s value still needs the quotes of a JSON string. Such values hold nothing that must be escaped.
        textual: the value is a string column's text as it is; `convert` and `quick` are not needed.
        marked_up: a textual column whose texts nearly always need escapes, as JSON's do.
        helpers: values that `quick` and `stored` use, by names of the spelling that `connect_py.rowcode` asks for.
        snapshot: replaces `convert` for rows that COPY reads, where the reference's snapshot differs from its streaming.
        quick_copy: replaces `quick` for those rows; empty to call `snapshot`, None where `quick` gives the same for both.
        numeric: replaces `convert` where the converter wants decimals as JSON numbers (``decimal.format=NUMERIC``).
        fallback: JSON text that stands for a missing value of a required column (a partial `before`).
        placeholder: JSON text for a value that was stored out of line, did not change and was not sent.
        missing_in_stream: the reference writes null for this column in streamed rows (PostgreSQL's type `name`).
        constant: JSON text that stands for every value, NULL among them (a masked column); empty without.
        null: JSON text that stands for NULL where it is neither null nor the default as it is; empty otherwise.
        only_in_key: rows leave the column out, keys show it: a column of the key that the user's lists exclude.
        stored: ways past the text, for readers that have the value itself or its parts; code that changes `convert` must clear it.
        in_key: the plan by which keys show the column where that is another one: rules that hide values spare keys.
    """

    name: str
    schema: Schema
    convert: Convert | None = None
    quick: str = ""
    quoted: bool = False
    textual: bool = False
    marked_up: bool = False
    helpers: Mapping[str, object] = field(default_factory=dict)
    snapshot: Convert | None = None
    quick_copy: str | None = None
    numeric: Convert | None = None
    fallback: str = '""'
    placeholder: str = "null"
    missing_in_stream: bool = False
    constant: str = ""
    null: str = ""
    only_in_key: bool = False
    stored: tuple[Stored, ...] = ()
    in_key: ColumnPlan | None = None

    @property
    def is_checked(self) -> bool:
        """Whether its texts stand in objects as they are, if they need no escape."""
        return self.textual and not self.marked_up

    @property
    def of_key(self) -> ColumnPlan:
        """The plan by which keys show the column."""
        return self.in_key or self


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What the generator needs to know of a table.

    Attributes:
        columns: the columns of events, in order.
        positions: of each of them in a row of the source.
        width: the number of columns of such a row.
        labels: each column's name as JSON text, with the colon.
        key_labels: the same for keys, in key order.
        key: indexes into `columns`, in key order.
        key_head: text before a key's first value, up to the opening brace; key_end after the last.
        numeric_key: whether decimals of keys are JSON numbers; numeric_row of rows.
        nulls_as_defaults: whether NULL is written as the column's default.
        key_mark: a field, as JSON text, that stands last in every key of the table; empty for none.
    """

    columns: Sequence[ColumnPlan]
    positions: Sequence[int]
    width: int
    labels: Sequence[str]
    key_labels: Sequence[str]
    key: Sequence[int]
    key_head: str
    key_end: str
    numeric_key: bool
    numeric_row: bool
    nulls_as_defaults: bool
    key_mark: str = ""

    @property
    def key_tail(self) -> str:
        """What follows the last of a key's columns."""
        return ("," + self.key_mark if self.key and self.key_mark else self.key_mark) + self.key_end


class Unchanged:
    """A value that an update did not touch and the source did not send."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
#: A column's text, None for NULL.
Text = str | None | Unchanged
