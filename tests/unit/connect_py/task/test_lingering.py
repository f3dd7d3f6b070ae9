"""When records are sent that wait for company: handfuls soon, masses by themselves, and what is left once nothing more comes. And how
long polls wait after that."""

import pytest

from connect_py.api import EncodedBatch, Route, SourceRecord, SourceTask
from connect_py.data.schema import STRING
from connect_py.task.producing import EVERY_SECONDS, MASS_BYTES, MASS_ROWS, RELEASE_AFTER_SECONDS, REST_AFTER_SECONDS, FlushPolicy

ROUTE = Route("t", None, STRING)


class Task(SourceTask):
    def __init__(self, patience: float | None, rest_patience: float = 0.0) -> None:
        self.patience = patience
        self.rest_patience = rest_patience

    def start(self, config, context) -> None: ...

    def poll(self) -> None: ...


class Hurries:
    holds_back = True
    times = 0

    def __init__(self) -> None:
        self.released: list[bool] = []
        self.is_needed = False

    def send_now(self) -> None:
        self.times += 1

    def release(self) -> bool:
        self.released.append(not self.is_needed)
        return not self.is_needed


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def rows(count: int, size: int = 10) -> EncodedBatch:
    return EncodedBatch([(ROUTE, None, b"x" * size)] * count, {}, {})


def test_the_first_handful_after_a_pause_is_sent_at_once(clock: Clock) -> None:
    task, producer = Task(0.3), Hurries()
    FlushPolicy(task, producer, clock).sent(rows(1))
    assert (producer.times, task.patience) == (1, 0.3)


def test_handfuls_close_together_go_together_when_a_poll_ends_without_more(clock: Clock) -> None:
    task, producer = Task(0.3), Hurries()
    policy = FlushPolicy(task, producer, clock)
    policy.sent(rows(1))
    clock.now += 0.004
    policy.sent(rows(1))
    assert producer.times == 1
    assert task.patience == pytest.approx(EVERY_SECONDS - 0.004)
    clock.now += 0.003
    policy.sent(rows(1))
    assert task.patience == pytest.approx(EVERY_SECONDS - 0.007)
    policy.on_idle()
    assert (producer.times, task.patience) == (2, 0.3)
    policy.on_idle()
    assert producer.times == 2


def test_handfuls_without_an_end_are_sent_every_now_and_then(clock: Clock) -> None:
    producer = Hurries()
    policy = FlushPolicy(Task(0.3), producer, clock)
    for _ in range(1000):
        policy.sent(rows(3))
        clock.now += 0.001
    assert 90 <= producer.times <= 100


