"""Prints a bill of materials of this environment, in CycloneDX's JSON: Python packages, Debian packages and the sink's Java libraries.

The image's build runs it; the result is /opt/connect/sbom.cdx.json in the image. It asks no registry.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def python_packages() -> list[dict[str, Any]]:
    """Installed distributions, each once."""
    found = {(each.metadata["Name"].lower().replace("_", "-"), each.version): each for each in importlib.metadata.distributions()}
    return [
        _component(name, version, f"pkg:pypi/{name}@{version}", each.metadata.get("License-Expression"))
        for (name, version), each in sorted(found.items())
    ]


def debian_packages() -> list[dict[str, Any]]:
    """What dpkg has installed; nothing on another system."""
    if shutil.which("dpkg-query") is None:
        return []
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\n"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [_component(name, version, f"pkg:deb/debian/{name}@{version}?arch={arch}") for name, version, arch in map(str.split, lines)]


def java_libraries(cache: Path) -> list[dict[str, Any]]:
    """The sink's jars (`group_artifact-version.jar`), with their checksums."""
    found = []
    for jar in sorted((cache / "jars").glob("*/*.jar")):
        group, _, rest = jar.stem.partition("_")
        artifact, _, version = rest.rpartition("-")
        hashed = hashlib.sha256(jar.read_bytes()).hexdigest()
        component = _component(f"{group}:{artifact}", version, f"pkg:maven/{group}/{artifact}@{version}")
        found.append({**component, "hashes": [{"alg": "SHA-256", "content": hashed}]})
    return found


def _component(name: str, version: str, purl: str, expression: str | None = None) -> dict[str, Any]:
    licences = {"licenses": [{"expression": expression}]} if expression else {}
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, **licences}


def main() -> int:
    """Print."""
    components = [*python_packages(), *debian_packages(), *java_libraries(Path(os.environ.get("CONNECT_PY_CACHE", "/nowhere")))]
    json.dump({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
