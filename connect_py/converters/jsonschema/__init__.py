"""Connect data as JSON with a JSON Schema in a registry, as Confluent's JsonSchemaConverter does it (`JsonSchemaData.java`)."""
