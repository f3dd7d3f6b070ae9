"""Start MySQL and MariaDB servers for tests.

MySQL is `mysqld` of `$CONNECT_PY_MYSQLD` or the path, or Debian's package; Debian's stable releases have MariaDB only, MySQL is packaged in
unstable. MariaDB is `mariadbd` of `$CONNECT_PY_MARIADBD` or the path, or Debian's package: 10.11 of bookworm, 11.8 of trixie
(`$CONNECT_PY_MARIADB_VERSION`).

Debian's packages are unpacked into the cache without installing: binaries run through the loader of the C library that comes with them, so
that any suite's packages run on any Debian.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pymysql

from connect_py.app.services.process import Service, ServiceError, free_port
from spark_sink.spark.jars import cache_directory

#: Some 60 MB; ten minutes are for slow lines.
FETCH_SECONDS = 600


def unpacked(name: str, suite: str, package: str, binary: str) -> Path:
    """Return the folder of a package and all that it needs, fetched when it is first asked for.

    Args:
        name: of the folder in the cache.
        binary: path inside of the folder that shows whether it is whole.

    Raises:
        ServiceError: it is not in the cache and cannot be fetched.
    """
    root = cache_directory() / name
    if not (root / binary).exists():
        _fetch(root, suite, package, binary)
    return root


def run_unpacked(root: Path, binary: str) -> list[str]:
    """Return the command that runs a binary of an unpacked package with the package's own libraries."""
    libraries = next(place for pattern in ("usr/lib/*/libc.so.6", "lib/*/libc.so.6") for place in root.glob(pattern)).parent
    loader = next(iter(libraries.glob("ld-linux-*")))
    places = [*root.glob("usr/lib/*-linux-gnu*"), *root.glob("lib/*-linux-gnu*")]
    return [str(loader), "--library-path", ":".join(map(str, places)), str(root / binary)]


def _fetch(root: Path, suite: str, package: str, binary: str) -> None:
    """From the archive that this machine already uses, checked by the machine's keys."""
    archive = _archive()
    root.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{root.name}-", dir=root.parent))
    try:
        for name in ("lists/partial", "cache/archives/partial", "unpacked"):
            (work / name).mkdir(parents=True)
        (work / "status").write_text("")
        (work / "sources.list").write_text(f"deb {archive} {suite} main\n")
        options = [
            f"-oDir::State::lists={work}/lists",
            f"-oDir::State::status={work}/status",
            f"-oDir::Cache={work}/cache",
            f"-oDir::Etc::sourcelist={work}/sources.list",
            "-oDir::Etc::sourceparts=/dev/null",
            "-oAPT::Install-Recommends=0",
            *(["-oAPT::Sandbox::User=root"] if os.geteuid() == 0 else []),
        ]
        _run("apt-get", *options, "-q", "update")
        _run("apt-get", *options, "-q", "-y", "-d", "-oDebug::NoLocking=1", "install", package)
        for found in (work / "cache/archives").glob("*.deb"):
            _run("dpkg", "-x", str(found), str(work / "unpacked"))
        (work / "unpacked").rename(root)
    except OSError as error:
        if not (root / binary).exists():  # else another process was faster
            raise ServiceError(f"{package} could not be unpacked into {root}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _archive() -> str:
    """Return the address of the Debian archive in the machine's own sources."""
    for path in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))):
        text = path.read_text() if path.is_file() else ""
        found = re.search(r"^(?:deb(?: \[[^\]]*\])?|URIs:) +(\S+/debian/?)(?:\s|$)", text, re.MULTILINE)
        if found:
            return found[1]
    raise ServiceError(
        "No database server: set CONNECT_PY_MYSQLD or CONNECT_PY_MARIADBD to its binary; it can be fetched on Debian only, and no Debian "
        "archive is configured"
    )


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"A package could not be fetched: {error}") from error
    if done.returncode:
        raise ServiceError(f"A package could not be fetched: {' '.join(command[:1])} says {done.stderr[-800:]}")


