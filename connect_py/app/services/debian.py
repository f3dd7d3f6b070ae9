"""Servers out of Debian's packages, unpacked into the cache without installing: binaries run through the loader of the C library that
comes with them, so that any suite's packages run on any Debian.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from connect_py.app.services.process import ServiceError
from spark_sink.spark.jars import cache_directory

#: Some 60 MB; ten minutes are for slow lines.
FETCH_SECONDS = 600


def unpacked(name: str, suite: str, package: str, binary: str) -> Path:
    """The folder of a package and all that it needs, fetched when it is first asked for.

    Args:
        name: of the folder in the cache.
        binary: path inside of the folder that tells whether it is whole.

    Raises:
        ServiceError: it is not in the cache and cannot be fetched.
    """
    root = cache_directory() / name
    if not (root / binary).exists():
        _fetch(root, suite, package, binary)
    return root


def run_unpacked(root: Path, binary: str) -> list[str]:
    """The command that runs a binary of an unpacked package with the package's own libraries."""
    libraries = next(place for pattern in ("usr/lib/*/libc.so.6", "lib/*/libc.so.6") for place in root.glob(pattern)).parent
    loader = next(iter(libraries.glob("ld-linux-*")))
    places = [*root.glob("usr/lib/*-linux-gnu*"), *root.glob("lib/*-linux-gnu*")]
    return [str(loader), "--library-path", ":".join(map(str, places)), str(root / binary)]


def _fetch(root: Path, suite: str, package: str, binary: str) -> None:
    """From the archive that this machine already uses, checked by the machine's keys."""
    archive = _archive()
    root.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{root.name}-", dir=root.parent))
    try:
        for name in ("lists/partial", "cache/archives/partial", "unpacked"):
            (work / name).mkdir(parents=True)
        (work / "status").write_text("")
        (work / "sources.list").write_text(f"deb {archive} {suite} main\n")
        options = [
            f"-oDir::State::lists={work}/lists",
            f"-oDir::State::status={work}/status",
            f"-oDir::Cache={work}/cache",
            f"-oDir::Etc::sourcelist={work}/sources.list",
            "-oDir::Etc::sourceparts=/dev/null",
            "-oAPT::Install-Recommends=0",
            *(["-oAPT::Sandbox::User=root"] if os.geteuid() == 0 else []),
        ]
        _run("apt-get", *options, "-q", "update")
        _run("apt-get", *options, "-q", "-y", "-d", "-oDebug::NoLocking=1", "install", package)
        for found in (work / "cache/archives").glob("*.deb"):
            _run("dpkg", "-x", str(found), str(work / "unpacked"))
        (work / "unpacked").rename(root)
    except OSError as error:
        if not (root / binary).exists():  # else another process was faster
            raise ServiceError(f"{package} could not be unpacked into {root}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _archive() -> str:
    """The address of the Debian archive in the machine's own sources."""
    for path in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))):
        text = path.read_text() if path.is_file() else ""
        found = re.search(r"^(?:deb(?: \[[^\]]*\])?|URIs:) +(\S+/debian/?)(?:\s|$)", text, re.MULTILINE)
        if found:
            return found[1]
    raise ServiceError(
        "No database server: set CONNECT_PY_MYSQLD or CONNECT_PY_MARIADBD to its binary; it can be fetched on Debian only, and no Debian "
        "archive is configured"
    )


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"A package could not be fetched: {error}") from error
    if done.returncode:
        raise ServiceError(f"A package could not be fetched: {' '.join(command[:1])} says {done.stderr[-800:]}")
