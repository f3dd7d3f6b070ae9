"""What a herder does between its stores and its connectors: scripted connectors and tasks, stores in memory."""

import base64
import datetime
import hmac
import re
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from connect_py.api import ConfigDef, ConfigKey, ConfigType, SourceConnector
from connect_py.api.storage import RestartRequest, Status, TargetState
from connect_py.config.worker import WorkerConfig
from connect_py.errors import BadRequestError, ConflictError, RestError, RetriableError
from connect_py.group.membership import Share
from connect_py.group.peers import Peers
from connect_py.group.protocol import NO_ERROR, Allocation, GroupAssignment, GroupProtocol, TaskId
from connect_py.herder.applier import Applier
from connect_py.herder.assignment import SoleWorker
from connect_py.herder.base import MisdirectedError
from connect_py.herder.modes import DistributedHerder
from connect_py.herder.session_key import InternalSignature
from connect_py.herder.thread import HerderThread
from connect_py.plugins.registry import Plugins, discover
from offsets.config_store import COMMIT, Record
from offsets.local_stores import MemoryConfigStore, MemoryOffsetStore, MemoryStatusStore
from tests.waiting import eventually

CLASS = "test.Scripted"

#: Speaks the protocol of `connect_py.task.main`; takes its time to end when its configuration says so.
TASK = textwrap.dedent(
    """
    import json, sys, time
    start = json.loads(sys.stdin.readline())
    print(json.dumps({"type": "state", "state": "RUNNING"}), flush=True)
    for line in sys.stdin:
        if json.loads(line)["type"] == "stop":
            if "stay" in start["task_config"]:
                continue
            print('{"type":"stopped"}', flush=True)
            break
    """
)


class Scripted(SourceConnector):
    """Does what `script` says; notes what happens to all its instances."""

    java_name = CLASS
    java_task_name = "test.ScriptedTask"
    version = "1"
    script: ClassVar["Script"]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey("v", ConfigType.STRING, "")])

    def start(self, config: Mapping[str, str]) -> None:
        self.config = config
        self.script.note("start", self)
        self.script.starting(self)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        self.script.asked.append(max_tasks)
        return self.script.divide(self, max_tasks)

    def task_class(self) -> Any:
        raise AssertionError("tasks run in processes of their own")

    def stop(self) -> None:
        self.script.note("stop begins", self)
        self.script.stopping(self)
        self.script.note("stop", self)

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[Any]) -> bool:
        self.script.altering()
        return True


class Script:
    def __init__(self) -> None:
        self.notes: list[tuple[str, int]] = []
        self.instances: list[Scripted] = []
        self.asked: list[int] = []
        self.starting: Callable[[Scripted], None] = lambda connector: None
        self.stopping: Callable[[Scripted], None] = lambda connector: None
        self.altering: Callable[[], None] = lambda: None
        self.divide: Callable[[Scripted, int], list[dict[str, str]]] = lambda connector, count: [{"v": connector.config.get("v", "")}]

    def note(self, what: str, connector: Scripted) -> None:
        if connector not in self.instances:
            self.instances.append(connector)
        self.notes.append((what, self.instances.index(connector)))


class Configs(MemoryConfigStore):
    """Refuses task configurations as often as it is told to; while it is dying, their commit is not written. What is unread happens when
    the topic is read to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals, self.is_dying = 0, False
        self.unread: list[Callable[[], None]] = []
        self.stored: list[list[str]] = []

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise RetriableError("Kafka is away")
        self.stored.append([config.get("v", "") for config in configs])
        super().put_task_configs(connector, configs)

    def refresh(self, timeout: float) -> None:
        while self.unread:
            self.unread.pop(0)()

    def _write(self, found: Sequence[Record]) -> None:
        super()._write([record for record in found if not (self.is_dying and record[0].startswith(COMMIT.encode()))])


class Statuses(MemoryStatusStore):
    """Are written when a test lets them, and forgotten by another worker when it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[Callable[[str, int | None], None]] = []
        self.is_flushing, self.may_flush = threading.Event(), threading.Event()
        self.may_flush.set()

    def on_forgotten(self, listener: Callable[[str, int | None], None]) -> None:
        self.listeners.append(listener)

    def are_forgotten(self, connector: str, task: int | None) -> None:
        if task is None:
            self.delete_connector(connector)
        else:
            self.delete_task(connector, task)
        for listener in self.listeners:
            listener(connector, task)

    def flush(self, timeout: float) -> None:
        self.is_flushing.set()
        assert self.may_flush.wait(60)


class Hurried(HerderThread):
    """Does what waits for its time as soon as it is asked to, and then not again."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []

    def post_later(self, seconds: float, work: Callable[[], None]) -> None:
        left = [work]

        def once() -> None:
            if left:
                left.pop()()

        self.waiting.append(once)
        super().post_later(seconds, once)

    def do_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()


class Leader(Peers):
    """Stores task configurations for a worker that does not lead; refuses them as often, and with such a status, as it is told to."""

    def __init__(self, configs: Configs) -> None:
        super().__init__()
        self._configs = configs
        self.refusals, self.status = 0, 403
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def put_task_configs(self, leader_url: str | None, connector: str, configs: Sequence[Mapping[str, str]], sign: object) -> None:
        self.is_asked.set()
        assert self.may_answer.wait(60)
        if self.refusals:
            self.refusals -= 1
            raise RestError("The leader refuses them", self.status)
        self._configs.put_task_configs(connector, configs)


class Rounds(SoleWorker):
    """Notes for what rounds of the group are asked; a test says when one is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.is_under_way = False
        self.settled, self.is_waited_for = threading.Event(), threading.Event()
        self.settled.set()

    def await_settled(self, seconds: float) -> bool:
        self.is_waited_for.set()
        return self.settled.wait(seconds)

    def rejoin(self) -> None:
        self.asked.append("rejoin")
        if not self.is_under_way:
            super().rejoin()

    def hold(self) -> None:
        self.asked.append("hold")


