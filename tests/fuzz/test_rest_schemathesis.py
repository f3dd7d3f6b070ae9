"""Requests made from /openapi.json by schemathesis: none may fail the server, hang, get an answer that is not described, or a secret back.

    REST_FUZZ_EXAMPLES=400                      requests an operation (29 operations; the suite makes 12 of each)
    REST_FUZZ_URL=http://127.0.0.1:8083         a real worker, with rest.redact.secrets=true, instead of a server over a herder in memory
    REST_FUZZ_SEED=7                            another course

By hand against a worker: the connectors that it makes are called fuzz-…, and are deleted at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from connect_py.app.services.memory_herder import MemoryHerder
from rest_api import RestConfig, create_app, serve
from tests.seeds import size

EXAMPLES = size("REST_FUZZ_EXAMPLES", 6, 40)
SEED = int(os.environ.get("REST_FUZZ_SEED", "20261121"))
URL = os.environ.get("REST_FUZZ_URL")
SECRET = "s3cr3t-that-nobody-may-see"
NAMES = ("fuzz-a", "fuzz-b", "fuzz/c", "fuzz-é %", "fuzz-none")
GOOD = {"connector.class": "FileStreamSource", "topic": "fuzz-lines", "file": "/no/such/file/fuzz", "database.password": SECRET}
#: What a connector says of offsets that it does not know is a 500 with the connector's own text, as in the reference.
OF_CONNECTORS = (
    "Partition objects",
    "Offset objects",
    "Offsets may only",
    "The value for the 'position' key",
    "Offsets cannot be modified",
)
SECONDS = 30


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if URL:
        yield URL
        return
    server = serve(create_app(MemoryHerder(), RestConfig()), ["http://127.0.0.1:0"])
    yield server.urls[0]
    server.stop(5)


@pytest.fixture(scope="module")
def api(url: str) -> Iterator[Any]:
    for name in NAMES[:4]:
        requests.post(f"{url}/connectors", json={"name": name, "config": GOOD}, timeout=SECONDS)
    described = requests.get(f"{url}/openapi.json", timeout=SECONDS).json()
    for operations in described["paths"].values():
        for operation in operations.values():
            del operation["responses"]["default"]  # which would make every status a described one
    yield schemathesis.openapi.from_dict(described)
    for name in requests.get(f"{url}/connectors", timeout=SECONDS).json():
        requests.delete(f"{url}/connectors/{quote(name, safe='')}", timeout=SECONDS)
    assert requests.get(f"{url}/", timeout=SECONDS).json()["version"] == "4.3.1"


@st.composite
def cases(draw: st.DrawFn, operation: Any) -> Any:
    """A request as schemathesis makes it, pulled towards what exists: known names, bodies with a secret in them, good configurations."""
    mode = draw(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
    case = draw(operation.as_strategy(generation_mode=mode))
    parameters = case.path_parameters
    if isinstance(parameters, dict):
        if "connector" in parameters and draw(st.booleans()):
            parameters["connector"] = quote(draw(st.sampled_from(NAMES)), safe="")
        if "task" in parameters and draw(st.booleans()):
            parameters["task"] = draw(st.sampled_from(["0", "1", "-1", "x"]))
        if "plugin" in parameters and draw(st.booleans()):
            parameters["plugin"] = draw(st.sampled_from(["FileStreamSource", "FileStreamSink", "JsonConverter"]))
        if "logger" in parameters and case.method == "PUT":
            parameters["logger"] = f"fuzz.{parameters['logger']}"
    if isinstance(case.body, dict):
        place = case.body.get("config") if isinstance(case.body.get("config"), dict) else case.body
        if "offsets" not in place and "level" not in place:
            place.update({"database.password": SECRET} if draw(st.booleans()) else GOOD)
    return case


def operations() -> list[str]:
    paths = create_app(MemoryHerder(), RestConfig()).openapi()["paths"]
    return [f"{method.upper()} {path}" for path, found in paths.items() for method in found]


@pytest.mark.parametrize("label", operations())
def test_no_request_fails_the_server_or_gets_what_it_may_not(label: str, url: str, api: Any) -> None:
    method, path = label.split()
    operation = api[path][method]
    made = 0

    @seed(SEED)
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(case=cases(operation))
    def run(case: Any) -> None:
        nonlocal made
        made += 1
        answer = case.call(base_url=url, timeout=SECONDS)
        text = answer.content.decode("utf-8", "replace")
        refused_by_connector = path.endswith("/offsets") and any(f'"{known}' in text for known in OF_CONNECTORS)
        assert answer.status_code < 500 or refused_by_connector, f"{answer.status_code} {text}"
        if answer.status_code >= 400 or URL:
            assert SECRET not in text
        if answer.status_code >= 400:
            assert list(json.loads(text)) == ["error_code", "message"]
        if "content-type" not in answer.headers and answer.status_code in (404, 405, 406, 415):
            return  # refused by the container, which names no type: the path made up is not the operation's, for one
        case.validate_response(answer, checks=[status_code_conformance, response_schema_conformance])

    print(f"seed {SEED}")
    run()
    print(f"{made} requests")
    assert made > 0
    assert requests.get(f"{url}/", timeout=SECONDS).status_code == 200
