"""The JDBC sink: change events into tables of PostgreSQL, MySQL, MariaDB and SQLite (`io.debezium.connector.jdbc`)."""
