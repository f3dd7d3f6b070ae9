"""How several tables of a batch are written at once: who waits for whom, what fails, what is cancelled. Lanes here are without Spark."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from connect_py.errors import FatalTaskError, RetriableError
from spark_sink.spark.lanes import Answer, Aside, Lanes, OwnThreadLane, Work
from tests.waiting import eventually

DEADLINE = 20.0


class ThreadLane:
    """Does works in a thread; `cancel` is told to them."""

    def __init__(self, answers: queue.SimpleQueue[Answer]) -> None:
        self._answers = answers
        self.cancelled = threading.Event()
        self.ended = False
        self.works = 0

    def begin(self, work: Work[Any]) -> None:
        self.works += 1
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def _run(self, work: Work[Any]) -> None:
        try:
            answer = self, work.do(), None
        except BaseException as error:  # noqa: BLE001  # as lanes of Spark do
            self._answers.put((self, None, error))
        else:
            self._answers.put(answer)

    def cancel(self) -> None:
        self.cancelled.set()

    def end(self) -> None:
        self.ended = True


class Rig:
    def __init__(self, most: int, timeout_seconds: float = 60.0, **delays: float) -> None:
        self.made: list[ThreadLane] = []
        self.done: list[tuple[str, Any]] = []
        self.lanes = Lanes(self._open, most, timeout_seconds, **delays)

    def _open(self, number: int, answers: queue.SimpleQueue[Answer]) -> ThreadLane:
        assert number == len(self.made)
        self.made.append(ThreadLane(answers))
        return self.made[-1]

    def run(self, **works: Callable[[], Any]) -> list[BaseException]:
        return self.lanes.run([Work(name, do) for name, do in works.items()], lambda work, result, _: self.done.append((work.name, result)))


def test_as_many_tables_as_there_are_lanes_are_under_way_at_once_and_all_get_their_turn() -> None:
    rig = Rig(3)
    together = threading.Barrier(3, timeout=DEADLINE)
    lock, under_way, most = threading.Lock(), 0, 0

    def write() -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        together.wait()  # nobody passes before three are here
        with lock:
            under_way -= 1
        return 1

    assert rig.run(**{f"t{number}": write for number in range(9)}) == []
    assert (most, len(rig.made)) == (3, 3)
    assert sorted(rig.done) == [(f"t{number}", 1) for number in range(9)]


def test_a_batch_of_one_table_makes_one_lane() -> None:
    rig = Rig(8)
    assert not rig.lanes.several(1)
    assert rig.lanes.several(2)
    for _ in range(3):
        rig.run(t=lambda: None)
    assert len(rig.made) == 1


def test_a_batch_of_one_table_is_the_first_lanes_whichever_was_idle_last() -> None:
    rig = Rig(2)
    of_first, of_second = threading.Event(), threading.Event()

    def first() -> None:
        assert of_first.wait(DEADLINE)

    def second() -> None:
        of_first.set()
        assert of_second.wait(DEADLINE)

    threading.Timer(0.05, of_second.set).start()
    rig.run(a=first, b=second)
    before = [lane.works for lane in rig.made]
    for _ in range(3):
        rig.run(a=lambda: None)
    assert [lane.works for lane in rig.made] == [before[0] + 3, before[1]]


def test_a_failure_lets_those_under_way_finish_and_begins_no_more() -> None:
    rig = Rig(2)
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise FatalTaskError("table a")

    def slow() -> str:
        assert failed.wait(DEADLINE)
        return "written"

    errors = rig.run(a=fail, b=slow, c=lambda: "written")
    assert [str(error) for error in errors] == ["table a"]
    assert rig.done == [("b", "written")]
    assert rig.run(c=lambda: "written") == [], "lanes go on after a failure"


def test_all_failures_of_a_batch_are_told() -> None:
    rig = Rig(2)
    together = threading.Barrier(2, timeout=DEADLINE)

    def fail(name: str) -> None:
        together.wait()
        raise RetriableError(name)

    errors = rig.run(a=lambda: fail("a"), b=lambda: fail("b"))
    assert sorted(map(str, errors)) == ["a", "b"]


def test_what_takes_too_long_is_cancelled_and_said_to_have_timed_out() -> None:
    rig = Rig(2, timeout_seconds=0.05)

    def hang() -> None:
        assert rig.made[0].cancelled.wait(DEADLINE)
        raise RuntimeError("a job was cancelled")

    (error,) = rig.run(**{"table a from t-0 [5, 9)": hang})
    assert isinstance(error, RetriableError)
    assert "Writing table a from t-0 [5, 9) timed out" in str(error)
    assert "lakehouse.control.commit.timeout-ms=50" in str(error)
    assert str(error.__cause__) == "a job was cancelled"


def test_what_commits_in_spite_of_being_cancelled_has_been_written() -> None:
    rig = Rig(1, timeout_seconds=0.05)

    def late() -> str:
        assert rig.made[0].cancelled.wait(DEADLINE)
        return "written"

    assert rig.run(a=late) == []
    assert rig.done == [("a", "written")]


def test_a_lane_that_does_not_come_back_fails_the_task_and_its_answer_counts_no_more() -> None:
    rig = Rig(1, timeout_seconds=0.05, grace_seconds=0.1, again_seconds=0.01)
    go_on = threading.Event()

    def hang() -> str:
        assert go_on.wait(DEADLINE)
        return "late"

    (error,) = rig.run(a=hang)
    assert isinstance(error, FatalTaskError)
    assert "did not end when its jobs were cancelled" in str(error)
    go_on.set()
    assert rig.run(b=lambda: "written") == []
    assert rig.done == [("b", "written")]


def test_a_lane_that_cannot_be_made_fails_the_batch_after_the_others() -> None:
    rig = Rig(2)
    release = threading.Event()

    def opening(number: int, answers: queue.SimpleQueue[Answer]) -> ThreadLane:
        if number:
            release.set()
            raise RuntimeError("no session")
        return ThreadLane(answers)

    rig.lanes = Lanes(opening, 2, 60.0)

    def wait() -> str:
        assert release.wait(DEADLINE)
        return "written"

    errors = rig.run(a=wait, b=wait)
    assert [str(error) for error in errors] == ["no session"]
    assert rig.done == [("a", "written")]


def test_closing_ends_the_lanes() -> None:
    rig = Rig(2)
    rig.run(a=lambda: None, b=lambda: None)
    rig.lanes.close()
    rig.lanes.close()
    assert all(lane.ended for lane in rig.made)


def test_what_is_done_aside_is_waited_for_by_nobody_and_cancelled_at_the_end() -> None:
    made: list[ThreadLane] = []

    def open_lane(answers: queue.SimpleQueue[Answer]) -> ThreadLane:
        made.append(ThreadLane(answers))
        return made[-1]

    aside = Aside(open_lane)
    aside.close()
    assert (aside.ended(), made) == (None, []), "no lane before the first work"
    goes_on = threading.Event()
    aside.begin(Work("a", lambda: goes_on.wait(DEADLINE)))
    assert aside.ended() is None
    goes_on.set()
    assert eventually(aside.ended, "the end of the work") == (True, None)
    assert aside.ended() is None, "each end is answered once"
    aside.begin(Work("b", lambda: 1 // 0))
    _, error = eventually(aside.ended, "the end of the other")
    assert isinstance(error, ZeroDivisionError)
    aside.close()
    assert [(lane.cancelled.is_set(), lane.ended, lane.works) for lane in made] == [(True, True, 2)]


def test_a_lane_without_a_thread_has_ended_what_it_has_begun() -> None:
    aside = Aside(OwnThreadLane)
    aside.begin(Work("a", lambda: threading.current_thread()))
    assert aside.ended() == (threading.current_thread(), None)
