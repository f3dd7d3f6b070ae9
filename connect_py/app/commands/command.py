"""What a command is: its place in the tree, its arguments, and the function that runs it. The modules of commands declare theirs with it.

Exit codes are the same for all commands, and `EXIT_CODES` is what help and docs/cli.md say of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: Code → meaning, where a command says nothing else.
EXIT_CODES = {
    0: "done, and nothing is wrong",
    1: "the command line or a file is wrong, or you said no; nothing was changed",
    2: "the worker or another server does not answer, or refuses",
    3: "the command did its work, and found something wrong: a failure, a difference",
    130: "you pressed Ctrl-C",
}

OK, USAGE, UNREACHABLE, WRONG, INTERRUPTED = EXIT_CODES

#: Headings of the help, in its order.
GROUPS = ("Look", "Change", "Run", "Data", "Run a worker", "Tools")


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        group: its heading, of `GROUPS`.
        help: one line, without a full stop.
        add: adds its arguments to its parser.
        run: does it; returns the exit code.
        about: sentences below the usage.
        examples: command lines, without ``connect-py``.
        exits: what exit codes mean that differ from `EXIT_CODES`.
    """

    name: str
    group: str
    help: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    about: str = ""
    examples: Sequence[str] = ()
    exits: dict[int, str] = field(default_factory=dict)
