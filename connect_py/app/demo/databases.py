"""The demo's databases: each is started, filled, described to a source connector, and changed in its own words.

They hold the same customers, so that the story is one: four of them, with the ids 1001 to 1004. A database belongs to the main thread; each
`Session` is a connection of its own and may be used by another one.
"""

from __future__ import annotations

import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pymysql

from connect_py.app.demo.screen import as_path
from connect_py.app.services.kafka import Progress, silent
from connect_py.app.services.mongo import MongoServer
from connect_py.app.services.mysql import MySqlServer, mysqld
from connect_py.app.services.postgres import PostgresServer, find_binaries
from connect_py.app.services.process import Service

DATABASE = "inventory"
PREFIX = "dbserver1"

#: Of a customer, in front of what identifies it in its database (`id` or `_id`).
NAMES = ("first_name", "last_name", "email")

CUSTOMERS = (
    (1001, "Ada", "Lindgren", "ada@example.com"),
    (1002, "Bruno", "Okafor", "bruno@example.com"),
    (1003, "Chiara", "Novak", "chiara@example.com"),
    (1004, "Dmitri", "Haddad", "dmitri@example.com"),
)

#: How many measurements a statement makes: a second's work or less.
CHUNK = 50_000


@dataclass(frozen=True)
class Step:
    """A change as a person would type it, and what does it."""

    shown: str
    run: Callable[[], object]


class Session(Protocol):
    """A connection that changes customers, each change in a transaction of its own."""

    def insert(self, number: int) -> int:
        """Insert the guest of this number; returns the key."""

    def update(self, key: int, number: int) -> None:
        """Give a customer another last name, which holds the number."""

    def delete(self, key: int) -> None:
        """Delete a customer."""

    def close(self) -> None:
        """Close the connection."""


class DemoDatabase(ABC):
    """A server with the customers.

    Attributes:
        label: its name for people.
        id_name: the field that identifies a customer.
        service: the server's process, once started.
        sink_properties: what the lakehouse sink needs for its events.
        prompt: of its client, in front of a statement.
        stop_signal: what ends the server.
    """

    label: ClassVar[str]
    id_name: ClassVar[str] = "id"
    prompt: ClassVar[str] = f"{DATABASE}=> "
    sink_properties: ClassVar[dict[str, str]] = {}
    stop_signal: ClassVar[int] = signal.SIGINT
    service: Service

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields of a customer."""
        return (self.id_name, *NAMES)

    def fetch(self, progress: Progress = silent) -> None:  # noqa: B027  # what comes with the installation needs nothing
        """Fetch the server where it is not on this machine yet. Raises ServiceError."""

    @abstractmethod
    def start(self, folder: Path) -> str:
        """Start the server; returns where it is and its version, for people. Raises ServiceError."""

    @property
    @abstractmethod
    def where(self) -> str:
        """Its address and login, for people; known once it is started."""

    @abstractmethod
    def folders(self) -> list[Path]:
        """Return the folders outside of the demo's that hold its data."""

    @abstractmethod
    def fill(self) -> str:
        """Make the tables with their rows; returns which there are, for people."""

    @abstractmethod
    def make_measurements(self, begin: int, count: int) -> None:
        """Insert `count` measurements, with the ids from `begin` on."""

    @abstractmethod
    def config(self, bootstrap: str, *, with_measurements: bool) -> dict[str, str]:
        """Return the source connector's configuration."""

    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """Return three changes: customer 1005 is inserted, 1001 gets another address, 1004 is deleted."""

    @abstractmethod
    def customers(self) -> list[dict[str, Any]]:
        """Return all customers by their id."""

    @abstractmethod
    def session(self) -> Session:
        """Return a new connection; the caller closes it."""

    @abstractmethod
    def command(self) -> str:
        """Return a shell command that changes a customer."""


# -- PostgreSQL ------------------------------------------------------------------------------------------------------------

