"""Build the images and run them: `make test-images`.

One command for what no unit test shows. Both images are built, and run with a read-only root file system as a user that the image does not
know, with a login and with HTTPS. docker-compose.yaml comes up with a database, the tutorial's requests are sent, the worker is killed, and
all is taken down. The Kubernetes objects and the chart are valid and equal. The transcript says of each step whether a stand-in took part.

    python tests/images/run.py [STEP ...]      all steps, or some of: bases slim lakehouse servers images strimzi compose kubernetes clean

It needs root and Debian's packages podman, buildah, runc, debootstrap and catatonit; it reaches no container registry, and asks none.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

from tests.images import bases, compose, containers, kubernetes, strimzi  # noqa: E402
from tests.images.engine import ImageTestError, build, image_bytes, missing_tools, say  # noqa: E402

#: Limits in MB, unpacked and with the base. They hold what was measured when they were written, and some room for patch releases.
SIZES = {"slim": 350, "lakehouse": 1980}


def image(target: str) -> Callable[[], None]:
    """Return the step that builds an image and looks at its size."""

    def step() -> None:
        began = time.monotonic()
        build(containers.image(target), ROOT, ROOT / "Dockerfile", target)
        size = image_bytes(containers.image(target)) / 1e6
        say(f"built {target} in {time.monotonic() - began:.0f} s: {size:.0f} MB (STAND-IN base, {image_bytes(bases.PYTHON) / 1e6:.0f} MB)")
        if size > SIZES[target]:
            raise ImageTestError(f"The image {target} has {size:.0f} MB, and its limit is {SIZES[target]} MB.")

    return step


STEPS: dict[str, Callable[[], None]] = {
    "bases": bases.make_python,
    "slim": image("slim"),
    "lakehouse": image("lakehouse"),
    "servers": bases.make_servers,
    "images": containers.check,
    "strimzi": strimzi.check,
    "compose": compose.check,
    "kubernetes": kubernetes.check,
    "clean": bases.remove,
}


def main(chosen: list[str]) -> int:
    """Run steps in their order; the exit code is 0 when all have held."""
    unknown = [name for name in chosen if name not in STEPS]
    if unknown:
        print(f"There is no step {unknown[0]}. The steps are: {' '.join(STEPS)}", file=sys.stderr)
        return 2
    if os.geteuid() or missing_tools():
        print(f"make test-images needs root and Debian's packages: apt-get install {' '.join(missing_tools())}", file=sys.stderr)
        return 2
    failed = []
    for name in chosen or list(STEPS):
        say(f"== {name}")
        try:
            STEPS[name]()
        except Exception as error:  # noqa: BLE001  # the next steps may still show something
            if not isinstance(error, ImageTestError):
                traceback.print_exc()
            say(f"FAILED {name}: {error}")
            failed.append(name)
            if name in ("bases", "slim"):
                break
    say(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all steps held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
