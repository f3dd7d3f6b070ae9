"""The only home of the Kafka client (confluent-kafka, librdkafka).

Callers speak Java's property names, as users do: `client` composes the settings of each client as Connect's `Worker.java` does, and
`settings` turns them into librdkafka's. `producer`, `consumer`, `log`, `admin` and `group_commit` are the clients.
"""
