"""``connection.url``: JDBC's forms of addresses, and which of their parameters count. Pure but for the check of SQLite's path.

A connector's configuration comes from anyone who may call the REST API, and drivers have parameters that run code or read the worker's
files (`socketFactory`, `allowLoadLocalInfile`, `sslkey`). So each database has a list of allowed parameters; another one is refused by
name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from connect_py.api.permissions import allowed_file
from connect_py.errors import ConfigError

URL: Final = "connection.url"
FORMS: Final = (
    "jdbc:postgresql://host:5432/database, jdbc:mysql://host:3306/database, jdbc:mariadb://host:3306/database, jdbc:sqlite:/path/of/file.db"
)


@dataclass(frozen=True)
class Address:
    """Where a database is.

    Attributes:
        kind: postgresql, mysql, mariadb or sqlite.
        host: empty for SQLite.
        database: its name; SQLite's file, ``:memory:`` for none.
        options: the driver's own, made of the URL's parameters.
    """

    kind: str
    host: str = ""
    port: int = 0
    database: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The address in messages: no parameter, no secret."""
        return self.database if self.kind == "sqlite" else f"{self.kind}://{self.host}:{self.port}/{self.database}"


_Options = dict[str, Any]
_Setter = Callable[[_Options, str], None]


def _text(name: str) -> _Setter:
    def put(options: _Options, value: str) -> None:
        options[name] = value

    return put


def _seconds(name: str, unit: float = 1.0) -> _Setter:
    def put(options: _Options, value: str) -> None:
        options[name] = max(round(float(value) * unit), 1)

    return put


def _ignored(options: _Options, value: str) -> None:
    """Ignore JDBC's own parameter: nothing here has a counterpart, and the result is the same."""


def _flag(value: str) -> bool:
    if value.strip().lower() not in ("true", "false", ""):
        raise ValueError(f"{value} is neither true nor false")
    return value.strip().lower() != "false"


def _sslmode(options: _Options, value: str) -> None:
    modes = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
    if value.lower() not in modes:
        raise ValueError(f"it must be one of {', '.join(modes)}")
    options["sslmode"] = value.lower()


def _pg_ssl(options: _Options, value: str) -> None:
    if _flag(value):
        options.setdefault("sslmode", "verify-full")  # as pgjdbc


def _file(name: str) -> _Setter:
    def put(options: _Options, value: str) -> None:
        options[name] = allowed_file(URL, value)

    return put


#: Parameters of pgjdbc.
_POSTGRES: Final[Mapping[str, _Setter]] = {
    "sslmode": _sslmode,
    "ssl": _pg_ssl,
    "sslrootcert": _file("sslrootcert"),
    "ApplicationName": _text("application_name"),
    "connectTimeout": _seconds("connect_timeout"),
    "loginTimeout": _seconds("connect_timeout"),
    "currentSchema": _text("currentSchema"),
    "tcpKeepAlive": lambda options, value: options.update(keepalives=int(_flag(value))),
    "targetServerType": lambda options, value: _target(options, value),
    **dict.fromkeys(
        ("reWriteBatchedInserts", "stringtype", "prepareThreshold", "binaryTransfer", "assumeMinServerVersion", "socketTimeout"), _ignored
    ),
}


def _target(options: _Options, value: str) -> None:
    known = {"any": "any", "primary": "read-write", "master": "read-write"}
    if value not in known:
        raise ValueError(f"it must be one of {', '.join(known)}")
    options["target_session_attrs"] = known[value]


def _mysql_sslmode(options: _Options, value: str) -> None:
    mode = value.upper().replace("-", "_")
    known = ("DISABLED", "DISABLE", "PREFERRED", "REQUIRED", "TRUST", "VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL")
    if mode not in known:
        raise ValueError(f"it must be one of {', '.join(known)}")
    options["ssl_mode"] = mode


def _mysql_ssl(options: _Options, value: str) -> None:
    if _flag(value):
        options.setdefault("ssl_mode", "REQUIRED")


#: Parameters of Connector/J and of MariaDB's driver.
_MYSQL: Final[Mapping[str, _Setter]] = {
    "sslMode": _mysql_sslmode,
    "useSSL": _mysql_ssl,
    "requireSSL": _mysql_ssl,
    "serverSslCert": _file("ssl_ca"),
    "connectTimeout": _seconds("connect_timeout", 0.001),
    "socketTimeout": _seconds("read_timeout", 0.001),
    **dict.fromkeys(
        (
            "allowPublicKeyRetrieval",
            "autoReconnect",
            "cachePrepStmts",
            "characterEncoding",
            "connectionCollation",
            "connectionTimeZone",
            "forceConnectionTimeZoneToSession",
            "preserveInstants",
            "prepStmtCacheSize",
            "prepStmtCacheSqlLimit",
            "rewriteBatchedStatements",
            "serverTimezone",
            "tcpKeepAlive",
            "tinyInt1isBit",
            "useBulkStmts",
            "useServerPrepStmts",
            "useUnicode",
            "zeroDateTimeBehavior",
        ),
        _ignored,
    ),
}

_ALLOWED: Final[Mapping[str, tuple[int, Mapping[str, _Setter]]]] = {
    "postgresql": (5432, _POSTGRES),
    "mysql": (3306, _MYSQL),
    "mariadb": (3306, _MYSQL),
}


def parse_address(url: str) -> Address:
    """Read a JDBC URL.

    Raises:
        ConfigError: its form is another one, a parameter is not allowed, or the worker does not allow the file. The text shows no value of
            a parameter.
    """
    text = url.strip()
    if text.startswith("jdbc:sqlite:"):
        return _sqlite(text.removeprefix("jdbc:sqlite:"))
    kind = text.removeprefix("jdbc:").partition(":")[0]
    if not text.startswith("jdbc:") or kind not in _ALLOWED:
        raise ConfigError(f"The '{URL}' value is invalid: the databases that this connector writes to have URLs such as {FORMS}.")
    port, allowed = _ALLOWED[kind]
    try:
        parts = urlsplit(text.removeprefix("jdbc:"))
        host, found_port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"The '{URL}' value is invalid: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"The '{URL}' value is invalid: it names a user. Set connection.username and connection.password instead.")
    database = unquote(parts.path.lstrip("/"))
    if not host or "," in parts.netloc or not database or "/" in database or parts.fragment:
        raise ConfigError(f"The '{URL}' value is invalid: it must name one host and a database, as {FORMS.split(', ')[0]} does.")
    options: _Options = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        setter = allowed.get(name)
        if setter is None:
            raise ConfigError(
                f"The '{URL}' value is invalid: the parameter {name} is not allowed. Allowed are {', '.join(sorted(allowed))}; user and "
                "password belong into connection.username and connection.password."
            )
        try:
            setter(options, value)
        except ValueError as error:
            raise ConfigError(f"The '{URL}' value is invalid: parameter {name}: {error}") from None
    return Address(kind, host, found_port or port, database, options)


def _sqlite(path: str) -> Address:
    if "?" in path or path.startswith("file:"):
        raise ConfigError(f"The '{URL}' value is invalid: a URL of SQLite is a path, without parameters.")
    if path in ("", ":memory:"):
        raise ConfigError(f"The '{URL}' value is invalid: it must name a file; a database in memory would end with the task.")
    return Address("sqlite", database=allowed_file(URL, path))
