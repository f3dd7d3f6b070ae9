"""What one request must not do to the whole worker: stop it, or change what its log says of others."""

from __future__ import annotations

import threading
import time

import pytest

from connect_py.app.services.worker import Worker

pytestmark = pytest.mark.services

VALIDATE = "/connector-plugins/FileStreamSource/config/validate"


def test_a_users_regex_does_not_freeze_the_worker(worker: Worker) -> None:
    """40 characters would take days in the worker's own process."""
    config = {"connector.class": "FileStreamSource", "name": "x", "topic": "t", "custom.sanitize.pattern": "(a+)+$", "a" * 40 + "b": "z"}
    answers: list[dict[str, object]] = []
    asking = threading.Thread(target=lambda: answers.append(worker.request("PUT", VALIDATE, config)))
    asking.start()
    slowest = 0.0
    while asking.is_alive():
        began = time.monotonic()
        worker.request("GET", "/health")
        slowest = max(slowest, time.monotonic() - began)
    asking.join()
    assert slowest < 2
    errors = [error for entry in answers[0]["configs"] for error in entry["value"]["errors"]]  # type: ignore[attr-defined]
    assert any("takes more than 1 s to match a name" in error for error in errors), errors


def test_a_refused_configuration_does_not_hide_words_in_the_worker_s_log(worker: Worker) -> None:
    worker.request("PUT", VALIDATE, {"connector.class": "FileStreamSource", "name": "x", "topic": "t", "my.password": "deleted"})
    worker.create("hides-words", {"connector.class": "FileStreamSource", "topic": "hides-words", "file": "/no/such/file"})
    worker.delete("hides-words")
    deadline = time.monotonic() + 20
    while "Connector hides-words is deleted" not in worker.log.read_text() and time.monotonic() < deadline:
        worker.request("GET", "/health")
    assert "Connector hides-words is deleted" in worker.log.read_text()
