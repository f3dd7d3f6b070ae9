"""Whether the sink's catalog can be reached and takes its credentials, asked without Spark: REST by Iceberg's protocol, JDBC by Python's
drivers where they are installed. Nothing is changed.

Into other kinds (hive, glue, nessie), and into REST catalogs whose requests are signed (`rest.sigv4-enabled`), only Spark can log in. Of
those that have an address it is seen whether something listens there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import time
import urllib.error
import urllib.parse
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from connect_py.api.doctor import Finding, Person
from spark_sink.config.sink_config import PREFIX, kind_of
from spark_sink.doctor.web import NO_ANSWER, open_url, reason_of

_MOST_BYTES = 1 << 20
_NO_TABLE = "No table can be created, written or read."


# -- REST -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RestFacts:
    """How far one came with a REST catalog.

    Attributes:
        step: at which it refused: `token`, `config`, `namespaces`; empty for none.
        status: of HTTP; 0 where there was no answer.
        text: its sentence, or why there was no answer.
        missing: namespaces that do not exist.
    """

    uri: str
    step: str = ""
    status: int = 200
    text: str = ""
    missing: tuple[str, ...] = ()


class _Refused(Exception):
    """An answer that is an error."""

    def __init__(self, step: str, status: int, text: str) -> None:
        super().__init__(text)
        self.step, self.status, self.text = step, status, text


def is_asked(catalog: Mapping[str, str]) -> bool:
    """Return whether a REST catalog can be asked without Spark."""
    kind = catalog.get("rest.auth.type", "oauth2").strip().lower()
    signed = catalog.get("rest.sigv4-enabled", "false").strip().lower() == "true"
    return kind_of(catalog) == "rest" and bool(catalog.get("uri")) and kind in ("none", "basic", "oauth2") and not signed


def read_rest(catalog: Mapping[str, str], namespaces: Sequence[str], seconds: float) -> RestFacts:
    """Log in to a REST catalog and look for namespaces (Iceberg's `rest-catalog-open-api.yaml`).

    Args:
        catalog: as `is_asked` has accepted it.
        namespaces: those that must exist, their levels divided by dots.
        seconds: for everything.
    """
    uri, deadline = catalog["uri"].rstrip("/"), time.monotonic() + seconds
    missing = []
    try:
        headers = {name.removeprefix("header."): value for name, value in catalog.items() if name.startswith("header.")}
        if token := catalog.get("token") or _token(catalog, uri, deadline):
            headers["Authorization"] = f"Bearer {token}"
        warehouse = catalog.get("warehouse")
        query = f"?{urllib.parse.urlencode({'warehouse': warehouse})}" if warehouse else ""
        settings = _get("config", f"{uri}/v1/config{query}", headers, deadline)
        known = {**settings.get("defaults", {}), **catalog, **settings.get("overrides", {})}
        base = "/".join((str(known.get("uri", uri)).rstrip("/"), "v1", *filter(None, [str(known.get("prefix", ""))])))
        _get("namespaces", f"{base}/namespaces?pageSize=1", headers, deadline)
        for name in namespaces:
            try:
                _get("namespaces", f"{base}/namespaces/{urllib.parse.quote(name.replace('.', chr(31)), safe='')}", headers, deadline)
            except _Refused as refused:
                if refused.status != 404:
                    raise
                missing.append(name)
    except _Refused as refused:
        return RestFacts(uri, refused.step, refused.status, refused.text)
    except NO_ANSWER as error:
        return RestFacts(uri, "config", 0, reason_of(error))
    return RestFacts(uri, missing=tuple(missing))


def _token(catalog: Mapping[str, str], uri: str, deadline: float) -> str | None:
    """Exchange the credential for a token (OAuth2, client credentials); None where there is none."""
    credential = catalog.get("credential")
    if not credential:
        return None
    client, colon, secret = credential.partition(":")
    form = {"grant_type": "client_credentials", "scope": catalog.get("scope", "catalog")}
    form |= {"client_id": client, "client_secret": secret} if colon else {"client_secret": client}
    place = catalog.get("oauth2-server-uri") or f"{uri}/v1/oauth/tokens"
    if "://" not in place:
        place = f"{uri}/{place.lstrip('/')}"
    answer = _get("token", place, {}, deadline, urllib.parse.urlencode(form).encode())
    return str(answer.get("access_token", "")) or None


def _get(step: str, url: str, headers: Mapping[str, str], deadline: float, body: bytes | None = None) -> dict[str, Any]:
    """Return an answer's object. Raises _Refused, OSError, ValueError."""
    try:
        with open_url(url, {"Accept": "application/json", **headers}, max(0.1, deadline - time.monotonic()), body) as answer:
            found = json.loads(answer.read(_MOST_BYTES) or b"{}")
            return found if isinstance(found, dict) else {}
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(_MOST_BYTES).decode("utf-8", "replace")
        said = ""
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            problem = json.loads(text)
            said = str(problem["error"]["message"] if isinstance(problem.get("error"), dict) else problem.get("error_description", ""))
        raise _Refused(step, error.code, said.splitlines()[0][:200] if said else "") from error


def rest_findings(facts: RestFacts, catalog_name: str) -> Iterator[Finding]:
    """Check what a REST catalog said."""
    said = f"HTTP {facts.status}{f': {facts.text}' if facts.text else ''}" if facts.status else facts.text
    if facts.step and facts.status in (0, *range(500, 600)):
        yield silent_finding(facts.uri, said)
    elif facts.step == "token" or facts.status == 401:
        yield _finding(
            "sink.catalog.credentials",
            f"The catalog at {facts.uri} refuses the credentials ({said.rstrip('.')}).",
            f"Correct {PREFIX}catalog.credential or .token, and .scope and .oauth2-server-uri.",
        )
    elif facts.status == 403:
        what = "list namespaces" if facts.step == "namespaces" else "use the warehouse"
        yield _finding(
            "sink.catalog.rights",
            f"The login may not {what} in the catalog at {facts.uri} ({said.rstrip('.')}).",
            "Have the catalog's administrator allow it to list and create namespaces, and to create, read and write tables.",
        )
    elif facts.step:
        yield _finding(
            "sink.catalog.uri",
            f"What answers at {facts.uri} is no Iceberg REST catalog, or has no such warehouse ({said.rstrip('.')}).",
            f"Correct {PREFIX}catalog.uri, which ends before /v1, and {PREFIX}catalog.warehouse.",
        )
    if facts.missing:
        yield Finding(
            "sink.catalog.namespace",
            f"The catalog has no namespace {', '.join(facts.missing)}, and the sink creates none.",
            _NO_TABLE,
            Person.YOU,
            "a user of Spark SQL who may create namespaces",
            tuple(f"CREATE NAMESPACE {'.'.join(f'`{part}`' for part in (catalog_name, *name.split('.')))};" for name in facts.missing),
            f"Or set {PREFIX}tables.auto-create-enabled=true.",
        )


def _finding(check: str, what: str, advice: str) -> Finding:
    return Finding(check, what, _NO_TABLE, Person.YOU, advice=advice)


# -- others -----------------------------------------------------------------------------------------------------------------------------

#: Ports of addresses that name none.
_PORTS = {"thrift": 9083, "https": 443}


def refusal_of(addresses: str, seconds: float) -> str:
    """Return why nothing listens at any of several addresses, divided by commas; empty where something does, or none has a host."""
    deadline, refusal = time.monotonic() + seconds, ""
    for address in addresses.split(","):
        try:
            parts = urllib.parse.urlsplit(address.strip())
            host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme, 80)
        except ValueError as error:
            refusal = str(error)
            continue
        if not host:
            return ""
        refusal, _, _ = _reached(host, port, max(0.1, deadline - time.monotonic()))
        if not refusal:
            return ""
    return refusal


