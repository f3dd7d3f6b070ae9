"""What `make docs` needs besides the pages: those at the root of the repository, and GitHub's anchors of headings.

MkDocs calls the functions that begin with `on_` (https://www.mkdocs.org/dev-guide/plugins/#events).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

#: Pages at the root that pages in docs/ link to; the site has them in a folder of their own.
ROOT_PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
FOLDER = "project"


def slugify(heading: str, separator: str) -> str:
    """Return GitHub's anchor of a heading, by which pages link to each other."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    """Have headings named as on GitHub."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slugify
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the root."""
    for name in ROOT_PAGES:
        files.append(File.generated(config, f"{FOLDER}/{name.lower()}", content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links between docs/ and the root to where the site has the pages; a link to another file of the repository becomes its text."""
    where = page.file.src_uri
    folder = ROOT if where.startswith(f"{FOLDER}/") else (ROOT / "docs" / where).parent
    up = "../" * where.count("/")

    def led(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        to = (folder / path).resolve()
        if to.parent == ROOT and to.name in ROOT_PAGES:
            return f"[{text}]({up}{FOLDER}/{to.name.lower()}{anchor})"
        if to.is_relative_to(ROOT / "docs"):
            return f"[{text}]({up}{to.relative_to(ROOT / 'docs')}{anchor})" if to.is_file() and to.suffix != ".py" else text
        return text

    return re.sub(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)", led, markdown)