class Work:
    def __init__(self, tmp_path: Path, modify_seconds: float | None = None, stop_seconds: float = 5.0, **properties: str) -> None:
        self.script = Scripted.script = Script()
        self.configs, self.statuses, self.offsets = Configs(), Statuses(), MemoryOffsetStore()
        json = "org.apache.kafka.connect.json.JsonConverter"
        worker = WorkerConfig.parse(
            {
                "bootstrap.servers": "none:1",
                "group.id": "g",
                "key.converter": json,
                "value.converter": json,
                "config.storage.topic": "c",
                "offset.storage.topic": "o",
                "status.storage.topic": "s",
                "task.shutdown.graceful.timeout.ms": "300",
                "task.fork.server": "false",
                **properties,
            }
        )
        task = tmp_path / "task.py"
        task.write_text(TASK)
        self.thread, self.leader = Hurried(), Leader(self.configs)
        self.applier = applier = Applier(
            worker,
            Plugins({**discover(), CLASS: Scripted}),
            self.configs,
            self.statuses,
            self.offsets,
            admin=None,  # type: ignore[arg-type]  # no sink is asked about
            assignment=(rounds := Rounds()),
            worker_id="w:1",
            cluster_id="k",
            task_command=[sys.executable, str(task)],
            thread=self.thread,
            connector_stop_seconds=stop_seconds,
            peers=self.leader,
        )
        self.tasks_host, self.rounds = applier.tasks, rounds
        self.herder = DistributedHerder(applier, modify_seconds=modify_seconds)
        self.herder.start()

    def put(self, name: str = "c", **config: str) -> None:
        """As a request would, but for the validation."""
        full = {"name": name, "connector.class": CLASS, **{key.replace("_", "."): value for key, value in config.items()}}
        self.thread.call(lambda: self.configs.put_connector(name, full))

    def state(self, name: str = "c") -> str | None:
        status = self.statuses.connector(name)
        return status.state if status else None

    def await_state(self, wanted: str, name: str = "c") -> None:
        eventually(lambda: self.state(name) == wanted, lambda: f"{name} is {self.state(name)}, not {wanted}", 10, 0.01)

    def tasks(self, name: str = "c") -> list[str]:
        return [status.state for _, status in sorted(self.statuses.tasks(name).items())]

    def await_tasks(self, *wanted: str, name: str = "c") -> None:
        eventually(lambda: self.tasks(name) == list(wanted), lambda: f"tasks are {self.statuses.tasks(name)}", 10, 0.01)

    def noted(self, *what: tuple[str, int]) -> None:
        eventually(lambda: self.script.notes == list(what), lambda: f"what happened is {self.script.notes}", 10, 0.01)

    def later(self) -> None:
        """Everything that waits for its time on the herder's thread happens now."""
        self.thread.call(self.thread.do_waiting)


@pytest.fixture
def make_work(tmp_path: Path) -> Iterator[Callable[..., Work]]:
    made: list[Work] = []

    def make(modify_seconds: float | None = None, stop_seconds: float = 5.0, **properties: str) -> Work:
        made.append(Work(tmp_path, modify_seconds, stop_seconds, **properties))
        return made[-1]

    yield make
    for work in made:
        work.herder.stop()


@pytest.fixture
def work(make_work: Callable[..., Work]) -> Work:
    return make_work()


def test_old_task_configurations_are_not_stored_over_newer_ones(work: Work) -> None:
    work.configs.refusals = 1
    work.put(v="1")
    eventually(lambda: work.configs.refusals == 0, "refusal", 10, 0.01)
    work.put(v="2")
    eventually(lambda: work.configs.stored == [["2"]], lambda: f"{work.configs.stored}", 10, 0.01)
    work.later()
    assert work.configs.stored == [["2"]]


def test_a_round_is_asked_for_by_new_connectors_and_sets_of_tasks_and_not_by_configurations_and_states(work: Work) -> None:
    """`DistributedHerder`'s ConfigUpdateListener; each worker asks by itself, when it reads the record."""

    def asked_by(what: Callable[[], object], *wanted: str) -> None:
        work.thread.call(lambda: None)
        work.rounds.asked.clear()
        what()
        eventually(lambda: work.rounds.asked == [*wanted], lambda: f"{work.rounds.asked}", 10, 0.01)

    may_divide = threading.Event()
    may_divide.set()

    def divide(connector: Scripted, count: int) -> list[dict[str, str]]:
        assert may_divide.wait(60)
        return [{"v": connector.config.get("v", "")}]

    work.script.divide = divide
    asked_by(lambda: work.put(v="1"), "rejoin", "hold", "rejoin")  # the connector, and then its tasks
    work.await_tasks("RUNNING")
    for state, shown in ((TargetState.PAUSED, "PAUSED"), (TargetState.STARTED, "RUNNING")):
        asked_by(lambda state=state: work.herder.set_target_state("c", state))
        work.await_state(shown)
    asked_by(lambda: work.herder.restart_task("c", 0))
    may_divide.clear()
    asked_by(lambda: work.put(v="2"))
    asked_by(may_divide.set, "hold", "rejoin")
    work.await_tasks("RUNNING")
    asked_by(lambda: work.herder.set_target_state("c", TargetState.STOPPED), "hold", "rejoin")  # which commits an empty set


