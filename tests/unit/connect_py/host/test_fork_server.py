"""The process that tasks are forked from, and what a worker learns of its children."""

import functools
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.commands.worker import TASK_COMMAND
from connect_py.app.services.process import child_pids
from connect_py.host.process import Exited, Launcher, TaskProcess
from connect_py.task.fork_server import FORK_SERVER, UNKNOWN_CODE, ForkServer
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tasks are forked on Linux only")

#: A task that does what it reads: prints to both streams, and ends as it is told.
TASK = """
import os, signal, ssl, sys
from connect_py.task.fork_server import serve
ssl.RAND_bytes(1)  # OpenSSL begins here, as in the worker's
if not serve():
    sys.exit(0)
for line in open(0, "rb", closefd=False):
    word, _, value = line.decode().strip().partition(" ")
    if word == "exit":
        sys.exit(int(value))
    elif word == "kill":
        os.kill(os.getpid(), int(value))
    elif word == "say":
        os.write(1, value.encode() + b"\\n"); os.write(2, b"! " + value.encode() + b"\\n")
    elif word == "files":
        os.write(1, str(sorted(int(name) for name in os.listdir("/proc/self/fd"))).encode() + b"\\n")
    elif word == "random":
        os.write(1, ssl.RAND_bytes(16).hex().encode() + b"\\n")
    elif word == "group":
        os.write(1, f"{os.getpid() == os.getpgrp() == os.getsid(0)}\\n".encode())
"""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    made = ForkServer(lambda control: subprocess.Popen([sys.executable, "-c", TASK], stdin=control, start_new_session=True))
    yield made
    made.close()


def close(*processes: Any) -> None:
    for process in processes:
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        process.release()


def told(process: Any, text: str) -> str:
    """What the task answers on its standard output."""
    process.stdin.write(text.encode() + b"\n")
    return process.stdout.read(4096).decode().strip()


def test_a_forked_process_has_pipes_and_a_process_group_of_its_own(server: ForkServer) -> None:
    first, second = server.fork(), server.fork()
    assert (told(first, "say ü"), told(second, "say b"), told(first, "group")) == ("ü", "b", "True")
    assert (first.stderr.read(100), second.stderr.read(100)) == ("! ü\n".encode(), b"! b\n")
    for process in (first, second):
        process.stdin.write(b"exit 0\n")
        assert process.wait(60) == 0
    close(first, second)


def test_forked_processes_have_random_numbers_of_their_own(server: ForkServer) -> None:
    """OpenSSL has begun in the server, keys and nonces of a connection must not be those of another task's."""
    processes = [server.fork() for _ in range(3)]
    assert len({told(process, "random") for process in processes}) == 3
    for process in processes:
        process.stdin.write(b"exit 0\n")
        assert process.wait(60) == 0
    close(*processes)


def test_a_forked_process_holds_no_descriptor_of_its_siblings(server: ForkServer) -> None:
    """One that held another's status socket would hide the server's death; one that held another's input, its worker's."""
    processes = [server.fork() for _ in range(3)]
    held = {told(process, "files") for process in processes}
    assert held == {"[0, 1, 2, 3]"}, "3 is the folder that was listed"
    for process in processes:
        process.stdin.close()
        assert process.wait(60) == 0, "the end of its input alone ends it"
    close(*processes)


@pytest.mark.parametrize(("order", "code"), [("exit 3", 3), ("kill 9", -9), ("kill 15", -15)])
def test_the_worker_learns_how_a_process_ended(server: ForkServer, order: str, code: int) -> None:
    process = server.fork()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    assert process.returncode is None
    process.stdin.write(order.encode() + b"\n")
    assert (process.wait(60), process.returncode, process.wait(0)) == (code, code, code)
    close(process)


def test_a_process_id_is_not_used_again_before_it_is_released(server: ForkServer) -> None:
    process = server.fork()
    process.stdin.write(b"exit 0\n")
    process.wait(60)
    assert Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    close(process)
    eventually(lambda: not Path(f"/proc/{process.pid}").exists(), "reaping", 10, 0.01)


def test_tasks_survive_their_server_and_the_next_one_gets_another(server: ForkServer, caplog: pytest.LogCaptureFixture) -> None:
    orphan = server.fork()
    died = server.pid
    assert died is not None
    os.kill(died, signal.SIGKILL)
    eventually(lambda: Path(f"/proc/{died}/stat").read_text().rpartition(")")[2].split()[0] == "Z", "end of the server")
    assert told(orphan, "say still here") == "still here"
    other = server.fork()
    assert "exit code -9" in caplog.text
    assert told(other, "say here") == "here"
    with pytest.raises(subprocess.TimeoutExpired):
        orphan.wait(0.05)
    orphan.stdin.write(b"exit 0\n")
    assert orphan.wait(60) == UNKNOWN_CODE
    assert "how it ended is not known" in caplog.text
    close(orphan, other)


