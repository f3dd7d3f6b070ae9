"""What the lakehouse sink lacks, without Spark: its machine, its catalog and its bucket. `diagnose` puts it together."""
