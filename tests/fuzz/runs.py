"""Runs of one decoder over damaged inputs: it gives a value or one of its errors, soon, and keeps no memory."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.decoders import DECODERS, Decode, Decoder
from tests.fuzz.mutations import mutated

#: Of the processor, for one input. Most take some microseconds; a machine that is busy with something else does not count.
_SECONDS = 2.0

#: What runs in C for so long is shown: the timer's signal waits until it returns to Python.
_HANGS_SECONDS = 1800.0

#: What one input may need at once, and what may be left of all of them.
_MOST_BYTES, _LEFT_BYTES = 1 << 30, 64 << 20

#: Longer inputs are damage that has doubled itself.
_MOST_INPUT = 64 << 10


class FuzzError(AssertionError):
    """An input with which a decoder does what it must not."""


@dataclass(slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        inputs: how many there were.
        refused: by class of the error.
        slowest: seconds of the processor for one input.
        grown: bytes that are left after the last three quarters.
    """

    inputs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    grown: int = 0


def run(name: str, inputs: int, seed: int, seconds: float = float("inf"), *, is_alone: bool = False) -> Outcome:
    """Give a decoder damaged inputs.

    Args:
        seconds: how long at most.
        is_alone: end this process, with a trace, if the decoder hangs outside of Python.

    Raises:
        FuzzError: shows the input.
    """
    decoder = DECODERS[name]
    seeds, decode = decoder.make()
    if sum(_is_read(decoder, decode, whole) for whole in seeds) <= len(seeds) / 2:
        raise FuzzError(f"{name}: most seeds cannot be read, so damage says nothing")
    outcome, began_at, started_from = Outcome(), time.monotonic(), 0
    with _bounded():
        for number in range(inputs):
            if number % 256 == 0:
                faulthandler.dump_traceback_later(_HANGS_SECONDS, exit=is_alone)
                passed = time.monotonic() - began_at
                if passed > seconds:
                    break
                if not started_from and (number >= inputs // 4 or passed > seconds / 4):
                    started_from = _resident_bytes()
            data = mutated(random.Random(f"{seed}/{number}"), seeds, is_json=decoder.is_json)[:_MOST_INPUT]
            began = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
            try:
                decode(data)
            except decoder.errors as error:
                outcome.refused[type(error).__name__] += 1
            except Exception as error:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                raise FuzzError(f"{name}, seed {seed}, input {number}: {type(error).__name__}: {error}\n{data!r}") from error
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            outcome.slowest = max(outcome.slowest, time.process_time() - began)
            outcome.inputs += 1
    outcome.grown = max(0, _resident_bytes() - started_from) if started_from else 0
    if outcome.grown > _LEFT_BYTES:
        raise FuzzError(f"{name}, seed {seed}: {outcome.grown >> 20} MB are left of {outcome.inputs} inputs")
    return outcome


def _is_read(decoder: Decoder, decode: Decode, data: bytes) -> bool:
    try:
        decode(data)
    except decoder.errors:
        return False
    return True


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Bound the memory that this process may ask for, and let the timer's end be an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + _MOST_BYTES, hard))
    before = signal.signal(signal.SIGVTALRM, _late)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _late(*_: object) -> None:
    raise TimeoutError(f"{_SECONDS} seconds for one input")


def _resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
