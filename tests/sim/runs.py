"""One run of a seed, and what came of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.bugs import BUGS
from tests.sim.chance import Chance, Violation, shrunk
from tests.sim.cluster import ClusterPieces, ClusterWorld
from tests.sim.repeats import RepeatsWorld
from tests.sim.source import Pieces, SourceWorld


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        violation: what rule was broken; empty for none.
        chance: what was decided.
    """

    seed: int
    world: str
    bug: str | None
    violation: str
    chance: Chance

    @property
    def story(self) -> list[str]:
        """What happened, a line each."""
        return self.chance.told()


def _source(chance: Chance, bug: str | None) -> None:
    SourceWorld(chance, BUGS[bug].pieces() if bug else Pieces()).run()


def _cluster(chance: Chance, bug: str | None) -> None:
    ClusterWorld(chance, BUGS[bug].pieces() if bug else ClusterPieces()).run()


def _repeats(chance: Chance, bug: str | None) -> None:
    RepeatsWorld(chance, BUGS[bug].pieces() if bug else ClusterPieces()).run()


WORLDS: dict[str, Callable[[Chance, str | None], None]] = {"source": _source, "cluster": _cluster, "repeats": _repeats}


def run(seed: int, world: str | None = None, bug: str | None = None, spared: frozenset[int] = frozenset()) -> Outcome:
    """Run a seed.

    Args:
        world: by its name; where none is named the bug's, or `source`.
        bug: a planted one.
        spared: faults to leave out.
    """
    name = world or (BUGS[bug].world if bug else "source")
    chance = Chance(seed, spared)
    violation = ""
    try:
        WORLDS[name](chance, bug)
    except Violation as error:
        violation = str(error)
    return Outcome(seed, name, bug, violation, chance)


def shortest(outcome: Outcome) -> Outcome:
    """Return a run of the same seed that fails in the same way with as few faults as are found."""

    def fails(spared: frozenset[int]) -> str | None:
        violation = run(outcome.seed, outcome.world, outcome.bug, spared).violation
        return violation.partition(":")[0] if violation else None

    return run(outcome.seed, outcome.world, outcome.bug, shrunk(fails, outcome.chance.faults))


def is_good_seed(seed: int, world: str, bug: str | None, steps: bool) -> bool:
    """Run a seed; print it if it breaks a rule, or for its `steps`. Returns whether it broke none."""
    outcome = run(seed, world, bug)
    if outcome.violation or steps:
        shown = outcome if steps else shortest(outcome)
        print("\n".join(shown.story))
        print(f"seed {shown.seed}, world {shown.world}: {shown.violation or 'no violation'}", flush=True)
    return not outcome.violation


def show_logs(visible: bool) -> None:
    """Show what the product logs, or nothing of it."""
    logging.basicConfig(level=logging.INFO if visible else logging.CRITICAL, format="        %(message)s")
