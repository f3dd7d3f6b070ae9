"""Where Kafka is, for commands that ask it themselves: no worker's REST API tells."""

from __future__ import annotations

import argparse
from pathlib import Path

from connect_py.app.commands.connection import settings_of
from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError


def add_broker_options(parser: argparse.ArgumentParser, worker_properties: str) -> None:
    """Add --bootstrap-servers and --worker-properties, whose help is given."""
    parser.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="Kafka's brokers; else those of --worker-properties or of the context"
    )
    parser.add_argument("--worker-properties", metavar="FILE", help=worker_properties)


def broker_properties(chosen: argparse.Namespace, client: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the worker's properties, empty without a file, and those of a Kafka client with this name.

    Raises:
        ConfigError: nobody says where Kafka is, or the file cannot be read.
    """
    from connect_py.kafka.client import internal_properties

    settings = settings_of(chosen)
    worker = _worker_properties(chosen.worker_properties or settings.get("worker-properties", ""))
    brokers = chosen.bootstrap_servers or settings.get("bootstrap-servers") or worker.get("bootstrap.servers")
    if not brokers:
        raise ConfigError(
            "Kafka's address is needed, which no worker tells: give --bootstrap-servers HOST:PORT, --worker-properties FILE, or put one of "
            "the two into a context"
        )
    properties = internal_properties(worker, client) if worker else {"client.id": f"connect-py-{client}"}
    return worker, {**properties, "bootstrap.servers": brokers}


def _worker_properties(path: str) -> dict[str, str]:
    if not path:
        return {}
    try:
        return parse_properties(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The worker's properties cannot be read from {path}: {error}") from error