def test_the_log_names_a_resume(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    work.put()
    work.await_state("RUNNING")
    for state, shown in ((TargetState.PAUSED, "PAUSED"), (TargetState.STARTED, "RUNNING")):
        work.herder.set_target_state("c", state)
        work.await_state(shown)
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Connector c")]
    assert said == ["Connector c runs with 1 task(s)", "Connector c is paused", "Connector c is resumed", "Connector c runs with 1 task(s)"]


def test_only_the_newest_division_of_an_unchanged_connector_is_stored(work: Work) -> None:
    answers = ["b", "a"]
    work.script.divide = lambda connector, count: [{"v": answers.pop()}]
    work.configs.refusals = refusals = 1_000_000
    work.put()
    eventually(lambda: work.configs.refusals < refusals, "refusal", 10, 0.01)
    work.script.instances[0].context.request_task_reconfiguration()
    eventually(lambda: not answers, "second division", 10, 0.01)
    work.configs.refusals = 0
    eventually(lambda: work.configs.stored == [["b"]], lambda: f"{work.configs.stored}", 10, 0.01)
    work.later()
    assert work.configs.stored == [["b"]]


def test_task_configurations_that_could_not_be_stored_are_stored_later(work: Work) -> None:
    work.configs.refusals = 1
    work.put(v="1")
    eventually(lambda: work.configs.stored == [["1"]], lambda: f"{work.configs.stored}", 10, 0.01)


def test_task_configurations_that_wait_for_a_leader_are_not_sent_once_they_are_outdated(work: Work) -> None:
    """The leader that is asked first stands still: meanwhile the connector is changed, or given to another worker."""
    work.rounds.is_leader = False
    work.leader.may_answer.clear()
    work.put(v="1")
    eventually(work.leader.is_asked.is_set, "request", 10, 0.01)
    for start, version in enumerate("23", 1):
        work.put(v=version)
        eventually(lambda start=start: ("start", start) in work.script.notes, f"start of version {version}", 10, 0.01)
        work.await_state("RUNNING")
        work.thread.call(lambda: None)
    work.leader.may_answer.set()
    eventually(lambda: ["3"] in work.configs.stored, lambda: f"{work.configs.stored}", 10, 0.01)
    assert work.configs.stored == [["1"], ["3"]]


def test_an_older_set_of_tasks_that_is_stored_late_is_replaced_by_the_connectors_owner(work: Work) -> None:
    """A leader that stood still stores what it was asked to before another worker led."""
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.put(v="2")
    eventually(lambda: work.configs.stored == [["1"], ["2"]], lambda: f"{work.configs.stored}", 10, 0.01)
    work.thread.call(lambda: work.configs.put_task_configs("c", [{"v": "1", "task.class": "test.ScriptedTask"}]))
    work.thread.call(lambda: None)
    work.later()
    assert work.configs.stored == [["1"], ["2"], ["1"], ["2"]]
    work.later()
    assert len(work.configs.stored) == 4


def test_a_set_of_tasks_that_a_leader_has_left_half_written_is_stored_again_after_the_next_round(work: Work) -> None:
    """Compaction may take the tasks that were committed, and a worker that starts then finds none: it gives them to nobody."""
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.later()
    work.configs.is_dying = True
    work.thread.call(lambda: work.configs.put_task_configs("c", [{"v": "1", "task.class": "test.ScriptedTask"}]))
    work.configs.is_dying = False
    work.later()
    assert work.configs.stored == [["1"], ["1"]]
    work.put("other", v="2")  # calls for a round
    work.await_tasks("RUNNING", name="other")
    work.later()
    assert work.configs.stored == [["1"], ["1"], ["2"], ["1"]]
    assert work.configs.snapshot().unfinished == frozenset()


def test_a_configuration_that_is_put_again_restarts_its_connector_and_is_not_stored_behind_its_tasks(work: Work) -> None:
    """Compaction would take the first one, and the next worker would find tasks of no connector."""
    config = {"connector.class": CLASS, "v": "1", "tasks.max": "1"}
    work.herder.put_connector("c", config, may_replace=False)
    work.await_tasks("RUNNING")
    work.noted(("start", 0))
    assert work.herder.put_connector("c", config, may_replace=True)[0] is False
    work.noted(("start", 0), ("stop begins", 0), ("stop", 0), ("start", 1))
    work.await_state("RUNNING")
    work.later()
    assert (work.configs.stored, work.configs.snapshot().unfinished) == ([["1"]], frozenset())
    work.herder.put_connector("c", {**config, "v": "2"}, may_replace=True)
    eventually(lambda: work.configs.stored == [["1"], ["2"]], lambda: f"{work.configs.stored}", 10, 0.01)


def test_a_configuration_that_follows_a_restart_before_the_first_round_is_carried_out_is_not_lost(work: Work) -> None:
    """What a worker is given it owns at once; the restart then starts the connector, and the round starts only what does not run."""
    eventually(lambda: work.rounds.asked, "the round of the worker's start, which removes statuses of nothing", 10, 0.01)
    work.thread.call(lambda: None)
    work.rounds.is_under_way = True
    work.statuses.put_connector("c", Status("RUNNING", "gone:8083", 0, None, "1"))
    work.put(v="1")
    work.thread.call(lambda: work.configs.put_restart_request(RestartRequest("c")))
    eventually(lambda: work.configs.stored == [["1"]], lambda: f"{work.configs.stored}", 10, 0.01)
    work.put(v="2")
    work.thread.call(lambda: None)
    work.rounds.is_under_way = False
    work.thread.call(work.rounds.rejoin)
    eventually(lambda: work.configs.stored == [["1"], ["2"]], lambda: f"{work.configs.stored}", 10, 0.01)


def test_tasks_are_stored_again_behind_a_configuration_that_another_leader_has_stored_again(work: Work) -> None:
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.put(v="1")
    eventually(lambda: work.configs.stored == [["1"], ["1"]], lambda: f"{work.configs.stored}", 10, 0.01)
    assert work.configs.snapshot().unfinished == frozenset()
    work.later()
    work.later()
    assert work.configs.stored == [["1"], ["1"]]


@pytest.mark.parametrize(
    ("status", "refusals", "levels"), [(403, 8, ["INFO"] * 8), (403, 10, ["INFO"] * 8 + ["WARNING"] * 2), (500, 1, ["WARNING"])]
)
def test_a_signature_that_a_leader_refuses_within_a_minute_is_no_warning(
    work: Work, caplog: pytest.LogCaptureFixture, status: int, refusals: int, levels: list[str]
) -> None:
    """The key may have been replaced since (`AbstractHerder`, KIP-507); the tasks are sent again until the leader has them."""
    caplog.set_level("INFO")
    work.rounds.is_leader, work.leader.refusals, work.leader.status = False, refusals, status
    work.put(v="1")

    def is_stored() -> bool:
        work.later()
        return work.configs.stored == [["1"]]

    eventually(is_stored, lambda: f"{work.configs.stored}", 10, 0.01)
    assert [record.levelname for record in caplog.records if "could not be stored; tried again" in record.message] == levels


def test_a_connector_that_fails_after_its_start_is_stopped(work: Work) -> None:
    def divide(connector: Scripted, count: int) -> list[dict[str, str]]:
        raise RetriableError("the tables cannot be listed")

    work.script.divide = divide
    work.put()
    work.await_state("FAILED")
    work.noted(("start", 0), ("stop begins", 0), ("stop", 0))


def test_a_connector_that_does_not_start_is_not_stopped(work: Work) -> None:
    def fail(connector: Scripted) -> None:
        raise RetriableError("away")

    work.script.starting = fail
    work.put()
    work.await_state("FAILED")
    assert work.script.notes == [("start", 0)]


def test_a_connectors_next_instance_starts_when_the_last_ones_stop_has_ended(work: Work) -> None:
    stopping, may_stop = threading.Event(), threading.Event()

    def stop(connector: Scripted) -> None:
        stopping.set()
        assert may_stop.wait(60)

    work.put(v="1")
    work.await_tasks("RUNNING")
    work.script.stopping = stop
    work.put(v="2")
    assert stopping.wait(60)
    work.put(v="3")
    work.thread.call(lambda: None)
    assert work.script.notes == [("start", 0), ("stop begins", 0)]
    may_stop.set()
    eventually(lambda: ["3"] in work.configs.stored, "tasks of the newest configuration", 10, 0.01)
    assert work.script.notes == [("start", 0), ("stop begins", 0), ("stop", 0), ("start", 1)], "the one in between was never started"


@pytest.mark.parametrize("stuck", ["start", "stop"])
def test_a_connector_that_never_returns_holds_its_group_up_for_a_while_only(
    make_work: Callable[..., Work], caplog: pytest.LogCaptureFixture, stuck: str
) -> None:
    work, is_stuck, may_return = make_work(stop_seconds=0.1), threading.Event(), threading.Event()

    def block(connector: Scripted) -> None:
        is_stuck.set()
        assert may_return.wait(60)

    try:
        if stuck == "start":
            work.script.starting = block
            work.put()
            assert is_stuck.wait(60)
        else:
            work.script.stopping = block
            work.put()
            work.await_tasks("RUNNING")
        assert work.applier.revoke(Allocation(("c",), (TaskId("c", 0),))).wait(60)
        assert is_stuck.is_set()
        assert "Connector c has not stopped within 0.1 s" in caplog.text
    finally:
        may_return.set()


def test_a_stop_that_fails_is_logged_and_holds_nothing_up(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    def stop(connector: Scripted) -> None:
        raise SystemExit(3)

    work.put(v="1")
    work.await_tasks("RUNNING")
    work.script.stopping = stop
    work.put(v="2")
    eventually(lambda: ["2"] in work.configs.stored, "tasks of the newest configuration", 10, 0.01)
    assert "Connector c could not be stopped in order" in caplog.text


def test_a_connector_that_asks_to_end_the_worker_is_failed(work: Work) -> None:
    def leave(connector: Scripted) -> None:
        raise SystemExit(3)

    work.script.starting = leave
    work.put()
    work.await_state("FAILED")


def test_a_connector_may_ask_for_its_tasks_to_be_divided_again(work: Work) -> None:
    tables = ["a"]
    work.script.divide = lambda connector, count: [{"v": table} for table in tables]
    work.put(tasks_max="2")
    work.await_tasks("RUNNING")
    tables.append("b")
    work.script.instances[0].context.request_task_reconfiguration()
    work.await_tasks("RUNNING", "RUNNING")
    assert (work.configs.stored, work.state()) == ([["a"], ["a", "b"]], "RUNNING")


def test_a_request_for_tasks_within_the_start_is_not_lost(work: Work) -> None:
    tables = ["a"]

    def divide(connector: Scripted, count: int) -> list[dict[str, str]]:
        found = [{"v": table} for table in tables]
        if len(tables) == 1:
            tables.append("b")
            connector.context.request_task_reconfiguration()
        return found

    work.script.divide = divide
    work.put(tasks_max="2")
    eventually(lambda: work.configs.stored == [["a"], ["a", "b"]], lambda: f"{work.configs.stored}", 10, 0.01)


def test_a_connector_that_cannot_say_its_tasks_keeps_those_it_has_and_is_asked_again(work: Work) -> None:
    work.put()
    work.await_tasks("RUNNING")
    failures = [RetriableError("away")]

    def divide(connector: Scripted, count: int) -> list[dict[str, str]]:
        if failures:
            raise failures.pop()
        return [{"v": "new"}]

    work.script.divide = divide
    work.script.instances[0].context.request_task_reconfiguration()
    eventually(lambda: work.configs.stored[-1] == ["new"], lambda: f"{work.configs.stored}", 10, 0.01)
    assert work.state() == "RUNNING"


def test_a_connector_that_raises_an_error_is_failed_and_stopped_and_its_tasks_run(work: Work) -> None:
    work.put()
    work.await_tasks("RUNNING")
    work.script.instances[0].context.raise_error(RetriableError("the monitor has lost its connection"))
    work.await_state("FAILED")
    status = work.statuses.connector("c")
    assert status is not None and "the monitor has lost its connection" in (status.trace or "")
    work.noted(("start", 0), ("stop begins", 0), ("stop", 0))
    assert work.tasks() == ["RUNNING"]
    work.herder.restart_connector("c")
    work.await_state("RUNNING")


@pytest.mark.parametrize("error", [ValueError("no such file"), RetriableError("away")])
def test_a_restart_of_what_cannot_start_says_so_whatever_was_raised(work: Work, error: Exception) -> None:
    def starting(connector: Scripted) -> None:
        raise error

    work.put()
    work.await_tasks("RUNNING")
    work.script.starting = starting
    with pytest.raises(RestError) as caught:
        work.herder.restart_connector("c")
    assert (str(caught.value), caught.value.status) == ("Failed to start connector: c", 500)
    status = work.statuses.connector("c")
    assert status is not None and str(error) in (status.trace or "")


def test_the_context_of_an_instance_that_was_replaced_asks_for_nothing(work: Work) -> None:
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.put(v="2")
    eventually(lambda: ["2"] in work.configs.stored, "tasks of the newest configuration", 10, 0.01)
    old = work.script.instances[0].context
    asked = len(work.script.asked)
    old.raise_error(RetriableError("too late"))
    old.request_task_reconfiguration()
    work.thread.call(lambda: None)
    assert (work.state(), len(work.script.asked)) == ("RUNNING", asked)


def test_a_connector_reads_its_offsets(work: Work) -> None:
    work.put()
    work.await_tasks("RUNNING")
    context = work.script.instances[0].context
    assert context.offset({"a": 1, "b": 2}) is None
    work.offsets.put("c", [({"b": 2, "a": 1}, {"pos": 3})])
    assert context.offset({"a": 1, "b": 2}) == {"pos": 3}


def test_a_connector_that_wants_more_tasks_than_the_operator_allows_is_failed(make_work: Callable[..., Work]) -> None:
    work = make_work(**{"tasks.max.per.connector": "2"})
    work.script.divide = lambda connector, count: [{"v": str(number)} for number in range(count)]
    work.put(tasks_max="1000000")
    work.await_state("FAILED")
    status = work.statuses.connector("c")
    assert status is not None and "tasks.max.per.connector" in (status.trace or "")
    assert (work.script.asked, work.configs.stored) == ([3], [])
    work.put(tasks_max="2")
    work.await_tasks("RUNNING", "RUNNING")


def test_a_connector_that_divides_into_too_many_later_keeps_its_tasks_and_is_failed(make_work: Callable[..., Work]) -> None:
    work = make_work(**{"tasks.max.per.connector": "1"})
    work.put(tasks_max="5")
    work.await_tasks("RUNNING")
    work.script.divide = lambda connector, count: [{"v": str(number)} for number in range(count)]
    work.script.instances[0].context.request_task_reconfiguration()
    work.await_state("FAILED")
    assert (work.tasks(), len(work.configs.stored)) == (["RUNNING"], 1)


def test_tasks_beyond_what_the_worker_may_run_are_failed_until_others_have_ended(make_work: Callable[..., Work]) -> None:
    work = make_work(**{"tasks.max.per.worker": "2"})
    work.script.divide = lambda connector, count: [{"v": str(number)} for number in range(count)]
    work.put("a", tasks_max="2")
    work.await_tasks("RUNNING", "RUNNING", name="a")
    work.put("b", tasks_max="1")
    work.await_tasks("FAILED", name="b")
    status = work.statuses.task("b", 0)
    assert status is not None and "tasks.max.per.worker" in (status.trace or "")
    work.herder.delete_connector("a")
    eventually(lambda: not work.thread.call(lambda: work.tasks_host.is_hosting("a")), "end of a's tasks", 10, 0.01)
    work.herder.restart_task("b", 0)
    work.await_tasks("RUNNING", name="b")


def test_tasks_that_are_stored_already_are_held_to_the_operators_limit(make_work: Callable[..., Work]) -> None:
    work = make_work(**{"tasks.max.per.connector": "1"})
    work.put()
    work.await_tasks("RUNNING")
    work.configs.put_task_configs("c", [{"v": "1"}, {"v": "2"}])  # as a worker without the limit has left them
    work.await_tasks("RUNNING", "FAILED")


def stop(work: Work) -> None:
    work.herder.set_target_state("c", TargetState.STOPPED)
    work.await_state("STOPPED")


def test_a_connector_is_not_resumed_or_deleted_while_its_offsets_are_modified(work: Work) -> None:
    altering, may_alter = threading.Event(), threading.Event()

    def alter() -> None:
        altering.set()
        assert may_alter.wait(60)

    work.put()
    work.await_tasks("RUNNING")
    stop(work)
    work.await_tasks()
    work.script.altering = alter
    answers: list[str] = []
    request = threading.Thread(target=lambda: answers.append(work.herder.alter_offsets("c", [({"p": 1}, {"o": 2})])))
    request.start()
    assert altering.wait(60)
    for other in (
        lambda: work.herder.set_target_state("c", TargetState.STARTED),
        lambda: work.herder.set_target_state("c", TargetState.PAUSED),
        lambda: work.herder.delete_connector("c"),
        lambda: work.herder.reset_offsets("c"),
    ):
        with pytest.raises(ConflictError, match="Another request modifies the offsets of connector c just now"):
            other()
    work.herder.set_target_state("c", TargetState.STOPPED)
    may_alter.set()
    request.join(60)
    assert answers == ["The offsets for this connector have been altered successfully"]
    work.herder.set_target_state("c", TargetState.STARTED)
    work.await_tasks("RUNNING")


def test_offsets_are_not_modified_while_a_task_has_not_ended(make_work: Callable[..., Work]) -> None:
    work = make_work(modify_seconds=1.0, **{"task.shutdown.graceful.timeout.ms": "4000"})
    work.script.divide = lambda connector, count: [{"v": "", "stay": "yes"}]
    work.put()
    work.await_tasks("RUNNING")
    stop(work)
    with pytest.raises(ConflictError, match="its tasks have not stopped within 1 s"):
        work.herder.alter_offsets("c", [({"p": 1}, {"o": 2})])
    assert work.herder.offsets("c") == []


def test_a_refused_change_of_offsets_leaves_the_connector_free(work: Work) -> None:
    work.put()
    work.await_tasks("RUNNING")
    with pytest.raises(BadRequestError, match="must be in the STOPPED state"):
        work.herder.reset_offsets("c")
    stop(work)
    work.await_tasks()
    for _ in range(2):
        assert work.herder.reset_offsets("c").startswith("The offsets for this connector have been reset")
    work.herder.set_target_state("c", TargetState.STARTED)


def test_topics_are_forgotten_when_the_request_is_answered(work: Work) -> None:
    work.put()
    work.await_tasks("RUNNING")
    work.statuses.put_topic("c", 0, "t")
    assert work.herder.topics("c") == ["t"]
    work.herder.reset_topics("c")
    assert work.herder.topics("c") == []


def test_the_log_has_the_lines_for_which_scripts_wait(make_work: Callable[..., Work], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "connect_py.herder")
    work = make_work()
    eventually(lambda: "Finished starting" in caplog.text, "start", 10, 0.01)
    prefix = "[Worker clientId=connect-w:1, groupId=g] "
    assignment = "error=0, leader='', leaderUrl='', offset=-1, connectorIds=[], taskIds=[]"
    joined = f"Joined group at generation 1 with protocol version 2 and got assignment: Assignment{{{assignment}, revokedConnectorIds=[], "
    assert [record.getMessage() for record in caplog.records if record.getMessage().startswith("[Worker")] == [
        f"{prefix}Herder starting",
        f"{prefix}Herder started",
        f"{prefix}{joined}revokedTaskIds=[], delay=0}} with rebalance delay: 0",
        f"{prefix}Starting connectors and tasks using config offset -1",
        f"{prefix}Finished starting connectors and tasks",
    ]
    assert work.state() is None


def test_what_a_leader_that_nobody_knows_assigns_in_addition_is_not_started_nor_reported(work: Work) -> None:
    """A leader may name what does not exist, or a worker that is gone with an address that is none."""
    work.put(v="1")
    work.await_tasks("RUNNING")
    unknown = ("nobody", TaskId("nobody", 0), TaskId("c", 7), TaskId("c", -5))
    share = Share(
        GroupProtocol.SESSIONED,
        work.rounds.generation,
        "me",
        "me",
        "http://[/",
        work.configs.snapshot().offset,
        Allocation.of(["c", TaskId("c", 0), *unknown]),
        1000,
        {"c": "http://[/", TaskId("c", 7): "http://[/"},
    )
    carried_out: list[bool] = []
    work.applier.after_rounds(lambda: carried_out.append(True))
    work.applier.carry_out(share, GroupAssignment(0, "me", "http://[/", share.config_offset, share.work))
    eventually(lambda: carried_out, "the end of the round", 10, 0.01)
    assert (work.state(), work.tasks(), work.statuses.connectors()) == ("RUNNING", ["RUNNING"], ["c"])
    assert work.applier.revoke(Allocation.of(unknown)).wait(60)
    assert (work.tasks(), work.statuses.connectors()) == (["RUNNING"], ["c"])


def carry_out(work: Work, **share: Any) -> None:
    """Have the worker act on a round of its group."""
    offset = work.configs.snapshot().offset
    given = Share(GroupProtocol.SESSIONED, SoleWorker.generation, config_offset=offset, **share)
    work.applier.carry_out(given, GroupAssignment(NO_ERROR, "", "", offset))
    work.thread.call(lambda: None)


def test_the_status_of_lost_work_names_the_worker_and_says_since_when_and_until_when_it_is_gone(work: Work) -> None:
    """A Java leader leaves it RUNNING on a worker that is gone."""
    work.script.divide = lambda connector, count: [{}, {}]
    work.put(tasks_max="2")
    work.await_tasks("RUNNING", "RUNNING")
    work.statuses.put_connector("c", Status("RUNNING", "gone:8083", 0, None, "1"))
    work.statuses.put_task("c", 0, Status("RUNNING", "gone:8083", 0, None, "1"))
    work.statuses.put_task("c", 1, Status("RUNNING", "other:8083", 0, None, "1"))
    before = datetime.datetime.now(datetime.UTC)
    waiting = dict.fromkeys(("c", TaskId("c", 0), TaskId("c", 1)), "http://gone:8083/")
    carry_out(work, delay_ms=300_000, waiting=waiting)
    lost = [work.statuses.connector("c"), work.statuses.task("c", 0)]
    found = set()
    for status in lost:
        assert status is not None
        assert (status.state, status.worker_id) == ("UNASSIGNED", "gone:8083")
        said = re.fullmatch(
            r"The worker gone:8083 is gone\. The group has been without it since (\S+Z)\. Its work goes to another one at (\S+Z), which is "
            r"300 s later, unless it comes back\.\n",
            status.trace or "",
        )
        assert said is not None, status.trace
        since, until = (datetime.datetime.fromisoformat(text) for text in said.groups())
        assert before - datetime.timedelta(milliseconds=1) <= since <= datetime.datetime.now(datetime.UTC)
        assert (until - since).total_seconds() == 300
        found.add(status.trace)
    kept = work.statuses.task("c", 1)
    assert kept is not None and kept.state == "RUNNING", "another worker has it"
    carry_out(work, delay_ms=100_000, waiting=waiting)
    later = [work.statuses.connector("c"), work.statuses.task("c", 0)]
    assert {status.trace for status in later if status is not None} == found, "as it was said first"


def test_a_request_waits_for_the_end_of_a_round(work: Work) -> None:
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.rounds.settled.clear()
    work.rounds.is_waited_for.clear()
    asked = threading.Thread(target=lambda: work.herder.restart_task("c", 0))
    asked.start()
    assert work.rounds.is_waited_for.wait(60)
    assert asked.is_alive()
    work.rounds.settled.set()
    asked.join(60)
    assert not asked.is_alive()
    work.await_tasks("RUNNING")


@pytest.mark.parametrize(
    "ask",
    [
        lambda herder: herder.restart_connector("c"),
        lambda herder: herder.restart("c", include_tasks=True, only_failed=True),
        lambda herder: herder.restart_task("c", 0),
        lambda herder: herder.alter_offsets("c", []),
        lambda herder: herder.reset_offsets("c"),
    ],
    ids=["connector", "connector and tasks", "task", "PATCH offsets", "DELETE offsets"],
)
def test_a_round_that_lasts_longer_than_a_request_waits_is_a_conflict_with_the_references_text(
    make_work: Callable[..., Work], ask: Callable[[DistributedHerder], object]
) -> None:
    work = make_work(**{"rest.conflict.wait.ms": "50"})
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.rounds.settled.clear()
    with pytest.raises(ConflictError) as refused:
        ask(work.herder)
    assert str(refused.value) == (
        "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"
    )


def test_reads_and_health_are_answered_while_a_round_lasts(work: Work) -> None:
    """Java's worker answers some of them 500; of health neither asks whether the worker is in its group."""
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.rounds.settled.clear()
    work.rounds.is_waited_for.clear()
    herder = work.herder
    assert herder.health().status == "healthy"
    assert herder.connectors() == ["c"]
    assert herder.connector_info("c").config["v"] == "1"
    assert len(herder.task_infos("c")) == 1
    assert herder.connector_status("c").connector.state == "RUNNING"
    assert list(herder.offsets("c")) == []
    assert not work.rounds.is_waited_for.is_set()


def test_variables_of_task_configurations_reach_the_leader_as_they_are_written(make_work: Callable[..., Work], tmp_path: Path) -> None:
    """Their values are nobody's but the worker's that runs the task: the leader writes what it gets into a topic."""
    (tmp_path / "v").write_text("the value")
    provider = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
    work = make_work(**{"config.providers": "dir", "config.providers.dir.class": provider})
    work.rounds.is_leader = False
    variable = f"${{dir:{tmp_path}:v}}"
    work.put(v=variable)
    eventually(lambda: len(work.configs.stored) == 1, "task configurations", 10, 0.01)
    assert work.script.instances[0].config["v"] == "the value"
    assert work.configs.stored == [[variable]]


@pytest.mark.parametrize("support", ["disabled", "preparing", "enabled"])
def test_a_leader_that_prepares_fences_for_the_workers_that_are_enabled_already(make_work: Callable[..., Work], support: str) -> None:
    work = make_work(**{"exactly.once.source.support": support})
    work.put(v="1")
    eventually(lambda: work.configs.snapshot().task_counts == {"c": 1}, "task configurations", 10, 0.01)
    work.configs.put_session_key(base64.b64encode(b"k" * 32).decode(), "HmacSHA256", 0)
    signature = InternalSignature("HmacSHA256", hmac.digest(b"k" * 32, b"", "sha256"), b"")
    if support == "disabled":
        with pytest.raises(RestError, match="Nothing was fenced for connector c: this worker has no support"):
            work.herder.fence_zombies("c", signature)
    else:
        work.herder.fence_zombies("c", signature)
        assert work.configs.snapshot().task_count_records == {"c": 1}


@pytest.mark.parametrize("leads", [True, False])
def test_a_configuration_is_validated_where_it_arrives_and_by_the_leader_again(work: Work, leads: bool) -> None:
    work.rounds.is_leader = leads
    with pytest.raises(BadRequestError, match="Invalid value nine"):
        work.herder.put_connector("c", {"connector.class": CLASS, "tasks.max": "nine"}, may_replace=True)
    if not leads:
        with pytest.raises(MisdirectedError):
            work.herder.put_connector("c", {"connector.class": CLASS}, may_replace=True)
    assert work.configs.snapshot().connectors == {}


def test_statuses_of_revoked_work_are_written_before_the_worker_joins_again(work: Work) -> None:
    """Its next owner reports after that."""
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.statuses.may_flush.clear()
    done = work.applier.revoke(Allocation(("c",), (TaskId("c", 0),)))
    assert work.statuses.is_flushing.wait(60)
    try:
        assert work.state() == "UNASSIGNED"
        assert not done.is_set()
    finally:
        work.statuses.may_flush.set()
    assert done.wait(60)


def unreadable() -> None:
    raise RetriableError("Kafka is away")


def test_a_task_that_a_frozen_worker_says_is_gone_has_a_state_again(work: Work) -> None:
    work.put(v="1")
    work.await_tasks("RUNNING")
    work.configs.unread = [unreadable]
    work.statuses.are_forgotten("c", 0)
    eventually(lambda: not work.configs.unread, "a look at the configuration", 10, 0.01)
    work.thread.call(lambda: None)
    assert work.tasks() == []
    work.later()
    work.await_tasks("RUNNING")


@pytest.mark.parametrize("state", ["RUNNING", "FAILED"])
def test_a_connector_that_a_frozen_worker_says_is_gone_has_its_state_again(work: Work, state: str) -> None:
    if state == "FAILED":
        work.script.starting = divide_by_zero
    work.put(v="1")
    work.await_state(state)
    if state == "RUNNING":
        work.await_tasks("RUNNING")
    before = work.statuses.connector("c"), work.tasks()
    work.statuses.are_forgotten("c", None)
    work.await_state(state)
    eventually(lambda: (work.statuses.connector("c"), work.tasks()) == before, lambda: f"{work.state()}, {work.tasks()}", 10, 0.01)
    work.configs.unread = [lambda: work.configs.remove_connector("c")]
    work.statuses.are_forgotten("c", None)
    eventually(lambda: "c" not in work.configs.snapshot().connectors, "the end of the connector", 10, 0.01)
    work.thread.call(lambda: None)
    assert work.state() is None


def divide_by_zero(connector: Scripted) -> None:
    raise ZeroDivisionError


def test_a_task_that_is_gone_by_a_configuration_that_is_not_read_yet_has_no_state_again(work: Work) -> None:
    """Whatever its worker reads first of the two topics."""
    work.script.divide = lambda connector, count: [{"v": "1"}] * int(connector.config["n"])
    work.put(n="2", tasks_max="2")
    work.await_tasks("RUNNING", "RUNNING")
    work.configs.unread = [lambda: work.configs.put_task_configs("c", [{"v": "2", "task.class": "test.ScriptedTask"}])]
    work.statuses.are_forgotten("c", 1)
    eventually(lambda: len(work.configs.stored) == 2, "a smaller set of tasks", 10, 0.01)
    work.thread.call(lambda: None)
    assert work.statuses.task("c", 1) is None
    work.await_tasks("RUNNING")
    work.configs.unread = [lambda: work.configs.remove_connector("c")]
    work.statuses.are_forgotten("c", 0)
    eventually(lambda: "c" not in work.configs.snapshot().connectors, "the end of the connector", 10, 0.01)
    work.thread.call(lambda: None)
    assert (work.state(), work.tasks()) == (None, [])
    work.put(n="1")
    work.await_tasks("RUNNING")
