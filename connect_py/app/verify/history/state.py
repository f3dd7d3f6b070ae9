"""Test what is left when all is applied: the topic must be the table, and the lakehouse table must be the topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connect_py.app.verify.history.records import Change, Finding, Invariant, Op, Row, Rows
from connect_py.app.verify.history.trail import KeyTrail, Trail


def journal_and_source(trail: Trail) -> Iterator[Finding]:
    """Yield rows of the source that are not what the journal says: the journal is no witness then, and this comes first."""
    for table, rows in (trail.history.rows or {}).items():
        for key in _keys(trail, table):
            change, row = trail.last_state(key), rows.get(key.key)
            if difference := _difference(change, row):
                yield Finding(Invariant.JOURNAL, table, key.key, f"the source {difference}, by the journal")
        for other in sorted(rows.keys() - {key.key for key in _keys(trail, table)}):
            yield Finding(Invariant.JOURNAL, table, other, "the source has the row, and the journal has no change of it")


def folded_topic(trail: Trail) -> Iterator[Finding]:
    """Yield keys of which the records, applied in order, leave something else than the journal says is there."""
    promise = trail.history.promise
    begin = promise.start if promise.start is not None else (trail.first_line() or 0) - 1
    spread = _spread(trail)
    for key in trail:
        if key.table in spread:
            continue
        if not key.steps and not promise.snapshot and all(change.line <= begin for change in key.changes):
            continue
        wanted, left = trail.last_state(key), trail.folded(key)
        row = None if left is None else Row(left.event.sequence, left.event.digest)
        if difference := _difference(wanted, row):
            yield Finding(Invariant.TABLE, key.table, key.key, f"the topic, folded by key, {difference}")


def lakehouse(trail: Trail) -> Iterator[Finding]:
    """Yield rows of the sink's tables that are not the source's at the end, or that have gone back from one commit to the next."""
    for table, versions in (trail.history.sink_versions or {}).items():
        if not versions:
            continue
        for key in _keys(trail, table):
            yield from _versions(key, versions)
            if difference := _difference(trail.last_state(key), versions[-1].get(key.key)):
                yield Finding(Invariant.LAKEHOUSE, table, key.key, f"the lakehouse table {difference}")
        known = {key.key for key in _keys(trail, table)}
        for other in sorted({each for version in versions for each in version} - known):
            yield Finding(
                Invariant.LAKEHOUSE, table, other, "the lakehouse table has, or had, the row, and the journal has no change of it"
            )


def _versions(key: KeyTrail, versions: Sequence[Rows]) -> Iterator[Finding]:
    """Yield commits at which the key has gone back: each shows a change that is not before the one shown last."""
    places = {change.sequence: place for place, change in enumerate(key.changes)}
    at = -1
    for number, version in enumerate(versions):
        row = version.get(key.key)
        if row is None:
            continue  # deleted, truncated, or not written yet; the next row must not be an older one
        place = places.get(row.sequence) if row.sequence is not None else None
        if place is None or key.changes[place].op is Op.DELETE:
            yield Finding(Invariant.LAKEHOUSE, key.table, key.key, f"commit {number} has row {row.sequence}, which nobody has committed")
        elif place < at:
            before = key.changes[at].sequence
            yield Finding(
                Invariant.LAKEHOUSE, key.table, key.key, f"commit {number} has row {row.sequence}, and one before it had {before}"
            )
        else:
            at = place
        if place is not None and _digests_differ(key.changes[place].digest, row.digest):
            evidence = f"commit {number} has other values of row {row.sequence} than were committed"
            yield Finding(Invariant.LAKEHOUSE, key.table, key.key, evidence)


def _keys(trail: Trail, table: str) -> list[KeyTrail]:
    return [key for key in trail if key.table == table]


def _spread(trail: Trail) -> set[str]:
    """Return tables with a TRUNCATE and several partitions: which records of the others are before it is not known."""
    partitions: dict[str, set[tuple[str, int]]] = {}
    for event in trail.history.events:
        partitions.setdefault(event.table, set()).add((event.topic, event.partition))
    return {table for table, places in partitions.items() if len(places) > 1 and trail.truncates.get(table)}


def _difference(wanted: Change | None, found: Row | None) -> str:
    if wanted is None:
        return "" if found is None else f"has row {found.sequence}, and there must be none"
    if found is None:
        return f"has no row, and there must be row {wanted.sequence}"
    if found.sequence != wanted.sequence:
        return f"has row {found.sequence}, and there must be row {wanted.sequence}"
    return f"has other values of row {wanted.sequence}" if _digests_differ(wanted.digest, found.digest) else ""


def _digests_differ(one: str | None, two: str | None) -> bool:
    return one is not None and two is not None and one != two