_MYSQLD = "usr/sbin/mysqld"
#: Nothing is synced: the data is thrown away.
_MYSQL_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--log-bin=mysql-bin",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--mysqlx=OFF",
    # no files of the server: the default folder is the package's
    "--secure-file-priv=NULL",
    "--innodb-buffer-pool-size=128M",
    "--innodb-flush-log-at-trx-commit=0",
    "--sync-binlog=0",
)


@dataclass(frozen=True)
class MySqlAddress:
    """Where a server is and how an administrator logs in."""

    host: str
    port: int
    user: str
    password: str

    def connect(self) -> pymysql.connections.Connection[pymysql.cursors.Cursor]:
        """Return a connection in autocommit mode; the caller closes it."""
        # without TLS: for each connection of its own, the client would read the system's certificates, 20 ms of CPU
        return pymysql.connect(host=self.host, port=self.port, user=self.user, password=self.password, autocommit=True, ssl_disabled=True)


class OwnServer(MySqlAddress):
    """A server of our own: makes what every kind of it needs.

    Attributes:
        service: the server's process.
        sockets: the folder of its socket, which `stop` deletes.
    """

    service: Service
    _command: tuple[str, list[str]]

    def __init__(self, folder: Path) -> None:
        super().__init__(host="127.0.0.1", port=free_port(), user="debezium", password="dbz")  # noqa: S106
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        # a socket's path may have 107 characters, which a folder of pytest can exceed
        self.sockets = Path(tempfile.mkdtemp(prefix="mysql-"))
        self._users = folder / "users.sql"
        self._users.write_text(
            f"CREATE USER IF NOT EXISTS '{self.user}'@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{self.user}'@'%' WITH GRANT OPTION;\n"
        )

    def _start(self, name: str, command: Sequence[str]) -> None:
        # servers next to each other name their temporary files alike
        temporary = self._folder / "tmp"
        temporary.mkdir(exist_ok=True)
        own = [f"--tmpdir={temporary}", f"--port={self.port}", f"--socket={self.sockets / 'mysql.sock'}", f"--init-file={self._users}"]
        self._command = (name, [*command, *own])
        self.start()

    def start(self) -> None:
        """Start the server again, with what it holds, after `service` was stopped or killed; returns when it answers."""
        self.service = Service(*self._command, self._folder / "server.log")
        self.service.wait_ready(self._answers)

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except pymysql.MySQLError:
            return False
        return True

    def stop(self) -> None:
        """End the server at once: an orderly end takes it seconds, and its data goes with the folder."""
        self.service.kill()
        shutil.rmtree(self.sockets, ignore_errors=True)


class MySqlServer(OwnServer):
    """MySQL with row-based log and GTIDs."""

    def __init__(self, folder: Path, *options: str, server_id: int = 223344) -> None:
        """Make a data folder and start the server; returns when it answers.

        Args:
            folder: for data and log.
            options: of `mysqld`, after ours; they are given to the first initialisation too.

        Raises:
            ServiceError: there is no server for this machine, or it does not start.
        """
        super().__init__(folder)
        command = [*mysqld(), f"--datadir={folder / 'data'}", *as_root()]
        lower = tuple(option for option in options if option.startswith("--lower-case-table-names"))
        # what every new server has is made once; a copy is quicker, and lacks auto.cnf with the server's UUID
        shutil.copytree(_new_data(tuple(mysqld()), lower), folder / "data", ignore=shutil.ignore_patterns("auto.cnf"))
        self._start("MySQL", [*command, *_MYSQL_OPTIONS, f"--server-id={server_id}", *options])


