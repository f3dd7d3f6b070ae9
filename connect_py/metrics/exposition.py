"""Show metric groups as Prometheus' text, under the names that dashboards of Java workers look for. Pure.

There are two families of names, made by the two usual sets of rules for the JMX exporter:

- `kafka` (the default): Confluent's and Debezium's. ``kafka_connect_source_task_metrics_source_record_poll_total{connector,task}``,
  ``kafka_connect_worker_metrics_connector_count``, ``debezium_metrics_MilliSecondsBehindSource{context,name,plugin}``. The worker's own
  groups begin with ``connect-``, and some dashboards (Confluent's, those for Strimzi's metrics reporter) write that twice:
  ``kafka_connect_connect_worker_metrics_connector_count``. They are few figures, so both spellings are given.
- `strimzi`: Strimzi's and the JMX exporter's own example. ``kafka_connect_source_task_source_record_poll_total``,
  ``kafka_connect_worker_connector_count``, ``kafka_connect_connector_status{connector,status}``; Debezium's are the same.

A text is a label of a series of value 1.

Newer versions of the JMX exporter, and Strimzi's metrics reporter, drop the end ``_total`` of some names and ``_info`` of others, and add
``_info`` to texts. Where dashboards ask for such names, both are given: `_WITHOUT_END`, `_ABOUT`. The time of the start is a label, too.
"""

from __future__ import annotations

import enum
import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from connect_py.api.task import MetricGroup

#: Attributes whose names are given without ``-total`` too. They have no type: as a counter both would be one family.
_WITHOUT_END = frozenset(
    {
        ("connect-worker-rebalance-metrics", "completed-rebalances-total"),
        ("producer-metrics", "outgoing-byte-total"),
        ("producer-metrics", "incoming-byte-total"),
        ("producer-node-metrics", "outgoing-byte-total"),
        ("producer-node-metrics", "incoming-byte-total"),
        ("consumer-metrics", "outgoing-byte-total"),
        ("consumer-metrics", "incoming-byte-total"),
        ("consumer-node-metrics", "outgoing-byte-total"),
        ("consumer-node-metrics", "incoming-byte-total"),
    }
)
_NO_TYPE_ENDS = tuple(
    {f"_{type_}_{name}".replace("-", "_").removeprefix("_connect").removesuffix("_total") for type_, name in _WITHOUT_END}
)
#: Groups whose texts are given as ``…_info`` too.
_ABOUT = frozenset({"connector-metrics", "connector-task-metrics"})

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Names(enum.Enum):
    """Families of names."""

    KAFKA = "kafka"
    STRIMZI = "strimzi"


#: A series: name, labels as text, value.
_Series = tuple[str, str, float]

#: Most figures are 0 or as they were at the last scrape.
_number_text = functools.lru_cache(maxsize=4096)(floatToGoString)


def render(
    groups: Iterable[MetricGroup], accept: str = "", names: Names = Names.KAFKA, process: Iterable[Collector] = ()
) -> tuple[bytes, str]:
    """A scrape's answer and its content type.

    The groups are written here and not through prometheus-client's `Metric`s and samples: those took six times as long, 50 to 70 ms for a
    hundred running tasks, while every other request waited for the interpreter. All names are legal in every version of the format, so that
    no scheme of escaping that a client may ask for changes them.

    Args:
        accept: the request's ``Accept`` header: OpenMetrics is given to who asks for it.
        process: collectors of prometheus-client, such as those of this process; shown after the groups.
    """
    registry = CollectorRegistry(auto_describe=False)
    for collector in process:
        registry.register(collector)
    encode, content_type = choose_encoder(accept)
    is_open_metrics = content_type.startswith("application/openmetrics-text")
    return _text(groups, names, is_open_metrics).encode() + encode(registry), content_type


def _text(groups: Iterable[MetricGroup], names: Names, is_open_metrics: bool) -> str:
    """One family after the other, without an end mark; the figures of a family stand together, whatever groups they come from."""
    families: dict[str, list[str]] = {}
    seen: set[str] = set()
    for group in groups:
        for name, labels, value in _series(group, names):
            # two connectors may share a topic.prefix or a client id; a scrape with a series given twice is refused as a whole
            series = name + labels
            if series not in seen:
                seen.add(series)
                family = families.get(name)
                if family is None:
                    family = families[name] = [_head(name, group, is_open_metrics)]
                family.append(f"{series} {_number_text(value)}\n")
    return "".join(line for family in families.values() for line in family)


