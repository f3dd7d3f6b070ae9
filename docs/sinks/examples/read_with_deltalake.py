"""Rows, schema and offsets of a Delta table by deltalake. No Java, no Spark.

python read_with_deltalake.py /tables inventory.orders
"""

import json
import sys

import pyarrow
from deltalake import DeltaTable, QueryBuilder

root, name = sys.argv[1:3]
table = DeltaTable(f"{root}/{name.replace('.', '/')}")

print(table.schema().to_json())
# the query engine knows deletion vectors, which upsert tables have; to_pyarrow_table does not
rows = pyarrow.table(QueryBuilder().register("orders", table).execute("SELECT * FROM orders").read_all())
print(f"{rows.num_rows} rows")
print(rows.slice(0, 5).to_pylist())

# how far the sink has got: next offsets, by topic and partition, are in its newest commit
for commit in table.history():
    if offsets := {key: value for key, value in json.loads(commit.get("userMetadata") or "{}").items() if ".offsets." in key}:
        print(offsets)
        break
