"""Values of texts that come again and again, for the quick ways of plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Found(dict[K, T]):
    """Values made when they are first asked for.

    Args:
        make: the value of a text, or of a stored value; may raise ValueError.
    """

    #: Some MB at most; all days of 350 years, and all seconds of a day.
    LIMIT = 1 << 17

    def __init__(self, make: Callable[[K], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, text: K) -> T:
        if len(self) >= self.LIMIT:
            self.clear()
        found = self[text] = self._make(text)
        return found
