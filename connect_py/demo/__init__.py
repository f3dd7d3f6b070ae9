"""`connect-py demo`: a database, a broker, a worker and a Spark sink on this machine, and the tutorial told with them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from connect_py.demo.curl import as_typed, command
from connect_py.demo.screen import Screen
from connect_py.demo.stage import STATE, Stage, stop_what_was_left
from connect_py.demo.story import DATABASE, SINK, SOURCE, TOPIC, Story
from connect_py.errors import ConnectError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0 only when every step showed the expected rows."""
    parser = argparse.ArgumentParser(prog="connect-py demo", description="PostgreSQL -> Kafka -> Iceberg on this machine, step by step.")
    parser.add_argument("--keep", action="store_true", help="leave everything running and say how to go on")
    parser.add_argument("--stop", action="store_true", help="stop what an earlier --keep left running")
    options = parser.parse_args(arguments)
    screen = Screen()
    try:
        if options.stop:
            screen.say(f"Stopped: {', '.join(stop_what_was_left()) or 'nothing was running any more'}.")
            return 0
        if STATE.exists():
            raise ConnectError("An earlier demo was left running: stop it with `connect-py demo --stop`.")
        return _play(screen, keep=options.keep)
    except ConnectError as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; everything was stopped.", file=sys.stderr)
        return 130


def _play(screen: Screen, *, keep: bool) -> int:
    screen.say("connect-py: from a PostgreSQL table through Kafka into an Iceberg table")
    stage = Stage()
    try:
        story = Story(stage, screen)
        story.tell()
    except BaseException as error:
        failed = isinstance(error, Exception)
        _stop(screen, stage, keep_folder=failed)
        if failed:
            screen.note(f"the servers were stopped; their logs are in {stage.folder}")
        raise
    if keep:
        stage.leave_running()
        _say_how_to_go_on(screen, stage, story.url)
    else:
        _stop(screen, stage)
    screen.say(f"\nEvery step showed the expected rows; {screen.seconds:.0f} s.")
    return 0


def _stop(screen: Screen, stage: Stage, *, keep_folder: bool = False) -> None:
    with screen.working("stopping"):
        stage.stop(keep_folder=keep_folder)


def _say_how_to_go_on(screen: Screen, stage: Stage, url: str) -> None:
    python = sys.executable
    screen.step("Everything is left running")
    postgres = stage.postgres
    screen.note(f"PostgreSQL  {postgres.dsn(DATABASE)}")
    screen.note(f"Kafka       {stage.kafka.bootstrap}, topic {TOPIC}")
    screen.note(f"lakehouse   {stage.warehouse}/inventory/customers")
    screen.note(f"worker      pid {stage.worker.pid}, log {stage.worker.log}")
    screen.say("   Go on with:")
    for method, path in [
        ("GET", "/connectors?expand=status"),
        ("GET", f"/connectors/{SOURCE}/offsets"),
        ("GET", f"/connectors/{SINK}/offsets"),
        ("PUT", f"/connectors/{SOURCE}/pause"),
        ("PUT", f"/connectors/{SOURCE}/resume"),
        ("GET", "/connector-plugins"),
        ("DELETE", f"/connectors/{SINK}"),
    ]:
        screen.code("$ " + as_typed(command(method, url + path)))
    screen.say("   Stop everything with:")
    screen.code(f"$ {python.removesuffix('python')}connect-py demo --stop")
