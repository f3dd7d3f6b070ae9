"""Which watermark of a table counts: what its snapshots say, what its property says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_sink.tables.watermark import Watermark

#: Beginning of the key that `Watermark.snapshots` has, where there are any, in summaries, metadata of commits and properties of tables.
BEGUN = "kafka.connect.snapshots-begun."


@dataclass(frozen=True)
class Stored:
    """What a table says about one connector.

    Attributes:
        generation: how often the offsets have been altered or reset.
        snapshot: the newest snapshot of this connector's that is left, if any.
        in_property: whether the table's property says all of it.
        epoch: start of the task that made that snapshot, milliseconds since 1970; 0 when unknown.
    """

    watermark: Watermark
    generation: int
    snapshot: int | None
    in_property: bool
    epoch: int = 0


def newest(
    head: int | None, snapshots: Mapping[int, tuple[int | None, Mapping[str, str]]], properties: Mapping[str, str], connector: str
) -> Stored:
    """The watermark that counts.

    Of the snapshots it is the first with one, from the head through its ancestors. The property can be ahead of it (records that change
    nothing; snapshots that have expired) and counts partition by partition if so, unless it was written for a snapshot that the table was
    rolled back from, or that went with a table which another has replaced (CREATE OR REPLACE keeps properties): then the rows are gone, and
    the snapshots alone say what is there. A higher generation replaces a lower one.

    Args:
        snapshots: parent and summary by id.

    Raises:
        FatalTaskError: what is stored cannot be read.
    """
    offsets_key, begun_key = f"kafka.connect.offsets.{connector}", f"{BEGUN}{connector}"
    line: list[int] = [head] if head is not None and head in snapshots else []
    while (parent := snapshots[line[-1]][0] if line else None) is not None and parent in snapshots:
        line.append(parent)
    step = next((snapshot for snapshot in line if offsets_key in snapshots[snapshot][1]), None)
    text = properties.get(offsets_key)
    of_property = Watermark.parse(text, properties.get(begun_key))
    property_generation = int(properties.get(f"kafka.connect.generation.{connector}", 0))
    written_for = properties.get(f"kafka.connect.snapshot.{connector}")
    rolled_back = written_for is not None and int(written_for) not in line
    if step is None:
        from_the_first = not line or snapshots[line[-1]][0] is None  # else those before have expired
        lost = rolled_back and from_the_first
        return Stored(Watermark() if lost else of_property, property_generation, None, in_property=True)
    summary = snapshots[step][1]
    committed = Watermark.parse(summary[offsets_key], summary.get(begun_key))
    generation = int(summary.get("kafka.connect.generation", 0))
    epoch = int(summary.get("kafka.connect.task-epoch", 0))
    if text is None or rolled_back or property_generation < generation:
        return Stored(committed, generation, step, in_property=False, epoch=epoch)
    if property_generation > generation:
        return Stored(of_property, property_generation, step, in_property=True, epoch=epoch)
    both = committed.merged(of_property)
    return Stored(both, generation, step, in_property=both == of_property, epoch=epoch)
