"""Which of a record's columns a table takes, and by which it finds rows: `id-columns` and `exclude-columns`. Pure."""

from __future__ import annotations

from dataclasses import replace

from connect_py.errors import FatalTaskError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.sql.record_schema import Column, Form, RecordSchema


def of_table(schema: RecordSchema, table: str, config: SinkConfig) -> RecordSchema | None:
    """A record's schema as a table's configuration wants it; None for tombstones that do not say which row they mean, or say nothing.

    Raises:
        FatalTaskError: the records do not have a column that is to identify them, or it is excluded.
    """
    chosen, excluded = config["tables.default-id-columns"] or (), frozenset(config["tables.exclude-columns"] or ())
    if field := config["tables.cdc-field"]:
        if schema.form is Form.TOMBSTONE:
            return None  # the field says which records are deletes
        if schema.form is Form.FLAT:
            schema = replace(schema, operation=tuple(field.split(".")))
    if not (chosen or excluded):
        return schema
    by_name = {column.name: column for column in schema.columns}
    if schema.form is Form.TOMBSTONE and not set(chosen) <= by_name.keys():
        return None
    if lacking := [name for name in chosen if name not in by_name]:
        raise FatalTaskError(
            f"Rows of table {table} are to be identified by {', '.join(lacking)}, and the records have {', '.join(by_name) or 'nothing'}. "
            "Nothing was written; change lakehouse.tables.default-id-columns or the table's id-columns."
        )
    keys: tuple[Column, ...] = tuple(by_name[name] for name in chosen) or schema.keys
    if clash := sorted(excluded & {column.name for column in keys}):
        raise FatalTaskError(f"Columns {', '.join(clash)} identify the rows of table {table} and cannot be excluded. Nothing was written.")
    return replace(schema, keys=keys, columns=tuple(column for column in schema.columns if column.name not in excluded))
