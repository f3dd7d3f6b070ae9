"""Give decoders damaged inputs by hand: ``python -m tests.fuzz --inputs 1000000 --seconds 60``."""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time

from tests.fuzz.decoders import DECODERS
from tests.fuzz.runs import FuzzError, run


def main() -> int:
    """Run decoders one after the other; print a row of docs/evidence/faults.md for each. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=100_000, help="how many for each decoder")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long at most for each")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--decoder", help="a part of the names of those to run; all by default")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = 0
    for name in DECODERS:
        if chosen.decoder and chosen.decoder not in name:
            continue
        began = time.process_time()
        try:
            found = run(name, chosen.inputs, chosen.seed, chosen.seconds, is_alone=True)
        except FuzzError as error:
            print(error, flush=True)
            failed = 1
            continue
        refused, each = sum(found.refused.values()), (time.process_time() - began) / max(1, found.inputs)
        print(f"| {name} | {found.inputs:,} | {refused:,} | {each * 1e6:.0f} µs | {found.slowest * 1000:.0f} ms |", flush=True)
    print(f"seed {chosen.seed}")
    return failed


sys.exit(main())
