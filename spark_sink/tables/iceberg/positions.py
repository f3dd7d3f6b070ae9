"""A file of positions of deleted rows, as Iceberg's own writer of them makes it (`PositionDeleteWriter`). Pure.

Iceberg's writer takes a position a call, and a call from Python takes as long as a hundred positions here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Columns, and what the specification knows them by ("Position Delete Files").
COLUMNS: Mapping[str, int] = {"file_path": 2147483546, "pos": 2147483545}


def parquet_of(deleted: Mapping[str, Sequence[int]]) -> bytes:
    """Return the content of a Parquet file.

    Args:
        deleted: sorted positions by the path of their data file.
    """
    import pyarrow as pa
    from pyarrow import parquet

    paths = sorted(deleted)
    of_rows = pa.array(paths, pa.string()).take(pa.concat_arrays([pa.repeat(at, len(deleted[path])) for at, path in enumerate(paths)]))
    positions = pa.concat_arrays([pa.array(deleted[path], pa.int64()) for path in paths])
    fields = [
        pa.field(name, array.type, nullable=False, metadata={"PARQUET:field_id": str(COLUMNS[name])})
        for name, array in zip(COLUMNS, (of_rows, positions), strict=True)
    ]
    table = pa.Table.from_arrays([of_rows, positions], schema=pa.schema(fields, metadata={"delete-type": "position"}))
    content = pa.BufferOutputStream()
    parquet.write_table(table, content, compression="zstd", store_schema=False, use_dictionary=["file_path"])
    return bytes(content.getvalue())
