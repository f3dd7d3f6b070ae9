"""Run the command ``connect-py``: find a command in the tree, run it, and name what failed in one line.

Modules are imported when their command runs: a task's process starts often and must not wait for a REST server's imports.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from connect_py.errors import ConfigError, ConnectError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code (`commands.command.EXIT_CODES`), or ends the process with it where the arguments are its own."""
    if argv is None:
        _end(_main(sys.argv[1:]))
    return _main(list(argv))


def _main(arguments: list[str]) -> int:
    if arguments[:1] == ["task"]:
        gc.disable()  # what it imports is no garbage, and looking for some takes a tenth of its start; it begins when it has what it needs
        from connect_py.app.task_process import task

        return task(arguments[1:])
    return _run(arguments)


def _end(code: int) -> NoReturn:
    """End the process as `Py_FinalizeEx` does, but for the release of every object, one by one: 0.15 s of CPU for a worker, and a task that
    was forked would copy all memory that it shares with its server, just to write to it."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # its reader is gone, or a plugin has closed it
            stream.flush()
    os._exit(code)


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
    main()
