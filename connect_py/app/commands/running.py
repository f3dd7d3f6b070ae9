"""How a command with arguments of its own runs and ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from connect_py.errors import ConfigError, ConnectError


def run(parser: argparse.ArgumentParser, arguments: Sequence[str], work: Callable[[argparse.Namespace], int]) -> int:
    """Parse, work, and name what failed in one line.

    Returns:
        What `work` returns; 0 where help was asked for; 1 where an argument or a configuration is wrong; 2 where a server cannot be asked.
    """
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as end:
        return 0 if end.code == 0 else 1
    try:
        return work(chosen)
    except ConfigError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    except ConnectError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
