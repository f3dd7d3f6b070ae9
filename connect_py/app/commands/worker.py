"""`connect-py distributed` and `connect-py standalone`: puts stores, herder and REST server together.

Exit codes are Connect's: 1 bad usage or a failed worker, 2 a start-up error, 3 a connector of the command line that could not be created.
"""

from __future__ import annotations

import argparse
import functools
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.app.commands.command import Command
from connect_py.errors import ConfigError, ConnectError, RetriableError

if TYPE_CHECKING:
    from connect_py.api.config import ConfigDef
    from connect_py.config.worker import WorkerConfig
    from connect_py.group.membership import Membership
    from connect_py.herder.modes import DistributedHerder, StandaloneHerder
    from connect_py.kafka.admin import KafkaAdmin
    from connect_py.plugins.registry import Plugins

log = logging.getLogger("connect_py.worker")

#: Makes the herder of one kind of worker, given the worker's configuration and its id in the cluster.
_Build = Callable[["WorkerConfig", str], "DistributedHerder | StandaloneHerder"]

#: A task's process is this program again, with its own composition of the task's parts; the task's name follows, for `ps`. `-P` keeps the
#: working directory off its path: a module there would stand in for the standard library's.
TASK_COMMAND = (sys.executable, "-P", "-m", "connect_py.app.cli", "task")

#: How late a worker may notice a signal that the kernel has given to another thread than the first: only that one runs handlers, and its
#: wait continues. It happens when both wake at a time, as when SIGTERM follows a request that starts threads.
_SIGNAL_SECONDS = 0.5

#: After how long a start that waits for Kafka says so; a broker that is there answers in a fraction of it.
_SILENCE_SECONDS = 3.0


def _distributed_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "properties", nargs="?", metavar="worker.properties", help="the worker's file; else its environment variables are used"
    )


def distributed(chosen: argparse.Namespace) -> int:
    """Run a worker that keeps everything in Kafka topics. Returns the exit code."""
    return _worker(_distributed, [chosen.properties] if chosen.properties else [])


def _standalone_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("properties", metavar="worker.properties", help="the worker's file")
    parser.add_argument("connectors", nargs="*", metavar="connector", help="a connector's .properties or .json file")


def standalone(chosen: argparse.Namespace) -> int:
    """Run a worker with its connectors on the command line. Returns the exit code."""
    return _worker(_standalone, [chosen.properties, *chosen.connectors])


def _worker(build: _Build, arguments: Sequence[str]) -> int:
    from connect_py.log import lines as line_logging
    from connect_py.log.levels import PROCESS, levels_from_environment
    from connect_py.log.redact import redactor, secret_values

    gc.disable()  # what a start makes is no garbage, and looking for some takes a tenth of it
    root, levels = levels_from_environment(os.environ)
    formatter = line_logging.configure(root)
    for name, level in levels.items():
        PROCESS.set_level(name, level)
    try:
        properties = read_properties(arguments[0] if arguments else None)
        formatter.redact = redactor(secret_values(properties))
        return _run(build, properties, arguments[1:], _origins(arguments[0] if arguments else None, properties))
    except ConnectError as error:
        log.error("The worker did not start: %s", error)
        return 2
    finally:
        gc.enable()


def read_properties(path: str | None) -> dict[str, str]:
    """Return a worker's own properties, with their variables as they are written.

    Args:
        path: of the properties file; None for the environment.

    Raises:
        ConfigError: the file cannot be read, or the environment is not complete.
    """
    from connect_py.config.environment import environment_warnings, worker_properties
    from connect_py.data.java_properties import parse_properties

    if path is None:
        for warning in environment_warnings(os.environ):
            log.warning("%s", warning)
        return worker_properties(os.environ)
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The worker's properties cannot be read from {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from error


