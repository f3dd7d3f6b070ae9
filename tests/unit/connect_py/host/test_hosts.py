"""Task processes as the worker sees them: real processes, a scripted task inside, statuses in memory."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from connect_py.api.storage import Status
from connect_py.app.services.process import is_running
from connect_py.config.restart_policy import RestartPolicy
from connect_py.errors import RetriableError
from connect_py.herder.thread import HerderThread
from connect_py.host.process import Exited, TaskProcess, spawn
from connect_py.host.tasks import TaskHost, TaskSpec
from connect_py.task.control import TaskControl
from connect_py.task.main import WorkerChannel
from offsets.local_stores import MemoryStatusStore
from tests import waiting

#: Speaks the protocol of `connect_py.task.main` without a connector.
TASK = textwrap.dedent(
    """
    import json, os, subprocess, sys
    def say(**message):
        print(json.dumps(message), flush=True)
    start = json.loads(sys.stdin.readline())
    if start.get("die"):
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    if start.get("child"):
        say(type="child", pid=subprocess.Popen(["sleep", "600"]).pid)
    if start.get("fail"):
        say(type="failed", trace="it broke\\n\\tat x\\n")
        sys.exit(1)
    say(type="state", state="PAUSED" if start["paused"] else "RUNNING")
    if start.get("offsets"):
        say(type="offsets", id=1, offsets=[])
    for line in sys.stdin:
        wish = json.loads(line)
        if wish["type"] == "offsets_written":
            say(type="heard", error=wish["error"])
        if wish["type"] == "stop" and not start.get("deaf"):
            if start.get("drains_to"):
                say(type="topic", topic=start["drains_to"])
            say(type="stopped")
            sys.exit(0)
        if wish["type"] in ("pause", "resume"):
            say(type="state", state="PAUSED" if wish["type"] == "pause" else "RUNNING")
        if wish["type"] == "signal":
            # the scripted task does what the signal says: take, refuse, carry out, die
            does = wish["signal"]["does"]
            if does == "die":
                os._exit(9)
            say(type="answer", id=wish["id"], problem="no" if does == "refuse" else None)
            if does == "carry out":
                say(type="signal_done", id=wish["id"])
    os._exit(1)
    """
)


def eventually(probe: Callable[[], Any], seconds: float = 10) -> Any:
    return waiting.eventually(probe, "such state", seconds, pause=0.01)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    script = tmp_path / "task.py"
    script.write_text(TASK)
    return [sys.executable, str(script)]


class Statuses(MemoryStatusStore):
    """Remembers each report: the store itself does not show an UNASSIGNED of the generation that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[tuple[str, int, str]] = []

    def put_task(self, connector: str, task: int, status: Status, *, safe: bool = False) -> None:
        self.reported.append((connector, task, status.state))
        super().put_task(connector, task, status, safe=safe)


class Hosted:
    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.thread = HerderThread()
        self.thread.start()
        self.pool = ThreadPoolExecutor(2)
        self.statuses = Statuses()
        self.processes: list[TaskProcess] = []
        self.messages: list[Any] = []
        self.lines: list[str] = []
        self.delayed: list[Callable[[], None]] = []
        self.is_sure = True
        self.is_configured = True
        self.store_offsets: Callable[[str, Any], None] = lambda connector, offsets: None
        self.host = TaskHost(
            self.statuses,
            self.pool,
            post=self.thread.post,
            post_later=self._post_later,
            spawn=self._spawn,
            store_offsets=lambda connector, offsets: self.store_offsets(connector, offsets),
            status=lambda state, trace, version: Status(state, "w:1", 1, trace, version),
            stop_timeout=0.5,
            is_sure=lambda: self.is_sure,
            is_configured=lambda connector: self.is_configured,
            restart_delays=(0.01, 0.02),
        )

    def _post_later(self, seconds: float, work: Callable[[], None]) -> None:
        self.delayed.append(work)
        self.thread.post_later(seconds, work)

    def _spawn(self, start: Any, on_event: Callable[[Any], None]) -> TaskProcess:
        def hear(event: Any) -> None:
            self.messages.append(event)
            on_event(event)

        self.processes.append(TaskProcess(lambda: spawn(self.command), start, hear, self.lines.append))
        return self.processes[-1]

    def want(self, *tasks: int, incarnation: int = 1, **start: Any) -> None:
        specs = {n: self.spec(n, incarnation, **start) for n in tasks}
        self.thread.call(lambda: self.host.set_tasks("c", specs))

    def spec(self, task: int, incarnation: int, policy: RestartPolicy | None = None, *, is_source: bool = False, **start: Any) -> TaskSpec:
        def message(paused: bool) -> dict[str, Any]:
            return {"type": "start", "paused": paused, **{name: made() if callable(made) else made for name, made in start.items()}}

        return TaskSpec("c", task, incarnation, "1.0", message, policy or RestartPolicy(), is_source)

    def state(self, task: int = 0) -> str | None:
        status = self.statuses.task("c", task)
        return status.state if status else None

    def await_state(self, state: str | None, task: int = 0, seconds: float = 10) -> None:
        eventually(lambda: self.state(task) == state, seconds)


