"""What a connector lacks, asked of its own doctor, of Kafka and of the worker: `diagnose` puts it together."""
