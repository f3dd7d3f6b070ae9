"""What scenarios are made of: `Run`, the register of scenarios, and what a run leaves.

A scenario is a function of one argument, a `Run`, in `scenarios/*.py`, marked with `@scenario`. It may create connectors, write to the
databases, send signals; what it records is: REST answers, records of topics (key, value, headers), the worker's internal topics.
Every name that must be unique carries `run.tag`, which is replaced by TAG in the recording. Scenarios run several at a time.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib
import json
import os
import random
import re
import string
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pymongo
import pymongo.database
import pymysql
import requests
from confluent_kafka.admin import ConfigResource, NewTopic

from tests.parity.comparing import better, differences, normalise
from tests.parity.reader import TopicReader
from tests.parity.servers import Servers
from tests.parity.waiting import poll_until, quiet_period

HERE = Path(__file__).resolve().parent
#: After the last record that is known to come, so long must nothing more come.
QUIET_SECONDS = 0.3
#: Workers under test commit source offsets every two seconds: what an offset is has settled when it stays for longer.
OFFSETS_SECONDS = 2.2
#: How long what the golden knows may take to come.
KNOWN_SECONDS = 120.0
#: A worker's figures are asked for as often; tasks report theirs every two seconds.
FIGURES_SECONDS = 0.4
#: How long a connector's tasks may take to end after its deletion.
ENDING_SECONDS = 40.0
#: Topics whose counts differ from run to run: others' changes show there, or the clock does.
UNCOUNTED = re.compile(r"^history|^__debezium-heartbeat|^beat_|[.-]fence$|\.beats$|[.-]transaction$|[.-]tx$")

Scenario = Callable[["Run"], None]
SCENARIOS: dict[str, Scenario] = {}
#: Scenarios that run while no other uses their database server, and why.
APART: dict[str, str] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its function's name."""
    if function.__name__ in SCENARIOS:
        raise ValueError(f"two scenarios are called {function.__name__}")
    SCENARIOS[function.__name__] = function
    return function


def apart(why: str) -> Callable[[Scenario], Scenario]:
    """Mark a scenario that sees what others do to its database server: it runs while no other uses that."""

    def mark(function: Scenario) -> Scenario:
        APART[function.__name__] = why
        return function

    return mark


def load(folder: Path | None = None) -> None:
    """Import all scenarios of a folder: `$SCENARIOS`, or the kit's own."""
    if SCENARIOS:
        return
    sys.modules.setdefault("parity", sys.modules[__name__])
    where = str(folder or os.environ.get("SCENARIOS") or HERE / "scenarios")
    sys.path.insert(0, where)  # scenario files use each other's helpers
    try:
        for path in sorted(Path(where).glob("*.py")):
            importlib.import_module(path.stem)
    finally:
        sys.path.remove(where)


class Figures:
    """What a worker's `/metrics` say, asked for once for all scenarios that want to know at a time: it is long."""

    _STREAMS = re.compile(r'^debezium_metrics_Connected\{[^}]*connector="([^"]*)"[^}]*\} 1(?:\.0)?$', re.MULTILINE)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = -FIGURES_SECONDS
        self._streaming: frozenset[str] | None = None

    def streaming(self, call: Callable[[str, str], requests.Response]) -> frozenset[str] | None:
        """Return the connectors that read their database's log; None where the worker does not show it."""
        with self._lock:
            if time.monotonic() - self._asked > FIGURES_SECONDS:
                answer = call("GET", "/metrics")
                self._streaming = frozenset(self._STREAMS.findall(answer.text)) if answer.status_code == 200 else None
                self._asked = time.monotonic()
            return self._streaming


_figures = functools.cache(lambda url: Figures())


