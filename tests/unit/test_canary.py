"""What a test of times may forgive."""

import os
import signal

from tests.canary import Canary, Wait, now_ms
from tests.cluster import Fault, Figures, History, Written
from tests.waiting import let_time_pass

QUIET = Canary([[], []])


def test_what_was_withheld_is_that_of_the_busiest_processor_within_the_time() -> None:
    canary = Canary([[Wait(1_000, 1_121, 100), Wait(1_200, 1_251, 30)], [Wait(1_100, 1_171, 50)]])
    assert canary.withheld(0, 2_000) == 130
    assert canary.withheld(1_100, 1_300) == 51, "21 ms are left of the first wait"
    assert canary.withheld(1_130, 1_160) == 30
    assert canary.withheld(2_000, 3_000) == 0


def test_a_process_that_stands_still_is_noticed() -> None:
    began = now_ms()
    with Canary() as canary:
        for pid in canary.pids:
            os.kill(pid, signal.SIGSTOP)
        let_time_pass(0.3, "longer than their naps")
        for pid in canary.pids:
            os.kill(pid, signal.SIGCONT)
        let_time_pass(0.2, "they say so")
    assert canary.withheld(began, now_ms()) >= 200


def history(*times: int, who: str = "a") -> History:
    return History([Written(number, who, "w", ms) for number, ms in enumerate(times, 1)])


def test_a_pause_is_forgiven_as_far_as_the_machine_stood_still() -> None:
    fault = Fault("kill", "w", set(), 0, 1_000, 2_000)
    task = ("c", 0)
    stands = {task: history(0, 40, 300, 340)}
    assert Figures.of([fault], stands, QUIET).stopped == [
        "kill of w: c-0 wrote nothing for 260 ms, 40 ms after it; 0 ms were withheld, and tasks of another group paused for up to 0 ms"
    ]
    assert Figures.of([fault], stands, Canary([[Wait(100, 151, 30)]])).stopped == []
    assert Figures.of([fault], stands, Canary([[Wait(400, 481, 60)]])).stopped != []
    assert Figures.of([fault], {task: history(0, 200, 400)}, QUIET).stopped == []


def test_a_pause_is_forgiven_that_is_no_longer_than_twice_those_of_another_group() -> None:
    fault = Fault("kill", "w", set(), 1_000, 1_000, 3_000)
    stands = {("c", 0): history(1_000, 1_040, 1_300)}
    assert Figures.of([fault], stands, QUIET, [history(1_000, 1_040), history(1_000, 1_130)]).stopped == []
    assert Figures.of([fault], stands, QUIET, [history(1_000, 1_129)]).stopped != []
    assert Figures.of([fault], stands, QUIET, [history(100, 900)]).stopped != [], "a pause before the faults"


def test_a_hand_over_is_late_beyond_its_limit_and_what_the_machine_withheld() -> None:
    task = ("c", 0)
    fault = Fault("terminate", "w", {task}, 100, 1_000, 2_000)
    moved = {task: History([*history(0, 40).records, *history(1_200, who="b").records])}
    assert Figures.of([fault], moved, QUIET).late == [
        "terminate of w: c-0 after 1100 ms; 1000 ms are allowed, 0 ms were withheld, and another group's tasks stood still for 0 ms"
    ]
    assert Figures.of([fault], moved, Canary([[Wait(500, 571, 50)]])).late == [], "one that takes over waits twice as long as a canary"
    assert Figures.of([fault], moved, Canary([[Wait(500, 570, 49)]])).late != []
    assert Figures.of([fault], moved, QUIET, [history(100, 190), history(100, 140, 1_200)]).late == [], "the broker stood still"
    assert Figures.of([fault], moved, QUIET, [history(100, 299)]).late != [], "as long as any record may be apart"
