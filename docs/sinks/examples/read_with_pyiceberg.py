"""Rows, schema and offsets of an Iceberg table by pyiceberg. No Java, no Spark.

python read_with_pyiceberg.py /warehouse inventory.orders                     a Hadoop catalog: a directory
python read_with_pyiceberg.py http://localhost:8181 inventory.orders          a REST catalog
"""

import json
import sys

from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable

place, name = sys.argv[1:3]
if place.startswith("http"):
    table = load_catalog("lakehouse", type="rest", uri=place).load_table(name)
else:
    table = StaticTable.from_metadata(f"{place}/{name.replace('.', '/')}")

print(table.schema())
rows = table.scan().to_arrow()  # all of it; a row_filter and selected_fields read less
print(f"{rows.num_rows} rows")
print(rows.slice(0, 5).to_pandas().to_string(index=False) if rows.num_rows else "")

# how far the sink has got: next offsets, by topic and partition
for key, value in table.properties.items():
    if key.startswith("kafka.connect.offsets."):
        print(key.removeprefix("kafka.connect.offsets."), json.loads(value))

# the table as it was before its newest commit
older = [snapshot for snapshot in table.metadata.snapshots if snapshot.snapshot_id != table.current_snapshot().snapshot_id]
if older:
    print(f"before the newest commit: {table.scan(snapshot_id=older[-1].snapshot_id).to_arrow().num_rows} rows")
