"""The worker whose page tests look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connect_py.app.services.worker import Worker
from tests.fix_browser import worker_with_orders
from tests.fix_postgres import postgres_source

SECRET = "weak-planted-password"


@contextmanager
def worker_with_a_weak_one(kafka: Any, postgres: Any, folder: Path) -> Iterator[Worker]:
    """Give a worker with a file source `lines` and sink `copy`, a PostgreSQL source `orders`, and one whose user lacks a right, `weak`."""
    with worker_with_orders(kafka, postgres, folder, {"page_weak": f"LOGIN PASSWORD '{SECRET}'"}) as (worker, database):
        with postgres.connect(database) as admin:
            admin.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 500) g")
        worker.create("lines", {"connector.class": "FileStreamSource", "file": str(folder / "lines.txt"), "topic": "page-lines"})
        worker.create("copy", {"connector.class": "FileStreamSink", "file": str(folder / "copy.txt"), "topics": "page-lines"})
        worker.create("orders", postgres_source(postgres, database, "page"))
        weak = {**postgres_source(postgres, database, "page_weak"), "database.user": "page_weak", "database.password": SECRET}
        worker.request("POST", "/connectors", {"name": "weak", "config": weak})
        worker.wait_for("weak", "FAILED")
        yield worker
