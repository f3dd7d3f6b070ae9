"""Programs from PyPI and Go's modules that only these tests use, kept in `.cache/images` of the checkout."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.images.engine import ImageTestError, command, say
from tests.paths import ROOT

_FOLDER = ROOT / ".cache" / "images"

#: podman-compose reads docker-compose.yaml; kubernetes-validate carries the schemas of many versions of Kubernetes (108 MB).
_PACKAGES = ("podman-compose==1.6.0", "kubernetes-validate==1.37.0")

_HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"


def tool(name: str) -> Path:
    """The path of a program from PyPI; installed on the first call."""
    found = _FOLDER / "bin" / name
    if not found.exists():
        command(sys.executable, "-m", "venv", _FOLDER)
        command(_FOLDER / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *_PACKAGES)
    if not found.exists():
        raise ImageTestError(f"{', '.join(_PACKAGES)} brought no {name}")
    return found


def helm() -> Path | None:
    """The path of helm, of this machine or built from its Go module; None where there is neither helm nor Go."""
    if installed := shutil.which("helm"):
        return Path(installed)
    found = _FOLDER / "go" / "helm"
    if not found.exists() and shutil.which("go"):
        say(f"building {_HELM} (some minutes of CPU, once)")
        command("env", f"GOBIN={found.parent}", "go", "install", _HELM)
    return found if found.exists() else None
