"""The worker whose page tests look at, and how it is used by keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connect_py.app.services.worker import Worker
from tests.fix_browser import Page, worker_with_orders
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


class Keys:
    """A tab in which nothing is done but by keys."""

    def __init__(self, page: Page) -> None:
        self.tab = page.tab
        self.press = page.tab.keyboard.press
        self.type = page.tab.keyboard.type

    @property
    def focused(self) -> dict[str, Any]:
        """Return what has the focus: its control's name, what it is called, and whether that is seen."""
        found: dict[str, Any] = self.tab.evaluate(
            """() => {
              const at = document.activeElement;
              const box = at.getBoundingClientRect();
              const covering = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
              return {
                control: at.dataset.control || '',
                name: (at.getAttribute('aria-label') || at.id || at.innerText || at.labels?.[0]?.innerText || '').trim(),
                is_body: at === document.body,
                is_marked: getComputedStyle(at).outlineStyle !== 'none',
                is_seen: covering === null || at.contains(covering) || covering.contains(at) || covering.closest('label') !== null,
              };
            }"""
        )
        return found

    def to(self, name: str, *, most: int = 250, backwards: bool = False) -> None:
        """Press the tab key until something has the focus whose name begins so; a number at its begin does not count."""
        for _ in range(most):
            self.press("Shift+Tab" if backwards else "Tab")
            if self.focused["name"].lstrip("0123456789 ").startswith(name):
                return
        raise AssertionError(f"the tab key does not lead to {name}")

    def reached(self) -> set[str]:
        """Press the tab key from the begin of the page to its end, and return the names of the controls that had the focus."""
        found: set[str] = set()
        self.tab.evaluate("document.querySelector('.skip').focus()")
        for _ in range(400):
            self.press("Tab")
            at = self.focused
            if at["is_body"]:
                break
            if at["control"]:
                assert at["is_marked"], f"the focus is not seen on {at}"
                assert at["is_seen"], f"something covers {at}"
                found.add(at["control"])
        return found