def silent_finding(address: str, refusal: str, name: str = "catalog.uri") -> Finding:
    """Return what is said of a catalog where nothing listens."""
    return _finding(
        "sink.catalog.connection",
        f"The catalog at {address} does not answer: {refusal.rstrip('.')}.",
        f"Check {PREFIX}{name}, and that no firewall is between the two.",
    )


def nameless_finding(kind: str) -> Finding:
    """Return what is said of a catalog that has no address."""
    return _finding(
        "sink.catalog.uri", f"{PREFIX}catalog.uri is missing: a catalog of type {kind} has an address.", f"Set {PREFIX}catalog.uri."
    )


# -- JDBC -----------------------------------------------------------------------------------------------------------------------------

_JDBC = re.compile(r"jdbc:(?P<kind>postgresql|mysql|mariadb)://(?P<host>\[[^\]]+\]|[^:/?,]+)(?::(?P<port>\d+))?/(?P<database>[^?;]*)")
_SQLITE = re.compile(r"jdbc:sqlite:(?:file:)?(?P<path>[^?]+)")
_DRIVERS = {
    "postgresql": ("org/postgresql/Driver.class", "org.postgresql:postgresql"),
    "mysql": ("com/mysql/cj/jdbc/Driver.class", "com.mysql:mysql-connector-j"),
    "mariadb": ("org/mariadb/jdbc/Driver.class", "org.mariadb.jdbc:mariadb-java-client"),
    "sqlite": ("org/sqlite/JDBC.class", "org.xerial:sqlite-jdbc"),
}
_TABLES = ("iceberg_tables", "iceberg_namespace_properties")


