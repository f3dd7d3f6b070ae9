"""The checks of pages see what they are to see: long sentences, a page without "you", words; and an error text without an entry."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from tests.paths import ROOT


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / "tests" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


prose, messages = script("prose"), script("messages")

GOOD = "# A page\n\nYou start the worker. It reads your file.\n\n```\nconnect-py distributed\n```\n\n"
GOOD += "| a | cell that nobody counts |\n|---|---|\n"


def test_a_page_that_reads_well_is_let_through() -> None:
    assert prose.problems("docs/new.md", GOOD) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("You start the worker. It", "You start the worker, " + "and again, " * 20 + "it"), "mean is"),
        (("It reads your file.", "It reads " + "a very long list of " * 8 + "files. You wait. " * 6), "long is"),
        (("You start the worker. It reads your file.", "The worker starts. It reads a file."), "you is 0"),
        (("```\nconnect-py distributed\n```", "You wait for your worker. " * 20), "block is"),
        (("It reads", "It begins anew, and reads"), "'begins anew': write starts over"),
    ],
)
def test_a_page_that_is_hard_to_read_is_named(change: tuple[str, str], says: str) -> None:
    found = prose.problems("docs/new.md", GOOD.replace(*change))
    assert any(says in line for line in found), found


def test_code_links_and_tables_are_not_read_as_prose() -> None:
    text = "See [the page](other.md#you-you-you) for `anew` and *more*.\n\n```\nanew\n```\n\n| anew |\n|---|\n"
    assert prose.paragraphs(text) == ["See the page for code and more."]


def test_an_error_text_without_an_entry_is_named() -> None:
    text = messages.Text("connectors/postgres/new.py", 7, "FatalTaskError", "The moon is in the wrong place")
    assert f"connectors/postgres/new.py:7: docs/messages.md lacks: {text.text}" in messages.problems([text])


def test_texts_are_found_where_they_are_raised_and_logged() -> None:
    source = """
def f(name):
    log.warning("The slot %r is busy: %s", name, 1)
    raise FatalTaskError(f"The table {name} is gone. " "Nothing was read.") from None
"""
    found = [(text.kind, text.text) for text in messages.texts_of("m.py", source)]
    assert sorted(found) == [("FatalTaskError", "The table … is gone. Nothing was read."), ("log", "The slot … is busy: …")]
