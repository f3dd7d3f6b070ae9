"""Which failures are followed by a restart, and when."""

import datetime

import pytest

from connect_py.config.restart_policy import RestartPolicy, Restarts
from connect_py.errors import ConfigError

NOW = datetime.datetime(2026, 11, 22, 1, 2, 3, tzinfo=datetime.UTC)
ON = {"task.restart.policy": "on-failure"}


def delays(policy: RestartPolicy, times: int, ran: float = 0.0) -> list[float | None]:
    restarts = Restarts(policy)
    return [restarts.failed("x", ran, NOW) for _ in range(times)]


def test_nothing_is_restarted_unless_it_is_asked_for() -> None:
    assert RestartPolicy.of({}, {}) == RestartPolicy()
    assert delays(RestartPolicy.of({}, {}), 2) == [None, None]
    assert Restarts(RestartPolicy()).report() is None


def test_a_connector_goes_before_its_worker() -> None:
    assert RestartPolicy.of(ON, {}).is_on
    assert not RestartPolicy.of(ON, {"task.restart.policy": "none"}).is_on
    assert RestartPolicy.of({**ON, "task.restart.max.attempts": "5"}, {"task.restart.delay.ms": "50"}) == RestartPolicy(5, 0.05, 60.0)


def test_delays_double_up_to_the_longest_and_end_with_the_attempts() -> None:
    assert delays(RestartPolicy(4, 1.0, 3.0), 6) == [1.0, 2.0, 3.0, 3.0, None, None]
    assert delays(RestartPolicy(-1, 1.0, 60.0), 2000)[-1] == 60.0


def test_a_task_that_ran_long_enough_begins_anew() -> None:
    assert delays(RestartPolicy(2, 1.0, 3.0), 5, ran=4.0) == [1.0] * 5


def test_the_report_tells_when_the_task_starts_again_and_of_the_last_failures() -> None:
    restarts = Restarts(RestartPolicy(-1, 1.0, 60.0))
    for number in range(12):
        restarts.failed(f"failure {number}", 0.0, NOW)
    report = restarts.report()
    assert report is not None
    assert (report["next_at"], len(report["history"])) == ("2026-11-22T01:03:03.000Z", 10)
    assert report["history"][-1] == {"at": "2026-11-22T01:02:03.000Z", "failure": "failure 11"}
    restarts.begun()
    assert (restarts.report() or {})["next_at"] is None


@pytest.mark.parametrize(("name", "value"), [("policy", "always"), ("max.attempts", "-2"), ("delay.ms", "0"), ("delay.max.ms", "soon")])
def test_a_wrong_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"task.restart.{name}".replace(".", r"\.")):
        RestartPolicy.of({}, {f"task.restart.{name}": value})
