"""The MongoDB connectors: change streams into Kafka, and change events into MongoDB."""
