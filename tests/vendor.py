"""The page's files of other projects are those that npm published: the check compares their hashes with vendor.toml.

python tests/vendor.py            compare
python tests/vendor.py --fetch    fetch the packages by npm, compare their hashes, and write the files
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "rest_api" / "ui" / "vendor"


def packages() -> list[dict[str, Any]]:
    """Return what vendor.toml lists."""
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / "vendor.toml").read_text())["package"]
    return found


def sha512(content: bytes) -> str:
    """Return a hash in npm's form."""
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def problems() -> Iterator[str]:
    """Yield what is not as vendor.toml says."""
    listed = {"vendor.toml"}
    for package in packages():
        for file in package.get("file", ()):
            listed.add(file["to"])
            path = FOLDER / file["to"]
            if not path.exists():
                yield f"{file['to']} is missing: run python tests/vendor.py --fetch"
            elif sha512(path.read_bytes()) != file["sha512"]:
                yield f"{file['to']} is not the file of {package['name']} {package['version']}"
    yield from (f"{path.name} is not in vendor.toml" for path in FOLDER.iterdir() if path.name not in listed)


def npm_package(name: str, version: str, integrity: str, folder: Path) -> Path:
    """Fetch a package by npm into a folder; returns where its files are.

    Raises:
        ValueError: it is not what was published.
        OSError, CalledProcessError: npm is missing or has no network.
    """
    done = subprocess.run(["npm", "pack", f"{name}@{version}", "--silent"], cwd=folder, check=True, capture_output=True, text=True)
    archive = folder / done.stdout.split()[-1]
    if sha512(archive.read_bytes()) != integrity:
        raise ValueError(f"{name} {version} is not the package whose hash is known")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / name, filter="data")
    return folder / name / "package"


def fetch() -> None:
    """Write the files anew from their packages."""
    for package in packages():
        if "file" not in package:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = npm_package(package["name"], package["version"], package["integrity"], Path(folder))
            for file in package["file"]:
                (FOLDER / file["to"]).write_bytes((found / file["from"]).read_bytes())


if __name__ == "__main__":
    if "--fetch" in sys.argv:
        fetch()
    wrong = list(problems())
    print("\n".join(wrong) or "the files of other projects are as they were published")
    sys.exit(bool(wrong))