_POSTGRES = """
CREATE SCHEMA inventory;
CREATE TABLE inventory.customers (
  id serial PRIMARY KEY, first_name varchar(80) NOT NULL, last_name varchar(80) NOT NULL, email varchar(120) NOT NULL UNIQUE);
CREATE TABLE inventory.products (
  id serial PRIMARY KEY, name varchar(80) NOT NULL, description text, weight real);
CREATE TABLE inventory.orders (
  id serial PRIMARY KEY, order_date date NOT NULL, quantity integer NOT NULL,
  purchaser integer NOT NULL REFERENCES inventory.customers (id), product_id integer NOT NULL REFERENCES inventory.products (id));
CREATE TABLE inventory.measurements (id integer PRIMARY KEY, sensor varchar(20) NOT NULL, value integer NOT NULL);
ALTER TABLE inventory.customers REPLICA IDENTITY FULL;
ALTER SEQUENCE inventory.customers_id_seq RESTART WITH 1001;
ALTER SEQUENCE inventory.products_id_seq RESTART WITH 101;
ALTER SEQUENCE inventory.orders_id_seq RESTART WITH 10001;
"""
_MYSQL = (
    "CREATE TABLE customers (id int AUTO_INCREMENT PRIMARY KEY, first_name varchar(80) NOT NULL, last_name varchar(80) NOT NULL, "
    "email varchar(120) NOT NULL UNIQUE) AUTO_INCREMENT = 1001",
    "CREATE TABLE products (id int AUTO_INCREMENT PRIMARY KEY, name varchar(80) NOT NULL, description text, weight float) "
    "AUTO_INCREMENT = 101",
    "CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, order_date date NOT NULL, quantity int NOT NULL, purchaser int NOT NULL, "
    "product_id int NOT NULL, FOREIGN KEY (purchaser) REFERENCES customers (id), FOREIGN KEY (product_id) REFERENCES products (id)) "
    "AUTO_INCREMENT = 10001",
    "CREATE TABLE measurements (id int PRIMARY KEY, sensor varchar(20) NOT NULL, value int NOT NULL)",
)
#: Of both relational databases; the first gap is for the schema.
_ROWS = (
    "INSERT INTO {}customers (first_name, last_name, email) VALUES " + ", ".join(str(row[1:]) for row in CUSTOMERS),  # noqa: S608
    "INSERT INTO {}products (name, description, weight) VALUES "
    "('kettle', 'whistles in F sharp', 1.2), ('ladder', 'five steps', 6.5), ('torch', NULL, 0.3)",
    "INSERT INTO {}orders (order_date, quantity, purchaser, product_id) VALUES "
    "('2026-01-16', 1, 1001, 102), ('2026-01-17', 2, 1002, 101), ('2026-02-19', 2, 1002, 103), ('2026-02-21', 1, 1003, 102)",
)
_CHANGES = (
    "INSERT INTO {}customers (first_name, last_name, email) VALUES ('Elif', 'Moreau', 'elif@example.com')",
    "UPDATE {}customers SET email = 'ada.lindgren@example.com' WHERE id = 1001",
    "DELETE FROM {}customers WHERE id = 1004",
)


_TABLES = "database inventory: the tables customers, products and orders; the customers are"


class RelationalDatabase(DemoDatabase):
    """A server that is asked and changed by SQL.

    Attributes:
        schema: in front of a table's name.
        java_class: of the connector.
    """

    schema: ClassVar[str]
    java_class: ClassVar[str]
    server: PostgresServer | MySqlServer

    @property
    def where(self) -> str:
        """Address, user and password."""
        return f"{self.label} at localhost:{self.server.port} ({self.server.user}/{self.server.password})"

    def config(self, bootstrap: str, *, with_measurements: bool) -> dict[str, str]:
        """Return what the configurations of Debezium's tutorial have in common."""
        return {
            "connector.class": self.java_class,
            "tasks.max": "1",
            "database.hostname": "localhost",
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.password": self.server.password,
            "topic.prefix": PREFIX,
            "table.include.list": _included(with_measurements),
        }

    def steps(self) -> Sequence[Step]:
        """Return SQL."""
        return [self._step(change.format(self.schema)) for change in _CHANGES]

    def _step(self, statement: str) -> Step:
        return Step(f"{statement};", lambda: self._query(statement))

    def customers(self) -> list[dict[str, Any]]:
        """Read all."""
        rows = self._query(f"SELECT {', '.join(self.columns)} FROM {self.schema}customers ORDER BY id")  # noqa: S608
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    @abstractmethod
    def _query(self, statement: str) -> Sequence[tuple[Any, ...]]:
        """Run a statement in the database, on a connection of its own; returns the rows, if there are any."""


