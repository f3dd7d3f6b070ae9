"""The command that installs an extra: every message that names one says the same, and it works where the worker is installed."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from connect_py.extras import install_command
from tests.messages import PACKAGES

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SOURCES = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def test_the_command_needs_no_index_where_the_extra_is_there_already() -> None:
    command = [*shlex.split(install_command("cli")), "--no-index", "--dry-run", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "No module named pip" in done.stderr:
        pytest.skip("this environment has no pip")
    assert done.returncode == 0, done.stderr
    assert "already satisfied: connect-py-worker[cli]" in done.stdout and "Would install" not in done.stdout


def test_every_message_that_names_an_extra_names_one_that_exists() -> None:
    named = [extra for path in SOURCES for extra in re.findall(r"install_command\(['\"]([\w-]+)['\"]\)", path.read_text())]
    assert len(named) >= 10 and set(named) <= set(EXTRAS)


def test_no_text_of_the_product_sends_to_an_index_for_the_distribution() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert "pip install 'connect-py-worker" not in node.value, path
