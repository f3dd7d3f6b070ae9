"""Seeds of tests that try something else in each run. A second process of the same run gives them the same ones: what failed beside
others is then tried alone with its own seed, not with another."""

from __future__ import annotations

import os
import random

#: Names the run; `tests/lanes.py` sets it.
RUN = "CONNECT_PY_SEEDS"
#: Set in `make test-long`.
LONG = "CONNECT_PY_LONG"


def seeds(count: int) -> list[int]:
    """So many numbers below a million."""
    chance = random.Random(os.environ.get(RUN) or None)
    return [chance.randrange(1_000_000) for _ in range(count)]


def size(name: str, short: int, long: int) -> int:
    """How much a test tries: what the variable says, otherwise the short or (in `make test-long`) the long form."""
    return int(os.environ.get(name) or (long if os.environ.get(LONG) else short))


def examples(count: int) -> int:
    """How many examples a property is tried on: two thirds of `count` in `make test-long`, else a third, since other runs try others."""
    return max(20, count * 2 // 3 if os.environ.get(LONG) else count * 3 // 10)
