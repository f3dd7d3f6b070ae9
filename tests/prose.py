"""How the pages for users read: the check names each page that is harder to read than its readers need.

    python tests/prose.py [PAGE ...] [--all]

Readers are in a hurry, and English is often not their first language. So sentences are short, the reader is "you", a guide shows
something to copy every few lines, and a word means what it means elsewhere. Code, tables and headings are not counted. Evidence, the page
on the design, the messages and the changelog are for other readers. `--all` prints every page's figures.
"""

from __future__ import annotations

import re
import sys
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # this file runs as a script

from words import WORDS as _OF_DOCSTRINGS

ROOT = Path(__file__).resolve().parent.parent

#: For developers, or figures and logs rather than prose.
OTHER_READERS = ("docs/design.md", "docs/messages.md", "docs/evidence/", "docs/example-plugin/")
#: They explain or list: a block of code every few lines would be in the way.
WITHOUT_CODE = {
    "README.md",
    "docs/README.md",
    "docs/compared-with.md",
    "docs/compatibility.md",
    "docs/concepts.md",
    "docs/faq.md",
    "docs/guarantees.md",
    "docs/sinks/compared.md",
    "docs/troubleshooting.md",
}

#: Regular expression → what a native engineer would write.
WORDS = {
    **_OF_DOCSTRINGS,
    r"of which|that which": "a sentence of its own, with the noun first",
    r"in place of": "instead of",
    r"tells|tell": "reports, says",
    r"in passing": "temporarily",
    r"passed over": "skipped, ignored",
    r"lone": "single",
    r"wish|wishes": "want, request",
    r"are away|was away|were away": "is unavailable",
    r"What (?:is|has|comes|a|an|the|was|it)": "a sentence that begins with its noun",
}
_WORD = re.compile("|".join(rf"(?<!\w)(?:{word})(?!\w)" for word in WORDS))


@dataclass(frozen=True)
class Figures:
    """What is counted of a page; each is better when it is lower, but `you`."""

    mean: float = 16.0  # words of a sentence
    long: float = 3.0  # percent of the sentences that have more than 35 words
    paragraph: float = 55.0  # words of a paragraph, the ninth of ten
    you: float = 8.0  # "you" and "your" in 1,000 words, at least
    block: float = 80.0  # words for each block of code
    idiom: float = 0.0  # places of the word list


LIMITS = Figures()
NAMES = [field.name for field in fields(Figures)]


def paragraphs(text: str) -> list[str]:
    """Return the prose of a page: paragraphs and items of lists, without code, tables and headings."""
    text = re.sub(r"^( *)```.*?^\1```", "\n\n", text, flags=re.M | re.S)
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        item = re.match(r" *(?:[-*]|\d+\.) +", line)
        if not line.strip() or line.startswith("#") or line.lstrip().startswith("|") or (line.startswith("    ") and not found[-1]):
            found.append([])
        elif item:
            found.append([line[item.end() :]])
        else:
            found[-1].append(line.strip())
    return [plain(" ".join(part)) for part in found if part]


def plain(text: str) -> str:
    """Return a paragraph as it is read aloud: a link by its text, code as one word."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)


def sentences(paragraph: str) -> list[list[str]]:
    """Return the words of each sentence."""
    paragraph = re.sub(r"\b(e\.g|i\.e|etc|vs)\.", r"\1", paragraph)
    parts = re.split(r"[.!?…][\"')]*\s+(?=[\"'(]?[A-Z]|code\b)|[.!?]$", paragraph)
    split = [re.findall(r"[A-Za-z0-9][\w'/.,:%+-]*", part) for part in parts]
    return [words for words in split if words]


def blocks(text: str) -> int:
    """Return the number of blocks of code, fenced or indented."""
    fenced = len(re.findall(r"^ *```", text, re.M)) // 2
    rest = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.M | re.S)
    return fenced + len(re.findall(r"(?:^|\n)\n(?: {4}\S.*\n)+", rest))


def figures(text: str) -> Figures:
    """Count a page."""
    parts = paragraphs(text)
    all_sentences = [words for part in parts for words in sentences(part)]
    count = sum(map(len, all_sentences)) or 1
    sizes = sorted(sum(map(len, sentences(part))) for part in parts) or [0]
    return Figures(
        mean=round(count / (len(all_sentences) or 1), 1),
        long=round(100 * sum(len(words) > 35 for words in all_sentences) / (len(all_sentences) or 1), 1),
        paragraph=float(sizes[int(0.9 * (len(sizes) - 1))]),
        you=round(1000 * sum(word.lower().startswith(("you", "you'", "your")) for words in all_sentences for word in words) / count, 1),
        block=round(count / (blocks(text) or 1), 0),
        idiom=float(sum(len(_WORD.findall(part)) for part in parts)),
    )


def limits(name: str) -> Figures:
    """Return what a page has to keep."""
    return replace(LIMITS, block=float("inf")) if name in WITHOUT_CODE else LIMITS


def problems(name: str, text: str) -> list[str]:
    """Return what is wrong with a page, a line each."""
    found, limit = figures(text), limits(name)
    says = [
        f"{field} is {value:g}, {'at least' if field == 'you' else 'at most'} {bound:g} is wanted"
        for field, value, bound in zip(NAMES, astuple(found), astuple(limit), strict=True)
        if (value < bound if field == "you" else value > bound)
    ]
    if found.idiom > limit.idiom:
        for match in (match for part in paragraphs(text) for match in _WORD.finditer(part)):
            advice = next(advice for word, advice in WORDS.items() if re.fullmatch(word, match[0]))
            says.append(f"{match[0]!r}: write {advice}")
    return [f"{name}: {text}" for text in says]


def pages() -> list[str]:
    """Return the names of the pages for users."""
    names = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
    return [name for name in names if not name.startswith(OTHER_READERS)]


def main(arguments: list[str]) -> int:
    """Print what was found; returns the exit code."""
    asked = [name for name in arguments if name != "--all"]
    wrong: list[str] = []
    if "--all" in arguments:
        print(f"{'':34}" + "".join(f"{field:>11}" for field in NAMES))
    for name in asked or pages():
        text = (ROOT / name).read_text()
        if "--all" in arguments:
            print(f"{name:34}" + "".join(f"{value:>11g}" for value in astuple(figures(text))))
        wrong += problems(name, text)
    print("\n".join(wrong) if wrong else "Prose: ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