@dataclass(frozen=True, slots=True)
class JdbcFacts:
    """A JDBC catalog.

    Attributes:
        kind: of database.
        place: host and port, or the file.
        has_driver: whether one of the sink's jars has the driver; None where that cannot be seen.
        refusal: why one cannot log in, or the file cannot be written.
        is_login: whether that is the login's fault.
        grants: statements that the user needs, of PostgreSQL.
        user: who logs in.
        needs: the package without which nobody could log in here; empty where somebody did.
    """

    kind: str
    place: str
    has_driver: bool | None = None
    refusal: str = ""
    is_login: bool = False
    grants: tuple[str, ...] = ()
    user: str = field(default="")
    needs: str = ""


def read_jdbc(catalog: Mapping[str, str], jars: Sequence[Path] | None, seconds: float) -> JdbcFacts | None:
    """Look at the database of a JDBC catalog; None for a kind that is not known here.

    Args:
        jars: the sink's; None where they are not on this machine.
    """
    uri = catalog.get("uri", "")
    if sqlite := _SQLITE.match(uri):
        path = Path(sqlite["path"])
        folder = path if path.exists() else path.parent
        refusal = "" if os.access(folder, os.W_OK) else f"{folder} cannot be written to, or is not there"
        return JdbcFacts("sqlite", str(path), _has_class(jars, _DRIVERS["sqlite"][0]), refusal)
    match = _JDBC.match(uri)
    if match is None:
        return None
    given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(uri.removeprefix("jdbc:")).query))
    host = match["host"].strip("[]")
    user, password = (catalog.get(f"jdbc.{name}", given.get(name, "")) for name in ("user", "password"))
    port = int(match["port"] or (5432 if match["kind"] == "postgresql" else 3306))
    driver = _has_class(jars, _DRIVERS[match["kind"]][0])
    log_in = _postgres if match["kind"] == "postgresql" else _mysql
    refusal, is_login, grants = log_in(host, port, urllib.parse.unquote(match["database"]), user, password, seconds)
    package = "psycopg" if match["kind"] == "postgresql" else "pymysql"
    needs = package if find_spec(package) is None else ""
    return JdbcFacts(match["kind"], f"{match['host']}:{port}", driver, refusal, is_login, grants, user, needs)


