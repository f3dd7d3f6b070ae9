"""The texts in which every reader hands over a row's values."""

from __future__ import annotations

from typing import Final


class Unchanged:
    """A value that an update did not touch and the source did not send."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
#: A column's text, None for NULL.
Text = str | None | Unchanged
