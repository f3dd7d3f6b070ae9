"""A browser for tests of the worker's page: Debian's chromium, which Playwright drives without a download of its own.

`UI_PICTURES` names a folder for pictures.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = None if CHROMIUM else "THE PAGE IS NOT TESTED: there is no chromium (Debian, Ubuntu: apt-get install chromium)"

#: A machine whose cores are busy draws slowly.
SECONDS = 60


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@contextmanager
def worker_with_orders(kafka: Any, postgres: Any, folder: Path, roles: Mapping[str, str]) -> Iterator[tuple[Worker, str]]:
    """Give a worker and a database with the table `orders`; at the end all connectors are deleted, and the roles.

    Args:
        roles: name → what CREATE ROLE says of it.
    """
    database = postgres.create_database()
    names = ", ".join(roles)
    with postgres.connect(database) as admin:
        admin.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
        admin.execute(f"DROP ROLE IF EXISTS {names}")
        for name, options in roles.items():
            admin.execute(f"CREATE ROLE {name} {options}")
    worker = Worker(folder / "worker", kafka.bootstrap)
    (folder / "lines.txt").write_text("one\ntwo\n")
    yield worker, database
    for name in worker.request("GET", "/connectors"):
        worker.delete(name)
    worker.stop()
    postgres.drop_database(database)
    with postgres.connect() as admin:
        admin.execute(f"DROP ROLE {names}")


class Page:
    """A tab: what it asked, what it was answered, and what its console said."""

    def __init__(self, browser: Any, url: str, width: int = 1280, scheme: str = "light") -> None:
        self.url = url
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.context.set_default_timeout(SECONDS * 1000)
        self.tab = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.leaks: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text) if message.type in ("error", "warning") else None)
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))

    def open(self, view: str) -> Any:
        """Open a view, and wait until it is drawn."""
        self.tab.goto(f"{self.url}/ui/{view}")
        self.tab.wait_for_selector("main h1")
        self.tab.wait_for_selector(".loading", state="detached")
        return self.tab

    def picture(self, name: str) -> None:
        """Take a picture, where pictures are wanted."""
        if folder := os.environ.get("UI_PICTURES"):
            self.tab.screenshot(path=str(Path(folder) / f"{name}.png"))

    def close(self) -> None:
        """Close the tab; everything that it asked was asked of the worker, and its console is empty."""
        self.context.close()
        assert [url for url in self.asked if not url.startswith((self.url + "/", "data:"))] == []
        # a refusal that a test provokes is shown by the browser, too
        assert [text for text in self.said if "status of 4" not in text] == []