def test_a_server_that_dies_at_a_request_is_an_error_and_not_a_hang() -> None:
    server = ForkServer(lambda control: subprocess.Popen([sys.executable, "-c", "import sys; sys.exit(5)"], stdin=control))
    with pytest.raises(OSError):
        server.fork()
    server.close()
    with pytest.raises(OSError, match="worker is ending"):
        server.fork()


def test_a_task_that_cannot_be_forked_is_started_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    script = "import sys; sys.exit(5) if sys.argv[1].startswith('(') else print(sys.argv[1], flush=True)"
    launcher = Launcher([sys.executable, "-c", script])
    process = launcher.launch("orders-0")
    assert process.stdout is not None and process.stdout.readline() == b"orders-0\n"
    assert "orders-0 could not be forked" in caplog.text
    process.wait()
    close(process)
    launcher.close()


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    made = Launcher(TASK_COMMAND)
    made.begin()
    yield made
    made.close()


def server_pid(launcher: Launcher) -> int:
    assert launcher.server_pid is not None
    return launcher.server_pid


def test_the_server_has_imported_what_tasks_need_and_has_one_thread(launcher: Launcher) -> None:
    """A thread of the server would not be in its children, but the locks that it held would."""
    process = launcher.launch("a-0")  # answers when everything is imported
    server = server_pid(launcher)
    assert "cimpl" in Path(f"/proc/{server}/maps").read_text(), "Kafka's client"
    assert len(list(Path(f"/proc/{server}/task").iterdir())) == 1
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 1
    close(process)


def test_a_forked_task_shows_its_name_and_the_trace_of_its_failure(launcher: Launcher) -> None:
    events: list[Any] = []
    start = {
        "connector": "orders-ü", "task": 0, "log_level": "INFO", "log_levels": {}, "worker": {}, "config": {}, "paused": False,
        "plugins": {}, "leased": True,
    }  # fmt: skip
    process = TaskProcess(lambda: launcher.launch("orders-ü-0"), start, events.append, forward=lambda line: None)
    eventually(lambda: any(isinstance(event, Exited) for event in events), "the end", 20)
    assert [event["type"] for event in events[:-1]] == ["failed"]
    assert events[-1].code == 1
    eventually(lambda: not Path(f"/proc/{process.pid}").exists(), "reaping", 10, 0.01)


def shown_words(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_tasks_of_one_server_show_a_name_each(launcher: Launcher) -> None:
    """The server finds the place of the name once for all."""
    plugin = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    start = {
        "task": 0, "log_level": "INFO", "log_levels": {"asyncio": logging.WARNING, "urllib3": logging.ERROR}, "worker": {}, "config": {},
        "class": plugin, "plugins": {plugin: {"target": "connectors.file.source:FileStreamSourceConnector"}}, "task_config": {},
        "paused": False, "leased": True,
    }  # fmt: skip
    tasks = {
        name: TaskProcess(functools.partial(launcher.launch, name), {**start, "connector": name}, lambda event: None)
        for name in ("orders", "invoices-ü")
    }
    for name, task in tasks.items():  # each waits for its lease
        eventually(lambda pid=task.pid, name=name: f"{name}-0" in shown_words(pid), f"the name of {name}", 20, 0.01)  # type: ignore[misc]
    assert all(FORK_SERVER not in shown_words(task.pid) for task in tasks.values())
    assert FORK_SERVER in shown_words(server_pid(launcher))
    for task in tasks.values():
        task.kill()
    eventually(lambda: not any(task.is_alive for task in tasks.values()), "the end of both", 20, 0.01)


def test_a_forked_process_shows_its_tasks_name() -> None:
    program = "from connect_py.task.fork_server import show_name; show_name('orders-ü-0'); print(open('/proc/self/cmdline').read())"
    out = subprocess.run([sys.executable, "-c", program, FORK_SERVER, "last"], capture_output=True, check=True).stdout.decode()
    assert [part for part in out.strip().split("\0") if part][-2:] == ["orders-ü-0", "last"]


def test_the_server_and_its_tasks_end_when_the_worker_is_killed() -> None:
    script = (
        "import time; from connect_py.app.commands.worker import TASK_COMMAND; from connect_py.host.process import Launcher\n"
        "launcher = Launcher(TASK_COMMAND); task = launcher.launch('a-0'); print(task.pid, flush=True); input()"
    )
    worker = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert worker.stdout is not None
        task = int(worker.stdout.readline())
        [server] = child_pids(worker.pid)
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (server, task)), "the end of both", 20, 0.05)
    finally:
        worker.kill()
        worker.communicate()