@pytest.mark.parametrize("mass", [rows(MASS_ROWS), rows(10, MASS_BYTES // 10), [SourceRecord({}, {}, "t")] * MASS_ROWS])
def test_a_mass_fills_batches_and_what_is_left_of_it_is_sent_soon(clock: Clock, mass: EncodedBatch | list[SourceRecord]) -> None:
    task, producer = Task(0.3), Hurries()
    policy = FlushPolicy(task, producer, clock)
    for _ in range(3):
        policy.sent(mass)
    assert (producer.times, task.patience) == (0, EVERY_SECONDS)
    policy.on_idle()
    assert (producer.times, task.patience) == (1, 0.3)


def test_many_handfuls_are_a_mass_too(clock: Clock) -> None:
    task, producer = Task(0.3), Hurries()
    policy = FlushPolicy(task, producer, clock)
    policy.sent(rows(1))
    for _ in range(1000):
        clock.now += 0.001
        policy.sent(rows(MASS_ROWS // 4))
    assert (producer.times, task.patience) == (1, EVERY_SECONDS)
    policy.on_idle()
    assert (producer.times, task.patience) == (2, 0.3)


def test_a_task_that_waits_as_it_likes_has_every_handful_sent_at_once(clock: Clock) -> None:
    task, producer = Task(None), Hurries()
    policy = FlushPolicy(task, producer, clock)
    for _ in range(3):
        policy.sent([SourceRecord({}, {}, "t")])
    assert (producer.times, task.patience) == (3, None)


def test_a_batch_of_offsets_only_and_a_linger_of_the_users_change_nothing(clock: Clock) -> None:
    task, producer = Task(0.3), Hurries()
    policy = FlushPolicy(task, producer, clock)
    policy.sent(rows(0))
    policy.on_idle()
    producer.holds_back = False
    policy.sent(rows(1))
    policy.on_idle()
    assert (producer.times, task.patience) == (0, 0.3)


def test_a_source_to_which_nothing_happens_rests_until_something_does(clock: Clock) -> None:
    task = Task(0.3, rest_patience=2.0)
    policy = FlushPolicy(task, Hurries(), clock)
    policy.sent(rows(1))
    policy.on_idle(is_settled=True)
    clock.now += REST_AFTER_SECONDS - 0.1
    policy.on_idle(is_settled=True)
    assert task.patience == 0.3
    clock.now += 0.2
    policy.on_idle(is_settled=True)
    assert task.patience == 2.0
    policy.sent(rows(1))
    policy.on_idle(is_settled=True)
    assert task.patience == 0.3


def test_what_is_under_way_interrupts_a_rest(clock: Clock) -> None:
    task = Task(0.3, rest_patience=2.0)
    policy = FlushPolicy(task, Hurries(), clock)
    patience: list[float | None] = []
    for settled in (True, True, False, False, True):
        clock.now += REST_AFTER_SECONDS
        policy.on_idle(is_settled=settled)
        patience.append(task.patience)
    assert patience == [0.3, 2.0, 0.3, 0.3, 2.0]


def test_a_position_without_records_does_not_end_a_rest(clock: Clock) -> None:
    task = Task(0.3, rest_patience=2.0)
    policy = FlushPolicy(task, Hurries(), clock)
    policy.on_idle(is_settled=True)
    clock.now += REST_AFTER_SECONDS
    policy.on_idle(is_settled=True)
    policy.sent(rows(0))
    policy.on_idle(is_settled=True)
    assert task.patience == 2.0


@pytest.mark.parametrize("patience", [None, 0.3])
def test_a_task_that_cannot_rest_does_not(clock: Clock, patience: float | None) -> None:
    task = Task(patience)
    policy = FlushPolicy(task, Hurries(), clock)
    for _ in range(3):
        clock.now += REST_AFTER_SECONDS
        policy.on_idle(is_settled=True)
    assert task.patience == patience


@pytest.mark.parametrize("patience", [None, 0.3])
def test_the_client_is_closed_once_in_each_long_rest(clock: Clock, patience: float | None) -> None:
    producer = Hurries()
    policy = FlushPolicy(Task(patience, rest_patience=2.0), producer, clock)
    for rests in 1, 2:
        policy.sent(rows(1))
        for passed in 0.0, RELEASE_AFTER_SECONDS - 0.1:
            clock.now += passed
            policy.on_idle(is_settled=True)
        assert len(producer.released) == rests - 1
        for passed in 0.2, RELEASE_AFTER_SECONDS:
            clock.now += passed
            policy.on_idle(is_settled=True)
        assert producer.released == [True] * rests


def test_what_is_under_way_keeps_the_client(clock: Clock) -> None:
    producer = Hurries()
    policy = FlushPolicy(Task(0.3, rest_patience=2.0), producer, clock)
    for _ in range(3):
        clock.now += RELEASE_AFTER_SECONDS
        policy.on_idle(is_settled=False)
    assert producer.released == []
    policy.on_idle(is_settled=True)
    assert producer.released == [True]


def test_positions_without_records_do_not_keep_the_client(clock: Clock) -> None:
    producer = Hurries()
    policy = FlushPolicy(Task(0.3, rest_patience=2.0), producer, clock)
    policy.sent(rows(1))
    for _ in range(3):
        clock.now += RELEASE_AFTER_SECONDS / 2
        policy.sent(rows(0))
        policy.on_idle(is_settled=True)
    assert producer.released == [True]


def test_a_client_that_is_still_needed_is_closed_at_a_later_look(clock: Clock) -> None:
    producer = Hurries()
    producer.is_needed = True
    policy = FlushPolicy(Task(0.3, rest_patience=2.0), producer, clock)
    policy.on_idle(is_settled=True)
    clock.now += RELEASE_AFTER_SECONDS + 0.1
    policy.on_idle(is_settled=True)
    producer.is_needed = False
    for _ in range(2):
        policy.on_idle(is_settled=True)
    assert producer.released == [False, True]
