"""Queries over lakehouse tables by DuckDB: pyiceberg or deltalake give the rows, DuckDB the SQL.

    python read_with_duckdb.py iceberg /warehouse inventory.orders
    python read_with_duckdb.py delta /tables inventory.orders

DuckDB has extensions of its own for both formats (`INSTALL iceberg`, `INSTALL delta`), which it downloads; this way needs none.
"""

import sys

import duckdb

kind, root, name = sys.argv[1:4]
place = f"{root}/{name.replace('.', '/')}"
if kind == "iceberg":
    from pyiceberg.table import StaticTable

    orders = StaticTable.from_metadata(place).scan().to_arrow_batch_reader()  # streamed: a large table need not fit into memory
else:
    import pyarrow
    from deltalake import DeltaTable, QueryBuilder

    orders = pyarrow.RecordBatchReader.from_stream(QueryBuilder().register("t", DeltaTable(place)).execute("SELECT * FROM t"))

print(duckdb.sql('SELECT "__op" AS operation, count(*) AS rows FROM orders GROUP BY ALL ORDER BY ALL').fetchall())
