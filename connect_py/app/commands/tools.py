"""Run the small commands.

- ``connect-py password USER``: print a line for the file of users of the REST API, with a hash in place of the password.
- ``connect-py spark-archive``: make the archive of classes that lets the sink's JVM start with half of the CPU.
- ``connect-py demo``: play the tutorial on servers of its own.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Sequence

from connect_py.app.commands.common import run
from connect_py.errors import ConfigError, ConnectError


def password(arguments: Sequence[str], usage: str) -> int:
    """Read a password from the terminal, or a line of standard input, and print the user's line. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="connect-py password", description="Print a line for rest.basic.auth.file, with a hash of the password."
    )
    parser.add_argument("user", help="the user's name")
    return run(parser, arguments, _print)


def _print(chosen: argparse.Namespace) -> int:
    from rest_api.basic_auth import hashed

    given = getpass.getpass(f"Password of {chosen.user}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not given:
        raise ConfigError("there is no password: type one, or send it on standard input")
    user = "".join(f"\\{char}" if char in " :=#!\\" else char for char in chosen.user)
    print(f"{user}={hashed(given)}")
    return 0


def spark_archive(arguments: Sequence[str], usage: str) -> int:
    """Make the archive; returns the exit code."""
    if arguments:
        print(f"connect-py spark-archive takes no arguments\n\n{usage}", file=sys.stderr, end="")
        return 1
    from spark_sink.spark import archive

    try:
        made = archive.make()
    except ConnectError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size // 2**20} MB")
    return 0


def demo(arguments: Sequence[str], _usage: str) -> int:
    """Tell the tutorial on servers of its own. Returns the exit code."""
    from connect_py.app.demo import main

    return main(arguments)
