"""MariaDB servers for tests: `mariadbd` of `$CONNECT_PY_MARIADBD` or the path, or Debian's package: 10.11 of bookworm, 11.8 of trixie
(`$CONNECT_PY_MARIADB_VERSION`)."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from connect_py.app.services.debian import run_unpacked, unpacked
from connect_py.app.services.mysql import OwnServer, as_root
from connect_py.app.services.process import ServiceError

_BINARY = "usr/sbin/mariadbd"
#: Nothing is synced: the data is thrown away.
_OPTIONS = (
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
            options: of `mariadbd`, behind ours.
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
        self._start("MariaDB", [*command, *_OPTIONS, f"--server-id={server_id}", *options])


@functools.cache
def mariadbd(version: str = "10.11") -> tuple[list[str], Path]:
    """The command that runs a server, and the folder of its scripts.

    Raises:
        ServiceError: there is none on this machine and none can be fetched.
    """
    named = os.environ.get("CONNECT_PY_MARIADBD") or shutil.which("mariadbd")
    if named:
        share = _scripts(Path(named).resolve().parent.parent / "share")
        return [named, "--no-defaults", f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"], share
    root = unpacked(f"mariadb-{version}", SUITES[version], "mariadb-server-core", _BINARY)
    share = _scripts(root / "usr/share")
    command = [
        *run_unpacked(root, _BINARY),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
    ]
    return command, share


def _scripts(share: Path) -> Path:
    """The folder of the server's scripts. Raises ServiceError."""
    for place in (share / "mysql", share / "mariadb", share):
        if list(place.glob(f"*_{_SCRIPTS[0]}")):
            return place
    raise ServiceError(f"MariaDB's scripts are not below {share}")
