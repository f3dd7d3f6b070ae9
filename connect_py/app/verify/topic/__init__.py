"""Compare the topics of a source connector with its tables."""
