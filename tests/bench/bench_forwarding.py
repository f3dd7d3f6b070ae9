"""What it costs that a request reaches a follower: `python -m tests.bench.bench_forwarding [--requests 200] [--https]`.

Starts a broker and two workers of one group, and prints the median, the 99th percentile and the longest of

- POST /connectors with ``initial_state=STOPPED``, directly and through the follower, one of each in turn; the connector is deleted after
  each, and the next one waits until the group has come to rest,
- POST /connectors/none/restart, which the leader refuses at once: the way there and back alone,
- a read that no worker passes on, for the share of the follower itself.

The first request of each kind is not counted: it imports what checks a configuration. Each request has a connection of its own to the
worker that is asked, as most clients' have. With ``--https`` the workers reach each other by TLS with certificates of both sides.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from pathlib import Path

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import free_port, wait_until
from connect_py.app.services.worker import RefusedError, Worker
from tests.certificates import Identity
from tests.cluster import last_leader_url

CONFIG = {"connector.class": "FileStreamSource", "file": "/no/such/file", "topic": "bench-lines", "tasks.max": "1"}


def tls_properties(folder: Path, authority: Identity, plain: int, secured: int) -> dict[str, str]:
    """Properties of a worker that advertises https and asks for a client's certificate."""
    identity = Identity("worker", authority)
    store, trust = folder / f"{secured}.pem", folder / "trust.pem"
    store.write_text(identity.key_pem() + identity.chain_pem)
    trust.write_text(authority.chain_pem)
    return {
        "listeners": f"http://127.0.0.1:{plain},https://127.0.0.1:{secured}",
        "rest.advertised.listener": "https",
        "rest.advertised.port": str(secured),
        "listeners.https.ssl.client.auth": "required",
        "listeners.https.ssl.keystore.location": str(store),
        "listeners.https.ssl.truststore.location": str(trust),
    }


def milliseconds(worker: Worker, method: str, path: str, body: object = None) -> float:
    """Time of one request; a refusal is an answer, too."""
    began = time.perf_counter()
    with contextlib.suppress(RefusedError):
        worker.request(method, path, body)
    return (time.perf_counter() - began) * 1000


def rest(workers: list[Worker]) -> None:
    """Wait until no worker is about to have a round of the group."""
    for worker in workers:
        wait_until(lambda worker=worker: worker.request("GET", "/connectors") == [], 30, "end of the connector", worker.service.is_alive)
    time.sleep(0.3)


def show(what: str, times: list[float]) -> None:
    times = sorted(times[1:])
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    print(f"{what:40} {statistics.median(times):8.1f} {p99:8.1f} {times[-1]:8.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--https", action="store_true")
    asked = parser.parse_args()
    asked.requests += 1
    with tempfile.TemporaryDirectory() as named, contextlib.ExitStack() as stack:
        folder = Path(named)
        kafka = KafkaBroker(folder / "kafka")
        stack.callback(kafka.stop)
        workers: list[Worker] = []
        shared: dict[str, str] = {}
        authority = Identity("authority")
        for number in range(2):
            plain, secured = free_port(), free_port()
            tls = tls_properties(folder, authority, plain, secured) if asked.https else {}
            worker = Worker(folder / f"worker-{number}", kafka.bootstrap, port=plain, properties={**shared, **tls})
            stack.callback(worker.kill)
            shared = {name: value for name, value in worker.properties.items() if name == "group.id" or name.endswith(".storage.topic")}
            workers.append(worker)
        leader, follower = workers
        wait_until(lambda: bool(last_leader_url(follower)), 60, "the second worker in the group", follower.service.is_alive)
        ways = {"directly": leader, "through the follower": follower}
        print(f"{'request':40} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
        for method, path in (("GET", "/connectors"), ("POST", "/connectors/none/restart")):
            for way, worker in ways.items():
                show(f"{method} {path}, {way}", [milliseconds(worker, method, path) for _ in range(asked.requests)])
        posts: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(asked.requests):
            for way, worker in ways.items():
                name = f"bench-{number}"
                body = {"name": name, "config": CONFIG, "initial_state": "STOPPED"}
                posts[way].append(milliseconds(worker, "POST", "/connectors", body))
                leader.delete(name)
                rest(workers)
        for way, times in posts.items():
            show(f"POST /connectors, {way}", times)


if __name__ == "__main__":
    main()
