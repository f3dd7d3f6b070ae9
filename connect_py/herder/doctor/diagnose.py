"""Have a configuration looked at by the doctors of its parts: the configuration itself, the connector's servers, and the worker's Kafka.

Everything that is wrong is found in one run, within `SECONDS`. Servers are asked at the same time, each on a thread; one that has not
answered by then is named as unseen, and its thread ends by the time limits of its own requests. Nothing is changed anywhere.

The answer goes to a client, so that it holds no secret, and no value that a config provider gave: the variable is in its place.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from connect_py.api import Connector
from connect_py.api.doctor import Diagnosis, Finding, Person, merged
from connect_py.config.connector import CONNECTOR_CLASS, secrets_of
from connect_py.config.worker import DISTRIBUTED, STANDALONE, WorkerConfig, worker_warnings
from connect_py.errors import ConfigError, ConnectError
from connect_py.herder import validation
from connect_py.herder.doctor.asking import SECONDS, Job, hider
from connect_py.herder.doctor.kafka_doctor import KafkaDoctor
from connect_py.herder.doctor.own_process import open_file_findings, open_files
from connect_py.log.lines import hiding
from connect_py.log.redact import MIN_LENGTH, redactor, secret_values
from connect_py.plugins.registry import Plugins
from connect_py.providers.resolver import Resolved, Resolver

log = logging.getLogger(__name__)


def diagnose(
    plugins: Plugins,
    worker: Mapping[str, str] | None,
    written: Mapping[str, str | None],
    variables: Resolver | None = None,
    *,
    is_running: bool = False,
    seconds: float = SECONDS,
) -> Diagnosis:
    """Look at everything that a configuration needs.

    Args:
        worker: the worker's properties; None where there is no worker, whose Kafka is then not looked at.
        written: the configuration as its owner wrote it.
        variables: the worker's config providers.
        is_running: whether the worker runs this connector now.
        seconds: how long it may take.

    Returns:
        The findings without secrets.

    Raises:
        BadRequestError: there is no ``connector.class``, or no such class.
    """
    deadline = time.monotonic() + seconds
    try:
        resolved = (variables or Resolver()).resolve(written, owner=None)
    except ConfigError as error:
        return Diagnosis([_variables_finding(str(error))], unseen=["Nothing but the configuration: its variables have no values."])
    secrets = {*resolved.secrets, *secrets_of(plugins, resolved.values), *secret_values(worker or {})}
    hide = hider(written, resolved, secrets)
    with hiding(secrets):
        found = merged(_look(plugins, worker, written, resolved, deadline, is_running=is_running))
    return Diagnosis(
        [
            replace(
                finding,
                what=hide(finding.what),
                why=hide(finding.why),
                role=hide(finding.role),
                statements=tuple(map(hide, finding.statements)),
                advice=hide(finding.advice),
            )
            for finding in found.findings
        ],
        [hide(text) for text in found.looked_at],
        [hide(text) for text in found.unseen],
    )


def diagnose_worker(worker: Mapping[str, str], *, whole: bool) -> Diagnosis:
    """Look at a worker's own properties.

    Args:
        worker: with the values of their variables.
        whole: whether Kafka is looked at, too; `diagnose` does that as well.
    """
    hide = redactor(secret for secret in secret_values(worker) if len(secret) >= MIN_LENGTH)
    definition = DISTRIBUTED if "group.id" in worker else STANDALONE
    findings = [
        Finding("worker.properties", hide(text), "The worker starts all the same.", Person.YOU, severity="risk")
        for text in worker_warnings(worker, definition)
    ]
    try:
        WorkerConfig.parse(worker, definition)
    except ConfigError as error:
        findings.append(
            Finding("worker.properties", hide(str(error)), "The worker does not start.", Person.YOU, advice="Correct the property.")
        )
    own = Diagnosis(findings, looked_at=[f"The properties of a {'distributed' if 'group.id' in worker else 'standalone'} worker"])
    if not whole:
        return own
    job = _Job("Kafka", KafkaDoctor(worker).cluster)
    job.start()
    return merged([own, job.result(time.monotonic() + SECONDS)])


def _look(
    plugins: Plugins,
    worker: Mapping[str, str] | None,
    written: Mapping[str, str | None],
    resolved: Resolved,
    deadline: float,
    *,
    is_running: bool,
) -> list[Diagnosis]:
    config = {name: value for name, value in resolved.values.items() if value is not None}
    connector = plugins.connector((config.get(CONNECTOR_CLASS) or "").strip())
    kafka = None if worker is None else KafkaDoctor(worker, connector, config)
    jobs = [] if kafka is None else [_Job("Kafka", kafka.cluster)]
    for job in jobs:
        job.start()
    own = _configuration(plugins, connector, worker or {}, written, resolved)
    if own.unseen:
        server = Diagnosis()
    else:
        job = _Job(f"What {connector.java_name} needs", lambda: connector().doctor(config, is_running=is_running))
        job.start()
        server = job.result(deadline)
    process = Diagnosis() if worker is None else Diagnosis(list(open_file_findings(*open_files())))
    found = [own, server, process, *(job.result(deadline) for job in jobs)]
    if kafka is not None and not found[-1].unseen and server.topics:
        topics = _Job("The topics of the connector", lambda: kafka.topics(server.topics))
        topics.start()
        found.append(topics.result(deadline))
    return found


def _configuration(
    plugins: Plugins, connector: type[Connector], worker: Mapping[str, str], written: Mapping[str, str | None], resolved: Resolved
) -> Diagnosis:
    """Return what is wrong with the configuration itself; `unseen` says that its server is not looked at because of that."""
    infos = validation.check(plugins, worker, written, resolved.values, connects=connector.doctor is Connector.doctor)
    findings = [
        Finding(
            "configuration",
            error,
            "The connector cannot be created so.",
            Person.YOU,
            advice=f"Correct the property {value.name}.",
        )
        for _, value in infos.configs
        for error in value.errors
    ]
    own = {value.name for key, value in infos.configs if value.errors and key is not None and key.name in connector.config_def().keys}
    findings += [
        Finding(
            "configuration.unknown",
            f"{warning.rstrip('.?')}{warning[-1:]}",
            "Nothing reads the property.",
            Person.YOU,
            advice="Correct its name, or leave it out.",
            severity="risk",
        )
        for warning in infos.warnings
    ]
    findings += [
        _variables_finding(f"The property {name} has the variable {variable.text}, for which no provider has a value.")
        for name, variable in resolved.missing
    ]
    missing = own or (["its variables"] if resolved.missing else [])
    unseen = [f"The server of the connector, since these properties are wrong: {', '.join(sorted(missing))}"] if missing else []
    return Diagnosis(findings, unseen=unseen)


def _variables_finding(text: str) -> Finding:
    return Finding(
        "configuration.variables",
        text,
        "A start of the connector fails.",
        Person.YOU,
        advice="Correct the variable, or config.providers in the worker's properties.",
    )


class _Job:
    """One part, on a thread of its own; what it raises becomes an entry of `Diagnosis.unseen`."""

    def __init__(self, what: str, work: Callable[[], Diagnosis]) -> None:
        self._what, self._job = what, Job(work)

    def start(self) -> None:
        self._job.start()

    def result(self, deadline: float) -> Diagnosis:
        """Return what it found by then."""
        try:
            return self._job.result(deadline)
        except (ConnectError, TimeoutError) as error:
            return Diagnosis(unseen=[f"{self._what}: {error}"])
        except Exception as error:  # a connector's doctor must not turn a request into a 500
            log.warning("%s could not be looked at", self._what, exc_info=True)
            return Diagnosis(unseen=[f"{self._what}: {type(error).__name__}: {error}"])
