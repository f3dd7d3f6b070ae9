"""Make what is released, and install it into empty environments: `make release`.

The wheel and the source archive are built into `dist/`, with the site of the documentation. Each extra is installed alone into an
environment of its own, from the wheel; there every plugin that belongs to the extra must load, and its part of the tutorial must work, on
real servers (`release_parts.py`). The wheel that is built from the source archive must hold the same files.

    python -m tests.release [EXTRA ...]      all extras that a worker or a command needs, or some; `none` is the program without any
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

from tests.release_parts import Parts

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"

#: What must work in an environment with one extra: an expression that is evaluated there.
CHECKS = {
    "none": "__import__('connectors.file.source') and __import__('connect_py.converters.json_converter')",
    "postgres": "__import__('connectors.postgres.task')",
    "mysql": "__import__('connectors.mysql.task')",
    "jdbc": "__import__('connectors.jdbc.task')",
    "mongodb": "__import__('connectors.mongodb.task')",
    "scripting": "__import__('connect_py.transforms.scripting')",
    "tracing": "__import__('connect_py.transforms.tracing')",
    "registry": "__import__('connect_py.converters.avro.converter')",
    "protobuf": "__import__('connect_py.converters.protobuf.converter')",
    "cli": "__import__('yaml') and __import__('shtab') and __import__('connect_py.app.client.files')",
    "verify": "__import__('connect_py.app.verify.run')",
    "spark": "__import__('spark_sink.connector') and __import__('spark_sink.spark.jars').spark.jars.pyspark_home()",
    "spark-connect": "__import__('spark_sink.connector') and __import__('grpc')",
}

#: Extras of a checkout of this repository, in which they are installed.
OF_A_CHECKOUT = {"demo", "dev", "docs"}


def run(*arguments: str | Path) -> str:
    """Run a program; returns what it printed. Ends this one when it fails."""
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, cwd=DIST)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\nended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def files_of(wheel: Path) -> set[str]:
    """Names in a wheel, without those of its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def build() -> tuple[Path, Path]:
    """Build both into `dist/`; returns the wheel and the source archive."""
    DIST.mkdir(exist_ok=True)
    run(sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", ROOT / "mkdocs.yml")
    for old in (*DIST.glob("connect_py_worker-*.whl"), *DIST.glob("connect_py_worker-*.tar.gz")):
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        run(Path(scratch) / "bin/pip", "install", "-q", "--disable-pip-version-check", "hatchling>=1.27")
        done = subprocess.run(
            [f"{scratch}/bin/python", "-m", "hatchling", "build", "-d", str(DIST)], cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
    return next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))


def check_pipx(wheel: Path, version: str) -> None:
    """Run the wheel's command by pipx, which makes an environment for it."""
    with tempfile.TemporaryDirectory(prefix="connect-py-pipx-") as scratch:
        venv.create(scratch, with_pip=True)
        run(f"{scratch}/bin/pip", "install", "-q", "--disable-pip-version-check", "pipx>=1.7")
        said = run("env", f"PIPX_HOME={scratch}/home", f"{scratch}/bin/pipx", "run", "--spec", wheel, "connect-py", "--version")
        if said != f"connect-py {version}\n":
            sys.exit(f"pipx run connect-py --version says {said}")
    print("pipx run: works", flush=True)


def check(wheel: Path, extra: str, version: str, parts: Parts) -> None:
    """Install the wheel with one extra into an empty environment, and use it."""
    with tempfile.TemporaryDirectory(prefix=f"connect-py-{extra}-") as scratch:
        venv.create(scratch, with_pip=True)
        wanted = f"{wheel}[{extra}]" if extra != "none" else str(wheel)
        run(f"{scratch}/bin/pip", "install", "-q", "--disable-pip-version-check", wanted)
        said = run(f"{scratch}/bin/connect-py", "--version")
        if said != f"connect-py {version}\n":
            sys.exit(f"connect-py --version says {said}")
        run(f"{scratch}/bin/python", "-I", "-c", f"assert {CHECKS[extra]}")
        run(f"{scratch}/bin/pip", "check")
        print(f"{extra}: installed into an empty environment, and works", flush=True)
        if seen := parts.run(extra, Path(scratch)):
            print(f"{extra}: {seen}", flush=True)


def main(chosen: list[str]) -> int:
    """Build, compare, install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    missing = set(project["optional-dependencies"]) - CHECKS.keys() - OF_A_CHECKOUT
    if missing:
        sys.exit(f"There is no check of the extra {missing.pop()}.")
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(project['version'])}\b", changelog, re.M):
        sys.exit(f"CHANGELOG.md has no section of {project['version']}.")
    wheel, archive = build()
    if "rest_api/site/tutorial.html" not in files_of(wheel):
        sys.exit("The wheel lacks the documentation, which a worker serves.")
    with tempfile.TemporaryDirectory() as scratch:
        run(sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", scratch, archive)
        again = next(Path(scratch).glob("*.whl"))
        if files_of(again) != files_of(wheel):
            sys.exit(f"The wheel of the source archive differs: {sorted(files_of(again) ^ files_of(wheel))[:10]}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {archive.name}: {archive.stat().st_size / 1e6:.1f} MB, with the same files")
    check_pipx(wheel, project["version"])
    with tempfile.TemporaryDirectory(prefix="connect-py-release-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        parts = Parts(folder)
        try:
            for extra in chosen or CHECKS:
                check(wheel, extra, project["version"], parts)
        finally:
            parts.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
