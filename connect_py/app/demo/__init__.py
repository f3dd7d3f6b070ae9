"""`connect-py demo`: a database, a broker, a worker and a Spark sink on this machine, and the tutorial played with them."""

from __future__ import annotations

import sys
from pathlib import Path

from connect_py.app.demo.databases import DATABASES, DemoDatabase
from connect_py.app.demo.screen import Screen, as_path, as_typed, command
from connect_py.app.demo.stage import Stage, state_file, stop_what_was_left
from connect_py.app.demo.story import SINK, SOURCE, Story, shown_url
from connect_py.errors import ConnectError

__all__ = ["main"]

#: A worker takes 3 s of CPU to start; more than these would make the demo wait for nothing that it shows.
MOST_WORKERS = 8

AFTERWARDS = """
All of it was stopped and removed. To go on by yourself:
   $ make demo KEEP=1     # leaves it running, with the page of the worker, and prints what you can try
   $ make demo KILL=1     # kills the task, Spark and the worker while 10,000 rows change, and compares the tables
docs/tutorial.md goes the same way by hand, in half an hour."""


def main(*, workers: int = 1, keep: bool = False, stop: bool = False, kill: bool = False, rows: int = 0, source: str = "postgresql") -> int:
    """Run the command; returns its exit status: 0 only when every step showed the expected rows.

    Args:
        workers: how many share the work.
        keep: leave everything running.
        stop: only stop what an earlier run has left running.
        kill: kill the source's task, Spark and the worker while rows change, and compare the tables.
        rows: of a further table, with which one sees how fast it goes.
        source: a word of `DATABASES`.
    """
    screen = Screen()
    try:
        if stop:
            screen.say(f"Stopped: {', '.join(stop_what_was_left()) or 'nothing was running any more'}.")
            return 0
        if state_file().exists():
            raise ConnectError("An earlier demo was left running: stop it with `connect-py demo --stop`.")
        if not 1 <= workers <= MOST_WORKERS:
            raise ConnectError(f"The demo has 1 to {MOST_WORKERS} workers, not {workers}.")
        if kill and workers > 1:
            raise ConnectError("--kill is for one worker, and --workers kills one of several: give one of the two.")
        if rows < 0:
            raise ConnectError(f"--rows needs a number of rows, not {rows}.")
        return _play(screen, DATABASES[source](), workers=workers, keep=keep, kill=kill, rows=rows)
    except ConnectError as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; everything was stopped.", file=sys.stderr)
        return 130


def _play(screen: Screen, database: DemoDatabase, *, workers: int, keep: bool, kill: bool, rows: int) -> int:
    screen.say(f"connect-py: from {database.label} through Kafka into Iceberg tables")
    stage = Stage(database)
    try:
        story = Story(stage, screen, workers, kill=kill, rows=rows)
        story.tell()
    except BaseException as error:
        has_something_to_tell = isinstance(error, Exception) and stage.has_logs
        _stop(screen, stage, keep_folder=has_something_to_tell)
        if has_something_to_tell:
            screen.note(f"the servers were stopped; their logs are in {stage.folder}")
        raise
    if keep:
        stage.leave_running()
    else:
        _stop(screen, stage)
    screen.say(f"\nEvery step showed the expected rows; {screen.seconds:.0f} s.")
    if keep:
        _say_how_to_go_on(screen, stage, story.url)
    else:
        screen.say(AFTERWARDS)
    return 0


def _stop(screen: Screen, stage: Stage, *, keep_folder: bool = False) -> None:
    with screen.working("stopping"):
        stage.stop(keep_folder=keep_folder)


def _say_how_to_go_on(screen: Screen, stage: Stage, url: str) -> None:
    python, command_line = as_path(sys.executable), as_path(Path(sys.executable).parent / "connect-py")
    screen.step("Everything is left running")
    screen.note(f"{stage.database.where}, Kafka at {stage.kafka.bootstrap.replace('127.0.0.1', 'localhost')}")
    for worker in stage.workers:
        if worker.service.is_alive():
            screen.note(f"worker: {shown_url(worker)}, process {worker.pid}, log {worker.log}")
    screen.say(f"   Open the page of the worker in a browser: {url}/ui/")
    screen.say("   Look at the connectors, their offsets and all plugins:")
    for path in ("/connectors?expand=status", f"/connectors/{SOURCE}/offsets", f"/connectors/{SINK}/offsets", "/connector-plugins"):
        screen.code("$ " + as_typed(command("GET", url + path)))
    screen.say("   Pause and resume the source:")
    for verb in ("pause", "resume"):
        screen.code("$ " + as_typed(command("PUT", f"{url}/connectors/{SOURCE}/{verb}")))
    screen.say("   Change a row, and read the lakehouse table a few seconds later:")
    screen.code(f"$ {stage.database.command()}")
    read = f"StaticTable.from_metadata('{stage.warehouse}/inventory/customers').scan().to_arrow().to_pylist()"
    screen.code(f'$ {python} -c "from pyiceberg.table import StaticTable; print({read})"')
    screen.say("   Compare topics and tables with the database, row by row:")
    screen.code(f"$ {command_line} verify {SOURCE} {SINK} --worker {url} --bootstrap-servers {stage.kafka.bootstrap}")
    for worker in stage.workers:
        if not worker.service.is_alive():
            screen.say("   Start the killed worker again, and see it get its part of the work; Ctrl-C ends it:")
            screen.code(f"$ {command_line} distributed {worker.log.with_name('worker.properties')}")
    screen.say("   Stop everything:")
    screen.code(f"$ {command_line} demo --stop")
