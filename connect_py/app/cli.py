"""Run the command ``connect-py``: find a command in the tree, run it, and name what failed in one line.

Modules are imported when their command runs: a task's process starts often and must not wait for a REST server's imports.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from connect_py.errors import ConfigError, ConnectError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code (`commands.command.EXIT_CODES`)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["task"]:
        gc.disable()  # what it imports is no garbage, and looking for some takes a tenth of its start; it begins when it has what it needs
        from connect_py.app.task_process import task

        return task(arguments[1:])
    return _run(arguments)


def _run(arguments: list[str]) -> int:
    from connect_py.app.commands import tree
    from connect_py.app.commands.command import INTERRUPTED, UNREACHABLE, USAGE

    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if not arguments:
        print(tree.overview(), end="")
        return USAGE
    try:
        chosen = tree.parse(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else USAGE
    command = chosen.command
    try:
        code: int = command.run(chosen)
        sys.stdout.flush()
        return code
    except (ConfigError, ConnectError) as error:
        print(f"connect-py {command.name}: {error}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigError) else UNREACHABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemError as error:
        # Ctrl-C within Kafka's client, which says that a call has both a result and an exception
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return INTERRUPTED
    except BrokenPipeError:
        # what reads the output has seen enough (`| head`); Python would complain once more when it closes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
