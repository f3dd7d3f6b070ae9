"""A browser for tests of the worker's page: Debian's chromium, which Playwright drives without a download of its own.

`UI_PICTURES` names a folder for pictures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.vendor import npm_package

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = None if CHROMIUM else "THE PAGE IS NOT TESTED: there is no chromium (Debian, Ubuntu: apt-get install chromium)"

#: A machine whose cores are busy draws slowly.
SECONDS = 60


#: Names of the controls of the page that the test which runs has used: `data-control` of what was clicked, changed or typed into.
PRESSED: set[str] = set()

_NOTE = """
for (const kind of ['click', 'change', 'input']) {
  addEventListener(kind, (event) => {
    const control = event.target instanceof Element && event.target.closest('[data-control]');
    if (control && (kind === 'click') === (control.tagName === 'BUTTON' || ['checkbox', 'radio'].includes(control.type))) {
      window.notePressed(control.dataset.control);
    }
  }, true);
}
"""


@pytest.fixture(autouse=True)
def _presses_what_it_says(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold a test to its mark `presses`: `tests/unit/rest_api/test_page_controls.py` counts on it."""
    PRESSED.clear()
    yield
    if (mark := request.node.get_closest_marker("presses")) is not None:
        assert set(mark.args) - PRESSED == set(), "the test says that it uses these controls, and has not"


AXE = ("axe-core", "4.14.1", "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==")


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core."""
    if shutil.which("npm") is None:
        pytest.skip("ACCESSIBILITY IS NOT TESTED: there is no npm")
    try:
        return (npm_package(*AXE, tmp_path_factory.mktemp("axe")) / "axe.min.js").read_text()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"ACCESSIBILITY IS NOT TESTED: npm does not give axe-core ({error})")


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


def row(tab: Any, name: str) -> Any:
    """Return a connector's row of the list."""
    return tab.locator("tr.row", has=tab.get_by_role("link", name=name, exact=True))


class Page:
    """A tab: what it asked, what it was answered, and what its console said.

    Args:
        options: of the browser's context: a login, what is permitted.
    """

    def __init__(self, browser: Any, url: str, width: int = 1280, scheme: str = "light", **options: Any) -> None:
        self.url, self.width, self.scheme = url, width, scheme
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **options)
        self.context.set_default_timeout(SECONDS * 1000)
        self.context.expose_binding("notePressed", lambda source, control: PRESSED.add(control))
        self.context.add_init_script(_NOTE)
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

    def controls(self) -> set[str]:
        """Return the names of the controls that can be used now."""
        return set(self.tab.eval_on_selector_all("[data-control]:not(:disabled)", "found => found.map(each => each.dataset.control)"))

    def violations(self, axe: str, what: str) -> Iterable[str]:
        """Yield what axe-core has against the page as it is, and whether it is wider than its window."""
        # evaluated by the browser's own tools, since the page's policy lets nothing else in
        self.tab.evaluate(axe)
        result = self.tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for violation in result["violations"]:
            yield f"{what}: {violation['id']}: {[node['target'] for node in violation['nodes']][:3]}"
        if self.tab.evaluate("document.documentElement.scrollWidth") > self.width:
            is_beyond = "each.getBoundingClientRect().right > document.documentElement.clientWidth"
            beyond = f"found => found.filter(each => {is_beyond}).map(each => each.outerHTML.slice(0, 120))"
            yield f"{what}: wider than {self.width}: {self.tab.eval_on_selector_all('main *, dialog *', beyond)[:5]}"

    def close(self) -> None:
        """Close the tab; everything that it asked was asked of the worker, and its console is empty."""
        self.context.close()
        assert [url for url in self.asked if not url.startswith((self.url + "/", "data:"))] == []
        # a refusal that a test provokes is shown by the browser, too
        assert [text for text in self.said if "status of 4" not in text] == []
