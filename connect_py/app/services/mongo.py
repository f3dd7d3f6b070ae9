"""MongoDB for tests: the replica set of `$MONGODB_URI`, a `mongod` of the path, or a stand-in in memory (`ReplicaSet.java`).

Debian has no package of MongoDB, and the maker's own needs an archive of theirs; so the stand-in is what tests of a bare machine run on. It
runs from its source: Java compiles it at each start, in a second.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymongo
import pymongo.uri_parser
from pymongo.errors import PyMongoError

from connect_py.app.services.kafka import QUICK_START, Progress, silent
from connect_py.app.services.process import Service, ServiceError, free_port
from spark_sink.spark.jars import cached, java, resolve

MONGO_JARS = ("de.bwaldvogel:mongo-java-server:1.47.0",)
_SET = "rs0"

#: A change stream that waits for changes holds the thread of its connection; with two a core, other connections would have to wait for it.
_ONE_THREAD_EACH = "-Dio.netty.eventLoopThreads=256"


class MongoAddress:
    """Where a replica set is.

    Attributes:
        uri: connection string with `replicaSet`.
        is_real: whether it is MongoDB and not the stand-in.
        port: of its first member.
    """

    def __init__(self, uri: str, *, is_real: bool) -> None:
        self.uri = uri
        self.is_real = is_real
        self.port = pymongo.uri_parser.parse_uri(uri)["nodelist"][0][1]

    def connect(self) -> pymongo.MongoClient[dict[str, Any]]:
        """Return a client; the caller closes it."""
        return pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=20_000)

    def stop(self) -> None:
        """Stop what was started."""


class MongoServer(MongoAddress):
    """A replica set of one member, of our own.

    Attributes:
        service: the server's process.
    """

    def __init__(self, folder: Path, progress: Progress = silent, memory_mb: int = 256) -> None:
        """Start the server; returns when it answers as a primary.

        Args:
            folder: for data and log.
            memory_mb: what the stand-in may use for documents and its oplog.

        Raises:
            ConfigError: no Java.
            RetriableError: the stand-in's libraries cannot be fetched.
            ServiceError: the server does not start.
        """
        folder.mkdir(parents=True, exist_ok=True)
        mongod = shutil.which("mongod")
        super().__init__(f"mongodb://127.0.0.1:{free_port()}/?replicaSet={_SET}", is_real=mongod is not None)
        self._command = self._real(mongod, folder) if mongod else self._stand_in(progress, memory_mb)
        self._log = folder / "mongo.log"
        self._prepare: Callable[[], None] = self._initiate if mongod else lambda: None
        self.start()

    def start(self) -> None:
        """Start the server, or start it again after `service.kill`; the stand-in then has nothing any more."""
        self.service = Service("MongoDB", self._command, self._log)
        self._prepare()
        self.service.wait_ready(self._answers)

    def stop(self) -> None:
        """Stop the server."""
        self.service.stop()

    def _real(self, mongod: str, folder: Path) -> list[str]:
        data = folder / "data"
        data.mkdir(exist_ok=True)
        return [mongod, "--replSet", _SET, "--port", str(self.port), "--bind_ip", "127.0.0.1", "--dbpath", str(data)]

    def _stand_in(self, progress: Progress, memory_mb: int) -> list[str]:
        folder = cached(MONGO_JARS, "mongo")
        if not folder.is_dir():
            progress("fetching a stand-in of MongoDB from Maven Central (7 MB, once)")
            resolve(MONGO_JARS, folder, transitive=True)
        source = Path(__file__).with_name("ReplicaSet.java")
        return [java(), f"-Xmx{memory_mb}m", *QUICK_START, _ONE_THREAD_EACH, "-cp", f"{folder}/*", str(source), str(self.port)]

    def _initiate(self) -> None:
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient("127.0.0.1", self.port, directConnection=True)
        members = [{"_id": 0, "host": f"127.0.0.1:{self.port}"}]
        try:
            client.admin.command("replSetInitiate", {"_id": _SET, "members": members})
        except PyMongoError as error:
            if getattr(error, "code", None) != 23:  # AlreadyInitialized: a second start
                raise ServiceError(f"The replica set cannot be initiated: {error}") from error
        finally:
            client.close()

    def _answers(self) -> bool:
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=500)
        try:
            return bool(client.admin.command("hello").get("isWritablePrimary"))
        except PyMongoError:
            return False
        finally:
            client.close()


def mongo_server(folder: Path) -> MongoAddress:
    """Return the replica set of the environment, or one of our own; the caller stops it. Raises as `MongoServer`."""
    uri = os.environ.get("MONGODB_URI")
    return MongoAddress(uri, is_real=True) if uri else MongoServer(folder)
