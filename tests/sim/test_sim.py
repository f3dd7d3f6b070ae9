"""Simulations: what a run may never show, over seeds that nobody chose, and over those that once found something."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from tests.seeds import seeds, size
from tests.sim.bugs import BUGS
from tests.sim.runs import WORLDS, run, shortest

#: Seeds of a world: in the short run, and in `make test-long`.
COUNTS = {"source": (200, 20_000), "cluster": (10, 1_000), "repeats": (5, 1_000)}
#: Worlds of which the short run takes the same seeds each time: more of their seeds have to be green first.
YOUNG = {"cluster", "repeats"}

#: Seeds that found something, by the behaviour that was mended. Worlds change, and their seeds with them: each has an ordinary test, too.
FOUND = {
    "a lease that ends in a round calls for another round": ("cluster", 1),
    "a worker's old report that comes late is answered by the task's owner": ("cluster", 38),
    "a configuration that cannot be read is not read again without a pause": ("cluster", 86),
    "what was abandoned has no lease once the worker is in the group again": ("cluster", 827),
    "tasks that were stored after their connector's stop are removed": ("cluster", 1952),
    "what died before the lease ended is not reported once others have the work": ("cluster", 584),
    "task configurations that waited for a leader are not stored over newer ones": ("cluster", 5090),
    "a set of tasks that a leader has left half written is stored again": ("cluster", 12381),
    "a tombstone of a task that comes late is answered by the task's owner": ("cluster", 12331),
    "tasks are stored again behind a configuration that was written again": ("repeats", 19),
    "a configuration that follows a restart, before the first round is carried out, is not lost": ("repeats", 13633),
    "a signal outlasts a connection that breaks before a batch has its effect": ("source", 136892),
    "a run is not over in the middle of a poll, with the last window not yet in a batch": ("source", 941036),
}

#: How many seeds a planted bug may take to be found.
MOST = 2_000


@pytest.fixture(autouse=True)
def _quietly() -> Iterator[None]:
    """The product logs each fault; a million lines say nothing."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def check(seed: int, world: str) -> None:
    """Run a seed; a failure shows the steps of the shortest run that fails so."""
    outcome = run(seed, world)
    if outcome.violation:
        steps = "\n".join(shortest(outcome).story)
        pytest.fail(f"{outcome.violation}\npython -m tests.sim --world {world} --from {seed} --seeds 1\n{steps}", pytrace=False)


@pytest.mark.parametrize("world", sorted(WORLDS))
def test_no_seed_breaks_a_rule(world: str) -> None:
    short, _ = COUNTS[world]
    for seed in range(12, 12 + short) if world in YOUNG else seeds(short):
        check(seed, world)


@pytest.mark.long
@pytest.mark.timeout(7 * 24 * 3600 if os.environ.get("SIM_SEEDS") else 2400)
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_none_of_many_seeds_breaks_a_rule(world: str) -> None:
    """``SIM_SEEDS`` of each world, for as long as they take."""
    short, long = COUNTS[world]
    for seed in range(size("SIM_SEEDS", long if world in YOUNG else short, long)):
        check(seed, world)


@pytest.mark.parametrize("behaviour", sorted(FOUND))
def test_what_a_seed_has_found_stays_mended(behaviour: str) -> None:
    world, seed = FOUND[behaviour]
    check(seed, world)


def test_a_seed_is_the_same_run_again() -> None:
    for world in sorted(WORLDS):
        for seed in seeds(3):
            assert run(seed, world).story == run(seed, world).story


@pytest.mark.parametrize("bug", ["acknowledge-early", "event-on-both-sides", "other-windows-mark"])
def test_a_planted_bug_is_found_at_once(bug: str) -> None:
    assert found(bug, 60) is not None


@pytest.mark.long
@pytest.mark.timeout(900)
def test_all_planted_bugs_but_one_are_found_within_two_thousand_seeds() -> None:
    first = {bug: found(bug, MOST) for bug in BUGS}
    assert len(first) >= 12
    assert sum(seed is None for seed in first.values()) <= 1, first


def found(bug: str, most: int) -> int | None:
    """Return the first seed that finds a planted bug."""
    return next((seed for seed in range(most) if run(seed, bug=bug).violation), None)
