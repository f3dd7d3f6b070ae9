"""The Java that runs the broker and Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from connect_py.testing.services.process import ServiceError

#: Apache Kafka 4's broker and Spark 4 both need it.
MINIMUM_VERSION = 17

INSTALL_HINT = (
    f"Install Java {MINIMUM_VERSION} or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) "
    "or point JAVA_HOME at one."
)


def java_version(java: str) -> int | None:
    """The feature version (17 for `17.0.15`, 8 for `1.8.0`) that `java -version` names; None when it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found and done.returncode == 0 else None


@cache
def find_java() -> str:
    """The path of a Java that is new enough: `$JAVA_HOME`'s, else the first on the path.

    Raises:
        ServiceError: there is none, with one sentence that says what to install.
    """
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin/java")] if home else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(on_path)
    seen = []
    for candidate in candidates:
        version = java_version(candidate)
        if version is not None and version >= MINIMUM_VERSION:
            return candidate
        if version is not None:
            seen.append(f"{candidate} is version {version}")
    found = f"only {' and '.join(seen)}" if seen else "none was found"
    raise ServiceError(f"The Kafka broker and Spark need Java {MINIMUM_VERSION} or newer, and {found}. {INSTALL_HINT}")