@pytest.fixture
def hosted(command: list[str]) -> Iterator[Hosted]:
    made = Hosted(command)
    yield made
    made.thread.call(lambda: made.host.close(time.monotonic() + 1))
    eventually(lambda: made.thread.call(lambda: made.host.is_closed))
    made.thread.stop()
    made.pool.shutdown()


def test_a_wanted_task_runs_and_an_unwanted_one_ends_and_is_forgotten(hosted: Hosted) -> None:
    hosted.want(0, 1)
    hosted.await_state("RUNNING", 0)
    hosted.await_state("RUNNING", 1)
    hosted.want(0)
    hosted.await_state(None, 1)
    assert hosted.state(0) == "RUNNING"
    assert sum(is_running(process.pid) for process in hosted.processes) == 1


def test_a_source_that_is_held_back_can_be_given_up(hosted: Hosted) -> None:
    hosted.is_sure = False
    hosted.want(0, is_source=True)
    eventually(lambda: len(hosted.delayed) > 0)
    hosted.want()
    hosted.is_sure = True
    assert not hosted.thread.call(lambda: hosted.host.is_hosting("c"))
    assert hosted.processes == []


def test_a_worker_that_lost_its_work_kills_its_sources_ends_its_sinks_and_reports_nothing_more(hosted: Hosted) -> None:
    hosted.thread.call(lambda: hosted.host.set_tasks("c", {0: hosted.spec(0, 1, is_source=True), 1: hosted.spec(1, 1)}))
    hosted.await_state("RUNNING", 0)
    hosted.await_state("RUNNING", 1)
    reported = list(hosted.statuses.reported)
    hosted.thread.call(hosted.host.abandon)
    eventually(lambda: not any(is_running(process.pid) for process in hosted.processes))
    eventually(lambda: not hosted.thread.call(lambda: hosted.host.is_hosting("c")))
    ends = [event.code for event in hosted.messages if isinstance(event, Exited)]
    assert sorted(ends) == [-signal.SIGKILL, 0]
    assert hosted.statuses.reported == reported
    assert hosted.state() == "RUNNING", "it is the other worker's to change"
    hosted.want(0)
    eventually(lambda: len(hosted.processes) == 3)
    eventually(lambda: len(hosted.statuses.reported) > len(reported))


def test_a_task_that_another_worker_may_be_given_ends_and_is_reported_unassigned(hosted: Hosted) -> None:
    hosted.want(0, 1)
    hosted.await_state("RUNNING", 0)
    hosted.await_state("RUNNING", 1)
    hosted.thread.call(lambda: hosted.host.give_up([("c", 1), ("c", 7)]))
    eventually(lambda: hosted.thread.call(lambda: hosted.host.have_ended([("c", 1)])))
    assert hosted.statuses.reported[-1] == ("c", 1, "UNASSIGNED")
    assert sum(is_running(process.pid) for process in hosted.processes) == 1 and hosted.state(0) == "RUNNING"


