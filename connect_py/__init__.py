"""Kafka Connect and Debezium in Python. Plugin authors import from `connect_py.api`, `connect_py.data` and `connect_py.errors`."""

__version__ = "0.1.0"
