"""Tests use what the product offers: the check names each place where one sets or reads by name what is the product's own business.

    python tests/privates.py [FOLDER ...]

What is refused: an attribute or an import whose name begins with one underscore, unless the test file itself defines it; an attribute of
an imported module that is assigned; and `monkeypatch.setattr`, whatever its target. What a test needs to set is an argument with a default
of a class or function (a clock, a limit, a delay), and what it needs to see is a public property or, better, behaviour.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Private names of other projects that have no public way to the same: PyMySQL's connections, Kafka's client, PySpark, h11.
OTHERS = frozenset(
    {"_sock", "_rfile", "_auth_plugin_map", "_PARTITION_EOF", "_gateway", "_jvm", "_receivebuffer"},
)
#: Variables of the standard library that are there to be set.
SETTINGS = frozenset({"sys.path", "tempfile.tempdir"})

#: Tests that still do so.
LEFT = frozenset(
    {
        "tests/faults/lake_boundaries.py",
        "tests/faults/lake_task.py",
    }
)


def found(source: str) -> list[tuple[int, str]]:
    """Return line number and offence of each place in a test's module."""
    tree = ast.parse(source)
    own = set(_defined(tree))
    modules = {
        (name.asname or name.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not str(node.module).startswith("tests"))
        for name in node.names
        if name.name[:1].islower()
    }
    return sorted(set(_places(tree, own, modules)))


def _places(tree: ast.AST, own: set[str], modules: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom():
                for name in node.names:
                    if _is_private(name.name):
                        yield node.lineno, f"imports {name.name}"
            case ast.Attribute(attr=name) if _is_private(name) and name not in own | OTHERS:
                yield node.lineno, f"{'reads' if isinstance(node.ctx, ast.Load) else 'sets'} {ast.unparse(node)}"
            case ast.Attribute(value=ast.Name(id=module), ctx=ast.Store()) if module in modules:
                yield node.lineno, f"sets {ast.unparse(node)}"
            case ast.Call(func=ast.Attribute(attr="setattr")) if _target(node) not in SETTINGS:
                yield node.lineno, f"patches {_target(node)}"
            case ast.Call(func=ast.Name(id="setattr" | "getattr"), args=[_, ast.Constant(value=str(name)), *_]) if _is_private(name):
                yield node.lineno, f"names {name}"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _target(call: ast.Call) -> str:
    """Return what a call of `monkeypatch.setattr` replaces, as it is written."""
    first, *more = call.args
    if isinstance(first, ast.Constant):
        return str(first.value)
    return f"{ast.unparse(first)}.{more[0].value if more and isinstance(more[0], ast.Constant) else '…'}"


def _defined(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module gives to attributes and methods of its own classes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.ClassDef():
                for each in node.body:
                    match each:
                        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                            yield name


def main(folders: list[str]) -> int:
    """Print what was found; returns the exit code."""
    count = 0
    for folder in folders or ["tests"]:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if str(path.relative_to(ROOT)) in LEFT:
                continue
            for number, what in found(path.read_text()):
                count += 1
                print(f"{path.relative_to(ROOT)}:{number}: {what}: use an argument with a default, a public property, or behaviour")
    print(f"{count} private names in tests" if count else "Private names in tests: none")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
