"""The REST API of a real worker: secrets that stay hidden, requests of other workers, and listeners of several kinds."""

import base64
import hashlib
import hmac
import json
import ssl
import urllib.request
from pathlib import Path

import pytest
import requests

from connect_py.app.services.process import free_port
from connect_py.app.services.worker import Worker
from tests.certificates import Identity
from tests.waiting import eventually

pytestmark = pytest.mark.services

SECRET = "open-sesame-4711"
SOURCE = {"connector.class": "FileStreamSource", "file": "/no/such/file", "topic": "rest-worker", "tasks.max": "1"}


def stored(kafka, worker, key):
    """The newest value of a key of the configuration topic."""
    found = [
        json.loads(message.value()) for message in kafka.read(worker.topic("config")) if message.key() == key.encode() and message.value()
    ]
    return found[-1] if found else None


def log_of(worker):
    return worker.service.log_tail(10_000)


def test_hidden_secrets_go_out_nowhere_and_come_back_unharmed(make_worker, kafka):
    worker = make_worker(properties={"rest.redact.secrets": "true"})
    config = {**SOURCE, "database.password": SECRET, "some.client.jaas.config": f'x required password="{SECRET}";'}
    config |= {"some.address": f"https://someone:{SECRET}@127.0.0.1/"}
    url = f"{worker.url}/connectors/hidden"
    answers = [requests.post(f"{worker.url}/connectors", json={"name": "hidden", "config": config, "initial_state": "STOPPED"}, timeout=60)]
    assert answers[0].status_code == 201
    shown = requests.get(f"{url}/config", timeout=60).json()
    assert shown["database.password"] == shown["some.client.jaas.config"] == shown["some.address"] == "[hidden]"
    answers.append(requests.put(f"{url}/config", json={**shown, "batch.size": "7"}, timeout=60))
    answers.append(requests.patch(f"{url}/config", json={"tasks.max": "1", "database.password": "[hidden]"}, timeout=60))
    answers.append(requests.put(f"{worker.url}/connector-plugins/FileStreamSource/config/validate", json=shown, timeout=60))
    assert [answer.status_code for answer in answers[1:]] == [200, 200, 200]
    requests.put(f"{url}/resume", timeout=60)
    tasks = eventually(lambda: requests.get(f"{url}/tasks", timeout=60).json(), "tasks")
    assert tasks[0]["config"]["database.password"] == "[hidden]"
    for path in ("", "/config", "/tasks", "/status"):
        answers.append(requests.get(url + path, timeout=60))
    answers.append(requests.get(f"{worker.url}/connectors?expand=info&expand=status", timeout=60))
    answers.append(requests.put(f"{url}/config", json={"topic": "x", "database.password": SECRET}, timeout=60))
    assert all(SECRET not in answer.text for answer in answers)
    assert stored(kafka, worker, "connector-hidden")["properties"]["database.password"] == SECRET
    assert stored(kafka, worker, "connector-hidden")["properties"]["batch.size"] == "7"
    assert stored(kafka, worker, "task-hidden-0")["properties"]["database.password"] == SECRET
    other = requests.put(f"{worker.url}/connectors/other/config", json=shown | {"name": "other"}, timeout=60)
    assert (other.status_code, "no stored value" in other.json()["message"]) == (400, True)
    assert SECRET not in log_of(worker)


def test_only_a_worker_of_the_cluster_may_hand_in_tasks(make_worker, kafka):
    worker = make_worker()
    requests.put(f"{worker.url}/connectors/signed/config", json=SOURCE, timeout=60)
    record = eventually(lambda: stored(kafka, worker, "session-key"), "a session key")
    key = base64.b64decode(record["key"])
    assert (len(key), record["algorithm"]) == (32, "HmacSHA256")
    eventually(lambda: requests.get(f"{worker.url}/connectors/signed/tasks", timeout=60).json(), "a task of the connector's own")

    def hand_in(path, body, signing_key):
        data = json.dumps(body).encode()
        mac = base64.b64encode(hmac.new(signing_key, data, hashlib.sha256).digest()).decode()
        headers = {
            "Content-Type": "application/json",
            "X-Connect-Authorization": mac,
            "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
        }
        return requests.post(f"{worker.url}/connectors/{path}/tasks", data=data, headers=headers, timeout=60)

    tasks = [
        {**SOURCE, "name": "signed", "task.class": "org.apache.kafka.connect.file.FileStreamSourceTask", "n": str(n)} for n in range(2)
    ]
    assert hand_in("signed", tasks, b"x" * 32).status_code == 403
    assert len(requests.get(f"{worker.url}/connectors/signed/tasks", timeout=60).json()) == 1
    assert hand_in("ghost", tasks, key).json()["message"] == "Connector ghost not found"
    assert hand_in("signed", tasks, key).status_code == 204
    # in the topic, since the connector's own worker soon stores its own set again
    assert eventually(lambda: stored(kafka, worker, "task-signed-1"), "the second task")["properties"]["n"] == "1"


def test_a_worker_serves_http_https_and_admin_listeners_at_once(make_worker, tmp_path: Path):
    identity, store = Identity("worker"), tmp_path / "store.p12"
    store.write_bytes(identity.p12("store-pass"))
    plain, tls, admin = free_port(), free_port(), free_port()
    worker = make_worker(
        port=plain,
        properties={
            "listeners": f"http://127.0.0.1:{plain},https://127.0.0.1:{tls}",
            "admin.listeners": f"http://127.0.0.1:{admin}",
            "listeners.https.ssl.keystore.location": str(store),
            "listeners.https.ssl.keystore.password": "store-pass",
            "rest.advertised.listener": "https",
            "rest.advertised.port": str(tls),
        },
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=identity.chain_pem)
    with urllib.request.urlopen(f"https://127.0.0.1:{tls}/", context=context, timeout=60) as answer:
        assert json.load(answer)["version"] == "4.3.1"
    requests.put(f"{worker.url}/connectors/tls/config", json=SOURCE, timeout=60)
    status = eventually(lambda: requests.get(f"{worker.url}/connectors/tls/status", timeout=60).json().get("connector"), "a status")
    assert status["worker_id"] == f"127.0.0.1:{tls}"
    assert requests.get(f"{worker.url}/admin/loggers", timeout=60).status_code == 404
    assert "root" in requests.get(f"http://127.0.0.1:{admin}/admin/loggers", timeout=60).json()
    assert "store-pass" not in log_of(worker)


def test_the_log_says_in_kafkas_words_that_the_worker_serves(worker: Worker) -> None:
    lines = worker.log.read_text()
    for said in (
        "] Joined group at generation 1",
        "REST resources initialized; server is started and ready to handle requests",
        "Kafka Connect started",
    ):
        assert said in lines