class Postgres(RelationalDatabase):
    """PostgreSQL, from the wheel that comes with the installation."""

    label = "PostgreSQL"
    schema = "inventory."
    java_class = "io.debezium.connector.postgresql.PostgresConnector"
    server: PostgresServer

    def start(self, folder: Path) -> str:
        """Start the server."""
        self.server = PostgresServer(folder)
        self.service = self.server.service
        with self.server.connect() as connection:
            version = connection.execute("SELECT current_setting('server_version')").fetchone()
        return f"PostgreSQL {version[0] if version else ''} at localhost:{self.server.port}"

    def folders(self) -> list[Path]:
        """Return the data folder, which root's server has elsewhere."""
        return [self.server.data]

    def fill(self) -> str:
        """Make the tables."""
        with self.server.connect() as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        with self.server.connect(DATABASE) as connection:
            for statements in (_POSTGRES, *(text.format(self.schema) for text in _ROWS)):
                connection.execute(statements.encode())
        return _TABLES

    def make_measurements(self, begin: int, count: int) -> None:
        """Insert by one statement."""
        with self.server.connect(DATABASE) as connection:
            connection.execute(
                "INSERT INTO inventory.measurements SELECT i, 'sensor ' || i %% 100, i %% 1000 FROM generate_series(%s::int, %s::int) i",
                (begin, begin + count - 1),
            )

    def config(self, bootstrap: str, *, with_measurements: bool) -> dict[str, str]:
        """Return the configuration of Debezium's tutorial."""
        return {**super().config(bootstrap, with_measurements=with_measurements), "database.dbname": DATABASE}

    def _query(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with self.server.connect(DATABASE) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def session(self) -> Session:
        """Connect."""
        return _PostgresSession(self.server)

    def command(self) -> str:
        """Return a call of psql."""
        server = f"postgresql://{self.server.user}:{self.server.password}@localhost:{self.server.port}/{DATABASE}"
        statement = "UPDATE inventory.customers SET last_name = 'Ibsen' WHERE id = 1002"
        return f'{as_path(find_binaries() / "psql")} {server} -c "{statement}"'


class _PostgresSession:
    def __init__(self, server: PostgresServer) -> None:
        self._connection = server.connect(DATABASE)

    def insert(self, number: int) -> int:
        found = self._connection.execute(
            "INSERT INTO inventory.customers (first_name, last_name, email) VALUES ('Guest', %s, %s) RETURNING id",
            (f"No. {number}", f"guest-{number}@example.com"),
        ).fetchone()
        assert found is not None
        assert isinstance(found[0], int)
        return found[0]

    def update(self, key: int, number: int) -> None:
        self._connection.execute("UPDATE inventory.customers SET last_name = %s WHERE id = %s", (f"Change {number}", key))

    def delete(self, key: int) -> None:
        self._connection.execute("DELETE FROM inventory.customers WHERE id = %s", (key,))

    def close(self) -> None:
        self._connection.close()


# -- MySQL -----------------------------------------------------------------------------------------------------------------


class MySql(RelationalDatabase):
    """MySQL: `mysqld` of the path, or Debian's package, which is fetched once."""

    label = "MySQL"
    prompt = "mysql> "
    stop_signal = signal.SIGKILL  # an orderly end takes it seconds
    schema = ""
    java_class = "io.debezium.connector.mysql.MySqlConnector"
    server: MySqlServer

    def fetch(self, progress: Progress = silent) -> None:
        """Fetch Debian's package."""
        progress("fetching MySQL from the Debian archive (60 MB, once)")
        mysqld()

    def start(self, folder: Path) -> str:
        """Start the server."""
        self.server = MySqlServer(folder)
        self.service = self.server.service
        with closing(self.server.connect()) as connection:
            version = connection.get_server_info()
        return f"MySQL {version} at localhost:{self.server.port}"

    def folders(self) -> list[Path]:
        """Return the folder of its socket."""
        return [self.server.sockets]

    def fill(self) -> str:
        """Make the tables."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
        for statement in (*_MYSQL, *(text.format(self.schema) for text in _ROWS)):
            self._query(statement)
        return _TABLES

    def make_measurements(self, begin: int, count: int) -> None:
        """Insert by one statement."""
        with closing(self._connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"SET SESSION cte_max_recursion_depth = {count}")
            cursor.execute(
                "INSERT INTO measurements WITH RECURSIVE n (i) AS (SELECT %s UNION ALL SELECT i + 1 FROM n WHERE i < %s) "
                "SELECT i, concat('sensor ', i %% 100), i %% 1000 FROM n",
                (begin, begin + count - 1),
            )

    def config(self, bootstrap: str, *, with_measurements: bool) -> dict[str, str]:
        """Return the configuration of Debezium's tutorial."""
        return {
            **super().config(bootstrap, with_measurements=with_measurements),
            "database.server.id": "184054",
            "schema.history.internal.kafka.bootstrap.servers": bootstrap,
            "schema.history.internal.kafka.topic": "schemahistory.inventory",
        }

    def session(self) -> Session:
        """Connect."""
        return _MySqlSession(self._connect())

    def command(self) -> str:
        """Return a call of the driver: its package has no client."""
        login = f"host='{self.server.host}', port={self.server.port}, user='{self.server.user}', password='{self.server.password}'"
        statement = "'''UPDATE customers SET last_name = 'Ibsen' WHERE id = 1002'''"
        call = f"pymysql.connect({login}, database='{DATABASE}', autocommit=True).cursor().execute({statement})"
        return f'{as_path(sys.executable)} -c "import pymysql; {call}"'

    def _connect(self) -> pymysql.connections.Connection[pymysql.cursors.Cursor]:
        connection = self.server.connect()
        connection.select_db(DATABASE)
        return connection

    def _query(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with closing(self._connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


class _MySqlSession:
    def __init__(self, connection: pymysql.connections.Connection[pymysql.cursors.Cursor]) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def insert(self, number: int) -> int:
        self._cursor.execute(
            "INSERT INTO customers (first_name, last_name, email) VALUES ('Guest', %s, %s)",
            (f"No. {number}", f"guest-{number}@example.com"),
        )
        return int(self._cursor.lastrowid or 0)

    def update(self, key: int, number: int) -> None:
        self._cursor.execute("UPDATE customers SET last_name = %s WHERE id = %s", (f"Change {number}", key))

    def delete(self, key: int) -> None:
        self._cursor.execute("DELETE FROM customers WHERE id = %s", (key,))

    def close(self) -> None:
        self._connection.close()


# -- MongoDB ---------------------------------------------------------------------------------------------------------------


class Mongo(DemoDatabase):
    """MongoDB: `mongod` of the path, or a stand-in in memory, whose libraries are fetched once."""

    label = "MongoDB"
    id_name = "_id"
    prompt = "rs0> "
    #: Fields become columns; without it a table has the documents as texts.
    sink_properties: ClassVar[dict[str, str]] = {
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    }
    server: MongoServer

    def start(self, folder: Path) -> str:
        """Start the server."""
        self.server = MongoServer(folder, memory_mb=1024)
        self.service = self.server.service
        kind = "" if self.server.is_real else " (a stand-in in memory: there is no `mongod` in your path)"
        return f"MongoDB at localhost:{self.server.port}{kind}"

    @property
    def where(self) -> str:
        """The connection string."""
        return f"MongoDB at {self.server.uri}"

    def folders(self) -> list[Path]:
        """Return nothing: all of it is below the demo's folder, or in memory."""
        return []

    def fill(self) -> str:
        """Make the collections."""
        with self.server.connect() as client:
            client[DATABASE].customers.insert_many([dict(zip(self.columns, row, strict=True)) for row in CUSTOMERS])
            client[DATABASE].orders.insert_many(
                [
                    {"_id": 10001, "order_date": "2026-01-16", "quantity": 1, "purchaser": 1001},
                    {"_id": 10002, "order_date": "2026-01-17", "quantity": 2, "purchaser": 1002},
                ]
            )
        return "database inventory: the collections customers and orders; the customers are"

    def make_measurements(self, begin: int, count: int) -> None:
        """Insert documents."""
        with self.server.connect() as client:
            client[DATABASE].measurements.insert_many(
                {"_id": i, "sensor": f"sensor {i % 100}", "value": i % 1000} for i in range(begin, begin + count)
            )

    def config(self, bootstrap: str, *, with_measurements: bool) -> dict[str, str]:
        """Return a configuration whose updates bring the whole document."""
        return {
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "tasks.max": "1",
            "mongodb.connection.string": self.server.uri,
            "topic.prefix": PREFIX,
            "collection.include.list": _included(with_measurements),
            "capture.mode": "change_streams_update_full",
        }

    def steps(self) -> Sequence[Step]:
        """Return calls of the shell."""
        elif_ = '{_id: 1005, first_name: "Elif", last_name: "Moreau", email: "elif@example.com"}'
        guest = {"_id": 1005, "first_name": "Elif", "last_name": "Moreau", "email": "elif@example.com"}
        email = "ada.lindgren@example.com"

        def on_customers(method: str, *arguments: dict[str, Any]) -> Callable[[], object]:
            def run() -> None:
                with self.server.connect() as client:
                    getattr(client[DATABASE].customers, method)(*arguments)

            return run

        return [
            Step(f"db.customers.insertOne({elif_})", on_customers("insert_one", guest)),
            Step(
                f'db.customers.updateOne({{_id: 1001}}, {{$set: {{email: "{email}"}}}})',
                on_customers("update_one", {"_id": 1001}, {"$set": {"email": email}}),
            ),
            Step("db.customers.deleteOne({_id: 1004})", on_customers("delete_one", {"_id": 1004})),
        ]

    def customers(self) -> list[dict[str, Any]]:
        """Read all."""
        with self.server.connect() as client:
            return list(client[DATABASE].customers.find().sort("_id", 1))

    def session(self) -> Session:
        """Connect."""
        return _MongoSession(self.server)

    def command(self) -> str:
        """Return a call of the driver."""
        change = "update_one({'_id': 1002}, {'$set': {'last_name': 'Ibsen'}})".replace("$", "\\$")
        return f"{as_path(sys.executable)} -c \"import pymongo; pymongo.MongoClient('{self.server.uri}').{DATABASE}.customers.{change}\""


class _MongoSession:
    def __init__(self, server: MongoServer) -> None:
        self._client = server.connect()
        self._customers = self._client[DATABASE].customers
        self._next = 2000

    def insert(self, number: int) -> int:
        self._next += 1
        names = ("Guest", f"No. {number}", f"guest-{number}@example.com")
        self._customers.insert_one({"_id": self._next, **dict(zip(NAMES, names, strict=True))})
        return self._next

    def update(self, key: int, number: int) -> None:
        self._customers.update_one({"_id": key}, {"$set": {"last_name": f"Change {number}"}})

    def delete(self, key: int) -> None:
        self._customers.delete_one({"_id": key})

    def close(self) -> None:
        self._client.close()


def _included(with_measurements: bool) -> str:
    names = ("customers", "orders", *(["measurements"] if with_measurements else []))
    return ",".join(f"inventory.{name}" for name in names)


#: By the word on the command line.
DATABASES: dict[str, type[DemoDatabase]] = {"postgresql": Postgres, "mysql": MySql, "mongodb": Mongo}
