"""MySQL servers for tests: `mysqld` of `$CONNECT_PY_MYSQLD` or the path, or Debian's package.

Debian's stable releases have MariaDB only; MySQL is packaged in unstable.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pymysql

from connect_py.app.services.debian import run_unpacked, unpacked
from connect_py.app.services.process import Service, ServiceError, free_port

_BINARY = "usr/sbin/mysqld"
#: Nothing is synced: the data is thrown away.
_OPTIONS = (
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
        """A connection in autocommit mode; the caller closes it."""
        return pymysql.connect(host=self.host, port=self.port, user=self.user, password=self.password, autocommit=True)


class OwnServer(MySqlAddress):
    """A server of our own: makes what every kind of it needs.

    Attributes:
        service: the server's process.
    """

    service: Service
    _command: tuple[str, list[str]]

    def __init__(self, folder: Path) -> None:
        super().__init__(host="127.0.0.1", port=free_port(), user="debezium", password="dbz")  # noqa: S106
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        # a socket's path may have 107 characters, which a folder of pytest can exceed
        self._sockets = Path(tempfile.mkdtemp(prefix="mysql-"))
        self._users = folder / "users.sql"
        self._users.write_text(
            f"CREATE USER IF NOT EXISTS '{self.user}'@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{self.user}'@'%' WITH GRANT OPTION;\n"
        )

    def _start(self, name: str, command: Sequence[str]) -> None:
        own = [f"--port={self.port}", f"--socket={self._sockets / 'mysql.sock'}", f"--init-file={self._users}"]
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
        """Stop the server."""
        self.service.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)


class MySqlServer(OwnServer):
    """MySQL with row-based log and GTIDs."""

    def __init__(self, folder: Path, *options: str, server_id: int = 223344) -> None:
        """Make a data folder and start the server; returns when it answers.

        Args:
            folder: for data and log.
            options: of `mysqld`, behind ours; they are given to the first initialisation too.

        Raises:
            ServiceError: there is no server for this machine, or it does not start.
        """
        super().__init__(folder)
        command = [*mysqld(), f"--datadir={folder / 'data'}", *as_root()]
        lower = tuple(option for option in options if option.startswith("--lower-case-table-names"))
        # what every new server has is made once; a copy is quicker, and lacks auto.cnf with the server's UUID
        shutil.copytree(_new_data(tuple(mysqld()), lower), folder / "data", ignore=shutil.ignore_patterns("auto.cnf"))
        self._start("MySQL", [*command, *_OPTIONS, f"--server-id={server_id}", *options])


@functools.cache
def _new_data(server: tuple[str, ...], options: tuple[str, ...]) -> Path:
    """The data folder of a new server, for this process. Raises ServiceError."""
    folder = Path(tempfile.mkdtemp(prefix="mysql-new-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [*server, f"--datadir={folder / 'data'}", *as_root(), *options, "--initialize-insecure"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise ServiceError(f"MySQL makes no data folder: {made.stderr[-2000:]}")
    return folder / "data"


def as_root() -> list[str]:
    """The servers refuse to run as root unless they are told to."""
    return ["--user=root"] if os.geteuid() == 0 else []


@functools.cache
def mysqld() -> list[str]:
    """The command that runs a server, with what it needs to find its own files.

    Raises:
        ServiceError: there is none on this machine and none can be fetched.
    """
    named = os.environ.get("CONNECT_PY_MYSQLD") or shutil.which("mysqld")
    if named:
        return [named, "--no-defaults"]
    root = unpacked("mysql", "sid", "mysql-server-core", _BINARY)
    return [
        *run_unpacked(root, _BINARY),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        f"--character-sets-dir={root / 'usr/share/mysql/charsets'}",
    ]
