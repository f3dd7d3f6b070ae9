"""Words that read as a translation, in docstrings and comments: the check names each place and what to write instead.

    python tests/words.py [FOLDER ...]

Texts for users (errors, log lines) are not looked at here: scripts may wait for them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("connect_py", "connectors", "offsets", "rest_api", "spark_sink")

#: Regular expression → what a native engineer would write.
WORDS = {
    r"anew": "again",
    r"begins? anew": "starts over",
    r"beside": "next to, in addition to",
    r"goes on|go on|went on": "resumes, continues",
    r"hear of|hears of|heard of": "be notified of",
    r"held to": "tested against",
    r"is away": "is unavailable",
    r"is told|are told": "receives",
    r"lest": "so that … not",
    r"let go of|lets go of": "release",
    r"nobody shall|shall": "must",
    r"of now": "current",
    r"whoever": "if you",
    r"See the module": "nothing: an override inherits its docstring",
    r"§": "Kafka's or Debezium's class, a KIP, a manual's page",
}
_ANY = re.compile("|".join(rf"(?<!\w)(?:{word})(?!\w)" for word in WORDS))


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield each line of a module's docstrings and comments with its number."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            yield from enumerate(str(first.value.value).splitlines(), first.lineno)


def found(source: str) -> list[tuple[int, str, str]]:
    """Return line number, word and advice of everything in a module that should read otherwise."""
    places = []
    for number, line in texts(source):
        for match in _ANY.finditer(re.sub(r"`[^`]*`", "", line)):
            advice = next(advice for word, advice in WORDS.items() if re.fullmatch(word, match[0]))
            places.append((number, match[0], advice))
    return sorted(places)


def main(folders: list[str]) -> int:
    """Print what was found; returns the exit code."""
    count = 0
    for folder in folders or PACKAGES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for number, word, advice in found(path.read_text()):
                count += 1
                print(f"{path.relative_to(ROOT)}:{number}: {word!r}: write {advice}")
    print(f"{count} words to replace" if count else "Words: ok")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
