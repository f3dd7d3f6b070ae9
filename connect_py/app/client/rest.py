"""Send requests to a Connect worker.

Only Kafka Connect's own resources are used, so that a Java worker answers the same; `ConnectClient.send_signal`,
`ConnectClient.notifications`, `ConnectClient.log_lines`, `ConnectClient.doctor`, `ConnectClient.page_state` and
`ConnectClient.page_connector` are this project's and say so when a worker does not have them.

A client belongs to one thread. It follows no redirect: the password would travel to whatever address the answer names.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

from connect_py.errors import ConfigError, ConnectError, NotFoundError, RestError, RetriableError
from connect_py.log.redact import readable, scrub
from connect_py.tls import verifying_context

#: Longer than the worker's own limit for a request, which is Kafka Connect's (90 s).
TIMEOUT_SECONDS = 100.0

#: How long a request is repeated while the workers' group rebalances; Java's worker refuses requests for that time.
CONFLICT_SECONDS = 30.0
_CONFLICT_PAUSE = 0.5

#: What Kafka Connect's 409 says when the same request can succeed a moment later (`RebalanceNeededException`, `StaleConfigException`).
_PASSES = ("Cannot complete request", "rebalance")

#: Characters of an answer that is no JSON, in an error.
_SHOWN = 300


@dataclass(frozen=True)
class Target:
    """Where requests go, and as whom.

    Attributes:
        url: of the worker's REST API, without a slash at the end.
        user: for basic authentication; empty for none.
        ca_file: PEM file of the authorities that are trusted for https, instead of the machine's.
        cert_file: PEM file of the client's certificate and, unless `key_file` names another file, its key.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def __post_init__(self) -> None:
        parts = _parts(self.url)
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{readable(scrub(self.url))} is no URL of a worker: write http://host:8083 or https://host:8443")
        if "@" in parts.netloc:
            raise ConfigError("A worker's URL holds no user and no password: give --user and --password-file")
        if self.user and not self.password:
            raise ConfigError(f"There is no password for the user {self.user}: give --password-file")


def _parts(url: str) -> urllib.parse.SplitResult | None:
    """Return a URL's parts; None for one that cannot be sent: a port that is none, an unclosed bracket, a space, a host without a name."""
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:  # also of idna
        return None
    return parts if url.isprintable() and " " not in url and not parts.query and not parts.fragment else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str) -> None:
        """Follow nothing: urllib then raises the answer as an error."""


