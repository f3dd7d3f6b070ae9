"""Records that cannot be applied, with ``errors.tolerance=all``: found one by one, and handed to the runtime before anything is committed.

Decoding stops at the first bad record of a batch, since a check costs nothing then. Only after that are the others looked for: first all
that fail a check of their form, in one pass; else, since the failure came from a conversion, by halving the batch's ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from connect_py.api.record import TopicPartition
from connect_py.api.task import BadRecord, BatchSinkContext
from connect_py.errors import DataError, FatalTaskError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.errors import first_line, is_of_records
from spark_sink.read.ranges import Range, describe_record
from spark_sink.read.reader import Batch, Group, Reader
from spark_sink.types.columns import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Why records are bad, by where they are.
Problems = dict[tuple[TopicPartition, int], str]


def of_groups(groups: Sequence[Group], batch: Batch, config: SinkConfig) -> Problems:
    """Records of which the schema, or the want of a table, already says that they are bad."""
    found: Problems = {}
    for group in groups:
        if group.problem is not None:
            rows = batch.records(group, None, config).select("topic", "partition", "offset", "problem").limit(_bound(config)).collect()
            found |= {(TopicPartition(row["topic"], row["partition"]), row["offset"]): row["problem"] or group.problem for row in rows}
    return found


def of_table(groups: Sequence[Group], batch: Batch, ranges: Mapping[TopicPartition, Range], config: SinkConfig) -> Problems:
    """Records that make the decoding of one table's groups fail."""
    found: Problems = {}
    for group in groups:
        rows = batch.problems(group, None, config).limit(_bound(config)).collect()
        found |= {(TopicPartition(row["topic"], row["partition"]), row["offset"]): row["problem"] for row in rows}
    if found:
        return found
    for group in groups:
        for tp, whole in ranges.items():
            if tp.topic == group.fingerprint.topic:
                _halve(tp, whole, lambda condition, group=group: batch.decoded(group, condition, config), found, _bound(config))  # type: ignore[misc]
    return found


def _halve(tp: TopicPartition, whole: Range, decoded: Callable[[str], DataFrame], found: Problems, bound: int) -> None:
    """Decode a range, then the halves of what fails."""
    pending = [whole]
    while pending and len(found) < bound:
        start, end = pending.pop()
        here = f"`topic` = {literal(tp.topic)} AND `partition` = {tp.partition} AND `offset` >= {start} AND `offset` < {end}"
        try:
            decoded(here).write.format("noop").mode("overwrite").save()
        except Exception as error:
            if not is_of_records(error):
                raise
            if end - start == 1:
                found[(tp, start)] = first_line(str(error))
            else:
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]


def reject(found: Problems, batch: Batch, reader: Reader, context: BatchSinkContext, config: SinkConfig) -> None:
    """Leave records out of a batch, after the runtime has reported them.

    Raises:
        FatalTaskError: they are too many, or the dead letter queue does not take them; nothing of the batch's rest was written.
    """
    if len(batch.rejected) + len(found) > config["errors.max-per-batch"]:
        (tp, offset), why = next(iter(sorted(found.items())))
        raise FatalTaskError(
            f"More than lakehouse.errors.max-per-batch={config['errors.max-per-batch']} records of one batch are bad, so it is likely that "
            f"the configuration is. The first: {describe_record(tp, offset)}: {why}. No offset moved."
        )
    records = [
        BadRecord(
            row["topic"],
            row["partition"],
            row["offset"],
            int(row["timestamp"].timestamp() * 1000),
            None if row["key"] is None else bytes(row["key"]),
            None if row["value"] is None else bytes(row["value"]),
            [(header["key"], None if header["value"] is None else bytes(header["value"])) for header in row["headers"] or ()],
            DataError(found[(TopicPartition(row["topic"], row["partition"]), row["offset"])]),
        )
        for row in reader.raw(found)
    ]
    context.reject(records)
    batch.rejected = batch.rejected | set(found)  # a new set: other tables of the batch may be reading this one


def _bound(config: SinkConfig) -> int:
    return int(config["errors.max-per-batch"]) + 1
