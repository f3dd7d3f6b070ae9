"""Run the small commands.

- ``connect-py password USER``: print a line for the file of users of the REST API, with a hash in place of the password.
- ``connect-py spark-archive``: make the archive of classes that lets the sink's JVM start with half of the CPU.
- ``connect-py demo``: play the tutorial on servers of its own.
"""

from __future__ import annotations

import argparse
import getpass
import sys

from connect_py.app.commands.command import Command
from connect_py.errors import ConfigError, ConnectError


def _password_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", help="the user's name")


def password(chosen: argparse.Namespace) -> int:
    """Read a password from the terminal, or a line of standard input, and print the user's line. Returns the exit code."""
    from rest_api.basic_auth import hashed

    given = getpass.getpass(f"Password of {chosen.user}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not given:
        raise ConfigError("there is no password: type one, or send it on standard input")
    user = "".join(f"\\{char}" if char in " :=#!\\" else char for char in chosen.user)
    print(f"{user}={hashed(given)}")
    return 0


def _no_options(_parser: argparse.ArgumentParser) -> None:
    pass


def spark_archive(_chosen: argparse.Namespace) -> int:
    """Make the archive; returns the exit code."""
    from spark_sink.rehearsal import rehearse
    from spark_sink.spark import archive

    try:
        made = archive.make(rehearse)
    except ConnectError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size // 2**20} MB")
    return 0


def _demo_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave everything running and say how to go on")
    parser.add_argument("--stop", action="store_true", help="stop what an earlier --keep left running")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="how many workers share the work, 1 to 8; the last step kills one of several"
    )
    parser.add_argument(
        "--kill", action="store_true", help="kill the source's task, Spark and the worker while 10,000 rows change, then compare the tables"
    )
    parser.add_argument("--rows", type=int, default=0, metavar="N", help="of one more table, to see how fast N rows arrive; 1000000 say")
    parser.add_argument(
        "--source",
        choices=["postgresql", "mysql", "mongodb"],
        default="postgresql",
        metavar="DATABASE",
        help="postgresql (without the option), mysql or mongodb",
    )


def demo(chosen: argparse.Namespace) -> int:
    """Tell the tutorial on servers of its own. Returns the exit code."""
    from connect_py.app.demo import main

    return main(workers=chosen.workers, keep=chosen.keep, stop=chosen.stop, kill=chosen.kill, rows=chosen.rows, source=chosen.source)


COMMANDS = (
    Command(
        "password",
        "Tools",
        "print a line for the file of users of the REST API, with a hash of the password",
        _password_options,
        password,
        about="The password is asked for, or is a line of standard input. The line belongs into the file of rest.basic.auth.file.",
        examples=("password alice",),
    ),
    Command(
        "spark-archive",
        "Tools",
        "make, once, an archive of classes with which the sink's JVM starts with half of the CPU",
        _no_options,
        spark_archive,
    ),
    Command(
        "demo",
        "Tools",
        "play the tutorial on servers of its own: a database, Kafka, a worker, Spark",
        _demo_options,
        demo,
        examples=("demo --keep", "demo --kill", "demo --source mysql --rows 1000000", "demo --workers 2", "demo --stop"),
        exits={1: "a step did not show what it should; a log says why"},
    ),
)
