"""The sink: change events into collections of MongoDB (`io.debezium.connector.mongodb.sink`)."""