@functools.cache
def _new_data(server: tuple[str, ...], options: tuple[str, ...]) -> Path:
    """Return the data folder of a new server, for this process. Raises ServiceError."""
    folder = Path(tempfile.mkdtemp(prefix="mysql-new-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [*server, f"--datadir={folder / 'data'}", *as_root(), *options, "--initialize-insecure"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise ServiceError(f"MySQL makes no data folder: {made.stderr[-2000:]}")
    return folder / "data"


def as_root() -> list[str]:
    """Return the option without which the servers refuse to run as root."""
    return ["--user=root"] if os.geteuid() == 0 else []


@functools.cache
def mysqld() -> list[str]:
    """Return the command that runs a server, with what it needs to find its own files.

    Raises:
        ServiceError: there is none on this machine and none can be fetched.
    """
    named = os.environ.get("CONNECT_PY_MYSQLD") or shutil.which("mysqld")
    if named:
        return [named, "--no-defaults"]
    root = unpacked("mysql", "sid", "mysql-server-core", _MYSQLD)
    return [
        *run_unpacked(root, _MYSQLD),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        f"--character-sets-dir={root / 'usr/share/mysql/charsets'}",
    ]


_MARIADBD = "usr/sbin/mariadbd"
#: Nothing is synced: the data is thrown away.
_MARIADB_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--log-bin=mariadb-bin",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--character-set-server=utf8mb4",
    "--innodb-buffer-pool-size=128M",
    "--innodb-flush-log-at-trx-commit=0",
    "--sync-binlog=0",
)
#: What `mariadb-install-db` gives to a server in the mode `--bootstrap`; the files begin with `mysql_` before 11 and with `mariadb_` since.
_SCRIPTS = ("system_tables.sql", "performance_tables.sql", "system_tables_data.sql", "sys_schema.sql")
SUITES = {"10.11": "bookworm", "11.8": "trixie"}


class MariaDbServer(OwnServer):
    """MariaDB with row-based log."""

    def __init__(self, folder: Path, *options: str, version: str | None = None, server_id: int = 223344) -> None:
        """Make a data folder and start the server; returns when it answers.

        Args:
            folder: for data and log.
            options: of `mariadbd`, after ours.
            version: one of `SUITES`, the environment's or the oldest without it; a server that the environment names is taken whatever
                it is.

        Raises:
            ServiceError: there is no server for this machine, or it does not start.
        """
        super().__init__(folder)
        command, share = mariadbd(version or os.environ.get("CONNECT_PY_MARIADB_VERSION", "10.11"))
        command = [*command, f"--datadir={folder / 'data'}", *as_root()]
        (folder / "data").mkdir()
        texts = [path.read_text() for name in _SCRIPTS for path in share.glob(f"m*_{name}") if path.name.count("_") == name.count("_") + 1]
        script = "\n".join(("CREATE DATABASE IF NOT EXISTS mysql;", "CREATE DATABASE IF NOT EXISTS test;", "USE mysql;", *texts))
        lower = [option for option in options if option.startswith("--lower-case-table-names")]
        made = subprocess.run([*command, *lower, "--bootstrap"], input=script, capture_output=True, text=True, check=False)
        if made.returncode:
            raise ServiceError(f"MariaDB makes no data folder: {made.stderr[-2000:]}")
        self._start("MariaDB", [*command, *_MARIADB_OPTIONS, f"--server-id={server_id}", *options])


@functools.cache
def mariadbd(version: str = "10.11") -> tuple[list[str], Path]:
    """Return the command that runs a server, and the folder of its scripts.

    Raises:
        ServiceError: there is none on this machine and none can be fetched.
    """
    named = os.environ.get("CONNECT_PY_MARIADBD") or shutil.which("mariadbd")
    if named:
        share = _scripts(Path(named).resolve().parent.parent / "share")
        return [named, "--no-defaults", f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"], share
    root = unpacked(f"mariadb-{version}", SUITES[version], "mariadb-server-core", _MARIADBD)
    share = _scripts(root / "usr/share")
    command = [
        *run_unpacked(root, _MARIADBD),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
    ]
    return command, share


def _scripts(share: Path) -> Path:
    """Return the folder of the server's scripts. Raises ServiceError."""
    for place in (share / "mysql", share / "mariadb", share):
        if list(place.glob(f"*_{_SCRIPTS[0]}")):
            return place
    raise ServiceError(f"MariaDB's scripts are not below {share}")
