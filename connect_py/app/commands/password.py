"""`connect-py password USER`: a line for the file of users of the REST API, with a hash in place of the password."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Sequence

from connect_py.app.commands.running import run
from connect_py.errors import ConfigError


def password(arguments: Sequence[str], usage: str) -> int:
    """Read a password from the terminal, or a line of standard input, and print the user's line. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="connect-py password", description="Print a line for rest.basic.auth.file, with a hash of the password."
    )
    parser.add_argument("user", help="the user's name")
    return run(parser, arguments, _print)


def _print(chosen: argparse.Namespace) -> int:
    from rest_api.logins import hashed

    given = getpass.getpass(f"Password of {chosen.user}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not given:
        raise ConfigError("there is no password: type one, or send it on standard input")
    user = "".join(f"\\{char}" if char in " :=#!\\" else char for char in chosen.user)
    print(f"{user}={hashed(given)}")
    return 0
