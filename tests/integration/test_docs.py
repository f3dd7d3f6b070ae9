"""The console sessions in `docs/` give, against a real worker, the answers that they show."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_py.testing.services.worker import Worker

DOCS = Path(__file__).resolve().parents[2] / "docs"

#: Topics and statuses follow a request a moment later, and offsets after a flush (every 2 s here).
PATIENCE_SECONDS = 30.0

pytestmark = pytest.mark.services


@dataclass(frozen=True)
class Step:
    """A command and what it prints; `…` stands for any text."""

    line: int
    command: str
    expected: str

    def matches(self, printed: str) -> bool:
        pattern = ".*?".join(re.escape(part) for part in self.expected.split("…"))
        return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None

    @property
    def only_reads(self) -> bool:
        return "curl" in self.command and " -X " not in self.command


def sessions(page: Path) -> list[Step]:
    """The steps of all ```console blocks, in order."""
    steps: list[Step] = []
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            steps.append(Step(number, line[2:], ""))
        elif inside:
            last = steps.pop()
            steps.append(Step(last.line, last.command, f"{last.expected}\n{line}".strip()))
    return steps


@pytest.mark.parametrize("page", [path for path in sorted(DOCS.rglob("*.md")) if sessions(path)], ids=lambda page: page.name)
def test_console_sessions_show_what_the_worker_answers(page: Path, make_worker: Callable[[], Worker], tmp_path: Path) -> None:
    worker = make_worker()

    def adapt(text: str) -> str:
        return text.replace("localhost:8083", worker.url.removeprefix("http://")).replace("/tmp/", f"{tmp_path}/")

    for step in sessions(page):
        adapted = Step(step.line, adapt(step.command), adapt(step.expected))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            done = subprocess.run(["bash", "-c", adapted.command], capture_output=True, text=True, timeout=100)
            if adapted.matches(done.stdout):
                break
            if not adapted.only_reads or time.monotonic() > deadline:
                pytest.fail(
                    f"{page.name}:{step.line}: $ {adapted.command}\nprinted:\n{done.stdout}{done.stderr}\nexpected:\n{adapted.expected}"
                )
            time.sleep(0.2)
