"""Run podman and buildah with what they need inside a virtual machine or a container: runc, the host's network, explicit limits."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

#: What the steps call, and Debian's packages of it.
TOOLS = {
    "podman": "podman",
    "buildah": "buildah",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "/usr/libexec/podman/catatonit": "catatonit",
}

#: Seconds for any state. Most come within ten; a Spark sink next to a test run that takes the whole machine has needed four minutes.
PATIENCE = 900.0

_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000")


class ImageTestError(Exception):
    """A step did not do what it must; the text has what the command said."""


def missing_tools() -> list[str]:
    """Debian's packages that must be installed first."""
    return [package for tool, package in TOOLS.items() if shutil.which(tool) is None and not Path(tool).exists()]


def say(line: str) -> None:
    """One line of the transcript."""
    print(f"[{time.strftime('%H:%M:%S')}] {line}", flush=True)


def command(*arguments: str | Path, check: bool = True, timeout: float = 3600, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a program with its output captured. Raises ImageTestError when it fails and `check` is set."""
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=timeout, **options)  # type: ignore[call-overload]
    if check and done.returncode:
        raise ImageTestError(f"{' '.join(map(str, arguments))}\nended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done  # type: ignore[no-any-return]


def has_image(name: str) -> bool:
    """Whether an image is in the local store."""
    return command("podman", "image", "exists", name, check=False).returncode == 0


def build(tag: str, context: Path, file: Path, target: str | None = None) -> None:
    """Build an image from local bases only. The output goes to the transcript."""
    chosen = ["--target", target] if target else []
    arguments = ["buildah", "bud", "--isolation", "chroot", "--format", "docker", "--layers", "--pull-never", *_LIMITS, *chosen]
    done = subprocess.run(
        [*arguments, "-t", tag, "-f", str(file), str(context)], stdin=subprocess.DEVNULL, stdout=sys.stdout, stderr=sys.stderr
    )
    if done.returncode:
        raise ImageTestError(f"The image {tag} could not be built; see above.")


def image_bytes(name: str) -> int:
    """The size of an image with all its layers, unpacked."""
    return int(json.loads(command("podman", "image", "inspect", name).stdout)[0]["Size"])


def run(
    name: str, image: str, arguments: Sequence[str] = (), *, environment: Mapping[str, str] | None = None, options: Sequence[str] = ()
) -> None:
    """Start a container on the host's network."""
    variables = [part for key, value in (environment or {}).items() for part in ("-e", f"{key}={value}")]
    command("podman", "rm", "-f", "-t", "1", name, check=False)
    command(
        "podman", "--runtime", "runc", "run", "-d", "--name", name, "--network", "host", *_LIMITS, *variables, *options, image, *arguments
    )


def inside(name: str, *arguments: str, check: bool = True, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a program in a container."""
    return command("podman", "--runtime", "runc", "exec", name, *arguments, check=check, timeout=timeout)


def log_of(name: str) -> str:
    """What a container has printed."""
    done = command("podman", "logs", name, check=False)
    return done.stdout + done.stderr


def remove(*names: str) -> None:
    """Stop and remove containers with their own volumes."""
    for name in names:
        command("podman", "rm", "-f", "-v", "-t", "20", name, check=False)


def wait_until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> float:
    """Wait for a state. Returns the seconds it took. Raises ImageTestError."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise ImageTestError(f"After {seconds:.0f} s still waiting for {what}.")
        time.sleep(0.5)  # noqa: TID251  # another program's state, over which this one has no clock
    return time.monotonic() - began
