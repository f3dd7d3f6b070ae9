"""Workers of Kafka Connect itself, with Debezium, for tests and benchmarks that compare or mix them with ours.

CONNECT_REFERENCE names a folder with Kafka Connect's jars in ``kafka-libs``, Debezium's in ``plugins/debezium``, and a
``log4j2.properties`` that logs INFO to standard output.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from connect_py.app.services.kafka import QUICK_START
from connect_py.app.services.worker import Worker

REFERENCE = os.environ.get("CONNECT_REFERENCE")


class JavaWorker(Worker):
    """A worker of Kafka Connect, of the same properties."""

    def __init__(self, folder: Path, bootstrap: str, *, properties: Mapping[str, str], heap: str = "400m", seconds: float = 180) -> None:
        home = Path(REFERENCE or "")
        logging = f"-Dlog4j2.configurationFile={home}/log4j2.properties"
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        super().__init__(
            folder,
            bootstrap,
            properties={"plugin.path": f"{home}/plugins", "plugin.discovery": "service_load", **properties},
            command=["java", f"-Xmx{heap}", *QUICK_START, logging, "-cp", f"{home}/kafka-libs/*", main],
            seconds=seconds,
        )
