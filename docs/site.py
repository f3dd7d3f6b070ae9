"""What `make docs` needs besides the pages: those at the root of the repository, GitHub's anchors of headings, and no inline script.

MkDocs calls the functions that begin with `on_` (https://www.mkdocs.org/dev-guide/plugins/#events).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

#: Pages at the root that pages in docs/ link to; the site has them in a folder of their own.
ROOT_PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
FOLDER = "project"

#: What the theme writes into each page. The policy under which a worker serves them allows scripts in files only (rest_api/routes/page.py).
INLINE = re.compile(r'<script>\s*var base_url = "(?P<base>[^"]*)",\s*shortcuts = (?P<keys>\{.*?\});\s*</script>', re.S)
#: The same in a file: a page's base is where this one comes from.
PLACE = "js/place.js"
PLACE_TEXT = 'var base_url = new URL("..", document.currentScript.src).href.replace(/\\/$/, ""), shortcuts = %s;\n'

#: Not served: for debuggers, for browsers of 2014 and for search engines.
LEFT_OUT = ("**/*.map", "**/*.ttf", "sitemap.xml*", "404.html")


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


def on_post_page(output: str, config: Any, **_: Any) -> str:
    """Move the theme's inline script into a file; the width of a column goes."""
    found = INLINE.search(output)
    if found is None:
        raise PluginError("This version of MkDocs writes other scripts into a page: see INLINE in docs/site.py.")
    place = Path(config["site_dir"], PLACE)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(PLACE_TEXT % found["keys"])
    return INLINE.sub(f'<script src="{found["base"]}/{PLACE}"></script>', output).replace(' style="width: 20%;"', "")


def on_post_build(config: Any) -> None:
    """Remove what nobody asks for."""
    for pattern in LEFT_OUT:
        for path in Path(config["site_dir"]).glob(pattern):
            path.unlink()
