"""The tutorial, line by line as its reader types it: databases, worker, kill and lakehouse table; and its files are those that it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from connect_py.app.services.guard import send, started_at
from connect_py.app.services.process import free_port, process_tree
from tests.integration.test_docs import DOCS, ROOT, Step, sessions
from tests.waiting import eventually

PAGE = DOCS / "tutorial.md"

#: Spark's start on a busy machine; everything else answers within seconds.
PATIENCE_SECONDS = 240.0


def _only_reads(command: str) -> bool:
    """Whether a command may be repeated until its answer is there."""
    return re.search(r"-X |\.pid|servers\.py|client\.py (write|mysql|mongodb)|psql -q|drop_replication|^rm ", command) is None


def _kill(folder: Path) -> None:
    """End what a test that failed left running; `servers.py` ends the servers."""
    pid_file = folder / "worker.pid"
    if pid_file.exists():
        for pid in process_tree(int(pid_file.read_text())):
            send(pid, started_at(pid), 9)
    if (folder / "servers.json").exists():
        subprocess.run([sys.executable, str(DOCS / "tutorial/servers.py"), "stop", str(folder)], check=False, env=_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    """Return the shell's environment: bash reads `BASH_ENV` before each command, as the reader does once in each terminal."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "MYSQL", "MONGODB", "KAFKA"))}
    return {**inherited, "BASH_ENV": str(folder / "env"), "PYTHONPATH": str(ROOT)}


@pytest.mark.services
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_tutorial_works_as_it_stands(tmp_path: Path) -> None:
    files, folder, port = tmp_path / "files", tmp_path / "tutorial", free_port()
    shutil.copytree(DOCS / "tutorial", files)
    for path in files.iterdir():
        if path.suffix in (".json", ".properties"):
            path.write_text(path.read_text().replace("8083", str(port)).replace("/tmp/tutorial", str(folder)))
    replaced = {
        "localhost:8083": f"localhost:{port}",
        "/tmp/tutorial": str(folder),
        "docs/tutorial/servers.py": str(DOCS / "tutorial/servers.py"),
        "docs/tutorial/client.py": str(DOCS / "tutorial/client.py"),
        "docs/tutorial/": f"{files}/",
        ".venv/bin/python": sys.executable,
        ".venv/bin/connect-py": f"{sys.executable} -P -m connect_py.app.cli",
    }

    def adapt(text: str) -> str:
        return re.sub("|".join(map(re.escape, replaced)), lambda match: replaced[match[0]], text)

    try:
        for step in sessions(PAGE):
            _run(Step(step.line, adapt(step.command), adapt(step.expected)), folder)
        assert not folder.exists()
    finally:
        _kill(folder)


def _run(step: Step, folder: Path) -> None:
    shown = ""

    def fits() -> bool:
        nonlocal shown
        # what is left in the background has a file for its output, and so lets go of the pipe
        done = subprocess.run(
            ["bash", "-c", step.command], capture_output=True, text=True, timeout=PATIENCE_SECONDS, cwd=ROOT, env=_environment(folder)
        )
        shown = done.stdout + done.stderr
        return step.matches(done.stdout)

    def what() -> str:
        log = folder / "worker.log"
        tail = log.read_text()[-1500:] if log.exists() else ""
        return f"tutorial.md:{step.line}: $ {step.command}\nprinted:\n{shown}\nexpected:\n{step.expected}\nthe worker's log:\n{tail}"

    eventually(fits, what, PATIENCE_SECONDS if _only_reads(step.command) else 0, pause=0.5)


@pytest.mark.parametrize("name", ["worker.properties", "postgres.json"])
def test_the_tutorial_shows_its_files_as_they_are(name: str) -> None:
    blocks = re.findall(r"^```\w+\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert (DOCS / "tutorial" / name).read_text() in blocks
