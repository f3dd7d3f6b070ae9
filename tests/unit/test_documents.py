"""What the pages point at exists: files and folders of the tree, modules by their dotted names, other pages and their headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGES = ("connect_py", "connectors", "offsets", "rest_api", "spark_sink", "tests", "docs")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = {str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}

#: A place in the tree, from its root: `connect_py/group/membership.py`, `tests/faults`.
PLACE = re.compile(rf"(?<![\w./\-\[(])((?:{'|'.join(PACKAGES)})(?:/[\w.-]+)+/?)(?![\w*{{])")
#: The end of a module's path, as a page writes it within one package: `types/columns.py`.
MODULE = re.compile(r"(?<![\w.*/-])((?:\w+/)*\w+\.py)\b")
#: What a log line or a text calls a module: `connectors.postgres.task`.
DOTTED = re.compile(r"\((?=connect|rest_api|spark_sink|offsets)((?:\w+\.)+\w+):\d+\)")
LINK = re.compile(r"\]\(([^)\s]+)\)")

#: Files that a page has its reader write.
WRITTEN_BY_READERS = {"docs/plugins.md", "docs/example-plugin/README.md"}


def lines(page: Path) -> list[tuple[int, str]]:
    return list(enumerate(page.read_text().splitlines(), 1))


def headings(page: Path) -> set[str]:
    """Anchors of a page, by GitHub's rule."""
    texts = [line.lstrip("#").strip() for line in page.read_text().splitlines() if re.match(r"#{1,6} ", line)]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def exists(place: str) -> bool:
    """Return whether a place is there; a module may be written without its ending, and a test with `.py` left out."""
    path = place.rstrip("/.")
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists()


def test_tests_that_the_evidence_names_exist() -> None:
    page = (ROOT / "docs/evidence/faults.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page)
    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / file).read_text()]
    assert not missing
    losses = dict(re.findall(r"^\| R(\d+) \|(.*)$", page, re.MULTILINE))
    assert [int(number) for number in losses] == list(range(1, 15))
    assert all("::test_" in row for row in losses.values()), "each loss has a test by name"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    missing = []
    for number, line in lines(page):
        found = [match[1] for match in PLACE.finditer(line) if not exists(match[1])]
        if name(page) not in WRITTEN_BY_READERS:
            found += [m[1] for m in MODULE.finditer(line) if not any(f"/{source}".endswith(f"/{m[1]}") for source in SOURCES)]
        found += [match[1] for match in DOTTED.finditer(line) if f"{match[1].replace('.', '/')}.py" not in SOURCES]
        missing += [f"{name(page)}:{number}: {what}" for what in found if not (page.parent / what).exists()]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    broken = []
    for number, line in lines(page):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            to = (page.parent / path).resolve() if path else page
            if not to.exists() or (anchor and to.suffix == ".md" and anchor not in headings(to)):
                broken.append(f"{name(page)}:{number}: {target}")
    assert not broken, "\n".join(broken)
