"""Both images as containers: read-only, as a user without a name, with Debezium's and Confluent's variables, a login, HTTPS, a plugin."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import free_port
from rest_api.basic_auth import hashed
from tests.certificates import Identity
from tests.images.bases import WORKER
from tests.images.engine import ImageTestError, command, has_image, inside, log_of, remove, run, say, wait_until
from tests.paths import ROOT

#: As Kubernetes runs a pod of OpenShift: a user that the image does not know, in group 0, and nothing to write to but /tmp. podman would
#: add /run and /var/tmp, which docker does not.
HARD = (
    *("--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp"),
    *("--user", "12345:0", "--cap-drop", "all", "--security-opt", "no-new-privileges"),
)

_NAME = "connect-py-test"
_LABEL = "org.opencontainers.image."
_PLUGIN = "com.acme.connect.HttpFeedSourceConnector"


def image(target: str) -> str:
    """The image's name in the local store."""
    return f"{WORKER}:{target}"


def check() -> None:
    """Run both images in each of the ways. Raises ImageTestError."""
    with tempfile.TemporaryDirectory(prefix="connect-py-images-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        secrets = _secrets(folder)
        broker = KafkaBroker(folder / "kafka")
        say("Kafka 4.3.1 runs on this machine, from its own jars")
        try:
            built = [target for target in ("slim", "lakehouse") if has_image(image(target))]
            for target in built:
                _look_at(target)
                for way, environment in {
                    "Debezium's variables": {},
                    "Confluent's variables": {},
                    "basic authentication": {"CONNECT_REST_BASIC_AUTH_FILE": "/secrets/users"},
                    "HTTPS with client certificates, no health listener": {**secrets, "CONNECT_HEALTH_LISTENERS": ""},
                    "HTTPS and basic authentication": {**secrets, "CONNECT_REST_BASIC_AUTH_FILE": "/secrets/users"},
                }.items():
                    _run(target, way, broker.bootstrap, environment, folder)
            _plugin(broker.bootstrap, folder)
            if "lakehouse" in built:
                _spark(broker.bootstrap, folder)
            else:
                say("NOT RUN: lakehouse, which is not built")
        finally:
            broker.stop()


def _look_at(target: str) -> None:
    """What the image says of itself: user, labels, health check, bill of materials."""
    config = json.loads(command("podman", "image", "inspect", image(target)).stdout)[0]["Config"]
    labels = {name.removeprefix(_LABEL): value for name, value in config["Labels"].items() if name.startswith(_LABEL)}
    if config["User"] != "1001" or labels.keys() != {"title", "version", "description", "licenses"}:
        raise ImageTestError(f"{target} has the user {config['User']} and the labels {labels}")
    run(_NAME, image(target), options=["--entrypoint", "cat"], arguments=["/opt/connect/sbom.cdx.json"])
    try:
        command("podman", "--runtime", "runc", "wait", _NAME)
        components = json.loads(command("podman", "logs", _NAME).stdout)["components"]
    finally:
        remove(_NAME)
    kinds = Counter(component["purl"].partition("/")[0].removeprefix("pkg:") for component in components)
    if kinds.keys() != {"pypi", "deb"} | ({"maven"} if target == "lakehouse" else set()):
        raise ImageTestError(f"The bill of materials of {target} has {dict(kinds)}")
    counts = ", ".join(f"{count} of {kind}" for kind, count in sorted(kinds.items()))
    say(f"{target}: user 1001, version {labels['version']}, its bill of materials has {len(components)} components ({counts})")


def _plugin(bootstrap: str, folder: Path) -> None:
    """A plugin that is mounted where Debezium's image has its own is found."""
    plugins = folder / "plugins"
    with tempfile.TemporaryDirectory(prefix="connect-py-plugin-") as copied:
        shutil.copytree(ROOT / "docs" / "example-plugin", Path(copied) / "plugin")  # the build writes into its folder
        install = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
        command(*install, "--target", plugins / "acme", Path(copied) / "plugin")
    port = free_port()
    with started("slim", variables(bootstrap, port), port, ("-v", f"{plugins}:/kafka/connect:ro")) as url:
        listed = ask(f"{url}/connector-plugins")
        names = [found["class"] for found in listed] if isinstance(listed, list) else []
        if _PLUGIN not in names:
            raise ImageTestError(f"The worker has found {names}")
    say(f"slim: {_PLUGIN}, mounted at /kafka/connect, is listed")


def _secrets(folder: Path) -> Mapping[str, str]:
    """Write users, a key and an authority; return the variables of an HTTPS listener."""
    authority = Identity("authority")
    identity = Identity("worker", authority)
    (folder / "users").write_text(f"admin={hashed('of-the-test')}\n")
    (folder / "store.pem").write_text(identity.key_pem() + identity.chain_pem)
    (folder / "trust.pem").write_text(authority.chain_pem)
    return {
        "CONNECT_LISTENERS": "https://:{port}",
        "CONNECT_LISTENERS_HTTPS_SSL_KEYSTORE_LOCATION": "/secrets/store.pem",
        "CONNECT_LISTENERS_HTTPS_SSL_TRUSTSTORE_LOCATION": "/secrets/trust.pem",
        "CONNECT_LISTENERS_HTTPS_SSL_CLIENT_AUTH": "required",
    }


def variables(bootstrap: str, port: int) -> dict[str, str]:
    """The environment of a worker with topics of its own."""
    return {
        "BOOTSTRAP_SERVERS": bootstrap,
        "GROUP_ID": f"images-{port}",
        "CONFIG_STORAGE_TOPIC": f"images-{port}-configs",
        "OFFSET_STORAGE_TOPIC": f"images-{port}-offsets",
        "STATUS_STORAGE_TOPIC": f"images-{port}-status",
        "CONNECT_LISTENERS": f"http://:{port}",
        "CONNECT_HEALTH_LISTENERS": f"http://:{free_port()}",
        "ADVERTISED_HOST_NAME": "127.0.0.1",
        "CONNECT_OFFSET_STORAGE_PARTITIONS": "1",
        "CONNECT_STATUS_STORAGE_PARTITIONS": "1",
    }


def _confluent(name: str) -> str:
    """Return the name that Confluent's image has for a variable of Debezium's."""
    return name if name.startswith("CONNECT_") else f"CONNECT_{name}".replace("_ADVERTISED_", "_REST_ADVERTISED_")


def is_healthy(name: str) -> bool:
    """Whether the image's own health check says so. Raises ImageTestError when the container has ended."""
    state = json.loads(command("podman", "inspect", name).stdout)[0]["State"]
    if not state["Running"]:
        raise ImageTestError(f"{name} has ended with {state['ExitCode']}: {log_of(name)[-3000:]}")
    return command("podman", "--runtime", "runc", "healthcheck", "run", name, check=False).returncode == 0


def _run(target: str, way: str, bootstrap: str, changes: Mapping[str, str], folder: Path) -> None:
    port = free_port()
    environment = {**variables(bootstrap, port), **{key: value.format(port=port) for key, value in changes.items()}}
    if way.startswith("Confluent"):
        environment = {_confluent(name): value for name, value in environment.items()}
    began = time.monotonic()
    run(_NAME, image(target), environment=environment, options=[*HARD, "-v", f"{folder}:/secrets:ro"])
    try:
        wait_until(lambda: _listens(port), f"port {port} of {target}, {way}")
        first = time.monotonic() - began
        wait_until(lambda: is_healthy(_NAME), f"{target}, {way}, to be healthy: {log_of(_NAME)[-3000:]}")
        who = inside(_NAME, "id").stdout.strip()
        if "uid=12345" not in who or "gid=0" not in who:
            raise ImageTestError(f"The container runs as {who}")
        written = inside(_NAME, "sh", "-c", "touch /opt/connect/x 2>&1", check=False).stdout
        if "Read-only file system" not in written:
            raise ImageTestError(f"The root file system is not read-only: {written}")
        began_stop = time.monotonic()
        command("podman", "--runtime", "runc", "stop", "-t", "30", _NAME)
        code = json.loads(command("podman", "inspect", _NAME).stdout)[0]["State"]["ExitCode"]
        if code:
            raise ImageTestError(f"SIGTERM ended {target}, {way}, with {code}: {log_of(_NAME)[-3000:]}")
        say(
            f"{target}, {way}, read-only but for /tmp, user 12345:0: port open after {first:.1f} s, healthy, "
            f"stopped with 0 after {time.monotonic() - began_stop:.1f} s"
        )
    finally:
        remove(_NAME)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    if json.loads(command("podman", "inspect", _NAME).stdout)[0]["State"]["Running"]:
        return False
    raise ImageTestError(f"The container has ended: {log_of(_NAME)[-3000:]}")


def ask(url: str, method: str = "GET", body: object = None) -> object:
    """A request to a worker's REST API; None where it cannot be answered yet."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data, headers={"Content-Type": "application/json"})
    with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")
    return None


@contextlib.contextmanager
def started(target: str, environment: Mapping[str, str], port: int, options: tuple[str, ...] = ()) -> Iterator[str]:
    """A container whose worker is healthy; its REST API's address."""
    run(_NAME, image(target), environment=environment, options=[*HARD, *options])
    try:
        wait_until(lambda: _listens(port), f"port {port}")
        wait_until(lambda: is_healthy(_NAME), "health")
        yield f"http://127.0.0.1:{port}"
    except BaseException:
        print(log_of(_NAME)[-6000:])
        raise
    finally:
        remove(_NAME)


def _spark(bootstrap: str, folder: Path) -> None:
    """A lakehouse sink in the image writes a table, with the archive of classes and without a download."""
    from confluent_kafka import Producer

    port = free_port()
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        producer.produce("customers", value=json.dumps({"id": number, "name": f"n{number}"}))
    producer.flush(30)
    config = {
        "connector.class": "SparkLakehouseSink",
        "topics": "customers",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "lakehouse.catalog.type": "hadoop",
        "lakehouse.catalog.warehouse": "/warehouse",
        "lakehouse.tables.route-pattern": "shop.{topic}",
        "lakehouse.tables.default-id-columns": "id",
        "lakehouse.tables.auto-create-enabled": "true",
        "lakehouse.control.commit.interval-ms": "5000",
    }
    environment = {**variables(bootstrap, port), "CONNECT_PY_SPARK_SETTINGS": ""}
    with started(
        "lakehouse",
        environment,
        port,
        ("--tmpfs", "/warehouse:mode=1777"),
    ) as url:
        ask(f"{url}/connectors", "POST", {"name": "lake", "config": config})

        def has_files() -> bool:
            status = ask(f"{url}/connectors/lake/status")
            if isinstance(status, dict) and any(task["state"] == "FAILED" for task in status["tasks"]):
                raise ImageTestError(f"The sink has failed: {status}")
            return "parquet" in inside(_NAME, "sh", "-c", "find /warehouse -name '*.parquet'", check=False).stdout

        took = wait_until(has_files, "a file of the lakehouse table")
        archived = inside(_NAME, "sh", "-c", "ls /opt/connect/cache/archives; cat /proc/[0-9]*/cmdline | tr '\\0' ' '", check=False).stdout
        if "-XX:SharedArchiveFile=/opt/connect/cache/archives/" not in archived:
            raise ImageTestError(f"Spark does not use the image's archive of classes: {archived[-2000:]}")
        read = (
            "from pyiceberg.table import StaticTable; print(len(StaticTable.from_metadata('/warehouse/shop/customers').scan().to_arrow()))"
        )
        rows = inside(_NAME, "python", "-c", read).stdout.strip()
        if rows != "5":
            raise ImageTestError(f"The table has {rows} rows and not 5.")
        say(f"lakehouse: a table has its first file {took:.0f} s after the request; Spark uses the class archive")
