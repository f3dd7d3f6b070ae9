"""Run simulations by hand: ``python -m tests.sim --seeds 1000 --from 0``."""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys
import time

from tests.sim.bugs import BUGS
from tests.sim.runs import WORLDS, is_good_seed, show_logs


def main() -> int:
    """Run seeds up to the first that fails; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one")
    parser.add_argument("--world", choices=sorted(WORLDS), help="each of them, one after the other, where none is named")
    parser.add_argument("--bug", help="a planted bug of tests/sim/bugs.py")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--steps", action="store_true", help="print the steps also of runs that do not fail")
    parser.add_argument("--log", action="store_true", help="show what the product logs")
    chosen = parser.parse_args()
    show_logs(chosen.log)
    worlds = [chosen.world or BUGS[chosen.bug].world] if chosen.world or chosen.bug else sorted(WORLDS)
    return 0 if all(_run(world, chosen) for world in worlds) else 1


def _run(world: str, chosen: argparse.Namespace) -> bool:
    """Run the seeds of one world; returns whether none broke a rule."""
    began, seeds = time.monotonic(), range(chosen.first, chosen.first + chosen.seeds)
    one = functools.partial(is_good_seed, world=world, bug=chosen.bug, steps=chosen.steps)
    if chosen.jobs == 1:
        is_good = all(map(one, seeds))
    else:
        with multiprocessing.get_context("spawn").Pool(chosen.jobs, show_logs, (chosen.log,)) as pool:
            is_good = all(pool.imap(one, seeds, chunksize=20))
    if is_good:
        seconds = time.monotonic() - began
        each = seconds / max(1, chosen.seeds) * 1000
        print(f"{chosen.seeds} seeds of {world} from {chosen.first}: no violation, {seconds:.1f} s, {each:.2f} ms a seed", flush=True)
    return is_good


sys.exit(main())
