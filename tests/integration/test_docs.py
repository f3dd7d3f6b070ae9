"""The console sessions in `docs/` give, against a real worker, the answers that they show; the PostgreSQL page's statements suffice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_py.app.demo.stage import group_names
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.folding import fold
from tests.waiting import eventually, wait_until

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

#: Topics and statuses follow a request a moment later, and offsets after a flush (every 2 s here).
PATIENCE_SECONDS = 60.0

#: Of a page about several workers: another one of the group.
SECOND_WORKER = "localhost:8084"

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
        return ("curl" in self.command and " -X " not in self.command) or re.match(
            r"connect-py (get|status|diff)\b", self.command
        ) is not None


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


#: `test_tutorial.py` runs it, since it starts servers of its own.
TUTORIAL = DOCS / "tutorial.md"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if sessions(path) and path != TUTORIAL]


@pytest.mark.rotates(keep=2)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_sessions_show_what_the_worker_answers(page: Path, make_worker: Callable[..., Worker], tmp_path: Path) -> None:
    worker = make_worker()
    addresses = {"localhost:8083": worker.url.removeprefix("http://")}
    if any(SECOND_WORKER in step.command for step in sessions(page)):
        second = make_worker(properties=group_names(worker.properties))
        addresses[SECOND_WORKER] = second.url.removeprefix("http://")

    def adapt(text: str) -> str:
        for shown, real in {**addresses, "/tmp/": f"{tmp_path}/"}.items():
            text = text.replace(shown, real)
        return text

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "CONNECT_PY_WORKER": worker.url, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for step in sessions(page):
        adapted = Step(step.line, adapt(step.command), adapt(step.expected))
        done: list[subprocess.CompletedProcess[str]] = []

        def fits(adapted: Step = adapted, done: list[subprocess.CompletedProcess[str]] = done) -> bool:
            done[:] = [subprocess.run(["bash", "-c", adapted.command], capture_output=True, text=True, timeout=100, env=env)]
            return adapted.matches(done[0].stdout)

        def printed(adapted: Step = adapted, done: list[subprocess.CompletedProcess[str]] = done) -> str:
            shown = f"printed:\n{done[0].stdout}{done[0].stderr}\nexpected:\n{adapted.expected}"
            return f"{page.name}:{adapted.line}: $ {adapted.command}\n{shown}"

        eventually(fits, printed, PATIENCE_SECONDS if adapted.only_reads else 0, pause=0.2)


def test_the_postgresql_page_prepares_a_server_for_a_user_with_no_more_rights_than_it_says(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    page = (DOCS / "connectors/postgresql.md").read_text()
    statements = [text for block in re.findall(r"^ *```sql\n(.*?)```", page, re.M | re.S) for text in block.strip().splitlines()]
    data = (ROOT / "docker/postgres/inventory.sql").read_text().partition("-- A user with no more rights")[0]
    config = json.loads(re.search(r"```json\n(.*?)```", page, re.S)[1])["config"]
    config |= {
        "database.hostname": postgres.host,
        "database.port": str(postgres.port),
        "database.dbname": database,
        "database.user": tag,
        "topic.prefix": tag,
        "slot.name": f"slot_{tag}",
    }
    topic = f"{tag}.inventory.customers"
    with postgres.connect(database) as connection:
        connection.execute(data)
        for statement in statements:
            if "ALTER SYSTEM" not in statement and "pg_drop_replication_slot" not in statement:
                connection.execute(statement.replace("debezium", tag))
        try:
            worker.create(tag, config)
            wait_until(lambda: set(fold(kafka.read(topic))) == {1001, 1002, 1003, 1004}, 30, "the snapshot's records")
            connection.execute("UPDATE inventory.customers SET first_name = 'Anne Marie' WHERE id = 1004")
            insert = "INSERT INTO inventory.customers (first_name, last_name, email) VALUES ('Sarah', 'Thompson', %s)"
            connection.execute(insert, ("sarah@example.com",))
            connection.execute(insert, ("kitt@example.com",))
            connection.execute("DELETE FROM inventory.customers WHERE id = 1005")

            def arrived() -> bool:
                rows = fold(kafka.read(topic))
                return set(rows) == {1001, 1002, 1003, 1004, 1006} and rows[1004]["first_name"] == "Anne Marie"

            wait_until(arrived, 30, "the changes' records")
        finally:
            worker.delete(tag)
    _drop_role(postgres, database, tag)


def _drop_role(postgres: PostgresAddress, database: str, role: str) -> None:
    with postgres.connect(database) as connection:
        wait_until(
            lambda: connection.execute("SELECT 1 FROM pg_stat_activity WHERE usename = %s", (role,)).fetchone() is None,
            30,
            "the connector's sessions to end",
        )
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
