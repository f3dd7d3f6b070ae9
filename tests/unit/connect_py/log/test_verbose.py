"""For which connectors more is logged, and until when."""

import logging

from connect_py.log.verbose import VerboseConnectors


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_more_is_logged_for_a_while_and_then_the_levels_are_the_workers_again():
    clock = Clock()
    verbose = VerboseConnectors(clock, lambda: clock.now + 1000)
    assert verbose.until("c") is None
    assert verbose.levels("c", ["connectors"]) == {"connectors": logging.getLogger("connectors").level}
    verbose.begin("c", 600)
    assert verbose.until("c") == 1700
    assert verbose.levels("c", ["connectors"]) == {"connectors": logging.DEBUG}
    assert verbose.until("other") is None
    clock.now += 599
    assert verbose.until("c") == 1700
    clock.now += 1
    assert verbose.until("c") is None
    assert verbose.levels("c", ["connectors"]) == {"connectors": logging.getLogger("connectors").level}


def test_it_ends_early_and_can_be_prolonged():
    clock = Clock()
    verbose = VerboseConnectors(clock, clock)
    verbose.begin("c", 600)
    clock.now += 300
    verbose.begin("c", 600)
    assert verbose.until("c") == 1000
    verbose.begin("c", 0)
    assert verbose.until("c") is None
