"""Write docs/cli.md from the tree: ``python -m connect_py.app.reference > docs/cli.md``. A test holds the page equal to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from connect_py.app.commands.command import EXIT_CODES, GROUPS, Command
from connect_py.app.commands.tree import COMMANDS, about, exit_codes, parser

#: Options that every command with a worker has; they are explained once.
_OF_WORKERS = ("--worker", "--context", "--user", "--password-file", "--ca-file")

_HEAD = """\
# Command reference

This page is made from the commands' own help: `connect-py COMMAND --help` shows the same. The guide is [commands](commands.md).

## Which worker

Commands that ask a worker have these options.

"""


def page() -> str:
    """Return docs/cli.md."""
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)).choices
    lines = [_HEAD.rstrip("\n"), ""]
    lines += _table([action for action in commands["status"]._actions if set(action.option_strings) & {*_OF_WORKERS}])
    lines += ["", "## Exit codes", "", "Where a command says nothing else:", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {text} |" for code, text in EXIT_CODES.items()]
    for group in GROUPS:
        lines += ["", f"## {group}"]
        for command in COMMANDS.values():
            if command.group == group:
                lines += ["", *_section(command, commands[command.name])]
    return "\n".join(lines) + "\n"


def _section(command: Command, below: argparse.ArgumentParser) -> Iterator[str]:
    actions = [action for action in below._actions if not isinstance(action, argparse._HelpAction)]
    own = [action for action in actions if not set(action.option_strings) & {*_OF_WORKERS}]
    yield f"### {command.name}"
    yield ""
    yield _code(about(command))
    yield ""
    yield "```"
    yield " ".join(["connect-py", command.name, *map(_usage, own), *(["[WORKER OPTIONS]"] if len(own) < len(actions) else [])])
    yield "```"
    if own:
        yield ""
        yield from _table(own)
    if command.examples:
        yield ""
        yield "```sh"
        yield from (f"connect-py {example}" for example in command.examples)
        yield "```"
    if command.exits:
        yield ""
        yield "| exit code | meaning |"
        yield "|---|---|"
        yield from (f"| {code} | {text} |" for code, text in exit_codes(command).items() if code in command.exits)


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        shown = action.option_strings[0] + (
            "" if action.nargs == 0 else f" [{action.metavar}]" if action.nargs == "?" else f" {action.metavar}"
        )
        return shown if action.required else f"[{shown}]"
    name = str(action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest))
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)


def _table(actions: list[argparse.Action]) -> Iterator[str]:
    yield "| argument | meaning |"
    yield "|---|---|"
    for action in actions:
        value = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar}"
        names = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{_usage(action)}`"
        shown = names.replace("|", "\\|")
        yield f"| {shown} | {_code(str(action.help))} |"


def _code(text: str) -> str:
    """Return help as Markdown: what stands for a text of the user's, and variables, as code."""
    return text.replace("${file:…}", "`${file:…}`").replace("$${NAME} stays ${NAME}", "`$${NAME}` stays `${NAME}`")


if __name__ == "__main__":
    print(page(), end="")