def _has_class(jars: Sequence[Path] | None, name: str) -> bool | None:
    if jars is None:
        return None
    word = name.split("/")[1].replace("mysql", "mysql-connector")
    for jar in sorted(jars, key=lambda jar: word not in jar.name):  # a large one takes a second to look into
        with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(jar) as archive:
            if name in archive.NameToInfo:
                return True
    return False


_PG_TABLES = (
    "SELECT c.relname, bool_and(has_table_privilege(c.oid, r)) FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) r "
    "WHERE c.relname = ANY(%s) AND pg_table_is_visible(c.oid) GROUP BY 1 ORDER BY 1"
)
_PG_SCHEMA = "SELECT quote_ident(current_schema()), has_schema_privilege(current_schema(), 'CREATE')"
#: Why one cannot log in, whether that is the login's fault, and the grants that are missing.
_Login = tuple[str, bool, tuple[str, ...]]


def _reached(host: str, port: int, seconds: float) -> _Login:
    try:
        socket.create_connection((host, port), seconds).close()
    except OSError as error:
        return str(error), False, ()
    return "", False, ()


def _postgres(host: str, port: int, database: str, user: str, password: str, seconds: float) -> _Login:
    if find_spec("psycopg") is None:
        return _reached(host, port, seconds)
    import psycopg

    limit = max(2, int(seconds))  # libpq's least
    try:
        with psycopg.connect(
            host=host, port=port, dbname=database, user=user, password=password, connect_timeout=limit, autocommit=True
        ) as connection:
            connection.execute(f"SET statement_timeout = {round(seconds * 1000)}".encode())
            there = connection.execute(_PG_TABLES, [list(_TABLES)]).fetchall()
            ((schema, may_create),) = connection.execute(_PG_SCHEMA).fetchall()
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        return text, "authentication" in text or "does not exist" in text or "no password" in text, ()
    role = '"' + user.replace('"', '""') + '"'
    grants = [f"GRANT USAGE, CREATE ON SCHEMA {schema or 'public'} TO {role};"] if len(there) < len(_TABLES) and not may_create else []
    unwritable = [str(name) for name, may_write in there if not may_write]
    grants += [f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(unwritable)} TO {role};"] if unwritable else []
    return "", False, tuple(grants)


def _mysql(host: str, port: int, database: str, user: str, password: str, seconds: float) -> _Login:
    if find_spec("pymysql") is None:
        return _reached(host, port, seconds)
    import pymysql

    limits = {"connect_timeout": max(1, int(seconds)), "read_timeout": max(1, int(seconds))}
    try:
        pymysql.connect(host=host, port=port, database=database, user=user, password=password, **limits).close()
    except pymysql.MySQLError as error:
        code = error.args[0] if error.args else 0
        return str(error.args[-1] if error.args else error), code in (1044, 1045, 1049), ()
    return "", False, ()


def jdbc_findings(facts: JdbcFacts) -> Iterator[Finding]:
    """Check a JDBC catalog."""
    if facts.has_driver is False:
        yield _finding(
            "sink.catalog.driver",
            f"None of the sink's jars has the JDBC driver of {facts.kind}.",
            f"Add the jar of {_DRIVERS[facts.kind][1]} to {PREFIX}spark.jars, next to the sink's own.",
        )
    if facts.refusal:
        names = "uri" if facts.kind == "sqlite" else "jdbc.user, jdbc.password and uri" if facts.is_login else "uri"
        yield _finding(
            "sink.catalog.credentials" if facts.is_login else "sink.catalog.connection",
            f"The catalog's database at {facts.place} cannot be used: {facts.refusal.rstrip('.')}.",
            f"Correct {PREFIX}catalog.{names}" + (", or see that no firewall is between the two." if not facts.is_login else "."),
        )
    if facts.grants:
        yield Finding(
            "sink.catalog.rights",
            f"The user '{facts.user}' lacks rights in the catalog's database at {facts.place}.",
            "The catalog keeps two tables of its own there, and cannot create or change them.",
            Person.DBA,
            "the owner of the schema and of the catalog's tables, or a superuser",
            facts.grants,
        )
