"""Whether tables of the lakehouse sink equal the tables of their source: what `connect-py verify` does."""
