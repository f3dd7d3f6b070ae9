"""Every control of the page is used by a test in a browser, which says so by its mark `presses` and is held to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.paths import ROOT

UI = ROOT / "rest_api" / "ui"

#: A button, a choice, or a field by which something is shown at once; the fields of forms do nothing alone.
CONTROL = re.compile(r'<(?:button|select|input type="?(?:checkbox|radio|search))\b')
NAME = re.compile(r'data-control="([^"]+)"')


def controls() -> Iterator[tuple[str, str | None]]:
    """Yield (module: text of the tag, name) of each control in the sources."""
    for path in sorted(UI.glob("*.js")):
        text = path.read_text()
        for found in CONTROL.finditer(text):
            tag = text[found.start() : found.start() + 250]
            name = NAME.search(tag)
            yield f"{path.name}: {tag[:90]}", name and name[1]


def spelt_out(name: str) -> set[str]:
    """Return the names that a template of the sources makes."""
    actions = re.findall(r"^  (\w+): \['", (UI / "actions.js").read_text(), re.MULTILINE)
    if name.endswith("${action}"):
        return {f"{who}-{action}" for who in ("one", "several") for action in actions}
    if "${table ?" in name:
        return {f"{name.partition('-')[0]}-{which}" for which in ("one", "all")}
    return {name}


def declared() -> dict[str, str]:
    """Return the names of all marks `presses`, each with a test that has it."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "mark.presses(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            for mark in getattr(node, "decorator_list", []):
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "presses":
                    names = {each.value for each in mark.args if isinstance(each, ast.Constant) and isinstance(each.value, str)}
                    found |= dict.fromkeys(names, f"{path.name}::{getattr(node, 'name', '')}")
    return found


def test_every_control_of_the_page_has_a_name() -> None:
    assert [where for where, name in controls() if name is None] == []


def test_every_control_of_the_page_is_used_by_a_test_in_a_browser() -> None:
    known = {spelt for _, name in controls() if name is not None for spelt in spelt_out(name)}
    assert len(known) > 40, "the sources are written in another way"
    pressed = declared()
    assert sorted(known - pressed.keys()) == [], "no test uses these: write one with the mark `presses`"
    assert sorted(pressed.keys() - known) == [], "these are no controls of the page"
