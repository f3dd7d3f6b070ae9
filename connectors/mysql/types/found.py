"""Values of texts that come again and again, for the quick ways of plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Found(dict[str, T]):
    """Values made when they are first asked for.

    Args:
        make: the value of a text; may raise ValueError.
    """

    #: A few MB at most; all days of 170 years.
    LIMIT = 1 << 16

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, text: str) -> T:
        if len(self) >= self.LIMIT:
            self.clear()
        found = self[text] = self._make(text)
        return found