@dataclass(frozen=True)
class Known:
    """What is known of a scenario before it runs.

    Attributes:
        golden: the recording that it is held to.
        steps: for each `settle`, names of topics (and keys of the status topic) to the least number of their records.
        theirs: text of our recording to what the golden has in its place: names and addresses of servers.
    """

    golden: Mapping[str, Any]
    steps: list[dict[str, int]] | None
    theirs: Mapping[str, str]

    def translate(self, text: str) -> str:
        """Put the reference's names and addresses in place of ours."""
        for ours, theirs in self.theirs.items():
            text = text.replace(ours, theirs)
        return text


class Run:
    """One scenario's run: what it may do to the world, and what it records.

    Args:
        name: of the scenario.
        servers: which worker, and which servers.
        reader: of topics, shared by all runs.
        known: None where there is no golden yet; then waiting is the scenario's own number of seconds.
    """

    def __init__(self, name: str, servers: Servers, reader: TopicReader, known: Known | None = None) -> None:
        self.name = name
        self.servers = servers
        self.bootstrap = servers.bootstrap
        self.mongo_uri = servers.mongo_uri
        self.tag = "x" + "".join(random.choices(string.ascii_lowercase + string.digits, k=7))
        self.connectors: list[str] = []
        self.out: dict[str, Any] = {"scenario": name, "rest": [], "topics": {}, "schemas": {}}
        self.steps: list[dict[str, int]] = []
        self._reader = reader
        self._known = known
        self._session = requests.Session()
        self._session.trust_env = False  # it would read the environment, which pytest changes in another thread
        self._databases: list[str] = []
        self._mysql_databases: list[str] = []
        self._mongo: pymongo.MongoClient[dict[str, Any]] | None = None
        self._recorded: dict[str, int] = {}
        self._missed = False

    # -- the worker ------------------------------------------------------------------------------------------------------------
    def rest(
        self,
        label: str,
        method: str,
        path: str,
        body: object = None,
        raw: str | bytes | None = None,
        headers: dict[str, str] | None = None,
        keep_headers: Iterable[str] = ("content-type", "location", "allow"),
        nudge: Callable[[], object] | None = None,
    ) -> requests.Response:
        """Send one request and record its answer under a label.

        Offsets and topics of a connector show a while after its records: they are asked for until they are what the golden has and stay so.
        Where others move them, `nudge` moves them back, now and again; they need not stay then.
        """
        number = len(self.out["rest"])
        asked = self._ask(label, method, path, body, raw, headers, keep_headers)
        if self._known and method == "GET" and path.startswith("/connectors/") and path.endswith(("/offsets", "/topics")):
            asked = self._settled(number, lambda: self._ask(label, method, path, body, raw, headers, keep_headers), asked, path, nudge)
        self.out["rest"].append(asked[1])
        return asked[0]

    def _ask(
        self,
        label: str,
        method: str,
        path: str,
        body: object,
        raw: str | bytes | None,
        headers: dict[str, str] | None,
        keep_headers: Iterable[str],
    ) -> tuple[requests.Response, dict[str, Any]]:
        answer = self.call(method, path, body, raw, headers)
        try:
            content = answer.json() if answer.content else None
        except ValueError:
            content = answer.text
        kept = {name: answer.headers[name].replace(self.servers.connect_url, "URL") for name in keep_headers if name in answer.headers}
        return answer, {"label": label, "request": f"{method} {path}", "status": answer.status_code, "headers": kept, "body": content}

    def _settled(self, number: int, ask: Callable[[], Any], asked: Any, path: str, nudge: Callable[[], object] | None) -> Any:
        """The answer that the golden has at this place, when it stays; or the last one that came in time."""
        assert self._known is not None
        answers = self._known.golden["rest"]
        if number >= len(answers):
            return asked
        golden = normalise(answers[number])

        def good(entry: dict[str, Any]) -> bool:
            ours = normalise(json.loads(self.plainly(entry)))
            return not list(differences(golden, ours)) or better(golden, ours)

        def again() -> bool:
            nonlocal asked
            asked = ask()
            return good(asked[1])

        deadline = time.monotonic() + (KNOWN_SECONDS if not self._missed else OFFSETS_SECONDS)
        while nudge and not good(asked[1]) and time.monotonic() < deadline:
            if not poll_until(again, OFFSETS_SECONDS, 0.4):
                nudge()
        if nudge:
            return asked
        while good(asked[1]) or poll_until(again, deadline - time.monotonic(), 0.4):
            if not path.endswith("/offsets") or self._is_stopped(path):
                return asked
            if not poll_until(lambda: not again(), OFFSETS_SECONDS, OFFSETS_SECONDS / 3):
                return asked
            if time.monotonic() > deadline:
                break
        self._missed = True
        return asked

    def _is_stopped(self, path: str) -> bool:
        answer = self.call("GET", path.rpartition("/")[0] + "/status")
        return answer.status_code != 200 or answer.json()["connector"]["state"] == "STOPPED"

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        raw: str | bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> requests.Response:
        """Send one request without recording it."""
        data = raw if raw is not None else (json.dumps(body) if body is not None else None)
        headers = {"Content-Type": "application/json", **(headers or {})} if data is not None else (headers or {})
        return self._session.request(method, self.servers.connect_url + path, data=data, headers=headers, timeout=100)

    def name_of(self, short: str) -> str:
        """Return the name that a connector of this run has."""
        return f"{short}-{self.tag}"

    def create(self, short: str, config: dict[str, str], running: bool = True, record: bool = False) -> str:
        """Create a connector through POST /connectors; wait until its tasks run."""
        name = self.name_of(short)
        self.connectors.append(name)
        body = {"name": name, "config": config}
        answer = self.rest(f"create {short}", "POST", "/connectors", body) if record else self.call("POST", "/connectors", body)
        if answer.status_code != 201:
            raise RuntimeError(f"create {name}: {answer.status_code} {answer.text[:2000]}")
        if running:
            self.wait_state(name, "RUNNING")
        return name

    def status(self, name: str) -> dict[str, Any]:
        """Return the answer of GET status."""
        found: dict[str, Any] = self.call("GET", f"/connectors/{name}/status").json()
        return found

    def wait_state(self, name: str, state: str, tasks: int = 1, seconds: float = 60, task_state: str | None = None) -> dict[str, Any]:
        """Wait until a connector and so many tasks are in a state; STOPPED has none."""

        def probe() -> dict[str, Any] | None:
            status = self.status(name)
            if state in ("STOPPED",):
                return status if status["connector"]["state"] == state and not status["tasks"] else None
            good = [t for t in status.get("tasks", []) if t["state"] == (task_state or state)]
            return status if len(good) >= tasks and status["connector"]["state"] == state else None

        return self.until(probe, seconds, f"{name} {state}", self._news(name))

    def _news(self, name: str) -> Callable[[float], object]:
        """A pause that ends early when the worker has written of a connector's state: it answers so a moment later."""
        seen, topic = 0, self.servers.internal["status"]
        keys = [f"status-{each}".encode() for each in (f"connector-{name}", f"task-{name}-0", f"task-{name}-1")]

        def pause(seconds: float) -> None:
            nonlocal seen
            seen = self._reader.wait_keys(topic, keys, seen + 1, seconds)

        return pause

    def until(
        self, probe: Callable[[], Any], seconds: float = 60, what: str = "condition", pause: Callable[[float], object] | None = None
    ) -> Any:
        """Wait for a probe's true answer and return it.

        Args:
            seconds: how long it may take where no golden is known.
            pause: between two questions, instead of a fifth of a second.

        Raises:
            TimeoutError: there was none in time; its text holds the last answer or error.
        """
        last: object = None
        seconds = self._limit(seconds)

        def ask() -> Any:
            nonlocal last
            try:
                last = probe()
            except (KeyError, requests.RequestException, ValueError) as error:
                last = error
                return None
            return last

        if found := poll_until(ask, seconds, 0.5, pause) if pause else poll_until(ask, seconds):
            return found
        self._missed = True
        raise TimeoutError(f"waited {seconds:.0f} s for {what}; last: {last!r}")

    def _limit(self, seconds: float) -> float:
        """How long something may take: what the golden knows comes, unless something else has not come."""
        return max(seconds, KNOWN_SECONDS) if self._known and not self._missed else seconds

    def comes_true(self, probe: Callable[[], Any], seconds: float) -> Any:
        """Wait for a probe's true answer and return it; the last one when the time is over."""
        return poll_until(probe, seconds)

    # -- waiting for what the golden knows -------------------------------------------------------------------------------------
    def settle(self, seconds: float, quiet: float = QUIET_SECONDS) -> None:
        """Wait until all that was done so far has had its effects: until topics hold what they held here in a slow run.

        Args:
            seconds: how long that takes where the golden's steps are not known.
            quiet: how long nothing more may come after that; longer where something would come late that must not come at all.
        """
        steps = self._known.steps if self._known else None
        number = len(self.steps)
        if steps is None or number >= len(steps):
            quiet_period(seconds)
            self.steps.append(self._counts())
            return
        self.steps.append({})
        deadline = time.monotonic() + (seconds if self._missed else KNOWN_SECONDS)
        for key, count in steps[number].items():
            kind, _, name = key.replace("TAG", self.tag).rpartition(" ")
            wait = self._wait_statuses if kind == "status" else self._reader.wait
            self._missed |= not wait(name, count, deadline)
        self._quiet(quiet)

    def note_settled(self, name: str, value: Callable[[], Any], seconds: float = 1) -> None:
        """Note a value once it is the golden's, or what it is when it does not become so.

        Args:
            seconds: how long it may still change where there is no golden.
        """
        notes = self.out.setdefault("notes", {})
        if self._known:
            golden = normalise(self._known.golden.get("notes", {}).get(name.replace(self.tag, "TAG")))
            wait = OFFSETS_SECONDS if self._missed else KNOWN_SECONDS
            self._missed |= not poll_until(lambda: normalise(json.loads(self.plainly(value()))) == golden, wait)
            self._quiet(QUIET_SECONDS)
        else:
            quiet_period(seconds)
        notes[name.replace(self.tag, "TAG")] = value()

    def settle_streaming(self, seconds: float, *names: str) -> None:
        """Wait until connectors read their database's log, where no record shows it.

        Args:
            seconds: how long that takes with a worker that does not show it on `/metrics` either.
            names: of the connectors; all of this run by default.
        """
        figures = _figures(self.servers.connect_url)
        if not self._known or figures.streaming(self.call) is None:
            quiet_period(seconds)
            return
        wanted = set(names or self.connectors)
        self.until(lambda: (figures.streaming(self.call) or set()) >= wanted, KNOWN_SECONDS, f"{names or self.connectors} to stream")

    def _quiet(self, seconds: float) -> None:
        began = time.monotonic()
        poll_until(lambda: time.monotonic() - max(began, self._reader.quiet_since(self.tag)) >= seconds, 10, seconds / 3)

    def _wait_statuses(self, key: str, count: int, deadline: float) -> bool:
        return self._reader.wait_keys(self.servers.internal["status"], [key.encode()], count, deadline - time.monotonic()) >= count

    def _counts(self) -> dict[str, int]:
        found = {}
        own = [name for name in self.topics("") if self.tag in name]
        for name in own:
            plain = name.replace(self.tag, "TAG")
            schema_changes = any(other.startswith(f"{name}.") for other in own)
            if not schema_changes and not UNCOUNTED.search(plain):
                found[plain] = len(self.read(name))
        for record in self.read(self.servers.internal["status"]):
            key = (record["key"] or b"").decode()
            if self.tag in key:
                found[f"status {key.replace(self.tag, 'TAG')}"] = found.get(f"status {key.replace(self.tag, 'TAG')}", 0) + 1
        return {name: count for name, count in sorted(found.items()) if count}

    # -- databases -------------------------------------------------------------------------------------------------------------
    def postgres(self, setup: str = "") -> psycopg.Connection[Any]:
        """Make a database of its own, with setup run in it. Autocommit."""
        name = f"db_{self.tag}"
        if name not in self._databases:
            with psycopg.connect(**self.servers.postgres, dbname="postgres", autocommit=True) as admin:
                # copied pages would be eight megabytes of log, after which other runs' connectors store their place anew
                copied = " STRATEGY FILE_COPY" if admin.info.server_version >= 150000 else ""
                admin.execute(f"CREATE DATABASE {name}{copied}")
            self._databases.append(name)
        connection = psycopg.connect(**self.servers.postgres, dbname=name, autocommit=True)
        if setup:
            connection.execute(setup)
        return connection

    def postgres_config(self, **more: object) -> dict[str, str]:
        """Return a PostgreSQL source's configuration."""
        server = self.servers.postgres
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "tasks.max": "1",
            "database.hostname": server["host"],
            "database.port": str(server["port"]),
            "database.user": server["user"],
            "database.password": server["password"],
            "database.dbname": f"db_{self.tag}",
            "topic.prefix": f"pg_{self.tag}",
            "plugin.name": "pgoutput",
            "slot.name": f"slot_{self.tag}",
            "publication.name": f"pub_{self.tag}",
            **dots(more),
        }

    def mysql_admin(self) -> pymysql.Connection:
        """Return a new connection to the MySQL server, in no schema. Autocommit."""
        # without TLS: each connection would read the system's certificates, 20 ms of CPU
        return pymysql.connect(**self.servers.mysql, autocommit=True, ssl_disabled=True)

    def mysql(self, *setup: str, database: str | None = None) -> pymysql.Connection:
        """Make a schema (database) of its own, with the setup statements run in it. Autocommit."""
        name = database or f"db_{self.tag}"
        connection = self.mysql_admin()
        with connection.cursor() as cursor:
            if name not in self._mysql_databases:
                cursor.execute(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4")
                self._mysql_databases.append(name)
            cursor.execute(f"USE {name}")
            for statement in setup:
                cursor.execute(statement)
        return connection

    def mysql_config(self, **more: object) -> dict[str, str]:
        """Return a MySQL (or MariaDB) source's configuration."""
        server = self.servers.mysql
        return {
            "connector.class": self.servers.mysql_class,
            "tasks.max": "1",
            "database.hostname": server["host"],
            "database.port": str(server["port"]),
            "database.user": server["user"],
            "database.password": server["password"],
            "database.server.id": str(random.randint(100000, 900000)),
            "topic.prefix": f"my_{self.tag}",
            "database.include.list": f"db_{self.tag}",
            "schema.history.internal.kafka.bootstrap.servers": self.bootstrap,
            "schema.history.internal.kafka.topic": f"history_{self.tag}",
            **dots(more),
        }

    def mongo(self) -> pymongo.database.Database[dict[str, Any]]:
        """Return a database of its own on the replica set; dropped at the end."""
        self._mongo = self._mongo or pymongo.MongoClient(self.mongo_uri)
        return self._mongo[f"db_{self.tag}"]

    def mongo_config(self, **more: object) -> dict[str, str]:
        """Return a MongoDB source's configuration."""
        return {
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "tasks.max": "1",
            "mongodb.connection.string": self.mongo_uri,
            "topic.prefix": f"mo_{self.tag}",
            "database.include.list": f"db_{self.tag}",
            **dots(more),
        }

    # -- Kafka -----------------------------------------------------------------------------------------------------------------
    def create_topic(self, topic: str, partitions: int = 1, **config: object) -> None:
        """Create a topic with a replication factor of 1."""
        for future in self._reader.admin.create_topics([NewTopic(topic, partitions, 1, config=dots(config))]).values():
            future.result()

    def produce(self, topic: str, value: object, key: object = None, headers: Any = None) -> None:
        """Send one record and wait until Kafka has it; texts and bytes as they are, other values as JSON."""

        def encode(v: Any) -> bytes | None:
            return v if v is None or isinstance(v, bytes) else (v if isinstance(v, str) else json.dumps(v)).encode()

        self._reader.producer.produce(topic, value=encode(value), key=encode(key), headers=headers)
        self._reader.producer.flush(30)

    def read(self, topic: str) -> list[dict[str, Any]]:
        """Return all records of a topic now, partition by partition, raw."""
        return self._reader.read(topic)

    def wait_records(self, topic: str, count: int, seconds: float = 60) -> None:
        """Wait until a topic holds at least count records."""
        seconds = self._limit(seconds)
        if not self._reader.wait(topic, count, time.monotonic() + seconds):
            self._missed = True
            raise TimeoutError(f"waited {seconds:.0f} s for {count} records in {topic}, now {len(self.read(topic))}")

    def topics(self, prefix: str) -> list[str]:
        """Return the names of all topics with a prefix."""
        return sorted(t for t in self._reader.names() if t.startswith(prefix))

    def record_topics(self, *topics: str) -> None:
        """Record topics whole; first wait for as many records as the golden has, and for quiet."""
        if self._known:
            deadline = time.monotonic() + (OFFSETS_SECONDS if self._missed else KNOWN_SECONDS)
            for topic in topics:
                golden = self._known.golden["topics"].get(topic.replace(self.tag, "TAG"), [])
                self._missed |= not self._reader.wait(topic, len(golden), deadline)
            self._quiet(QUIET_SECONDS)
        for topic in topics:
            held = self.read(topic)
            self._recorded[topic] = len(held)
            self.out["topics"][topic] = [self.plain(r) for r in held]

    def record_topic_config(self, *topics: str, keys: Iterable[str] = ("cleanup.policy", "retention.ms", "compression.type")) -> None:
        """Record how topics were made."""
        admin = self._reader.admin
        meta = admin.list_topics(timeout=60).topics
        for topic in topics:
            resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
            config = admin.describe_configs([resource])[resource].result()
            made = {"partitions": len(meta[topic].partitions), **{k: config[k].value for k in keys}}
            self.out.setdefault("topic_configs", {})[topic] = made

    def internal(self, kind: str) -> list[dict[str, Any]]:
        """Return what the worker wrote of this run's connectors on one of its internal topics, raw."""
        tag = self.tag.encode()
        return [r for r in self.read(self.servers.internal[kind]) if tag in (r["key"] or b"") or tag in (r["value"] or b"")]

    def record_internal(self) -> None:
        """Record what the worker wrote on its internal topics for this run's connectors, in order of each key."""
        for kind in self.servers.internal:
            self.out["topics"][f"internal:{kind}"] = [dict(self.plain(r), partition=0) for r in self.internal(kind)]

    def plain(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record as it is noted in recordings."""
        return {
            "partition": record["partition"],
            "key": self.decode(record["key"]),
            "value": self.decode(record["value"]),
            "headers": [[name, self.decode(value)] for name, value in record["headers"]],
        }

    def decode(self, data: bytes | None) -> Any:
        """Return JSON as its value (schemas apart), other texts and bytes as what they are."""
        if data is None:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}
        try:
            value = json.loads(text)
        except ValueError:
            return {"text": text}
        if isinstance(value, dict) and set(value) == {"schema", "payload"} and isinstance(value["schema"], dict):
            packed = json.dumps(value["schema"]).replace(self.tag, "TAG")
            digest = hashlib.sha256(packed.encode()).hexdigest()[:12]
            self.out["schemas"][digest] = json.loads(packed)
            return {"schema": f"${digest}", "payload": value["payload"]}
        return value

    # -- end -------------------------------------------------------------------------------------------------------------------
    def close(self) -> list[str]:
        """Delete what the run made; return what came in recorded topics after they were recorded, until the last task had ended."""
        for name in self.connectors:
            with contextlib.suppress(requests.RequestException):
                self.call("DELETE", f"/connectors/{name}")
        self._wait_ended()
        late = []
        known = self._reader.watched()
        for topic, count in self._recorded.items():
            if any(other.startswith(f"{topic}.") for other in known):
                continue  # schema changes, which tell of other scenarios' tables as well
            late += [f"{topic.replace(self.tag, 'TAG')}: {self.plain(r)}" for r in self.read(topic)[count:]]
        for name in self._databases:
            with psycopg.connect(**self.servers.postgres, dbname="postgres", autocommit=True) as admin:
                poll_until(lambda admin=admin, name=name: _drop_database(admin, name), ENDING_SECONDS)  # type: ignore[misc]
        if self._mongo:
            with pymongo.timeout(3):
                self._mongo.drop_database(f"db_{self.tag}")
            self._mongo.close()
        for name in self._mysql_databases:
            with self.mysql_admin() as admin:
                admin.cursor().execute(f"DROP DATABASE IF EXISTS {name}")
        self._session.close()
        self._reader.release(t for t in self._reader.watched() if self.tag in t)
        return late

    def _wait_ended(self) -> None:
        """Until the status topic has the tombstone of each task that it tells of."""

        topic, tag = self.servers.internal["status"], self.tag.encode()
        self.read(topic)
        tasks = [key for key in self._reader.keys(topic) if tag in key and key.startswith(b"status-task-")]
        self._reader.wait_gone(topic, tasks, ENDING_SECONDS)

    def plainly(self, node: object) -> str:
        """Return JSON without what belongs to this run alone."""
        text = json.dumps(node, default=str).replace(self.tag, "TAG")
        text = re.sub(r"file:/[^'\" \\]+", "file:PLACE", text)
        return self._known.translate(text) if self._known else text

    def recording(self) -> dict[str, Any]:
        """Return what was recorded."""
        found: dict[str, Any] = json.loads(self.plainly(self.out))
        return found


def _drop_database(admin: psycopg.Connection[Any], name: str) -> bool:
    try:
        admin.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database=%s AND active", (name,))
        admin.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database=%s", (name,))
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
    except psycopg.Error:
        return False
    return True


def dots(names: Mapping[str, object]) -> dict[str, str]:
    """snapshot_mode='x' → 'snapshot.mode': 'x'; names that already hold a dot stay (pass them with **{...})."""
    return {k if "." in k else k.replace("_", "."): str(v).lower() if isinstance(v, bool) else str(v) for k, v in names.items()}


@dataclass
class Outcome:
    """What a scenario left.

    Attributes:
        recording: None when the scenario itself failed.
        error: its traceback then.
        late: records that came after they were asked for.
        steps: what topics held at each `settle`; of a slow run only.
        seconds: how long it took.
        tag: of its names, to find it in logs.
    """

    name: str
    tag: str
    recording: dict[str, Any] | None = None
    error: str = ""
    late: list[str] = field(default_factory=list)
    steps: list[dict[str, int]] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        """Return one line."""
        counts = self.recording and f"{len(self.recording['rest'])} answers, {sum(map(len, self.recording['topics'].values()))} records"
        return f"{self.name}: {'recorded' if counts else 'FAILED'} in {self.seconds:.1f} s; {counts or self.error.strip().splitlines()[-1]}"


def perform(name: str, servers: Servers, reader: TopicReader, known: Known | None = None) -> Outcome:
    """Run a scenario and clean up after it; its errors are in the outcome."""
    run = Run(name, servers, reader, known)
    outcome = Outcome(name, run.tag)
    began = time.monotonic()
    threading.current_thread().name = f"parity-{name}"
    try:
        SCENARIOS[name](run)
        outcome.recording = run.recording()
    except Exception:  # noqa: BLE001 whatever a scenario raises is its outcome
        outcome.error = traceback.format_exc()
    try:
        outcome.late = run.close()
    except Exception:  # noqa: BLE001
        outcome.error = outcome.error or f"closing: {traceback.format_exc()}"
    outcome.steps = run.steps
    outcome.seconds = time.monotonic() - began
    return outcome


__all__ = ["APART", "SCENARIOS", "Known", "Outcome", "Run", "apart", "dots", "load", "perform", "scenario"]