def _origins(path: str | None, properties: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Return where each property's value is from; those with a default of the image are not there."""
    from connect_py.config.environment import variables_of

    if path is None:
        return {name: ("environment", variable) for name, variable in variables_of(os.environ).items()}
    return dict.fromkeys(properties, ("file", path))


def _run(build: _Build, properties: Mapping[str, str], connector_files: Sequence[str], origins: Mapping[str, tuple[str, str]]) -> int:
    from connect_py.api.permissions import FILE_PATHS, permit
    from connect_py.config.worker import DISTRIBUTED, STANDALONE, WorkerConfig, worker_warnings
    from rest_api.app import create_admin_app, create_app, create_health_app, create_metrics_app
    from rest_api.config import RestConfig
    from rest_api.server import Server
    from rest_api.waiting import Gate

    starting, stop, is_deaf = threading.Event(), threading.Event(), threading.Event()
    starting.set()

    def end(_number: int, _frame: object) -> None:
        stop.set()
        if starting.is_set():  # nothing waits for the event yet, and a cluster that does not answer is waited for a minute
            starting.clear()
            raise SystemExit(0)

    def end_without_rest() -> None:
        log.error("Nothing answers requests any more: the worker ends, so that what watches over it can start it again")
        is_deaf.set()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    definition = DISTRIBUTED if build is _distributed else STANDALONE
    properties = resolved_properties(properties, definition)
    if definition is STANDALONE:
        properties = {FILE_PATHS: os.getcwd(), **properties}
    permit(properties)
    worker = replace(WorkerConfig.parse(properties, definition), origins=origins)
    rest = RestConfig.from_worker(properties)
    for warning in worker_warnings(properties, definition):
        log.warning("%s", warning)
    server, metrics_server = Server(rest.listeners, rest.admin_listeners or ()), Server(rest.metrics_listeners or ())
    health_server, health_gate = Server(rest.health_listeners), Gate()
    urls = server.bind()
    metrics_server.bind()
    gate, admin_gate = Gate(), Gate()
    if rest.health_listeners:
        health_server.start(health_gate)
    server.start(gate, admin_gate, on_end=end_without_rest)
    try:
        herder = build(worker, worker.worker_id(urls))
    except BaseException:
        server.stop(1.0)
        health_server.stop(1.0)
        raise
    try:
        herder.start()
        starting.clear()
        gate.open(create_app(herder, rest))
        admin_gate.open(create_admin_app(herder, rest))
        health_gate.open(create_health_app(herder, rest))
        if metrics_server.urls:
            metrics_server.start(create_metrics_app(herder, rest))
            log.info("Metrics: %s", ", ".join(f"{url}/metrics" for url in metrics_server.urls))
        gc.freeze()
        gc.enable()
        # the words for which scripts that start Kafka Connect wait (`RestServer`, `Connect`)
        log.info("REST resources initialized; server is started and ready to handle requests")
        log.info("Kafka Connect started")
        log.info("Worker ready: %s (cluster %s)", ", ".join(urls), worker.group_id or "standalone")
        code = _create_connectors(herder, connector_files)
        if code == 0:
            notify_service_manager("READY=1")
            while not stop.wait(_SIGNAL_SECONDS):
                pass
            code = 1 if is_deaf.is_set() else 0
            log.info("Kafka Connect stopping")
            log.info("Stopping: tasks have %.0f s to finish", worker.graceful_shutdown_seconds)
    finally:
        notify_service_manager("STOPPING=1")
        herder.begin_stop()
        metrics_server.stop(1.0)
        server.stop(5.0)
        herder.stop()
        health_server.stop(1.0)
    log.info("Kafka Connect stopped")
    return code


def notify_service_manager(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """Tell systemd about this process, as `sd_notify(3)` does; nothing happens under another parent.

    Args:
        state: such as ``READY=1``.
        environ: its ``NOTIFY_SOCKET`` is the address, a path or, after an ``@``, an abstract name.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        try:
            sender.connect("\0" + address[1:] if address.startswith("@") else address)
            sender.send(state.encode())
        except OSError as error:
            log.warning("The service manager at %s was not told %s: %s", address, state, error.strerror or error)


def resolved_properties(properties: Mapping[str, str], definition: ConfigDef) -> Mapping[str, str]:
    """Return the worker's properties with the values of their variables (`config.providers`)."""
    from connect_py.api.config import ConfigType, parse_value
    from connect_py.providers.resolver import PROVIDERS, resolve_worker_properties

    if not properties.get(PROVIDERS, "").strip():
        return properties
    folders = parse_value("plugin.path", properties.get("plugin.path"), ConfigType.LIST) or ()
    return resolve_worker_properties(properties, plugins_of(tuple(folders)).load, shown=definition.keys)


@functools.cache
def plugins_of(folders: tuple[str, ...]) -> Plugins:
    """What is installed. Looked up once: a folder from which a provider has been loaded would then look like the worker's environment."""
    from connect_py.plugins.registry import Plugins

    return Plugins.discover(folders)


def _worker_plugins(worker: WorkerConfig) -> Plugins:
    """Return what is installed for a worker. Raises ConfigError, as Kafka Connect does, when one of its own converters is not."""
    plugins = plugins_of(tuple(worker.plugin_path))
    for key in ("key.converter", "value.converter", "header.converter"):
        name = worker.raw.get(key, "").strip()
        if name and plugins.resolve(name) is None:
            raise ConfigError(f"Invalid value {name} for configuration {key}: Class {name} could not be found.")
    return plugins


def _cluster_id(admin: KafkaAdmin, worker: WorkerConfig) -> str:
    """Ask the brokers who they are; the first thing that a worker needs of them. A wait for them is said."""
    servers = worker.raw.get("bootstrap.servers", "localhost:9092")
    waiting = threading.Timer(_SILENCE_SECONDS, log.warning, ("No Kafka broker has answered at %s yet; it is asked again.", servers))
    waiting.daemon = True
    waiting.start()
    try:
        return admin.cluster_id()
    except RetriableError as error:
        raise ConnectError(
            f"No Kafka broker answered at {servers}. Is the address right, is the broker up, and do security.protocol and sasl.* fit? "
            f"({error})"
        ) from error
    finally:
        waiting.cancel()


def _distributed(worker: WorkerConfig, worker_id: str) -> DistributedHerder:
    from connect_py.group.peers import Peers
    from connect_py.herder.applier import Applier
    from connect_py.herder.modes import DistributedHerder
    from connect_py.kafka.admin import KafkaAdmin
    from connect_py.kafka.client import internal_properties
    from offsets.config_store import KafkaConfigStore
    from offsets.offset_store import KafkaOffsetStore
    from offsets.status_store import KafkaStatusStore
    from rest_api.listeners import client_context

    admin = KafkaAdmin(internal_properties(worker.raw, "shared-admin"))
    applier = Applier(
        worker,
        _worker_plugins(worker),
        KafkaConfigStore(worker.raw, admin),
        KafkaStatusStore(worker.raw, admin),
        KafkaOffsetStore(worker.raw, admin),
        admin,
        _membership(worker, worker_id),
        worker_id=worker_id,
        cluster_id=_cluster_id(admin, worker),
        task_command=TASK_COMMAND,
        peers=Peers(client_context(worker.raw)),
    )
    return DistributedHerder(applier)


def _membership(worker: WorkerConfig, worker_id: str) -> Membership:
    from connect_py import __version__
    from connect_py.api.group import GroupClient
    from connect_py.group.assignor import Assignor
    from connect_py.group.membership import GroupTimings, Membership
    from connect_py.group.protocol import GroupProtocol, WorkerDetails
    from connect_py.kafka.client import internal_properties
    from connect_py.task.lease import now

    timings = GroupTimings.parse(worker.raw)
    named = worker.raw.get("connect.protocol", "sessioned")
    preferred = GroupProtocol.of_property(named)
    if preferred is not GroupProtocol.SESSIONED:
        log.warning(
            "Internal request verification will be disabled for this cluster as this worker's connect.protocol configuration has been set "
            "to '%s'. If this is not intentional, either remove the 'connect.protocol' configuration from the worker config file or change "
            "its value to 'SESSIONED'. If this configuration is left as-is, the cluster will be insecure; for more information, see "
            "KIP-507: "
            "https://cwiki.apache.org/confluence/display/KAFKA/KIP-507%%3A+Securing+Internal+Connect+REST+Endpoints",
            named,
        )
    client_id = worker.raw.get("client.id") or f"connect-{worker_id}"

    def client() -> GroupClient:
        from connect_py.kafka.group_client import KafkaGroupClient

        return KafkaGroupClient(
            {**internal_properties(worker.raw, "group"), "client.id": client_id},
            worker.group_id or "",
            session_ms=timings.session,
            heartbeat_ms=timings.heartbeat,
            rebalance_ms=timings.rebalance,
            clock=now,
        )

    return Membership(
        client,
        Assignor(timings.max_delay),
        url=f"{worker.advertised_scheme}://{worker_id}/",
        preferred=preferred,
        timings=timings,
        client_id=client_id,
        details=WorkerDetails(version=__version__, host=socket.gethostname()),
        hands_over=worker.raw.get("drain.mode", "auto").strip().lower() != "leave",
    )


def _standalone(worker: WorkerConfig, worker_id: str) -> StandaloneHerder:
    from connect_py.herder.applier import Applier
    from connect_py.herder.assignment import SoleWorker
    from connect_py.herder.modes import StandaloneHerder
    from connect_py.kafka.admin import KafkaAdmin
    from connect_py.kafka.client import internal_properties
    from offsets.local_stores import FileOffsetStore, MemoryConfigStore, MemoryStatusStore

    admin = KafkaAdmin(internal_properties(worker.raw, "shared-admin"))
    applier = Applier(
        worker,
        _worker_plugins(worker),
        MemoryConfigStore(),
        MemoryStatusStore(),
        FileOffsetStore(worker.raw),
        admin,
        SoleWorker(),
        worker_id=worker_id,
        cluster_id=_cluster_id(admin, worker),
        task_command=TASK_COMMAND,
        offsets_by_pipe=True,
    )
    return StandaloneHerder(applier)


def _create_connectors(herder: DistributedHerder | StandaloneHerder, paths: Sequence[str]) -> int:
    from connect_py.app.client.files import read_connector_file

    for path in paths:
        try:
            wanted = read_connector_file(path)
            herder.put_connector(wanted.name, wanted.config, may_replace=False, state=wanted.state)
        except ConnectError as error:
            log.error("The connector of %s could not be created; the worker ends: %s", path, error)
            return 3
        log.info("Created connector %s", wanted.name)
    return 0


_EXITS = {
    0: "it was stopped by SIGTERM or Ctrl-C",
    1: "the command line is wrong, or the worker failed",
    2: "it could not start; the log says why",
}

COMMANDS = (
    Command(
        "distributed",
        "Run a worker",
        "run a worker that keeps everything in Kafka topics",
        _distributed_options,
        distributed,
        about=(
            "Several workers with one group.id share the work. Without a file, variables CONNECT_* and those of the Debezium image are its "
            "properties. The REST API is at http://localhost:8083 unless listeners says otherwise."
        ),
        examples=("distributed worker.properties", "distributed"),
        exits={**_EXITS, 3: ""},
    ),
    Command(
        "standalone",
        "Run a worker",
        "run a worker with its connectors on the command line",
        _standalone_options,
        standalone,
        about="Offsets are kept in a file, offset.storage.file.filename.",
        examples=("standalone worker.properties inventory.json",),
        exits={**_EXITS, 3: "a connector could not be created"},
    ),
)
