"""Stand-ins for the images of a registry, made from Debian's packages and Maven's jars and tagged with the real images' names.

They let a machine that reaches no container registry build and run what the Dockerfile and docker-compose.yaml describe. What they do not
show is said where they are made.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.images.engine import ImageTestError, build, command, has_image, say
from tests.paths import ROOT

HERE = Path(__file__).parent
PYTHON = "docker.io/library/python:3.13-slim-trixie"
POSTGRES = "docker.io/library/postgres:17"
KAFKA = "docker.io/apache/kafka:4.3.1"
#: Our images, by target.
WORKER = "localhost/connect-py-worker"

_MIRROR = "http://deb.debian.org/debian"
#: Authorities of this machine in addition to Debian's, such as a proxy's.
_AUTHORITIES = Path("/usr/local/share/ca-certificates")

#: As in Debian's own images.
_APT_CLEAN = """\
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
"""

_LEFT_OUT = ("/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/usr/share/info")


def make_python() -> None:
    """Debian 13 with its own Python 3.13, where the real image has Debian 13 with a Python that is built from source."""
    if has_image(PYTHON):
        return
    say(f"STAND-IN {PYTHON}: debootstrap of Debian 13 with Debian's Python 3.13")
    with tempfile.TemporaryDirectory(prefix="connect-py-base-") as scratch:
        root = Path(scratch) / "root"
        command("debootstrap", "--variant=minbase", "--include=ca-certificates,python3,python3-venv,python3-pip", "trixie", root, _MIRROR)
        import_python(root)


def import_python(root: Path) -> None:
    """Make the image from a tree that debootstrap has made."""
    (root / "usr/local/bin/python").unlink(missing_ok=True)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    # As the slim images: no manuals, and dpkg installs none.
    (root / "etc/dpkg/dpkg.cfg.d/docker").write_text("".join(f"path-exclude {path}/*\n" for path in _LEFT_OUT))
    # and apt keeps nothing that it has fetched
    (root / "etc/apt/apt.conf.d/docker-clean").write_text(_APT_CLEAN)
    for path in (*_LEFT_OUT, "/var/cache/apt", "/var/lib/apt/lists"):
        shutil.rmtree(root / path[1:], ignore_errors=True)
    for path in ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial"):
        (root / path).mkdir(parents=True)
    if _AUTHORITIES.is_dir():
        shutil.copytree(_AUTHORITIES, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
        command("chroot", root, "update-ca-certificates")
        (root / "etc/pip.conf").write_text("[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n")
    packed = subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE)
    done = subprocess.run(
        ["podman", "import", "--change", 'CMD ["python3"]', "-", PYTHON], stdin=packed.stdout, capture_output=True, text=True
    )
    if packed.wait() or done.returncode:
        raise ImageTestError(f"The base image could not be imported: {done.stderr[-2000:]}")


def make_servers() -> None:
    """PostgreSQL and Kafka for docker-compose.yaml."""
    if not has_image(POSTGRES):
        say(f"STAND-IN {POSTGRES}: Debian's PostgreSQL 17 with an entry point that behaves as the official one")
        build(POSTGRES, HERE, HERE / "postgres.Dockerfile")
    if not has_image(KAFKA):
        from connect_py.app.services.kafka import kafka_jars

        say(f"STAND-IN {KAFKA}: Kafka's own jars of that version on Debian's Java 21")
        with tempfile.TemporaryDirectory(prefix="connect-py-kafka-") as scratch:
            shutil.copytree(kafka_jars(), Path(scratch) / "libs")
            shutil.copy(HERE / "kafka-entrypoint.sh", scratch)
            build(KAFKA, Path(scratch), HERE / "kafka.Dockerfile")


def remove() -> None:
    """Remove all of them, our images on them, and what builds left: layers of a build that failed have no name."""
    command("podman", "rmi", "-f", *(f"{WORKER}:{target}" for target in ("slim", "lakehouse")), POSTGRES, KAFKA, PYTHON, check=False)
    unnamed = (
        "podman",
        "images",
        "-a",
        "-q",
        "--filter",
        "dangling=true",
        "--filter",
        "label=org.opencontainers.image.title=connect-py-worker",
    )
    if found := command(*unnamed).stdout.split():
        command("podman", "rmi", "-f", *found, check=False)
    command("podman", "image", "prune", "-f", check=False)


#: The repository, for the build's context.
CONTEXT = ROOT
