"""How many panels of public Grafana dashboards have data from a worker. Pure; `tests/integration/test_dashboards.py` asks a real worker.

The dashboards are other projects' and not in this repository: the variable CONNECT_DASHBOARDS names a folder with the files of `PUBLIC`.

A panel has data if one of its queries has. A query has data if each of its selectors finds a series: by its name, and by those of its
matchers that are on labels of the worker. Variables of a dashboard match everything, and so do labels that Prometheus or Kubernetes add.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from connect_py.metrics.exposition import Names

_CONFLUENT = "confluentinc/jmx-monitoring-stacks/jmxexporter-prometheus-grafana/assets/grafana/provisioning"
_STRIMZI = "strimzi/strimzi-kafka-operator/packaging/examples/metrics"


class Public(NamedTuple):
    """A dashboard; `file` is its name in the folder, `origin` where it is on GitHub."""

    file: str
    origin: str
    names: Names = Names.KAFKA


PUBLIC = (
    Public("debezium-dashboard.json", "debezium/debezium-examples/monitoring/debezium-grafana/debezium-dashboard.json"),
    Public(
        "debezium-mysql-connector-dashboard.json",
        "debezium/debezium-examples/monitoring/debezium-grafana/debezium-mysql-connector-dashboard.json",
    ),
    Public("confluent-debezium-connectors.json", f"{_CONFLUENT}/dashboards/debezium-connectors.json"),
    Public("confluent-kafka-connect-cluster.json", f"{_CONFLUENT}/dashboards/kafka-connect-cluster.json"),
    Public("confluent-old-exporter-kafka-connect-cluster.json", f"{_CONFLUENT}/dashboards-old-exporter/kafka-connect-cluster.json"),
    Public("strimzi-jmx-exporter-kafka-connect.json", f"{_STRIMZI}/grafana-dashboards/strimzi-kafka-connect.json", Names.STRIMZI),
    Public(
        "strimzi-metrics-reporter-kafka-connect.json",
        f"{_STRIMZI}/strimzi-metrics-reporter/grafana-dashboards/strimzi-kafka-connect.json",
    ),
)

#: Labels that Prometheus, or what finds a worker for it, adds.
_ADDED = re.compile(r"job|instance|env|namespace|pod|container|kubernetes_\w+|strimzi_\w+|kafka_connect_cluster_id")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_CLAUSE = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\})?(?=\s*(.)?)")
_MATCHER = re.compile(r"(\w+)\s*(=~|!~|!=|=)\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')")
_WORDS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan"})

Series = Mapping[str, list[Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel and its queries."""

    title: str
    queries: tuple[str, ...]

    @property
    def is_of_the_jvm(self) -> bool:
        """Whether there is nothing to ask a worker without a JVM."""
        return all("jvm_" in query for query in self.queries)


def panels(dashboard: Mapping[str, Any]) -> list[Panel]:
    """Return the panels that ask for something, of a dashboard's JSON."""
    return list(_panels(dashboard))


def _panels(where: Mapping[str, Any]) -> Iterator[Panel]:
    for part in (*where.get("panels", ()), *where.get("rows", ())):
        yield from _panels(part)
        queries = tuple(query for target in part.get("targets", ()) if (query := str(target.get("expr") or "").strip()))
        if queries:
            yield Panel(str(part.get("title") or "").strip(), queries)


def series_of(scrape: str) -> Series:
    """Return the labels of each series, by name."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for family in text_string_to_metric_families(scrape):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def has_data(query: str, series: Series) -> bool:
    """Return whether each selector of a query finds a series."""
    return all(any(_fits(labels, matchers) for labels in series.get(name, ())) for name, matchers in selectors(query))


def selectors(query: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return names and (label, operator, text) of the matchers that count."""
    found = []
    for name, matchers, after in _SELECTOR.findall(_without_strings(_CLAUSE.sub(" ", query))):
        if after != "(" and name.lower() not in _WORDS:
            found.append((name, matchers))
    whole = _CLAUSE.sub(" ", query)
    texts = re.findall(r"\{[^}]*\}", _hide_braces(whole))
    given = iter(texts)
    return [(name, _counting(next(given)) if matchers else []) for name, matchers in found]


def _hide_braces(query: str) -> str:
    return _STRING.sub(lambda found: found.group().replace("{", " ").replace("}", " "), query)


def _without_strings(query: str) -> str:
    return re.sub(r"\[[^\]]*\]", " ", _STRING.sub('""', query))


def _counting(matchers: str) -> list[tuple[str, str, str]]:
    given = [(label, operator, text[1:-1]) for label, operator, text in _MATCHER.findall(matchers)]
    return [each for each in given if "$" not in each[2] and not _ADDED.fullmatch(each[0])]


def _fits(labels: Mapping[str, str], matchers: Iterable[tuple[str, str, str]]) -> bool:
    for label, operator, text in matchers:
        value = labels.get(label, "")
        is_equal = re.fullmatch(text, value) is not None if "~" in operator else value == text
        if is_equal is operator.startswith("!"):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Count:
    """How a dashboard fares."""

    total: int
    of_the_jvm: int
    empty: tuple[Panel, ...]

    @property
    def filled(self) -> int:
        """The number of panels with data."""
        return self.total - self.of_the_jvm - len(self.empty)

    @property
    def share(self) -> float:
        """Panels with data, of those that are not about the JVM."""
        return self.filled / (self.total - self.of_the_jvm)


def count(file: Path, series: Series) -> Count:
    """Count the panels of a dashboard."""
    found = panels(json.loads(file.read_text()))
    asked = [panel for panel in found if not panel.is_of_the_jvm]
    empty = tuple(panel for panel in asked if not any(has_data(query, series) for query in panel.queries))
    return Count(len(found), len(found) - len(asked), empty)


def table(counts: Mapping[str, Count]) -> str:
    """Return docs/evidence/dashboards.md's table and the list of empty panels."""
    lines = ["| dashboard | panels | of the JVM | with data | share |", "|---|---|---|---|---|"]
    lines += [f"| {file} | {each.total} | {each.of_the_jvm} | {each.filled} | {each.share:.0%} |" for file, each in counts.items()]
    asked = sum(each.total - each.of_the_jvm for each in counts.values())
    filled = sum(each.filled for each in counts.values())
    lines += [
        f"| together | {asked + sum(each.of_the_jvm for each in counts.values())} | | {filled} | {filled / asked:.0%} |",
        "",
        "Empty:",
        "",
    ]
    lines += [f"- {file}: {panel.title}" for file, each in counts.items() for panel in each.empty]
    return "\n".join(lines)