def test_a_task_that_is_suspended_ends_silently_and_starts_again_when_it_is_wanted(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.await_state("RUNNING")
    reported = list(hosted.statuses.reported)
    hosted.thread.call(lambda: hosted.host.suspend([("c", 0)]))
    eventually(lambda: hosted.thread.call(lambda: hosted.host.have_ended([("c", 0)])))
    assert hosted.statuses.reported == reported and hosted.state() == "RUNNING"
    hosted.thread.call(lambda: hosted.host.add([hosted.spec(0, 2)]))
    eventually(lambda: len(hosted.processes) == 2)


@pytest.mark.parametrize(
    ("ends", "is_configured", "topics"),
    [
        ("suspend", True, ["t"]),
        ("give_up", True, ["t"]),
        ("close", True, ["t"]),
        ("delete", True, ["t"]),
        ("delete", False, []),
        ("abandon", True, []),
    ],
)
def test_the_topic_of_a_tasks_last_records_is_known_unless_the_connector_is_deleted_or_anothers(
    hosted: Hosted, ends: str, is_configured: bool, topics: list[str]
) -> None:
    hosted.want(0, drains_to="t")
    hosted.await_state("RUNNING")
    hosted.is_configured = is_configured
    match ends:
        case "close":
            hosted.thread.call(lambda: hosted.host.close(time.monotonic() + 5))
        case "abandon":
            hosted.thread.call(hosted.host.abandon)
        case _:
            hosted.thread.call(lambda: getattr(hosted.host, ends)([("c", 0)]))
    eventually(lambda: not is_running(hosted.processes[0].pid) and isinstance(hosted.messages[-1], Exited))
    hosted.thread.call(lambda: None)
    assert hosted.statuses.topics("c") == topics


def test_a_worker_that_does_not_know_whether_its_work_is_its_own_reports_no_death_and_starts_no_source(hosted: Hosted) -> None:
    hosted.want(0, is_source=True)
    hosted.await_state("RUNNING")
    reported = list(hosted.statuses.reported)
    hosted.is_sure = False
    os.kill(hosted.processes[0].pid, signal.SIGKILL)
    eventually(lambda: len(hosted.delayed) > 3)
    assert len(hosted.processes) == 1 and hosted.statuses.reported == reported
    hosted.is_sure = True
    eventually(lambda: len(hosted.processes) == 2)


def test_a_task_that_another_worker_says_is_gone_is_reported_again_while_it_is_this_workers(hosted: Hosted) -> None:
    def is_forgotten(task: int) -> None:
        hosted.statuses.delete_task("c", task)
        hosted.thread.call(lambda: hosted.host.say_again(("c", task)))

    hosted.want(0, 1)
    hosted.await_state("RUNNING", 0)
    hosted.await_state("RUNNING", 1)
    is_forgotten(0)
    assert hosted.state(0) == "RUNNING"
    reported = len(hosted.statuses.reported)
    hosted.thread.call(lambda: hosted.host.say_again(("c", 0)))
    assert len(hosted.statuses.reported) == reported, "there is a report"
    hosted.is_sure = False
    is_forgotten(0)
    assert hosted.state(0) is None
    hosted.is_sure = True
    hosted.await_state("RUNNING", 0)
    hosted.thread.call(lambda: hosted.host.suspend([("c", 1)]))
    for task in (1, 7):
        is_forgotten(task)
        assert hosted.state(task) is None


def test_a_new_incarnation_starts_only_after_the_old_process_is_gone(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.await_state("RUNNING")
    hosted.want(0, incarnation=2)
    eventually(lambda: len(hosted.processes) == 2)
    assert not is_running(hosted.processes[0].pid)
    assert hosted.messages[1] == {"type": "stopped"}
    hosted.await_state("RUNNING")


def test_the_same_incarnation_is_left_alone(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.await_state("RUNNING")
    hosted.want(0)
    hosted.thread.call(lambda: None)
    assert len(hosted.processes) == 1
    assert is_running(hosted.processes[0].pid)


def test_pause_and_resume_reach_running_and_new_tasks(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.await_state("RUNNING")
    hosted.thread.call(lambda: hosted.host.pause("c", True))
    hosted.await_state("PAUSED")
    hosted.want(0, 1)
    hosted.await_state("PAUSED", 1)
    hosted.thread.call(lambda: hosted.host.pause("c", False))
    hosted.await_state("RUNNING", 0)
    hosted.await_state("RUNNING", 1)


def test_a_reported_failure_stays_until_the_task_is_restarted(hosted: Hosted) -> None:
    hosted.want(0, fail=True)
    hosted.await_state("FAILED")
    assert hosted.statuses.task("c", 0).trace == "it broke\n\tat x\n"
    eventually(lambda: isinstance(hosted.messages[-1], Exited))
    assert len(hosted.processes) == 1
    hosted.thread.call(lambda: hosted.host.restart(hosted.spec(0, 2)))
    hosted.await_state("RUNNING")


def test_a_killed_process_is_started_again(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.await_state("RUNNING")
    os.kill(hosted.processes[0].pid, signal.SIGKILL)
    eventually(lambda: len(hosted.processes) == 2)
    hosted.await_state("RUNNING")


def test_a_process_that_dies_again_and_again_fails_with_what_it_last_wrote(hosted: Hosted) -> None:
    hosted.want(0, die=True)
    hosted.await_state("FAILED")
    trace = hosted.statuses.task("c", 0).trace
    assert "exit code 3" in trace
    assert "3 times in a row" in trace
    assert "last words" in trace
    assert "POST /connectors/c/tasks/0/restart" in trace
    assert len(hosted.processes) == 3


def test_a_task_that_does_not_stop_in_time_is_killed_with_its_children(hosted: Hosted) -> None:
    hosted.want(0, deaf=True, child=True)
    hosted.await_state("RUNNING")
    child = hosted.messages[0]["pid"]
    assert is_running(child)
    hosted.want()
    hosted.await_state(None)
    assert not is_running(hosted.processes[0].pid)
    eventually(lambda: not is_running(child))


def test_closing_reports_unassigned_but_leaves_a_failure_visible(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.thread.call(
        lambda: hosted.host.set_tasks("d", {0: TaskSpec("d", 0, 9, None, lambda paused: {"type": "start", "paused": False, "fail": True})})
    )
    hosted.await_state("RUNNING")
    eventually(lambda: (status := hosted.statuses.task("d", 0)) and status.state == "FAILED")
    hosted.thread.call(lambda: hosted.host.close(time.monotonic() + 1))
    eventually(lambda: hosted.statuses.reported[-1] == ("c", 0, "UNASSIGNED"))
    assert hosted.statuses.task("d", 0).state == "FAILED"


def test_a_process_that_cannot_be_started_is_a_failure_that_says_so(hosted: Hosted) -> None:
    hosted.command = ["/no/such/program"]
    hosted.want(0)
    hosted.await_state("FAILED")
    assert "could not be started" in hosted.statuses.task("c", 0).trace


def test_a_failed_task_is_restarted_where_its_policy_says_so_and_its_status_tells_of_it(hosted: Hosted) -> None:
    failures = iter([True, True, False])
    hosted.want(0, policy=RestartPolicy(3, 0.01, 60), fail=lambda: next(failures))
    hosted.await_state("RUNNING")
    assert [state for _, _, state in hosted.statuses.reported] == ["FAILED", "RESTARTING", "FAILED", "RESTARTING", "RUNNING"]
    restarts = hosted.statuses.task("c", 0).restarts
    assert restarts is not None
    assert {**restarts, "history": [entry["failure"] for entry in restarts["history"]]} == {
        "policy": "on-failure",
        "attempts": 2,
        "max_attempts": 3,
        "next_at": None,
        "history": ["it broke", "it broke"],
    }


def test_a_task_that_goes_on_failing_stays_failed_after_its_last_attempt(hosted: Hosted) -> None:
    hosted.want(0, policy=RestartPolicy(2, 0.01, 60), fail=True)
    eventually(lambda: len(hosted.processes) == 3)
    eventually(lambda: hosted.state() == "FAILED" and hosted.statuses.task("c", 0).restarts["next_at"] is None)
    assert len(hosted.processes) == 3


def test_a_task_without_a_policy_stays_failed_and_its_status_is_connects(hosted: Hosted) -> None:
    hosted.want(0, fail=True)
    hosted.await_state("FAILED")
    assert hosted.statuses.task("c", 0).restarts is None


def test_a_restart_that_waits_is_given_up_when_the_task_is_started_anew(hosted: Hosted) -> None:
    hosted.want(0, policy=RestartPolicy(-1, 60, 60), fail=True)
    hosted.await_state("FAILED")
    restart = eventually(lambda: hosted.delayed and hosted.delayed[-1])
    hosted.want(0, incarnation=2)
    hosted.await_state("RUNNING")
    hosted.thread.call(restart)
    assert (len(hosted.processes), hosted.state()) == (2, "RUNNING")


def signal_of(hosted: Hosted, does: str) -> list[Any]:
    return hosted.thread.call(lambda: hosted.host.signal("c", {"does": does}))


def test_every_running_task_says_what_it_thinks_of_a_signal(hosted: Hosted) -> None:
    assert signal_of(hosted, "take") == [], "nothing runs"
    hosted.want(0, 1)
    hosted.await_state("RUNNING", 0)
    hosted.await_state("RUNNING", 1)
    assert [answer.result(10) for answer in signal_of(hosted, "carry out")] == [None, None]
    assert [answer.result(10) for answer in signal_of(hosted, "refuse")] == ["no", "no"]


def test_a_task_that_dies_over_a_signal_has_not_taken_it(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.await_state("RUNNING")
    (answer,) = signal_of(hosted, "die")
    with pytest.raises(RetriableError, match="c-0 ended before"):
        answer.result(10)
    eventually(lambda: len(hosted.processes) == 2)
    hosted.await_state("RUNNING")
    assert [answer.result(10) for answer in signal_of(hosted, "take")] == [None], "it was not given to the next process"


def test_a_signal_that_was_taken_and_is_not_done_is_given_to_the_next_process(hosted: Hosted) -> None:
    hosted.want(0)
    hosted.await_state("RUNNING")
    for does in ("carry out", "take", "refuse"):
        (answer,) = signal_of(hosted, does)
        answer.result(10)
    eventually(lambda: any(message == {"type": "signal_done", "id": 1} for message in hosted.messages if not isinstance(message, Exited)))
    hosted.processes[0].kill()

    def answers() -> list[int]:
        return [message["id"] for message in hosted.messages if not isinstance(message, Exited) and message["type"] == "answer"]

    eventually(lambda: len(answers()) == 4)
    assert answers() == [1, 2, 3, 2]
    hosted.want()
    hosted.await_state(None)
    hosted.want(0, incarnation=2)
    hosted.await_state("RUNNING")
    assert [answer.result(10) for answer in signal_of(hosted, "take")] == [None]
    assert answers()[4:] == [4], "signals of a task that was taken away are gone"


#: Speaks, then does what `start` says: half a message before it dies, or no message at all while it lives on.
TORN = textwrap.dedent(
    """
    import json, os, signal, sys, time
    start = json.loads(sys.stdin.readline())
    sys.stdout.write('{"type":"state","state":"RUNNING"}\\n' + start["then"])
    sys.stdout.flush()
    if start["dies"]:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
    """
)


@pytest.mark.parametrize(
    ("then", "dies"),
    [('{"type":"metrics","groups":[{"na', True), ("Traceback of a library\n", False), ("[1]\n", False), ("{}\n", False)],
)
def test_a_task_whose_last_message_is_torn_or_no_message_is_over(then: str, dies: bool) -> None:
    events: list[Any] = []
    process = TaskProcess(lambda: spawn([sys.executable, "-c", TORN]), {"then": then, "dies": dies}, events.append)
    end = eventually(lambda: events and isinstance(events[-1], Exited) and events[-1], 15)
    assert (events[:-1], end.code) == ([{"type": "state", "state": "RUNNING"}], -signal.SIGKILL)
    assert not is_running(process.pid)


def test_a_task_that_dies_within_a_message_is_started_again(hosted: Hosted, tmp_path: Path) -> None:
    script = tmp_path / "torn.py"
    script.write_text(TORN)
    hosted.command = [sys.executable, str(script)]
    torn = iter([True])
    hosted.want(0, then=lambda: '{"type":"met' if next(torn, False) else "", dies=lambda: len(hosted.processes) == 0)
    eventually(lambda: len(hosted.processes) == 2)
    hosted.await_state("RUNNING")


def test_a_listener_that_fails_ends_the_task_instead_of_leaving_it_alone(command: list[str]) -> None:
    ends: list[Exited] = []

    def hear(event: Any) -> None:
        if not isinstance(event, Exited):
            raise ValueError("no")
        ends.append(event)

    TaskProcess(lambda: spawn(command), {"paused": False}, hear)
    eventually(lambda: ends, 15)


def test_a_line_that_cannot_be_shown_does_not_stop_the_others(command: list[str]) -> None:
    script = "import sys; sys.stdin.readline(); print('a', 'b', 'c', sep='\\n', file=sys.stderr)"
    shown: list[str] = []
    events: list[Any] = []

    def show(line: str) -> None:
        if line == "a":
            raise OSError("no room on the device")
        shown.append(line)

    TaskProcess(lambda: spawn([sys.executable, "-c", script]), {}, events.append, show)
    eventually(lambda: events and isinstance(events[-1], Exited))
    assert shown == ["b", "c"]


def test_a_message_that_cannot_be_written_leaves_no_process(command: list[str]) -> None:
    with pytest.raises(TypeError):
        TaskProcess(lambda: spawn(command), {"paused": object()}, lambda event: None)


def test_the_task_of_a_connector_that_is_deleted_while_it_starts_is_not_started_again(hosted: Hosted) -> None:
    launching, deleted, launches = threading.Event(), threading.Event(), []

    def fail() -> str:
        launches.append(time.monotonic())
        launching.set()
        assert deleted.wait(60)
        raise RetriableError("the offsets cannot be read just now")

    hosted.want(0, fail=fail)
    assert launching.wait(60)
    hosted.want()
    deleted.set()
    eventually(lambda: not hosted.thread.call(lambda: hosted.host.is_hosting("c")))
    hosted.thread.call(lambda: None)
    assert ([state for _, _, state in hosted.statuses.reported], hosted.state(), hosted.delayed) == ([], None, [])
    assert len(launches) == 1


def test_a_task_that_is_changed_while_it_starts_is_started_as_it_now_is(hosted: Hosted) -> None:
    launching, changed = threading.Event(), threading.Event()

    def fail() -> str:
        launching.set()
        assert changed.wait(60)
        raise RetriableError("the offsets cannot be read just now")

    hosted.want(0, fail=fail)
    assert launching.wait(60)
    hosted.want(0, incarnation=2)
    changed.set()
    hosted.await_state("RUNNING")
    assert hosted.delayed == []


@pytest.mark.parametrize("error", [RetriableError("away"), OSError("no room"), ValueError("an odd offset")])
def test_a_task_hears_of_every_failure_to_store_its_offsets(hosted: Hosted, error: Exception) -> None:
    def refuse(connector: str, offsets: Any) -> None:
        raise error

    hosted.store_offsets = refuse
    hosted.want(0, offsets=True)
    answer = eventually(lambda: [m for m in hosted.messages if not isinstance(m, Exited) and m["type"] == "heard"])
    assert answer == [{"type": "heard", "error": str(error)}]


#: A task's process whose commands come from this program's standard input.
COMMANDED = textwrap.dedent(
    """
    import os, sys, threading, time
    from connect_py.task.control import TaskControl
    from connect_py.task.offsets import PipeOffsetWriter
    from connect_py.task.lease import LeaseTimer
    from connect_py.task.main import _read_commands
    control = TaskControl()
    def stop():
        print("stop", flush=True)
        raise ValueError("a plugin's stop fails")
    control.on_stop(stop)
    control.on_stop(lambda: print("second", flush=True))
    commands = os.fdopen(0, "rb", closefd=False)
    threading.Thread(target=_read_commands, args=(commands, control, PipeOffsetWriter(lambda m: None), LeaseTimer()), daemon=True).start()
    print("ready", flush=True)
    time.sleep(600)
    """
)


@pytest.fixture
def commanded() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", COMMANDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


@pytest.mark.parametrize("line", [b"no json\n", b'{"type":"log_level"}\n', b'{"type":"log_level","logger":"x","level":"NOPE"}\n'])
def test_a_task_ends_when_it_cannot_read_its_worker_any_longer(commanded: subprocess.Popen[bytes], line: bytes) -> None:
    assert commanded.stdin is not None
    commanded.stdin.write(line)
    commanded.stdin.flush()
    assert commanded.wait(60) == -signal.SIGKILL


def test_a_task_ends_when_its_worker_dies_within_a_command(commanded: subprocess.Popen[bytes]) -> None:
    assert commanded.stdin is not None
    commanded.stdin.write(b'{"type":"pau')
    commanded.stdin.close()
    assert commanded.wait(60) == -signal.SIGKILL


def test_a_stop_that_fails_neither_hides_the_others_nor_ends_the_reading(commanded: subprocess.Popen[bytes]) -> None:
    assert commanded.stdin is not None and commanded.stdout is not None
    commanded.stdin.write(b'{"type":"stop","timeout":60}\n')
    commanded.stdin.flush()
    assert [commanded.stdout.readline(), commanded.stdout.readline()] == [b"stop\n", b"second\n"]
    assert commanded.poll() is None
    commanded.stdin.close()
    assert commanded.wait(60) == -signal.SIGKILL


def test_a_callback_that_comes_after_the_stop_is_called_at_once() -> None:
    control, calls = TaskControl(), []
    control.on_stop(lambda: calls.append(1))
    control.stop(1.0)
    control.on_stop(lambda: calls.append(2))
    control.stop(1.0)
    assert calls == [1, 2]


def test_a_task_reports_text_that_is_no_unicode() -> None:
    stream = io.BytesIO()
    WorkerChannel(stream).report({"type": "failed", "trace": "caf\udce9 " + "é"})
    assert orjson.loads(stream.getvalue()) == {"type": "failed", "trace": "caf? é"}
