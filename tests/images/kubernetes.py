"""The Kubernetes objects are valid for three versions, and the Helm chart renders the same objects as kustomize."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import yaml

from connect_py.data.java_properties import parse_properties
from tests.images.engine import ImageTestError, command, say
from tests.images.tools import helm, tool
from tests.paths import ROOT

#: The oldest that a long-term offering of a cloud still has, one between, and the newest with schemas.
VERSIONS = ("1.30.0", "1.33.0", "1.37.0")


def check() -> None:
    """Validate, and compare. Raises ImageTestError."""
    kustomize = shutil.which("kubectl")
    if kustomize is None:
        say("NOT RUN: kustomize's output, because there is no kubectl")
        return
    with tempfile.TemporaryDirectory(prefix="connect-py-kubernetes-") as scratch:
        for version in VERSIONS:
            base = Path(scratch) / "base.yaml"
            base.write_text(command(kustomize, "kustomize", ROOT / "deploy/kubernetes/base").stdout)
            command(tool("kubernetes-validate"), "--strict", "-k", version, base)
        say(f"deploy/kubernetes/base is valid for Kubernetes {', '.join(VERSIONS)} (strict)")
    program = helm()
    if program is None:
        say("NOT RUN: helm template, because there is neither helm nor Go")
        return
    chart = ROOT / "deploy/helm/connect-py-worker"
    command(program, "lint", "--strict", chart)
    rendered = normal(command(program, "template", "connect-py", chart).stdout)
    wanted = normal(command(kustomize, "kustomize", ROOT / "deploy/kubernetes/monitoring").stdout)
    for name in sorted(rendered.keys() | wanted.keys()):
        if rendered.get(name) != wanted.get(name):
            raise ImageTestError(f"{name} differs.\nhelm:      {rendered.get(name)}\nkustomize: {wanted.get(name)}")
    say(f"helm template equals kustomize's output: {len(wanted)} objects")


def normal(text: str) -> dict[str, Any]:
    """Objects by kind and name, without what the two must do differently: how a change of the properties starts an update of the pods.

    kustomize ends the ConfigMap's name with a hash, Helm puts one into an annotation of the pods.
    """
    objects = [found for found in yaml.safe_load_all(text) if found]
    for found in objects:
        if found["kind"] == "ConfigMap":
            found["metadata"]["name"] = "connect-py"
            found["data"] = {name: parse_properties(value) for name, value in found["data"].items()}
        if found["kind"] == "StatefulSet":
            found["spec"]["template"]["metadata"].pop("annotations", None)
            for volume in found["spec"]["template"]["spec"]["volumes"]:
                if "configMap" in volume:
                    volume["configMap"]["name"] = "connect-py"
    return {f"{found['kind']} {found['metadata']['name']}": found for found in objects}
