"""Prints constraints.txt for the image: the versions that this environment has of every package that the image installs.

    .venv/bin/python docker/constraints.py > constraints.txt

Run it in an environment in which the tests have passed. It asks no registry.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]

_HEAD = """\
# Versions of the packages in the image (Dockerfile), made by docker/constraints.py where the tests had passed.
# To install the same elsewhere: pip install -c constraints.txt '.[...]'
"""


def image_extras() -> list[str]:
    """The extras that the Dockerfile installs, in whichever image."""
    found = re.findall(r"\.whl\)\[([\w,-]+)\]", (ROOT / "Dockerfile").read_text())
    assert found
    return [extra for extras in found for extra in extras.split(",")]


def packages(extras: Iterable[str]) -> dict[str, str]:
    """Name → installed version of what the project with these extras needs, on this platform."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def own(chosen: Iterable[str]) -> list[Requirement]:
        return [Requirement(text) for extra in chosen for text in project["optional-dependencies"][extra]]

    left = [*(Requirement(text) for text in project["dependencies"]), *own(extras)]
    seen: set[tuple[str, frozenset[str]]] = set()
    found: dict[str, str] = {}
    while left:
        wanted = left.pop()
        name, chosen = normal(wanted.name), frozenset(wanted.extras)
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        if name == normal(project["name"]):
            left += own(chosen)
            continue
        distribution = importlib.metadata.distribution(wanted.name)
        found[name] = distribution.version
        for text in distribution.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *chosen)):
                left.append(needed)
    return found


def normal(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Print."""
    sys.stdout.write(_HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(packages(image_extras()).items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
