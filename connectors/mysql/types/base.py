"""What the families of types share: the function that makes a column's plan, and a cache of values by their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from connectors.engine.encode.plan import ColumnPlan
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.model import MyColumn

#: Makes a column's plan, required and without default; the caller adds both.
Family = Callable[[MyColumn, ValueOptions], ColumnPlan]


K = TypeVar("K")
T = TypeVar("T")


class BoundedCache(dict[K, T]):
    """Cache of values by their text, cleared when full.

    Args:
        make: the value of a text, or of a stored value; may raise ValueError.
    """

    #: A few MB at maximum; all days of 350 years, and all seconds of a day.
    LIMIT = 1 << 17

    def __init__(self, make: Callable[[K], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, text: K) -> T:
        if len(self) >= self.LIMIT:
            self.clear()
        found = self[text] = self._make(text)
        return found
