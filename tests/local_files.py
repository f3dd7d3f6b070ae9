"""The jar of the sink's only file in Java, `spark_sink/spark/LocalFiles.java`, which ships compiled: a JRE runs Spark, and has no compiler.

    python -m tests.local_files [--write]

Without an option it says whether the jar is of the source. Needs `javac` of Java 17 and pyspark.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from spark_sink.spark import jars

SOURCE = Path(jars.__file__).with_name("LocalFiles.java")
#: A file of a jar has a time; all jars of the same classes are the same.
_TIME = (2026, 1, 1, 0, 0, 0)


def compiler() -> str | None:
    """Return the `javac` whose output can be compared; None when there is none."""
    command = shutil.which("javac")
    if command is None:
        return None
    shown = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60)
    return command if (shown.stdout + shown.stderr).startswith("javac 17.") else None


def compiled(javac: str) -> dict[str, bytes]:
    """Return the classes of the source, by their names in a jar."""
    hadoop = next((jars.pyspark_home() / "jars").glob("hadoop-client-api-*.jar"))
    with tempfile.TemporaryDirectory() as scratch:
        command = [javac, "--release", "17", "-g:none", "-nowarn", "-cp", str(hadoop), "-d", scratch, str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        return {str(file.relative_to(scratch)): file.read_bytes() for file in sorted(Path(scratch).rglob("*.class"))}


def shipped() -> dict[str, bytes]:
    """Return the classes of the jar."""
    with zipfile.ZipFile(jars.LOCAL_FILES) as jar:
        return {name: jar.read(name) for name in jar.namelist()}


def write(classes: dict[str, bytes]) -> None:
    """Write the jar."""
    with zipfile.ZipFile(jars.LOCAL_FILES, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in classes.items():
            jar.writestr(zipfile.ZipInfo(name, _TIME), content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="make the jar")
    wanted = parser.parse_args()
    if (javac := compiler()) is None:
        print("javac of Java 17 is needed", file=sys.stderr)
        return 2
    if wanted.write:
        write(compiled(javac))
    same = compiled(javac) == shipped()
    print(f"{jars.LOCAL_FILES.name} is {'' if same else 'not '}of {SOURCE.name}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
