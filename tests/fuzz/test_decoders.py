"""Damaged inputs for every decoder of bytes that others write: it gives a value or the error that it documents."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.fuzz.decoders import DECODERS
from tests.fuzz.runs import run
from tests.seeds import seeds, size


@pytest.fixture(autouse=True)
def _quietly() -> Iterator[None]:
    """A warning for each input says nothing."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", sorted(DECODERS))
def test_a_damaged_input_is_a_value_or_the_documented_error(name: str) -> None:
    """``FUZZ_INPUTS`` of them; a failure names the seed and shows the input."""
    found = run(name, size("FUZZ_INPUTS", 400, 20_000), seeds(1)[0])
    assert 0 < sum(found.refused.values()) < found.inputs
