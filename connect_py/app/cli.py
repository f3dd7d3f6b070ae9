"""Run the command ``connect-py``: find the module of a command and call it.

Modules are imported when their command runs: a task's process starts often and must not wait for a REST server's imports.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence

USAGE = """\
usage: connect-py COMMAND ...

  distributed [worker.properties]                 a worker that keeps everything in Kafka topics; without a file, CONNECT_* and the
                                                  Debezium image's environment variables are used
  standalone worker.properties [connector ...]    a worker with its connectors on the command line (.properties or .json files)
  health [worker.properties]                      whether the worker of this machine answers: exit code 0 or 1, for a container's check
  history verify|repair connector.json ...        whether the schema history of a MySQL or MariaDB connector tells what its server has
  verify source.json sink.json ...                whether the sink's lakehouse tables equal their source
  doctor connector.json | NAME --worker URL ...   everything that a connector's servers lack, each with the statement to run
  password USER                                   a line for the file of users of the REST API, with a hash of the password
  spark-archive                                   an archive of classes, made once, with which the sink's JVM starts with half of the CPU
  demo [--workers N] [--keep | --stop]            the tutorial on servers of its own: PostgreSQL, Kafka, a worker, Spark

  --help, --version

The worker answers Kafka Connect's REST API, by default on http://localhost:8083.
"""

#: By name, the module and the function of a command: (its arguments, the usage) → exit code.
_COMMANDS = {
    "task": ("connect_py.app.commands.task", "task"),
    "distributed": ("connect_py.app.commands.worker", "distributed"),
    "standalone": ("connect_py.app.commands.worker", "standalone"),
    "health": ("connect_py.app.commands.health", "health"),
    "history": ("connect_py.app.commands.history", "history"),
    "verify": ("connect_py.app.commands.verify", "verify"),
    "doctor": ("connect_py.app.commands.doctor", "doctor"),
    "password": ("connect_py.app.commands.tools", "password"),
    "spark-archive": ("connect_py.app.commands.tools", "spark_archive"),
    "demo": ("connect_py.app.commands.tools", "demo"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if command in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if arguments else 1
    if command == "--version":
        from connect_py import __version__

        print(f"connect-py {__version__}")
        return 0
    if command not in _COMMANDS:
        print(f"connect-py: unknown command {command!r}\n\n{USAGE}", file=sys.stderr, end="")
        return 1
    if command == "task":
        gc.disable()  # what it imports is no garbage, and looking for some takes a tenth of its start; it begins when it has what it needs
    module, function = _COMMANDS[command]
    return int(getattr(importlib.import_module(module), function)(rest, USAGE))


if __name__ == "__main__":
    sys.exit(main())