def _head(name: str, group: MetricGroup, is_open_metrics: bool) -> str:
    type_ = "counter" if name.endswith("_total") else "gauge"
    if name.removesuffix("_total").endswith(_NO_TYPE_ENDS):
        type_ = "unknown" if is_open_metrics else "untyped"
    # OpenMetrics names the family of a counter without the end that its samples have
    family = name.removesuffix("_total") if is_open_metrics and type_ == "counter" else name
    about = _escaped(f"{group.domain}:type={group.type}")
    return f"# HELP {family} {about}\n# TYPE {family} {type_}\n"


def _series(group: MetricGroup, names: Names) -> Iterator[_Series]:
    labels = _labels(group, names)
    own = _label_text(labels)
    texts = {_clean(name): str(value) for name, value in group.values.items() if isinstance(value, str) or name == "start-time-ms"}
    for prefix in _prefixes(group.domain, group.type, names):
        for attribute, value in group.values.items():
            name = prefix + _clean(attribute)
            if isinstance(value, int | float):
                yield name, own, value
                if (group.type, attribute) in _WITHOUT_END and names is Names.KAFKA:
                    yield name.removesuffix("_total"), own, value
            elif isinstance(value, str):
                if group.type != "app-info":
                    text = _label_text({**labels, _clean(attribute): value})
                    yield name, text, 1
                    if group.type in _ABOUT and names is Names.KAFKA:
                        yield f"{name}_info", text, 1
            elif isinstance(value, Mapping):
                for key, number in value.items():
                    yield name, _label_text({**labels, _key_label(attribute): str(key)}), _number(number)
            else:
                yield name, own, _number(value)
        if texts and group.type in ("connector-metrics", "app-info") and names is Names.KAFKA:
            whole = _label_text({**labels, **texts})
            yield prefix.rstrip("_"), whole, 1
            if group.type == "app-info":
                yield prefix.removesuffix("_info_"), whole, 1


def _label_text(labels: Mapping[str, str]) -> str:
    """In the order of their names, so that equal labels give equal texts."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(labels[name])}"' for name in sorted(labels)) + "}"


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


@functools.lru_cache(maxsize=1024)
def _prefixes(domain: str, type_: str, names: Names) -> list[str]:
    if domain.startswith("debezium."):
        return ["debezium_metrics_"]
    family = _clean(domain)
    if domain not in ("kafka.connect", "kafka.producer", "kafka.consumer"):
        return [f"{family}_{_clean(type_)}_"]
    if names is Names.STRIMZI:
        # the client's name is the beginning of its groups' names, and not repeated
        short = type_.removesuffix("-metrics") if type_ not in ("app-info", "connect-metrics") else ""
        short = short.removeprefix("connect-" if domain == "kafka.connect" else family.removeprefix("kafka_"))
        return ["_".join(part for part in (family, _clean(short).strip("_"), "") if part) + "_"]
    short = type_.removeprefix("connect-")
    return [f"{family}_{_clean(short)}_"] + ([f"{family}_{_clean(type_)}_"] if short != type_ else [])


def _labels(group: MetricGroup, names: Names) -> dict[str, str]:
    """Debezium's beans are labelled by its own example's rules: `name` is the server, `plugin` the connector's kind."""
    if group.domain.startswith("debezium."):
        own = {"server": "name"}
        return {"plugin": group.domain.partition(".")[2]} | {own.get(name, _clean(name)): value for name, value in group.tags.items()}
    joiner = "" if names is Names.STRIMZI else "_"
    return {_clean(name.replace("-", joiner)): value for name, value in group.tags.items()}


def _key_label(attribute: str) -> str:
    """Return what a map's keys are. Debezium's example calls those of RowsScanned tables."""
    return "table" if attribute == "RowsScanned" or attribute.startswith("Table") else "key"


def _number(value: object) -> float:
    """Return a figure; what the pipe from the task could not carry (NaN) came as None."""
    return value if isinstance(value, int | float) else math.nan


@functools.lru_cache(maxsize=4096)
def _clean(name: str) -> str:
    """Return a name's form in Prometheus. Names are few and each scrape asks for all of them."""
    return _NOT_IN_A_NAME.sub("_", name)
