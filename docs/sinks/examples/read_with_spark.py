"""Queries over lakehouse tables by Spark, with the libraries that the sink fetched.

python read_with_spark.py iceberg /warehouse inventory.orders
python read_with_spark.py delta /tables inventory.orders
"""

import sys

from pyspark.sql import SparkSession

from spark_sink.spark.jars import SINK_JARS, cached, resolve  # or --packages with the coordinates that SINK_JARS lists

kind, root, name = sys.argv[1:4]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", ",".join(str(jar) for jar in resolve(SINK_JARS, cached(SINK_JARS, "spark-sink"))))
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config(
        "spark.sql.extensions",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,io.delta.sql.DeltaSparkSessionExtension",
    )
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    # Iceberg: as in the connector's lakehouse.catalog.*
    .config("spark.sql.catalog.lakehouse", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lakehouse.type", "hadoop")
    .config("spark.sql.catalog.lakehouse.warehouse", root)
    .getOrCreate()
)

table = f"lakehouse.{name}" if kind == "iceberg" else f"delta.`{root}/{name.replace('.', '/')}`"
spark.table(table).printSchema()
print(spark.table(table).count(), "rows")

# every commit, with the offsets that it holds
if kind == "iceberg":
    for row in spark.table(f"{table}.snapshots").orderBy("committed_at", ascending=False).limit(3).collect():
        print(row["committed_at"], row["operation"], {key: value for key, value in row["summary"].items() if ".offsets." in key})
else:
    for row in spark.sql(f"DESCRIBE HISTORY {table} LIMIT 3").collect():
        print(row["timestamp"], row["operation"], row["userMetadata"])
spark.stop()
