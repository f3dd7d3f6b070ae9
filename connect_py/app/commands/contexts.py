"""`context`: give workers names; and `completion`: a script with which a shell completes commands, options and connectors' names."""

from __future__ import annotations

import argparse

from connect_py.app.client.contexts import DEFAULT_WORKER, contexts_path, read_contexts, require_name, write_contexts
from connect_py.app.client.rest import Target
from connect_py.app.client.text import table_lines
from connect_py.app.commands.command import OK, Command
from connect_py.app.commands.connection import say, say_json, shows_colour
from connect_py.errors import ConfigError
from connect_py.extras import install_command

_ACTIONS = {"list": "show all", "use": "make one the current one", "set": "make or change one", "delete": "forget one"}

#: Option → setting of a context.
_SETTINGS = {
    "worker": "worker",
    "user": "user",
    "password_file": "password-file",
    "ca_file": "ca-file",
    "cert_file": "cert-file",
    "key_file": "key-file",
    "bootstrap_servers": "bootstrap-servers",
    "worker_properties": "worker-properties",
}


def _context_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=list(_ACTIONS), help="; ".join(f"{name}: {what}" for name, what in _ACTIONS.items()))
    parser.add_argument("name", nargs="?", metavar="NAME", help="the context")
    parser.add_argument("--worker", metavar="URL", help="address of the REST API")
    parser.add_argument("--user", metavar="NAME", help="user for basic authentication")
    parser.add_argument("--password-file", metavar="FILE", help="the password is its first line; passwords themselves are not stored")
    parser.add_argument("--ca-file", metavar="FILE", help="PEM of the authorities to trust for https")
    parser.add_argument("--cert-file", metavar="FILE", help="PEM of your certificate, for workers that ask for one")
    parser.add_argument("--key-file", metavar="FILE", help="PEM of its key, where --cert-file has none")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="Kafka's brokers, for tail")
    parser.add_argument("--worker-properties", metavar="FILE", help="the worker's file, for tail")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _context(chosen: argparse.Namespace) -> int:
    path = contexts_path()
    contexts = read_contexts(path)
    given = {setting: value for option, setting in _SETTINGS.items() if (value := getattr(chosen, option))}
    if given and chosen.action != "set":
        raise ConfigError(f"context {chosen.action} takes no settings; change a context with: connect-py context set NAME")
    if chosen.action == "list":
        if chosen.name:
            raise ConfigError("context list takes no name")
        rows = [
            ("*" if name == contexts.current else "", name, each.get("worker"), each.get("user"))
            for name, each in contexts.contexts.items()
        ]
        if chosen.json:
            say_json({"current": contexts.current or None, "contexts": contexts.contexts})
        else:
            say(table_lines(("", "NAME", "WORKER", "USER"), rows, colour=shows_colour()))
        return OK
    if not chosen.name:
        raise ConfigError(f"Name the context: connect-py context {chosen.action} NAME")
    name = require_name(chosen.name)
    if chosen.action == "set":
        settings = contexts.contexts.get(name, {}) | given
        settings.setdefault("worker", DEFAULT_WORKER)
        Target(settings["worker"])  # refuses what is no address
        contexts.contexts[name] = settings
        contexts.current = contexts.current or name
    elif name not in contexts.contexts:
        raise ConfigError(f"There is no context {name} (there are: {', '.join(sorted(contexts.contexts)) or 'none'})")
    elif chosen.action == "use":
        contexts.current = name
    else:
        del contexts.contexts[name]
        contexts.current = "" if contexts.current == name else contexts.current
    write_contexts(path, contexts)
    say([f"{name}: {chosen.action}; the current context is {contexts.current or 'none'} ({path})"])
    return OK


# -- completion ----------------------------------------------------------------------------------------------------------------------

SHELLS = ("bash", "zsh", "fish")

_INSTALL = {
    "bash": "connect-py completion bash > ~/.local/share/bash-completion/completions/connect-py",
    "zsh": "connect-py completion zsh > ~/.zfunc/_connect-py   (with fpath+=~/.zfunc before compinit)",
    "fish": "connect-py completion fish > ~/.config/fish/completions/connect-py.fish",
}

#: What prints connectors' names; a worker that does not answer must not disturb who types.
_NAMES = "connect-py get connectors --names 2>/dev/null"


def _completion_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="your shell")


def _completion(chosen: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError as error:
        raise ConfigError(f"completion needs the package shtab: {install_command('cli')}") from error
    _complete_names(chosen.tree)
    print(shtab.complete(chosen.tree, shell=chosen.shell))
    return OK


def _complete_names(tree: argparse.ArgumentParser) -> None:
    """Mark arguments that are connectors' names and files, as shtab reads it."""
    import shtab

    commands = next(action for action in tree._actions if isinstance(action, argparse._SubParsersAction))
    for command in commands.choices.values():
        for action in command._actions:
            if action.metavar in ("FILE", "FILE|DIR"):
                action.complete = shtab.FILE
            elif (
                action.metavar == "NAME"
                and not action.option_strings
                and action.dest in ("name", "names")
                and command.prog != "connect-py context"
            ):
                action.complete = shtab.cmd(_NAMES)


COMMANDS = (
    Command(
        "context",
        "Tools",
        "give workers names, and choose the current one",
        _context_options,
        _context,
        about="They are kept in ~/.config/connect-py/contexts.toml. The first one that you make becomes the current one.",
        examples=(
            "context set staging --worker https://connect.staging:8443 --user ops --password-file ~/.ops",
            "context use staging",
            "context list",
        ),
    ),
    Command(
        "completion",
        "Tools",
        "print a script that completes commands, options and connectors in your shell",
        _completion_options,
        _completion,
        about="Install it with: " + "; ".join(_INSTALL.values()) + ".",
        examples=("completion bash",),
    ),
)
