"""Run simulations by hand: ``python -m tests.sim --seeds 1000 --from 0``."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.sim.runs import WORLDS, Outcome, run, shortest


def main() -> int:
    """Run seeds one after the other, up to the first that fails; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one")
    parser.add_argument("--world", choices=sorted(WORLDS), help="all of them in turn where none is named")
    parser.add_argument("--bug", help="a planted bug of tests/sim/bugs.py")
    parser.add_argument("--steps", action="store_true", help="print the steps also of runs that do not fail")
    parser.add_argument("--log", action="store_true", help="show what the product logs")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.INFO if chosen.log else logging.CRITICAL, format="        %(message)s")
    began = time.process_time()
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        outcome = run(seed, chosen.world, chosen.bug)
        if outcome.violation or chosen.steps:
            _show(outcome if chosen.steps else shortest(outcome))
            if outcome.violation:
                return 1
    seconds = time.process_time() - began
    each = seconds / max(1, chosen.seeds) * 1000
    print(f"{chosen.seeds} seeds from {chosen.first}: no violation, {seconds:.1f} s of CPU, {each:.2f} ms a seed")
    return 0


def _show(outcome: Outcome) -> None:
    print("\n".join(outcome.story))
    print(f"seed {outcome.seed}, world {outcome.world}: {outcome.violation or 'no violation'}")


sys.exit(main())