class ConnectClient:
    """A worker, by its REST API.

    Every method raises RetriableError when the worker does not answer, NotFoundError for a 404 and RestError for another refusal.

    Args:
        clock: gives seconds, `pause` waits for some: for the repetition of requests during a rebalance.

    Raises:
        ConfigError: a certificate cannot be read.
    """

    def __init__(self, target: Target, *, clock: Callable[[], float] = time.monotonic, pause: Callable[[float], None] = time.sleep) -> None:
        self.url = target.url.rstrip("/")
        self._clock, self._pause = clock, pause
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if self.url.startswith("https://"):
            handlers.append(urllib.request.HTTPSHandler(context=_tls(target)))
        self._opener = urllib.request.build_opener(*handlers)
        self._headers = {"Accept": "application/json"}
        if target.user:
            credentials = base64.b64encode(f"{target.user}:{target.password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {credentials}"

    # -- requests ----------------------------------------------------------------------------------------------------------------

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Send one request and return the answer's JSON, None where it has no content; repeated while the group rebalances."""
        deadline = self._clock() + CONFLICT_SECONDS
        while True:
            try:
                return self._send(method, path, body)
            except RestError as error:
                if error.status != 409 or not any(text in str(error) for text in _PASSES) or self._clock() > deadline:
                    raise
            self._pause(_CONFLICT_PAUSE)

    def _send(self, method: str, path: str, body: object) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if data is None else {**self._headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)  # noqa: S310  # Target checks the scheme
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            raise _refusal(error.code, error.read(), f"{method} {path}") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise RetriableError(f"The worker at {self.url} does not answer: {reason}") from error
        try:
            return json.loads(content) if content.strip() else None
        except ValueError as error:
            raise ConnectError(f"{self.url} does not answer with JSON, so it is no Connect worker: {_shown(content)}") from error

    # -- Kafka Connect's resources -----------------------------------------------------------------------------------------------

    def worker(self) -> Mapping[str, Any]:
        """Return version, commit and Kafka cluster id."""
        return self._object("/")

    def names(self) -> list[str]:
        """Return the connectors' names, sorted."""
        found = self.request("GET", "/connectors")
        return sorted(str(name) for name in found or ())

    def connectors(self) -> dict[str, Mapping[str, Any]]:
        """Return name → ``{"info": …, "status": …}`` of all connectors, in one request (KIP-465), sorted by name."""
        found = self._object("/connectors?expand=info&expand=status")
        return {name: found[name] for name in sorted(found)}

    def info(self, name: str) -> Mapping[str, Any]:
        """Return name, type, config and tasks."""
        return self._object(_connector(name))

    def config(self, name: str) -> dict[str, str]:
        """Return the configuration as the worker shows it."""
        return dict(self._object(_connector(name, "config")))

    def status(self, name: str) -> Mapping[str, Any]:
        """Return the states of the connector and its tasks."""
        return self._object(_connector(name, "status"))

    def topics(self, name: str) -> list[str]:
        """Return the topics that the connector has used (KIP-558), sorted."""
        found = self._object(_connector(name, "topics"))
        return sorted(found.get(name, {}).get("topics", ()))

    def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the connector's offsets (KIP-875)."""
        found: Sequence[Mapping[str, Any]] = self._object(_connector(name, "offsets")).get("offsets", ())
        return found

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector, or replace its configuration."""
        self.request("PUT", _connector(name, "config"), dict(config))

    def create(self, name: str, config: Mapping[str, str], initial_state: str | None = None) -> None:
        """Create a connector, in ``initial_state`` RUNNING, PAUSED or STOPPED (KIP-980)."""
        body = {"name": name, "config": dict(config), **({"initial_state": initial_state} if initial_state else {})}
        self.request("POST", "/connectors", body)

    def patch_config(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set some properties and remove those that are None: by PATCH (KIP-477), or on workers before 3.8 by reading and writing."""
        try:
            self.request("PATCH", _connector(name, "config"), dict(changes))
        except RestError as error:
            if error.status != 405:
                raise
            changed: dict[str, str | None] = {**self.config(name), **changes}
            self.put_config(name, {key: value for key, value in changed.items() if value is not None})

    def delete(self, name: str) -> None:
        """Delete a connector."""
        self.request("DELETE", _connector(name))

    def delete_offsets(self, name: str) -> None:
        """Forget the offsets of a stopped connector."""
        self.request("DELETE", _connector(name, "offsets"))

    def set_state(self, name: str, verb: str) -> None:
        """``pause``, ``resume`` or ``stop`` a connector."""
        self.request("PUT", _connector(name, verb))

    def restart(self, name: str, *, tasks: bool, only_failed: bool) -> None:
        """Restart a connector (KIP-745), with its tasks or alone, all of it or what failed."""
        query = f"includeTasks={str(tasks).lower()}&onlyFailed={str(only_failed).lower()}"
        self.request("POST", f"{_connector(name, 'restart')}?{query}")

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self.request("POST", _connector(name, f"tasks/{task}/restart"))

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """Return class, type and version of each plugin."""
        found: Sequence[Mapping[str, Any]] = self.request("GET", f"/connector-plugins?connectorsOnly={str(connectors_only).lower()}")
        return found

    def loggers(self) -> Mapping[str, Any]:
        """Return logger → level and when it was set."""
        return self._object("/admin/loggers")

    # -- this project's ----------------------------------------------------------------------------------------------------------

    def send_signal(self, name: str, kind: str, data: Mapping[str, Any]) -> str:
        """Send a signal to a connector's tasks and return its id.

        Raises:
            ConnectError: the worker has no such request; Kafka Connect's has not.
        """
        return str(self._own(name, "signals", {"type": kind, "data": dict(data)})["id"])

    def notifications(self, name: str, since: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return a connector's notifications, oldest first; with `since`, those after that ``sequence``. Raises as `send_signal`."""
        query = "notifications?limit=1000" + (f"&since={since}" if since is not None else "")
        found: Sequence[Mapping[str, Any]] = self._own(name, query)["notifications"]
        return found

    def log_lines(self, name: str, since: str = "0") -> tuple[list[tuple[int, int, str]], str]:
        """Return (number, task, line) of the last lines of the connector's tasks, and what to pass as `since` for the lines after them.

        Raises:
            ConnectError: the worker does not answer that.
        """
        try:
            found = self._object(f"/ui/api{_connector(name, 'log')}?since={urllib.parse.quote(since, safe='')}")
        except NotFoundError as error:
            raise ConnectError(
                f"The worker at {self.url} shows no log: it has rest.ui=off, or is Kafka Connect's in Java. Look into its log file, for "
                f"lines with [{name}|"
            ) from error
        return [(int(number), int(task), str(line)) for number, task, line in found["lines"]], str(found["next"])

    def doctor(self, java_class: str, config: Mapping[str, str]) -> Mapping[str, Any]:
        """Return everything that a configuration and its servers lack (docs/doctor.md); Kafka Connect's worker answers 404."""
        found: Mapping[str, Any] = self.request(
            "POST", f"/connector-plugins/{urllib.parse.quote(java_class, safe='')}/doctor", dict(config)
        )
        return found

    def page_state(self, since: int | None = None) -> Mapping[str, Any]:
        """Return how all connectors are, or those that have changed since the ``seq`` of an answer (docs/ui.md).

        Raises:
            ConnectError: the worker has no page; Kafka Connect's has not.
        """
        try:
            return self._object("/ui/api/state" + (f"?since={since}" if since is not None else ""))
        except NotFoundError as error:
            raise ConnectError(
                f"The worker at {self.url} has no page: it is Kafka Connect's in Java, or its rest.ui is off. Use "
                "connect-py status --watch, which works with every worker."
            ) from error

    def page_connector(self, name: str) -> Mapping[str, Any]:
        """Return what the page shows of one connector (docs/ui.md)."""
        return self._object(f"/ui/api{_connector(name)}")

    def _own(self, name: str, path: str, body: object = None) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = self.request("POST" if body is not None else "GET", _connector(name, path), body)
        except NotFoundError as error:
            if name not in self.names():
                raise NotFoundError(f"There is no connector {name}") from error
            raise ConnectError(
                f"The worker at {self.url} takes no signals by REST, as Kafka Connect's in Java does not. Nothing was sent. Write the "
                "signal into the connector's signal.data.collection or its signal.kafka.topic instead."
            ) from error
        return found

    def _object(self, path: str) -> Mapping[str, Any]:
        found = self.request("GET", path)
        if not isinstance(found, dict):
            raise ConnectError(f"{self.url}{path} does not answer as a Connect worker does")
        return found


def _connector(name: str, rest: str = "") -> str:
    return f"/connectors/{urllib.parse.quote(name, safe='')}" + (f"/{rest}" if rest else "")


def _tls(target: Target) -> ssl.SSLContext:
    try:
        context = verifying_context(target.ca_file or None)
        if target.cert_file:
            context.load_cert_chain(target.cert_file, target.key_file or None)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (target.ca_file, target.cert_file, target.key_file)))
        raise ConfigError(f"A certificate or key cannot be read ({files}): {error}") from error
    return context


def _refusal(status: int, content: bytes, what: str) -> RestError:
    try:
        message = str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        message = _shown(content)
    if status == 401:
        message = "The worker asks for a user and a password: give --user and --password-file, or set them in a context"
    if 300 <= status < 400:
        message = f"{what} was answered with a redirect, which is not followed: give the address that it leads to"
    if status == 404:
        return NotFoundError(message)
    return RestError(message or f"{what} was answered with {status}", status)


def _shown(content: bytes) -> str:
    text = " ".join(content.decode(errors="replace").split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def password_from_file(path: str) -> str:
    """Return the first line of a file.

    Raises:
        ConfigError: it cannot be read, or is empty.
    """
    try:
        lines = Path(path).expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The password file {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not lines or not lines[0]:
        raise ConfigError(f"The password file {path} has no password in its first line")
    return lines[0]
