"""MySQL servers for tests: `mysqld` of `$CONNECT_PY_MYSQLD` or the path, or Debian's package, unpacked into the cache without installing.

Debian's stable releases have MariaDB only. MySQL is packaged in unstable, whose binaries want its own C library: they are unpacked with
all their libraries and run through that library's loader.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pymysql

from connect_py.testing.services.process import Service, ServiceError, free_port
from spark_sink.jars import cache_directory

#: Some 60 MB; ten minutes are for slow lines.
FETCH_SECONDS = 600
_PACKAGE = "mysql-server-core"
#: Nothing is synced: the data is thrown away.
_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--server-id=223344",
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
        """A connection in autocommit mode; the caller closes it."""
        return pymysql.connect(host=self.host, port=self.port, user=self.user, password=self.password, autocommit=True)


class MySqlServer(MySqlAddress):
    """A server of our own, with row-based log and GTIDs.

    Attributes:
        service: the server's process.
    """

    def __init__(self, folder: Path) -> None:
        """Make a data folder and start the server; returns when it answers.

        Args:
            folder: for data and log.

        Raises:
            ServiceError: there is no server for this machine, or it does not start.
        """
        super().__init__(host="127.0.0.1", port=free_port(), user="debezium", password="dbz")  # noqa: S106
        folder.mkdir(parents=True, exist_ok=True)
        command = [*mysqld(), f"--datadir={folder / 'data'}"]
        if os.geteuid() == 0:
            command.append("--user=root")
        made = subprocess.run([*command, "--initialize-insecure"], capture_output=True, text=True, check=False)
        if made.returncode:
            raise ServiceError(f"MySQL makes no data folder: {made.stderr[-2000:]}")
        users = folder / "users.sql"
        users.write_text(
            f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{self.user}'@'%' WITH GRANT OPTION;\n"
        )
        # a socket's path may have 107 characters, which a folder of pytest can exceed
        self._sockets = Path(tempfile.mkdtemp(prefix="mysql-"))
        socket = f"--socket={self._sockets / 'mysql.sock'}"
        self.service = Service("MySQL", [*command, *_OPTIONS, f"--port={self.port}", socket, f"--init-file={users}"], folder / "mysql.log")
        self.service.wait_ready(self._answers)

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except pymysql.MySQLError:
            return False
        return True

    def stop(self) -> None:
        """Stop the server."""
        self.service.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)


@functools.cache
def mysqld() -> list[str]:
    """The command that runs a server, with what it needs to find its own files.

    Raises:
        ServiceError: there is none on this machine and none can be fetched.
    """
    named = os.environ.get("CONNECT_PY_MYSQLD") or shutil.which("mysqld")
    if named:
        return [named, "--no-defaults"]
    root = cache_directory() / "mysql"
    if not (root / "usr/sbin/mysqld").exists():
        _fetch(root)
    libraries = next((root / "usr/lib").glob("*/libc.so.6")).parent
    loader = next(iter(libraries.glob("ld-linux-*")))
    return [
        str(loader),
        "--library-path",
        str(libraries),
        str(root / "usr/sbin/mysqld"),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        f"--character-sets-dir={root / 'usr/share/mysql/charsets'}",
    ]


def _fetch(root: Path) -> None:
    """Debian's package and its libraries from the archive that this machine already uses, checked by the machine's keys."""
    archive = _archive()
    root.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="mysql-", dir=root.parent))
    try:
        for name in ("lists/partial", "cache/archives/partial", "unpacked"):
            (work / name).mkdir(parents=True)
        (work / "status").write_text("")
        (work / "sources.list").write_text(f"deb {archive} sid main\n")
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
        _run("apt-get", *options, "-q", "-y", "-d", "-oDebug::NoLocking=1", "install", _PACKAGE)
        for package in (work / "cache/archives").glob("*.deb"):
            _run("dpkg", "-x", str(package), str(work / "unpacked"))
        (work / "unpacked").rename(root)
    except OSError as error:
        if not (root / "usr/sbin/mysqld").exists():  # else another process was faster
            raise ServiceError(f"MySQL could not be unpacked into {root}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _archive() -> str:
    """The address of the Debian archive in the machine's own sources."""
    for path in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))):
        text = path.read_text() if path.is_file() else ""
        found = re.search(r"^(?:deb(?: \[[^\]]*\])?|URIs:) +(\S+/debian/?)(?:\s|$)", text, re.MULTILINE)
        if found:
            return found[1]
    raise ServiceError("No MySQL: set CONNECT_PY_MYSQLD to a mysqld; it can be fetched on Debian only, and no Debian archive is configured")


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"MySQL could not be fetched: {error}") from error
    if done.returncode:
        raise ServiceError(f"MySQL could not be fetched: {' '.join(command[:1])} says {done.stderr[-800:]}")
