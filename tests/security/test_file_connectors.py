"""What a user of the REST API can reach by the file connectors: what the worker's operator allows, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_py.app.services.worker import RefusedError, Worker

pytestmark = pytest.mark.services


def test_a_rest_user_reaches_files_only_where_the_operator_allows_them(
    make_worker: Callable[..., Worker], tmp_path: Path, tag: str
) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "lines").write_text("one\n")
    worker = make_worker(properties={"file.connectors.allowed.paths": str(inside)})
    config = {"connector.class": "FileStreamSource", "topic": tag, "file": "/etc/passwd", "file.connectors.allowed.paths": "/"}
    with pytest.raises(RefusedError, match=r"file\.connectors\.allowed\.paths does not allow this path") as refused:
        worker.request("POST", "/connectors", {"name": tag, "config": config})
    assert refused.value.status == 400
    with pytest.raises(RefusedError, match=r"file\.connectors\.allowed\.paths"):
        worker.request("PUT", f"/connectors/{tag}/config", {"connector.class": "FileStreamSink", "topics": tag, "file": "uuid.py"})
    worker.create(tag, config | {"file": str(inside / "lines")})
