"""A schema registry for tests: the part of the registry's HTTP protocol that serializers use, over real sockets, in memory.

No registry server can be installed where these tests run (Confluent's and Karapace are on none of the registries of packages), so this one
stands in: ids are given by text, subjects have versions, and a test can refuse a schema, ask for a password, or let requests fail.
"""

from __future__ import annotations

import base64
import json
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest


class SchemaRegistry:
    """The registry's state, and its server.

    Attributes:
        schemas: schemas in the order of their ids, which begin with 1.
        subjects: ids of each subject's versions, in order.
        requests: method and path of every request.
        failures: statuses that the next requests are answered with.
        refused: subjects that take no further schema.
        password: what requests must bring as ``name:password``.
        token: what requests must bring as a bearer token.
    """

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.failures: list[int] = []
        self.refused: set[str] = set()
        self.password: str | None = None
        self.token: str | None = None
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer("GET", {})

            def do_POST(self) -> None:
                self._answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, method: str, body: dict[str, Any]) -> None:
                status, answer = registry.answer(method, self.path, body, self.headers.get("Authorization", ""))
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, subject: str, text: str, kind: str = "AVRO", references: list[dict[str, Any]] | None = None) -> int:
        """Register a schema; its id."""
        schema = {"schema": text, "schemaType": kind, "references": references or []}
        if schema not in self.schemas:
            self.schemas.append(schema)
        found = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if found not in versions:
            versions.append(found)
        return found

    def text_of(self, schema_id: int) -> str:
        return str(self.schemas[schema_id - 1]["schema"])

    def answer(self, method: str, path: str, body: dict[str, Any], authorization: str) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        status, found = self._answer(method, path, body, authorization)
        if status == 200 and "format=serialized" in path and found.get("schemaType") == "PROTOBUF":
            found = {**found, "schema": descriptor_of(found["schema"])}
        return status, found

    def _answer(self, method: str, path: str, body: dict[str, Any], authorization: str) -> tuple[int, Any]:
        if self.failures:
            return self.failures.pop(0), {"error_code": 50001, "message": "Error in the backend datastore"}
        wanted = [f"Basic {base64.b64encode(self.password.encode()).decode()}"] if self.password else []
        wanted += [f"Bearer {self.token}"] if self.token else []
        if wanted and authorization not in wanted:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        match [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]:
            case ["schemas", "ids", number] if 0 < int(number) <= len(self.schemas):
                return 200, self.schemas[int(number) - 1]
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions"] if method == "POST":
                return self._register(subject, body)
            case ["subjects", subject] if method == "POST":
                return self._look_up(subject, body)
            case ["subjects", subject, "versions", version]:
                return self._version(subject, version)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _register(self, subject: str, body: dict[str, Any]) -> tuple[int, Any]:
        if subject in self.refused:
            return 409, {"error_code": 409, "message": "Schema being registered is incompatible with an earlier schema"}
        return 200, {"id": self.add(subject, body["schema"], body.get("schemaType", "AVRO"), body.get("references"))}

    def _look_up(self, subject: str, body: dict[str, Any]) -> tuple[int, Any]:
        schema = {"schema": body["schema"], "schemaType": body.get("schemaType", "AVRO"), "references": body.get("references") or []}
        versions = self.subjects.get(subject)
        if versions is None:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if schema not in self.schemas or self.schemas.index(schema) + 1 not in versions:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return self._version(subject, str(versions.index(self.schemas.index(schema) + 1) + 1))

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        versions = self.subjects.get(subject, [])
        number = len(versions) if version in ("latest", "-1") else int(version)
        if not 0 < number <= len(versions):
            return 404, {"error_code": 40402, "message": "Version not found."}
        held = versions[number - 1]
        return 200, {"subject": subject, "version": number, "id": held, **self.schemas[held - 1]}


def descriptor_of(text: str) -> str:
    """What ``format=serialized`` gives: the file's descriptor in base64, made by Google's compiler."""
    from confluent_kafka.schema_registry.confluent import meta_pb2  # noqa: F401  (puts its file into the pool)
    from confluent_kafka.schema_registry.confluent.types import decimal_pb2  # noqa: F401
    from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2, wrappers_pb2  # noqa: F401
    from google.type import date_pb2, timeofday_pb2  # noqa: F401
    from grpc_tools import protoc

    if "confluent.field_meta" in text and "confluent/meta.proto" not in text:  # registries know this option without its import
        text = text.replace('syntax = "proto3";', 'syntax = "proto3"; import "confluent/meta.proto";')
    with tempfile.TemporaryDirectory() as folder:
        known = descriptor_pb2.FileDescriptorSet()
        for name in _IMPORTS:
            descriptor_pool.Default().FindFileByName(name).CopyToProto(known.file.add())
        room = Path(folder)
        (room / "known").write_bytes(known.SerializeToString())
        (room / "default.proto").write_text(text)
        arguments = ["", f"-I{folder}", f"--descriptor_set_in={room / 'known'}", f"--descriptor_set_out={room / 'made'}", "default.proto"]
        assert protoc.main(arguments) == 0, text
        made = descriptor_pb2.FileDescriptorSet.FromString((room / "made").read_bytes())
    return base64.b64encode(made.file[0].SerializeToString()).decode()


_IMPORTS = (
    "google/protobuf/descriptor.proto",
    "confluent/meta.proto",
    "confluent/type/decimal.proto",
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
    "google/type/date.proto",
    "google/type/timeofday.proto",
)


@pytest.fixture
def schema_registry() -> Iterator[SchemaRegistry]:
    """A registry of the test's own."""
    running = SchemaRegistry()
    yield running
    running.stop()
