"""The tree of all commands: one argparse parser, from which help, docs/cli.md and shell completion come.

Importing it costs a few milliseconds: the modules of commands import what they need when they run.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from connect_py.app.commands import (
    apply,
    check,
    contexts,
    data,
    delete,
    doctor,
    health,
    history,
    logs,
    look,
    run,
    tools,
    top,
    verify,
    worker,
)
from connect_py.app.commands.command import EXIT_CODES, GROUPS, INTERRUPTED, USAGE, Command

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

COMMANDS: dict[str, Command] = {
    command.name: command
    for module in (look, top, logs, doctor, check, apply, delete, run, data, verify, history, worker, health, contexts, tools)
    for command in module.COMMANDS
}


class _Parser(argparse.ArgumentParser):
    """Ends with exit code 1 for a wrong command line, as this program always has."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where help is."""
        self.exit(USAGE, f"{self.prog}: {message}\nHelp: {self.prog} --help\n")


class _Top(_Parser):
    """The parser of the command itself, whose help lists the commands below their headings."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print `overview`."""
        print(overview(), file=file or sys.stdout, end="")


def parser() -> argparse.ArgumentParser:
    """Return the whole tree; each command's parser has the defaults `command`, its `Command`, and `tree`, the whole."""
    from connect_py import __version__

    top = _Top(prog="connect-py", description="Kafka Connect and Debezium in Python.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"connect-py {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser, required=True)
    for command in COMMANDS.values():
        below = commands.add_parser(
            command.name,
            help=command.help,
            description=textwrap.fill(about(command), _WIDTH),
            epilog=_epilog(command),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add(below)
        below.set_defaults(command=command, tree=top)
    return top


#: Characters of a line of a command's description.
_WIDTH = 96


def about(command: Command) -> str:
    """Return what a command does, in sentences."""
    return f"{command.help[0].upper()}{command.help[1:]}. {command.about}".strip()


def exit_codes(command: Command) -> dict[int, str]:
    """Return code → meaning; one that a command gives an empty meaning, it never ends with."""
    codes = {**{code: text for code, text in EXIT_CODES.items() if code != INTERRUPTED}, **command.exits}
    return {code: text for code, text in sorted(codes.items()) if text}


def _epilog(command: Command) -> str:
    lines = ["examples:", *(f"  connect-py {example}" for example in command.examples), ""] if command.examples else []
    return "\n".join([*lines, "exit codes:", *(f"  {code}  {text}" for code, text in exit_codes(command).items())])


def overview() -> str:
    """Return the help of the command itself."""
    lines = ["usage: connect-py COMMAND ...", ""]
    width = max(map(len, COMMANDS)) + 2
    for group in GROUPS:
        lines.append(f"{group}:")
        lines += [f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items() if command.group == group]
        lines.append("")
    lines += [
        "connect-py COMMAND --help explains a command. connect-py --version shows the version.",
        "Commands ask the worker of --worker URL, $CONNECT_PY_WORKER or the current context; without these, http://localhost:8083.",
    ]
    return "\n".join(lines) + "\n"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. Raises SystemExit with the exit code, after what is wrong or the help was printed."""
    first = arguments[0] if arguments else ""
    if first and not first.startswith("-") and first not in COMMANDS:
        meant = difflib.get_close_matches(first, COMMANDS, n=1)
        hint = f" Did you mean {meant[0]}?" if meant else ""
        print(f"connect-py: unknown command {first!r}.{hint} The commands: connect-py --help", file=sys.stderr)
        raise SystemExit(USAGE)
    return parser().parse_args(arguments)
