"""Seeds of tests that try something else in each run. A second process of the same run gives them the same ones: what failed beside
others is then tried alone with its own seed, not with another."""

from __future__ import annotations

import os
import random

#: Names the run; `tests/lanes.py` sets it.
RUN = "CONNECT_PY_SEEDS"


def seeds(count: int) -> list[int]:
    """So many numbers below a million."""
    chance = random.Random(os.environ.get(RUN) or None)
    return [chance.randrange(1_000_000) for _ in range(count)]
